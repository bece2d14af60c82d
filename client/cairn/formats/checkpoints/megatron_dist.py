"""Megatron's dist-checkpointing: `metadata.json`, `common.pt`, and shards of a backend (torch_dist or zarr)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints import dcp, torch_files
from cairn.formats.checkpoints.counters import numbers_of_file
from cairn.formats.checkpoints.dcp_findings import findings, tensors_of
from cairn.formats.checkpoints.dcp_metadata import DcpMetadata
from cairn.formats.checkpoints.dcp_part import SHARD
from cairn.formats.checkpoints.documents import read_json
from cairn.formats.checkpoints.megatron_args import Said, said_of
from cairn.formats.checkpoints.megatron_zarr import read_zarr
from cairn.formats.checkpoints.pickles import UnsafePickle
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Layout,
    Pieces,
    Presence,
    Problem,
    Unreadable,
    absent,
    path_text,
    present,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import claim_of, claims_of_place, decide_step

NAME = "megatron-dist"
_FORMATS = {"torch_dist": "megatron-torch-dist", "zarr": "megatron-zarr"}
METADATA = "metadata.json"
COMMON = "common.pt"
# NeMo keeps the same in a folder of the checkpoint's.
_INNER = ("weights/", "model_weights/")
_LOADER = re.compile(r"(.*/)?train_dataloader_dprank(?P<rank>\d+)\.pt")
_SHARDED_OBJECT = re.compile(r"(?P<key>[\w.]*rng_state)/shard_[\d.]+_(?P<shape>\d+\.\d+)")


@dataclass
class Shards:
    """What the backend holds, in the words of DCP metadata."""

    metadata: DcpMetadata = field(default_factory=DcpMetadata)
    understood: bool = False
    sound: bool = True
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    ranks: int | None = None
    where: str = dcp.METADATA_NAME


def matches(listing: Listing) -> bool:
    return _prefix(listing) is not None


def _prefix(listing: Listing) -> str | None:
    """Where `metadata.json` is, or the rest of such a folder whose save did not come to it."""
    for prefix in ("", *_INNER):
        if prefix + METADATA in listing and _backend(listing, prefix + METADATA) is not None:
            return prefix
        if prefix + METADATA in listing or prefix + COMMON not in listing:
            continue
        if any(SHARD.fullmatch(path[len(prefix) :]) for path in listing if path.startswith(prefix)):
            return prefix
    return None


def _backend(listing: Listing, path: str) -> Mapping[str, Any] | None:
    try:
        said = read_json(listing, path, 64 * 1024)
    except Unreadable:
        return None
    return said if isinstance(said, dict) and isinstance(said.get("sharded_backend"), str) else None


def read(listing: Listing) -> Inspection:
    prefix = _prefix(listing) or ""
    inner = listing.below(prefix) if prefix else listing
    problems: list[Problem] = []
    config = _backend(inner, METADATA) if METADATA in inner else None
    backend = str(config["sharded_backend"]) if config else "torch_dist"
    said = _common(inner, problems)
    shards = _shards(inner, backend)
    missing = [name for name in (METADATA, COMMON) if name not in inner] + shards.missing
    if config is None:
        problems.append(Problem(METADATA, "is not there; it is written last: still being written, or broken off"))
    loaders = sorted(path for path in listing if _LOADER.fullmatch(path))
    trainer = _train_state(listing, problems)
    step = decide_step(
        (*said.claims(), *claim_of(trainer.get("step"), "train_state.pt step"), *claims_of_place(listing.root))
    )
    tensors = tensors_of([shards.metadata])
    broken = bool(problems) or bool(missing) or not shards.sound or not shards.understood
    return Inspection(
        format=_FORMATS.get(backend, NAME),
        format_version=_version(config),
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements + _against_ranks(said, shards),
        pieces=_pieces(said, shards, loaders, trainer),
        layout=_layout(said, shards),
        parameter_count=tensors.parameter_count if tensors.understood else None,
        dtypes=tensors.dtypes,
        tensor_count=tensors.tensor_count if tensors.understood else None,
        tensors=tuple(tensors.tensors),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=not broken,
        missing=tuple(prefix + path for path in missing),
        last_written=() if broken else (prefix + METADATA,),
        problems=tuple(Problem(prefix + each.path, each.reason) for each in (*problems, *shards.problems)),
        facts={**said.facts(), **_facts(shards, trainer)},
    )


def _common(inner: Listing, problems: list[Problem]) -> Said:
    if COMMON not in inner:
        return Said(COMMON)
    try:
        found = torch_files.read(inner, COMMON)
    except UnsafePickle as fault:
        raise UnsafePickle(f"{COMMON}: {fault}") from None
    except Unreadable as fault:
        problems.append(Problem(COMMON, str(fault)))
        return Said(COMMON)
    problems.extend(Problem(COMMON, fault) for fault in found.problems)
    return said_of(found.value, COMMON)


def _shards(inner: Listing, backend: str) -> Shards:
    if backend == "torch_dist":
        part = dcp.read_part(inner)
        ranks = len(part.ranks())
        return Shards(part.metadata, part.understood, part.sound, part.missing, part.problems, ranks)
    if backend == "zarr":
        zarr = read_zarr(inner)
        return Shards(zarr.metadata, True, not zarr.problems, zarr.missing, zarr.problems, where="the folder")
    told = f"names the backend {path_text(backend[:40])!r}; known are {', '.join(_FORMATS)}"
    return Shards(problems=[Problem(METADATA, told)])


def _train_state(listing: Listing, problems: list[Problem]) -> dict[str, int]:
    """Megatron Bridge keeps its counters in a file of their own."""
    if "train_state.pt" not in listing:
        return {}
    try:
        return numbers_of_file(listing, "train_state.pt")
    except Unreadable as fault:
        problems.append(Problem("train_state.pt", str(fault)))
        return {}


def _version(config: Mapping[str, Any] | None) -> str | None:
    version = (config or {}).get("sharded_backend_version")
    return str(version) if isinstance(version, int) and not isinstance(version, bool) else None


def _pieces(said: Said, shards: Shards, loaders: Sequence[str], trainer: Mapping[str, int]) -> Pieces:
    found = findings([shards.metadata], understood=shards.understood, where=shards.where)
    position = said.position(loaders)
    if position.state is not Presence.PRESENT and (counted := trainer.get("consumed_train_samples")) is not None:
        position = Said("train_state.pt", {}, {"consumed_train_samples": counted}).position(())
    return Pieces(
        weights=found.weights,
        optimizer=_optimizer(said, found.optimizer),
        data_position=position,
        random_state=_random(said, found.random_state),
    )


def _optimizer(said: Said, shards: Finding) -> Finding:
    """The moments are sharded; groups and the scheduler are in `common.pt`."""
    scheduler = next((key for key in ("opt_param_scheduler", "lr_scheduler", "lr_schedulers") if key in said.value), "")
    if shards.state is Presence.PRESENT:
        told = shards.evidence.partition("; no key of a scheduler")[0]
        return present(f"{told}; {COMMON} {scheduler}" if scheduler else f"{told}; no key of a scheduler")
    if said.args.get("no_save_optim") is True:
        return absent(f"{COMMON} args.no_save_optim: it was not to be saved")
    if shards.state is Presence.ABSENT and "optimizer" in said.value:
        return absent(f"{shards.evidence}; {COMMON} holds its settings alone")
    return shards


def _random(said: Said, shards: Finding) -> Finding:
    if shards.state is Presence.PRESENT:
        return shards
    if said.value.get("rng_state"):
        return present(f"{COMMON} rng_state")
    return (
        absent(f"{COMMON} args.no_save_rng: it was not to be saved") if said.args.get("no_save_rng") is True else shards
    )


def _layout(said: Said, shards: Shards) -> Layout:
    sharding = _sharding_type(said)
    extra: dict[str, Any] = {"distrib_optim_sharding_type": sharding} if sharding else {}
    layout = said.layout(sharding, extra | ({"ranks": shards.ranks} if shards.ranks else {}))
    ranks = _model_parallel(shards)
    known = dict(zip(("pp", "tp"), ranks[:2], strict=True)) if ranks else {}
    new = {degree: value for degree, value in known.items() if getattr(layout, degree) is None}
    evidence = {**layout.extra["evidence"], **dict.fromkeys(new, f"keys {ranks[2]}" if ranks else "")}
    return Layout(**{**vars(layout), **new, "extra": {**layout.extra, "evidence": evidence}})


def _model_parallel(shards: Shards) -> tuple[int, int, str] | None:
    """(PP, TP, key): every model-parallel rank stores its random state under its place in the grid."""
    for name in shards.metadata.objects:
        if found := _SHARDED_OBJECT.fullmatch(name):
            pp, _, tp = found["shape"].partition(".")
            return int(pp), int(tp), f"{found['key']}/shard_*_{found['shape']}"
    return None


def _against_ranks(said: Said, shards: Shards) -> tuple[str, ...]:
    ranks, layout = _model_parallel(shards), said.layout()
    if ranks is None or layout.pp is None or layout.tp is None or (layout.pp, layout.tp) == ranks[:2]:
        return ()
    return (
        f"{said.file} args say PP {layout.pp} and TP {layout.tp}, the keys {ranks[2]} say {ranks[0]} and {ranks[1]}",
    )


def _sharding_type(said: Said) -> str | None:
    """How the distributed optimizer is split, where it is recorded: it decides what may be resharded."""
    content = said.value.get("content_metadata")
    found = content.get("distrib_optim_sharding_type") if isinstance(content, dict) else None
    optimizer = said.value.get("optimizer")
    if found is None and isinstance(optimizer, dict):
        groups = (optimizer, *(each for each in optimizer.values() if isinstance(each, dict)))
        found = next(
            (each["param_state_sharding_type"] for each in groups if "param_state_sharding_type" in each), None
        )
    return found if isinstance(found, str) else None


def _facts(shards: Shards, trainer: Mapping[str, int]) -> dict[str, Any]:
    facts: dict[str, Any] = {"tensors_in_parts": sum(each.chunks for each in shards.metadata.tensors.values())}
    if shards.metadata.save_id:
        facts["save_id"] = shards.metadata.save_id
    return facts | ({"counters": dict(trainer)} if trainer else {})
