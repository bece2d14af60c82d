"""MLflow, spoken to over its REST interface: any tracking server, Databricks' included. Its library is not needed.

A store of files is read where it lies (`mlruns`, by its path).
"""

import os
from dataclasses import replace

from registry.config import Settings
from registry.integrations.credentials import find_credential
from registry.integrations.hosts import folder_of
from registry.integrations.http import TrackerHttp
from registry.integrations.mlflow_api import MlflowApi
from registry.integrations.mlflow_files import MlflowFiles
from registry.integrations.mlflow_reader import MlflowReader
from registry.integrations.mlflow_writer import MlflowWriter
from registry.integrations.open import Place
from registry.integrations.shapes import TrackerAnswerUnknown


def open_reader(place: Place, settings: Settings) -> MlflowReader:
    """Raises TrackerAnswerUnknown where no address is known, HostNotAllowed for a folder that may not be read."""
    uri = _uri(place)
    if folder_of(uri):
        return MlflowReader(MlflowFiles(uri, settings.tracker_hosts), replace(place, uri=f"file://{folder_of(uri)}"))
    return MlflowReader(_api(uri, settings), place)


def open_writer(place: Place, settings: Settings) -> MlflowWriter:
    """Raises TrackerAnswerUnknown where no address is known."""
    uri = _uri(place)
    if folder_of(uri):
        raise TrackerAnswerUnknown("A folder is only read. To have checkpoints told, link the run by its server.")
    return MlflowWriter(_api(uri, settings))


def _api(uri: str, settings: Settings) -> MlflowApi:
    return MlflowApi(TrackerHttp(uri, settings.tracker_hosts, find_credential(uri)))


def _uri(place: Place) -> str:
    uri = place.uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise TrackerAnswerUnknown(
            "The link names no address, and the worker has none of its own. Link the run by its address, or set "
            "MLFLOW_TRACKING_URI for the worker."
        )
    return uri
