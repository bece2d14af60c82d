"""Whether the files are the checkpoint that is recorded: its format, its step, its pieces, and nothing missing."""

from cairn.drill.reading import StageFailed
from cairn.formats.checkpoints import (
    READERS,
    Inspection,
    OutOfReach,
    Presence,
    Unreadable,
    Unrecognised,
    inspect,
    sidecar,
)
from cairn.formats.checkpoints.shapes import path_text
from cairn.formats.checkpoints.words import PIECE_NAMES
from cairn.stores import open_source
from cairn.types import Checkpoint

# The words of our own readers. Another word for a format may mean anything, and is not held against the files.
KNOWN = frozenset(reader.NAME for reader in READERS) | {"megatron-dist", "megatron-legacy"}


def check_files(path: str, checkpoint: Checkpoint) -> bool:
    """True where the files were held against the record; False where no reader knows them, so that nothing can be said.

    Raises `StageFailed`; `OutOfReach` where this host has lost sight of them.
    """
    try:
        found = inspect(open_source(path))
    except Unrecognised:
        if checkpoint.format in KNOWN:
            raise StageFailed("files", f"they are no {checkpoint.format}, which is recorded") from None
        return False
    except OutOfReach:
        raise
    except Unreadable as fault:
        raise StageFailed("files", path_text(str(fault))) from None
    if wrong := _wrong(found, checkpoint):
        raise StageFailed("files", wrong)
    return True


def _wrong(found: Inspection, checkpoint: Checkpoint) -> str:
    if found.complete is False:
        missing = f"{path_text(found.missing[0])} is missing" if found.missing else "files are cut short or disagree"
        return f"it is not whole: {missing}"
    if checkpoint.format in KNOWN and not _same_format(checkpoint.format, found.format):
        return f"its files are {found.format}, and {checkpoint.format} is recorded"
    if None not in (found.step, checkpoint.step) and found.step != checkpoint.step:
        return f"its files are of step {found.step}, and step {checkpoint.step} is recorded"
    evidence = checkpoint.raw.get("piece_evidence") or {}
    gone = [
        f"{PIECE_NAMES[name]} ({path_text(finding.evidence)})"
        for name, finding in found.pieces.items()
        if finding.state is Presence.ABSENT
        and checkpoint.pieces.get(name) == str(Presence.PRESENT)
        and not sidecar.is_trained((evidence.get(name) or {}).get("evidence"))  # it may lie elsewhere
    ]
    return f"it is recorded with {', '.join(gone)}, which its files do not have" if gone else ""


def _same_format(recorded: str, found: str) -> bool:
    """`megatron` is what `megatron-dist` is too."""
    one, other = set(recorded.split("-")), set(found.split("-"))
    return one <= other or other <= one
