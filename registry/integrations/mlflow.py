"""MLflow, spoken to over its REST interface: any tracking server, Databricks' included. Its library is not needed."""

import os

from registry.config import Settings
from registry.integrations.credentials import find_credential
from registry.integrations.http import TrackerHttp
from registry.integrations.mlflow_api import MlflowApi
from registry.integrations.mlflow_reader import MlflowReader
from registry.integrations.mlflow_writer import MlflowWriter
from registry.integrations.open import Place
from registry.integrations.shapes import TrackerAnswerUnknown


def open_reader(place: Place, settings: Settings) -> MlflowReader:
    """Raises TrackerAnswerUnknown where no address is known."""
    return MlflowReader(_api(place, settings), place)


def open_writer(place: Place, settings: Settings) -> MlflowWriter:
    """Raises TrackerAnswerUnknown where no address is known."""
    return MlflowWriter(_api(place, settings))


def _api(place: Place, settings: Settings) -> MlflowApi:
    uri = place.uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise TrackerAnswerUnknown(
            "The link names no address, and the worker has none of its own. Link the run by its address, or set "
            "MLFLOW_TRACKING_URI for the worker."
        )
    return MlflowApi(TrackerHttp(uri, settings.tracker_hosts, find_credential(uri)))
