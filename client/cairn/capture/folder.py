"""What was saved, read from the folder itself: pieces, layout, format, size; and which class of storage it lies on."""

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

EVIDENCE_CHARACTERS = 1_000
# File systems that several hosts mount. What is not among them belongs to this host.
_SHARED = re.compile(
    r"nfs\d?|lustre|gpfs|mmfs|beegfs|ceph|cephfs|glusterfs|cifs|smb\d?|smbfs|9p|virtiofs|wekafs|panfs|pvfs2|orangefs|"
    r"afs|ocfs2|gfs2|vboxsf|quobyte|juicefs|fuse\.(?!.*(overlay|portal|gvfs|lxcfs|snap)).*"
)


@dataclass
class Found:
    """Fields of a registration. `complete` is None where the files cannot tell. `notes` are worth recording with the
    checkpoint, `remarks` are for whoever watches the training."""

    fields: dict[str, Any] = field(default_factory=dict)
    complete: bool | None = None
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def describe(
    paths: Sequence[str], *, tier: str | None = None, digest: bool | str = False, step: int | None = None
) -> Found:
    """Everything about the copies of one save. A path that cannot be read is recorded by its address alone."""
    found = Found()
    replicas = [_replica(path, tier, digest, found) for path in paths]
    if replicas:
        found.fields["replicas"] = replicas
    local = next((path for path in paths if not _is_url(path) and os.path.exists(path)), None)
    if local is not None:
        _read_pieces(local, step, found)
    return found


def tier_of(path: str, mounts: str = "/proc/self/mounts") -> str:
    """`shared` where the file system under the path is one that several hosts mount, else `local`."""
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                cells = line.split(" ")
                if len(cells) < 3:
                    continue
                point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), cells[1])
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, cells[2]
    except OSError:
        return "local"
    return "shared" if _SHARED.fullmatch(kind) else "local"


def _replica(path: str, tier: str | None, digest: bool | str, found: Found) -> dict[str, Any]:
    from cairn.replicas import replica

    if _is_url(path):
        return {"uri": _without_secrets(path), "tier": "object"}
    where = tier if tier in ("local", "shared") else tier_of(path)
    plain: dict[str, Any] = {"uri": os.path.abspath(path), "tier": where}
    if where == "local":
        plain["host"] = socket.gethostname()
    if not os.path.exists(path):
        found.notes.append(f"{path} is not there on {socket.gethostname()}: its address alone is recorded")
        return plain
    try:
        return replica(path, tier=where, digest=digest)
    except Exception as fault:  # a digest's library is absent, a file vanished: the address is worth recording
        found.remarks.append(f"{path} could not be read whole: {fault}")
        return plain


def _read_pieces(path: str, step: int | None, found: Found) -> None:
    from cairn.formats.checkpoints import LocalSource, Unreadable, inspect
    from cairn.formats.checkpoints.words import layout_to_wire, pieces_to_wire

    try:
        seen = inspect(LocalSource(path))
    except Unreadable:
        return  # no format of ours: what the caller says of the pieces is all that is known
    except Exception as fault:
        found.remarks.append(f"{path} could not be inspected: {type(fault).__name__}: {fault}")
        return
    found.complete = seen.complete
    found.fields["pieces"] = {
        name: {**piece, "evidence": piece["evidence"][:EVIDENCE_CHARACTERS]}
        for name, piece in pieces_to_wire(seen.pieces).items()
    }
    layout = layout_to_wire(seen.layout)
    given = {"format": seen.format, "format_version": seen.format_version, "layout": layout}
    found.fields |= {name: value for name, value in given.items() if value}
    by_content = not seen.step_source.startswith(("name ", "cairn.json"))
    if step is not None and seen.step is not None and seen.step != step and by_content:
        found.notes.append(f"saved as step {step}, but {seen.step_source} says {seen.step}")
    if seen.complete is False:
        missing = f": {', '.join(seen.missing[:3])} missing" if seen.missing else ""
        found.remarks.append(f"{path} is not whole{missing}")


def _is_url(path: str) -> bool:
    return "://" in path


def _without_secrets(url: str) -> str:
    from cairn.capture.secrets import mask_text

    return mask_text(url).rstrip("/")
