"""Checkpoints of torch's distributed checkpointing: `.metadata` and `__<rank>_<n>.distcp` (torchtitan, FSDP, OLMo).

The metadata names every tensor with its parts, and for each part the file, offset and length: so what is there can
be told without opening a shard. A save that was interrupted has shards and no `.metadata`; one that has it is whole
only where every file is long enough for what it must hold, and even that proves no content.
"""

import re
from collections.abc import Iterable, Sequence

from cairn.formats.checkpoints.counters import read_counters, wanted
from cairn.formats.checkpoints.dcp_beside import read_beside
from cairn.formats.checkpoints.dcp_findings import findings, layout_of, tensors_of, without_lost
from cairn.formats.checkpoints.dcp_machine import MAX_BYTES
from cairn.formats.checkpoints.dcp_metadata import FileNeed, parse
from cairn.formats.checkpoints.dcp_part import SHARD, Part
from cairn.formats.checkpoints.pickles import UnsafePickle
from cairn.formats.checkpoints.shapes import Inspection, Problem, Unreadable, path_text
from cairn.formats.checkpoints.source import MAX_READ, Listing
from cairn.formats.checkpoints.steps import StepClaim, claim_of, claims_of_place, decide_step

NAME = "torch-dcp"
LOOKS_FOR = "a .metadata that is a pickle, or *.distcp files"
METADATA_NAME = ".metadata"
METADATA = re.compile(r"(__\d+)?\.metadata")
# Parts of one checkpoint by these names alone: folders of other names are checkpoints of their own.
_PART = re.compile(
    r"(pytorch_)?model(_fsdp)?(_\d+)?|model_and_optim(izer)?|optim(izer)?(_states?)?(_\d+)?|weights|model_states?"
)
_LEFT_OVER = re.compile(r"(__\d+)?\.metadata\.tmp")


def matches(listing: Listing) -> bool:
    return bool(_folders(listing))


def read(listing: Listing) -> Inspection:
    """What the metadata says, and whether the files can hold it. Raises `UnsafePickle` for one that runs code."""
    parts = [read_part(listing.below(folder) if folder else listing, folder) for folder in _folders(listing)]
    counters = {f"{part.prefix}{name}": value for part in parts for name, value in read_part_counters(part).items()}
    beside = read_beside(listing)
    step = decide_step((*_claims(counters), *beside.claims(), *claims_of_place(listing.root)))
    pieces = findings([part.metadata for part in parts], understood=all(part.understood for part in parts))
    found = tensors_of([part.metadata for part in parts])
    whole = all(part.understood and part.sound and not part.missing for part in parts)
    version = next((part.metadata.version for part in parts if part.metadata.version), None)
    return Inspection(
        format=NAME,
        format_version=version,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements,
        pieces=beside.completed(without_lost(pieces, [part.lost for part in parts])),
        layout=layout_of(parts, counters),
        parameter_count=found.parameter_count if found.understood else None,
        dtypes=found.dtypes,
        tensor_count=found.tensor_count if found.understood else None,
        tensors=tuple(found.tensors),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=whole and not beside.problems,
        missing=tuple(path for part in parts for path in part.missing),
        last_written=_metadata_files(parts) if whole else (),
        problems=(*(problem for part in parts for problem in part.problems), *beside.problems),
        facts={**_facts(parts, counters), **beside.facts()},
    )


def _metadata_files(parts: Sequence[Part]) -> tuple[str, ...]:
    """Written once every shard is there. One folder of several says nothing of those that are still to come."""
    if len(parts) == 1 and parts[0].prefix:
        return ()
    return tuple(part.prefix + path for part in parts for path in part.listing.top() if METADATA.fullmatch(path))


def _folders(listing: Listing) -> list[str]:
    """The root ('' for it), or the folders below that are its parts."""
    if _holds(listing, ""):
        return [""]
    return [f"{each}/" for each in listing.folders() if _PART.fullmatch(each) and _holds(listing, f"{each}/")]


def _holds(listing: Listing, prefix: str) -> bool:
    for path in listing:
        if not path.startswith(prefix) or "/" in (name := path[len(prefix) :]):
            continue
        if SHARD.fullmatch(name) or (METADATA.fullmatch(name) and listing.begins(path, b"\x80")):
            return True
    return False


