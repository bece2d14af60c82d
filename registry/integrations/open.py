"""The reader and writer of each tracker, imported only where one is used: in a worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from registry.config import Settings
from registry.integrations.shapes import TrackerReader, TrackerWriter


@dataclass(frozen=True)
class Place:
    """Where to read or write: a tracker's address, and its project (of MLflow: an experiment's name or id)."""

    kind: str
    uri: str
    entity: str | None = None
    project: str | None = None


# Each module has `open_reader(place, settings)` and `open_writer(place, settings)`.
MODULES: Final[Mapping[str, str]] = {
    "mlflow": "registry.integrations.mlflow",
    "wandb": "registry.integrations.wandb",
}


def open_reader(place: Place, settings: Settings) -> TrackerReader:
    """Raises HostNotAllowed, or what the tracker's own module raises where its extra is not installed."""
    return cast(TrackerReader, import_module(MODULES[place.kind]).open_reader(place, settings))


def open_writer(place: Place, settings: Settings) -> TrackerWriter:
    return cast(TrackerWriter, import_module(MODULES[place.kind]).open_writer(place, settings))
