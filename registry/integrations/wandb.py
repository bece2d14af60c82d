"""W&B, spoken to through its own library, which is loaded when a worker first needs it."""

import os
from typing import Final

from registry.config import Settings
from registry.integrations.open import Place
from registry.integrations.wandb_api import WandbApi
from registry.integrations.wandb_reader import WandbReader
from registry.integrations.wandb_writer import WandbWriter
from registry.trackers.links import WANDB_API, clean_uri

ADDRESS: Final = "WANDB_BASE_URL"


def open_reader(place: Place, settings: Settings) -> WandbReader:
    """Raises HostNotAllowed, or a tracker error where W&B does not answer as it should."""
    return WandbReader(_api(place, settings), place)


def open_writer(place: Place, settings: Settings) -> WandbWriter:
    """Raises HostNotAllowed, or a tracker error where W&B does not answer as it should."""
    return WandbWriter(_api(place, settings), place)


def _api(place: Place, settings: Settings) -> WandbApi:
    """An address that a link leaves out is the worker's own."""
    uri = clean_uri(place.uri or os.environ.get(ADDRESS) or WANDB_API).rstrip("/")
    return WandbApi(uri, settings)