def read_part(listing: Listing, prefix: str = "") -> Part:
    """One folder's metadata, held against its files. Raises `UnsafePickle`."""
    part = Part(prefix, listing)
    _read_metadata(part)
    _check_files(part)
    return part


def _read_metadata(part: Part) -> None:
    names = [path for path in part.listing.top() if METADATA.fullmatch(path)]
    if not names:
        part.missing.append(part.prefix + ".metadata")
        reason = "is not there: the save was interrupted, or still runs"
        part.fault(".metadata", reason)
    part.understood = bool(names)
    for name in names:
        try:
            parse(_content(part.listing, name), part.metadata, wanted)
        except UnsafePickle as fault:
            raise UnsafePickle(f"{path_text(part.prefix + name)}: {fault}") from None
        except Unreadable as fault:
            part.understood = False
            part.fault(name, f"cannot be read: {fault}")


def _content(listing: Listing, path: str) -> bytes:
    size = listing.size(path)
    if size > MAX_BYTES:
        raise Unreadable(f"it has {size:,} bytes, and {MAX_BYTES:,} at most are followed")
    return b"".join(listing.exact(path, at, min(MAX_READ, size - at)) for at in range(0, size, MAX_READ))


def _check_files(part: Part) -> None:
    """Every file that the metadata needs, long enough; and what lies there beside."""
    for path, need in sorted(part.metadata.files.items()):
        _check_file(part, path, need)
    if part.understood:
        for name in part.metadata.unstored()[:20]:
            part.fault(".metadata", f"says of {path_text(name[:200])} less than the whole: a part of it is nowhere")
        left = [path for path in part.shards() if path not in part.metadata.files and part.listing.size(path)]
        if left:
            told = f"the metadata needs nothing of {len(left):,} files that hold something: of another save?"
            part.problems.append(Problem(part.prefix + left[0], told))
    for path in filter(_LEFT_OVER.fullmatch, part.listing.top()):
        part.problems.append(Problem(part.prefix + path, "is left over from a save that did not end"))


def _check_file(part: Part, path: str, need: FileNeed) -> None:
    if path not in part.listing:
        part.missing.append(part.prefix + path)
    elif (size := part.listing.size(path)) < need.end:
        part.fault(path, f"was cut short: it has {size:,} bytes and must hold {need.end:,}")
    else:
        return
    for kind in need.kinds:
        part.lost.setdefault(kind, []).append(part.prefix + path)


def read_part_counters(part: Part) -> dict[str, int]:
    """Whole numbers that stand in the shards as entries of their own: steps, tokens seen, the loader's degree."""
    if part.metadata.transforms:
        return {}
    return read_counters(part.listing, part.metadata.places)


def _claims(counters: dict[str, int]) -> Iterable[StepClaim]:
    for name, value in counters.items():
        if name.rpartition(".")[2] in ("step", "global_step", "iteration"):
            yield from claim_of(value, f".metadata {name}")


def _facts(parts: Sequence[Part], counters: dict[str, int]) -> dict[str, object]:
    metadata = [part.metadata for part in parts]
    facts: dict[str, object] = {
        "files_needed": sum(len(each.files) for each in metadata),
        "files_present": sum(path in part.listing for part in parts for path in part.metadata.files),
        "entries": sum(need.entries for each in metadata for need in each.files.values()),
        "objects": sum(len(each.objects) for each in metadata),
        "planner_data": any(each.has_planner_data for each in metadata),
    }
    if [part.prefix for part in parts] != [""]:
        facts["parts"] = [part.prefix.rstrip("/") for part in parts]
    if save_ids := sorted({each.save_id for each in metadata if each.save_id}):
        facts["save_id"] = save_ids[0] if len(save_ids) == 1 else save_ids
    if any(each.writer != "Metadata" for each in metadata):
        facts["writer"] = "MCoreMetadata"
    if transforms := sorted({name for each in metadata for name in each.transforms}):
        facts["transforms"] = transforms
    return facts | ({"counters": counters} if counters else {})
