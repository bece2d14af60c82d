"""Readers of checkpoints on storage: what the files say, without loading a tensor or executing anything.

A format is one module here with
    NAME                            the format's name, as answers carry it
    LOOKS_FOR                       a phrase: what the reader goes by, for a person whose folder was not recognised
    matches(listing) -> bool        whether it is this format: by content, names only say where to look
    read(listing) -> Inspection     what it says. Faults of single files become its `problems`, the rest goes on;
                                    raises `Unreadable` only where nothing can be said
"""

from collections.abc import Sequence
from typing import Protocol

from cairn.formats.checkpoints import (
    accelerate,
    dcp,
    deepspeed,
    gguf,
    hf_trainer,
    lightning,
    lora,
    megatron,
    pytorch_bin,
    safetensors,
    sidecar,
    torch_save,
)
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Layout,
    OutOfReach,
    Pieces,
    PositionEvidence,
    Presence,
    Problem,
    Resumability,
    Tensor,
    Unreadable,
    Unrecognised,
    path_text,
    resumability_of,
)
from cairn.formats.checkpoints.source import File, Listing, LocalSource, Source

__all__ = [
    "READERS",
    "File",
    "Finding",
    "Inspection",
    "Layout",
    "Listing",
    "LocalSource",
    "OutOfReach",
    "Pieces",
    "PositionEvidence",
    "Presence",
    "Problem",
    "Reader",
    "Resumability",
    "Source",
    "Tensor",
    "Unreadable",
    "Unrecognised",
    "find_format",
    "inspect",
    "inspect_listing",
    "path_text",
    "resumability_of",
]


class Reader(Protocol):
    """A reader module, see above."""

    NAME: str
    LOOKS_FOR: str

    def matches(self, listing: Listing) -> bool: ...

    def read(self, listing: Listing) -> Inspection: ...


# The most specific first: the first that matches reads.
READERS: Sequence[Reader] = (
    lightning,
    hf_trainer,
    accelerate,
    megatron,
    deepspeed,
    dcp,
    lora,
    safetensors,
    pytorch_bin,
    gguf,
    torch_save,
)


def find_format(source: Source | Listing) -> str | None:
    """The name of the format, or None. Raises `Unreadable` where nothing can be listed."""
    reader = _match(_listed(source))
    return reader.NAME if reader else None


def inspect(source: Source) -> Inspection:
    """Everything that the files of a checkpoint say. Raises `Unrecognised`, `Unreadable`."""
    return inspect_listing(Listing.of(source))


def inspect_listing(listing: Listing) -> Inspection:
    """The same for files that were listed already, as a scan has."""
    reader = _match(listing)
    if reader is None:
        raise Unrecognised(_not_recognised(listing))
    # cairn.json is beside the checkpoint, not of it: its bytes and digests are not the checkpoint's.
    own = listing.only(path for path in listing if path != SIDECAR) if SIDECAR in listing else listing
    found = reader.read(own)
    problems = tuple(dict.fromkeys((*listing.problems, *found.problems)))
    return sidecar.with_identity(found.having(problems=problems), listing)


def _listed(source: Source | Listing) -> Listing:
    return source if isinstance(source, Listing) else Listing.of(source)


def _match(listing: Listing) -> Reader | None:
    return next((reader for reader in READERS if reader.matches(listing)), None)


def _not_recognised(listing: Listing) -> str:
    place = path_text(listing.root)
    if not listing.files:
        why = f": {path_text(listing.problems[0].path)} {listing.problems[0].reason}" if listing.problems else ""
        return f"{place} holds no file that can be read{why}."
    inside = [folder for folder in listing.folders()[:100] if _match(listing.below(folder))]
    inside += [path for path in listing.top()[:100] if _match(listing.only([path]))]
    if inside:
        which = ", ".join(path_text(each) for each in inside[:5]) + (", ..." if len(inside) > 5 else "")
        return f"{place} is no checkpoint, but it holds {len(inside)} ({which}): inspect one of them."
    names = ", ".join(path_text(path) for path in list(listing.files)[:5])
    looked = "; ".join(f"{reader.NAME} ({reader.LOOKS_FOR})" for reader in READERS)
    return f"{place} holds {len(listing.files):,} files ({names}, ...) of no known format. Looked for: {looked}."
