"""Megatron's older form: a folder for each model-parallel rank, each with the whole state of that rank.

    mp_rank_<tp>[_<pp>][_<ep>]/model_optim_rng.pt    and distrib_optim.pt where the optimizer is distributed

The first rank's file is followed by its opcodes; of the others the names, the sizes and the ends are looked at.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from cairn.formats.checkpoints import torch_files, torch_weights
from cairn.formats.checkpoints.megatron_args import Said, said_of
from cairn.formats.checkpoints.pickles import UnsafePickle
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Layout,
    Pieces,
    Problem,
    Unreadable,
    absent,
    present,
    unknown,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import claims_of_place, decide_step
from cairn.formats.checkpoints.weights import Weights
from cairn.formats.checkpoints.zip_ends import cut_short

NAME = "megatron-legacy"
_RANK_FILE = re.compile(
    r"(?P<folder>mp_rank_(?P<tp>\d{2,})(?:_(?P<second>\d{3,}))?(?:_(?P<third>\d{3,}))?)/"
    r"(?P<file>model_optim_rng|model_rng|optim|distrib_optim|layer_wise_optimizer_\d+)\.pt"
)
_MAIN = ("model_optim_rng.pt", "model_rng.pt")
_DISTRIBUTED = ("distrib_optim.pt", "optim.pt")
_RANDOM = ("rng_state", "random_rng_state", "np_rng_state", "torch_rng_state", "cuda_rng_state", "rng_tracker_states")


@dataclass(frozen=True)
class _Ranks:
    """The ranks that there should be, and why; `certain` where the arguments say it."""

    folders: tuple[str, ...]
    why: str
    certain: bool


def matches(listing: Listing) -> bool:
    return any(_RANK_FILE.fullmatch(path) and torch_files.looks_so(listing, path) for path in _rank_files(listing)[:3])


def _rank_files(listing: Listing) -> list[str]:
    return [path for path in listing if path.startswith("mp_rank_") and _RANK_FILE.fullmatch(path)]


def read(listing: Listing) -> Inspection:
    files = _rank_files(listing)
    problems = cut_short(listing, files)
    first = next((path for path in files if path.endswith(_MAIN)), files[0])
    said = _first(listing, first, problems)
    expected = _expected(said, files)
    missing = _missing(files, expected)
    step = decide_step((*said.claims(), *claims_of_place(listing.root)))
    weights = _weights(said, first)
    alone = len(expected.folders) == 1 and expected.certain
    broken = bool(problems or missing)
    return Inspection(
        format=NAME,
        format_version=_version(said),
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements,
        pieces=Pieces(
            _has_weights(said, weights), _optimizer(said, files), said.position(_loaders(listing)), _random(said)
        ),
        layout=_layout(said, expected),
        # Of several ranks only the first is opened, and what they replicate is not written anywhere.
        parameter_count=weights.parameter_count if alone and weights.read else None,
        dtypes=weights.dtypes if alone else {},
        tensor_count=weights.tensor_count if alone and weights.read else None,
        tensors=tuple(weights.tensors) if alone else (),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=False if broken else True if expected.certain else None,
        missing=tuple(missing),
        problems=tuple(problems),
        facts={
            **said.facts(),
            "ranks": len({path.partition("/")[0] for path in files}),
            "ranks_expected": expected.why,
        },
    )


def _first(listing: Listing, path: str, problems: list[Problem]) -> Said:
    try:
        found = torch_files.read(listing, path)
    except UnsafePickle as fault:
        raise UnsafePickle(f"{path}: {fault}") from None
    except Unreadable as fault:
        if all(each.path != path for each in problems):
            problems.append(Problem(path, str(fault)))
        return Said(path)
    problems.extend(Problem(path, fault) for fault in found.problems)
    return said_of(found.value, path)


def _expected(said: Said, files: Sequence[str]) -> _Ranks:
    layout = said.layout()
    if layout.tp is not None and layout.pp is not None:
        ep = layout.ep or 1
        grid = (layout.tp, *([layout.pp] if layout.pp > 1 else []), *([ep] if ep > 1 else []))
        degrees = f"TP {layout.tp}, PP {layout.pp}" + (f", EP {ep}" if ep > 1 else "")
        if len(grid) == 1 or layout.tp * layout.pp * ep <= 1_000_000:
            return _Ranks(tuple(_folders(grid)), f"{said.file} says {degrees}", True)
    seen = [found for path in files if (found := _RANK_FILE.fullmatch(path))]
    places = [[int(part) for part in (each["tp"], each["second"], each["third"]) if part is not None] for each in seen]
    axes = max(len(each) for each in places)
    highest = [max(each[axis] for each in places if len(each) == axes) + 1 for axis in range(axes)]
    if any(each > 4096 for each in highest):
        return _Ranks(tuple({each["folder"] for each in seen}), "the folders that are there", False)
    return _Ranks(tuple(_folders(highest)), "the highest rank among the folders: the arguments are unknown", False)


def _folders(grid: Sequence[int]) -> list[str]:
    return [
        "mp_rank_" + "_".join(f"{rank:0{2 if axis == 0 else 3}d}" for axis, rank in enumerate(place))
        for place in product(*(range(size) for size in grid))
    ]


def _missing(files: Sequence[str], expected: _Ranks) -> list[str]:
    """Every rank writes the same files."""
    kinds = dict.fromkeys(path.partition("/")[2] for path in files)
    kinds = {kind: None for kind in kinds if not kind.startswith("layer_wise_optimizer_")}
    there = set(files)
    return [path for folder in expected.folders for kind in kinds if (path := f"{folder}/{kind}") not in there]


def _version(said: Said) -> str | None:
    version = said.value.get("checkpoint_version")
    return str(version) if isinstance(version, (int, float)) and not isinstance(version, bool) else None


def _models(said: Said) -> dict[str, Any]:
    """`model`, or `model0`, `model1`, ... of interleaved pipeline stages."""
    return {key: each for key, each in said.value.items() if isinstance(key, str) and re.fullmatch(r"model\d*", key)}


def _weights(said: Said, path: str) -> Weights:
    found = Weights(files=[path])
    for model in _models(said).values():
        torch_weights.add_tensors(found, model, path)
    found.read = int(found.tensor_count > 0)
    return found


def _has_weights(said: Said, weights: Weights) -> Finding:
    if not said.value:
        return unknown(f"{said.file} could not be read")
    if weights.tensor_count:
        return present(f"{said.file} {', '.join(_models(said))}: {weights.tensor_count:,} tensors of this rank")
    return absent(f"{said.file} has no model")


def _optimizer(said: Said, files: Sequence[str]) -> Finding:
    scheduler = next((key for key in ("opt_param_scheduler", "lr_scheduler") if key in said.value), "")
    also = f"; {scheduler}" if scheduler else "; no scheduler"
    kept = next((path for path in files if path.endswith(_DISTRIBUTED) or "/layer_wise_optimizer_" in path), None)
    if kept:
        return present(f"{kept}{also}")
    if not said.value:
        return unknown(f"{said.file} could not be read")
    optimizer = said.value.get("optimizer")
    if optimizer is None:
        return absent(f"{said.file} has no optimizer")
    if said.args.get("use_distributed_optimizer") is True:
        return absent(
            f"the optimizer is distributed, and no distrib_optim.pt holds its moments; {said.file} has settings"
        )
    return present(f"{said.file} optimizer{also}")


def _random(said: Said) -> Finding:
    if not said.value:
        return unknown(f"{said.file} could not be read")
    found = next((key for key in _RANDOM if said.value.get(key)), None)
    return present(f"{said.file} {found}") if found else absent(f"{said.file} has no random state")


def _loaders(listing: Listing) -> list[str]:
    return sorted(path for path in listing if re.fullmatch(r"(.*/)?train_dataloader_dprank\d+\.pt", path))


def _layout(said: Said, expected: _Ranks) -> Layout:
    layout = said.layout()
    if expected.certain:
        return layout
    evidence = {"model_parallel_ranks": f"{len(expected.folders)}: {expected.why}"}
    return Layout(**{**vars(layout), "extra": {**layout.extra, "evidence": {**layout.extra["evidence"], **evidence}}})
