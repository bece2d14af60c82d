"""A checkpoint inside the folder that was asked for: the one that a run's tracker or `latest` names."""

from collections.abc import Callable

from cairn.formats.checkpoints import sidecar
from cairn.formats.checkpoints.cairn_json_shape import NAME
from cairn.formats.checkpoints.shapes import Inspection
from cairn.formats.checkpoints.source import Listing


def read_inside(inner: Listing, read: Callable[[Listing], Inspection]) -> Inspection:
    """What its files say, together with the `cairn.json` that lies beside them there."""
    own = inner.only(path for path in inner if path != NAME)
    return sidecar.with_identity(read(own), inner)
