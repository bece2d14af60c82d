"""What the four pieces of a checkpoint allow."""

from collections.abc import Mapping

from registry.types import PieceName, Presence, Resumability


def resumability_of(pieces: Mapping[PieceName, Presence]) -> Resumability:
    """The kindest use that what is present allows; `registry.filters.columns.resumability` is the same in SQL.

    Without the optimizer the moments are forgotten, without the data position data is repeated: neither is
    `resumable`. Weights that come with neither are `weights-only`. A piece of which nobody spoke proves nothing.
    """
    weights, optimizer, position, random = (pieces.get(piece, Presence.UNKNOWN) for piece in PieceName)
    if weights is not Presence.PRESENT:
        return Resumability.INCOMPLETE if weights is Presence.ABSENT else Resumability.UNKNOWN
    if optimizer is position is Presence.ABSENT and random is not Presence.PRESENT:
        return Resumability.WEIGHTS_ONLY
    if Presence.ABSENT in (optimizer, position):
        return Resumability.INCOMPLETE
    if Presence.UNKNOWN in (optimizer, position):
        return Resumability.UNKNOWN
    return Resumability.EXACT if random is Presence.PRESENT else Resumability.RESUMABLE
