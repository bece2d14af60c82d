"""What the keys of a distributed checkpoint say: pieces, weights, and as much of the layout as they tell."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cairn.formats.checkpoints.dcp_keys import Kind, by_kind, kind_of
from cairn.formats.checkpoints.dcp_metadata import DcpMetadata
from cairn.formats.checkpoints.dcp_part import Part
from cairn.formats.checkpoints.shapes import (
    Finding,
    Layout,
    Pieces,
    PositionEvidence,
    Tensor,
    absent,
    lacking,
    path_text,
    present,
    unknown,
)
from cairn.formats.checkpoints.weights import Weights

PIECE_OF = {
    Kind.WEIGHTS: "weights",
    Kind.OPTIMIZER: "optimizer",
    Kind.SCHEDULER: "optimizer",
    Kind.DATA: "data_position",
    Kind.RANDOM: "random_state",
}
_LOADER_RANK = re.compile(r"(\w*\.)?dp_rank_(?P<rank>\d+)(\..*)?")


class TensorsFound(Weights):
    """Tensors of every piece; parameters are counted of the weights alone."""

    @property
    def understood(self) -> bool:
        return self.tensor_count > 0


def tensors_of(metadata: Sequence[DcpMetadata]) -> TensorsFound:
    found = TensorsFound()
    for each in metadata:
        for name, tensor in each.tensors.items():
            kind = kind_of(name)
            told = Tensor(path_text(name), tensor.dtype, tensor.shape, tensor.file, tensor.chunks, kind.value)
            found.add(told, counted=kind is Kind.WEIGHTS)
    return found


def findings(metadata: Sequence[DcpMetadata], *, understood: bool, where: str = ".metadata") -> Pieces:
    """The pieces by the names of what is stored: `where` lists everything, so what it leaves out is absent."""
    if not understood:
        nothing = unknown(f"{where} could not be read")
        return Pieces(nothing, nothing, nothing, nothing)
    tensors = by_kind(name for each in metadata for name in each.tensors)
    objects = by_kind(name for each in metadata for name in each.objects)
    total = sum(len(names) for names in (*tensors.values(), *objects.values()))
    none = f"none of the {total:,} keys in {where}"
    return Pieces(
        weights=_weights(metadata, tensors, none, where),
        optimizer=_optimizer(tensors, objects, none, where),
        data_position=_position(tensors, objects, none),
        random_state=_of(Kind.RANDOM, tensors, objects) or absent(f"{none} is a random state"),
    )


def without_lost(pieces: Pieces, lost: Sequence[Mapping[Kind, Sequence[str]]]) -> Pieces:
    """The pieces, where one that is partly in files that are missing or cut short is not there."""
    files: dict[str, list[str]] = {}
    for kind, paths in (pair for each in lost for pair in each.items()):
        if kind in PIECE_OF:
            files.setdefault(PIECE_OF[kind], []).extend(paths)
    return Pieces(**{name: lacking(finding, files.get(name, ())) for name, finding in pieces.items()})


def _weights(metadata: Sequence[DcpMetadata], tensors: Mapping[Kind, list[str]], none: str, where: str) -> Finding:
    names = set(tensors.get(Kind.WEIGHTS, ()))
    if not names:
        return absent(f"{none} is a weight")
    parts = sum(tensor.chunks for each in metadata for name, tensor in each.tensors.items() if name in names)
    return present(f"{where} lists {len(names):,} tensors in {parts:,} parts")


def _optimizer(tensors: Mapping[Kind, list[str]], objects: Mapping[Kind, list[str]], none: str, where: str) -> Finding:
    states, settings = tensors.get(Kind.OPTIMIZER, []), objects.get(Kind.OPTIMIZER, [])
    if not states and not settings:
        return absent(f"{none} is the optimizer's")
    scheduler = _of(Kind.SCHEDULER, tensors, objects)
    also = f"; scheduler: {scheduler.evidence}" if scheduler else "; no key of a scheduler"
    what = f"{len(states):,} tensors" if states else f"{len(settings):,} settings and no moments"
    return present(f"{where} lists {what}, as {path_text((states or settings)[0][:120])}{also}")


def _position(tensors: Mapping[Kind, list[str]], objects: Mapping[Kind, list[str]], none: str) -> Finding:
    if loader := _of(Kind.DATA, tensors, objects):
        return Finding(loader.state, loader.evidence, PositionEvidence.STATE)
    if counter := _of(Kind.COUNTER, tensors, objects):
        return Finding(counter.state, counter.evidence, PositionEvidence.COUNTER)
    return absent(f"{none} is a data loader's")


def _of(kind: Kind, tensors: Mapping[Kind, list[str]], objects: Mapping[Kind, list[str]]) -> Finding | None:
    names = [*tensors.get(kind, ()), *objects.get(kind, ())]
    if not names:
        return None
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return present(f"{path_text(names[0][:120])}{more}")


def layout_of(parts: Sequence[Part], counters: Mapping[str, int]) -> Layout:
    """Degrees with their evidence. How a tensor is cut does not tell which kind of parallelism cut it."""
    evidence: dict[str, str] = {}
    ranks = {rank for part in parts for rank in part.ranks()}
    world_size = None
    if ranks and ranks == set(range(len(ranks))) and all(not part.missing for part in parts):
        world_size = len(ranks)
        evidence["world_size"] = f"every rank of a save writes a file: __0_*.distcp to __{world_size - 1}_*.distcp"
    dp = _loader_degree(parts, counters, evidence)
    extra: dict[str, Any] = {"evidence": evidence, "ranks": len(ranks)}
    cuts = _cuts(parts)
    if cuts:
        extra["cut_dimensions"] = cuts
    return Layout(world_size=world_size, dp=dp, extra=extra)


def _loader_degree(parts: Sequence[Part], counters: Mapping[str, int], evidence: dict[str, str]) -> int | None:
    """A loader's state is kept once for each data-parallel rank (torchtitan's `dataloader.dp_rank_0`)."""
    for name, value in counters.items():
        if name.endswith(".world_size") and value > 0:
            evidence["dp"] = f"{name} is {value}"
            return value
    names = (name for part in parts for name in part.metadata.names())
    ranks = {int(found["rank"]) for name in names if (found := _LOADER_RANK.fullmatch(name))}
    if not ranks or ranks != set(range(len(ranks))):
        return None
    evidence["dp"] = f"the data loader has a state for each of dp_rank_0 to dp_rank_{len(ranks) - 1}"
    return len(ranks)


def _cuts(parts: Sequence[Part]) -> dict[str, int]:
    """The most places at which weights are cut, by dimension."""
    cuts: dict[int, int] = {}
    for part in parts:
        for name, tensor in part.metadata.tensors.items():
            if kind_of(name) is Kind.WEIGHTS:
                for axis, count in enumerate(tensor.cuts):
                    if count > max(1, cuts.get(axis, 1)):
                        cuts[axis] = count
    return {str(axis): count for axis, count in sorted(cuts.items())}
