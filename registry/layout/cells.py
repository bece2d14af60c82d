"""What each family of formats allows when one degree changes: the table, cell by cell.

Sources: the documentation of Megatron's distributed checkpoints (`distrib_optim_sharding_type`), of torch.distributed
.checkpoint and of DeepSpeed's Universal checkpoints, and what was reported against them (DeepSpeed issues 5475, 5716,
7599, 8147: moments that were dropped, or experts' that stayed stale, in silence). Unknown is a drill, never a yes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from registry.layout.spec import Degrees, Family, Saved

DEFAULT_BUCKET: Final = 40_000_000
BUCKET_PER_RANK: Final = 1_000_000  # Megatron: a bucket holds the larger of 40 M parameters and 1 M x DP x CP


class Verdict(StrEnum):
    """Whether a piece can be loaded, the best first."""

    EXACT = "exact"
    CONVERTED = "after-conversion"
    DRILL = "needs-drill"
    REFUSED = "refused"
    IMPOSSIBLE = "not-at-all"


ORDER: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one change of one degree does to weights and optimizer, and whether the random state is dropped."""

    weights: Verdict
    optimizer: Verdict
    words: str = ""
    drops_random: bool = False


E, C, D, R, N = Verdict
EXACT: Final = Cell(E, E)
DRILL: Final = Cell(D, D)
DROPS: Final = Cell(E, E, "Megatron drops the random state", drops_random=True)
STUCK: Final = Cell(E, R, "its optimizer state cannot change TP or PP", drops_random=True)
UNSAID: Final = Cell(E, D, "nobody recorded how its optimizer is split", drops_random=True)
WEIGHTS_ALONE: Final = Cell(E, D, "only weights are in a form of their own")
TO_UNIVERSAL: Final = "native ZeRO does not load it; convert to Universal first"
STALE_EXPERTS: Final = "expert moments were reported to stay stale in silence"

_MEGATRON_FULL: Final = {"dp": EXACT, "tp": DROPS, "pp": DROPS, "ep": DRILL, "cp": EXACT}
_MEGATRON_DP: Final = {"tp": STUCK, "pp": STUCK, "ep": DRILL, "cp": DRILL}
_MEGATRON_GATHERED: Final = {"dp": EXACT, "tp": STUCK, "pp": STUCK, "ep": DRILL, "cp": EXACT}
_MEGATRON: Final = {"dp": Cell(E, D, UNSAID.words), "tp": UNSAID, "pp": UNSAID, "ep": DRILL, "cp": DRILL}
_UNIVERSAL_12: Final = {"dp": EXACT, "tp": EXACT, "pp": EXACT, "ep": Cell(D, D, STALE_EXPERTS), "cp": EXACT}
_UNIVERSAL_3: Final = {
    "dp": DRILL,
    "tp": DRILL,
    "pp": Cell(N, N, "Universal checkpoints of ZeRO 3 have no pipeline"),
    "ep": Cell(N, N, "Universal checkpoints of ZeRO 3 cannot change EP"),
    "cp": DRILL,
}
_PLAIN: Final[Mapping[Family, Mapping[str, Cell]]] = MappingProxyType(
    {
        Family.MEGATRON_FULL: _MEGATRON_FULL,
        Family.MEGATRON_DP: _MEGATRON_DP,
        Family.MEGATRON_GATHERED: _MEGATRON_GATHERED,
        Family.MEGATRON: _MEGATRON,
        Family.WEIGHTS: dict.fromkeys(("dp", "tp", "pp", "ep", "cp"), WEIGHTS_ALONE),
    }
)


def cell(saved: Saved, degree: str, now: Degrees) -> Cell:
    """The cell for a change of `degree` (dp, tp, pp, ep, cp) to what `now` says; the old value is known."""
    match saved.family:
        case Family.DCP:
            return _dcp(saved, degree)
        case Family.ZERO:
            return _native_zero(saved, degree)
        case Family.UNIVERSAL:
            return _universal(saved.zero_stage, degree)
        case Family.MEGATRON_DP if degree == "dp":
            return _buckets(saved, now)
    return _PLAIN.get(saved.family, {}).get(degree, DRILL)


def _dcp(saved: Saved, degree: str) -> Cell:
    if degree in ("dp", "cp"):
        return EXACT
    if degree == "ep":
        return DRILL
    if not saved.global_names:
        return Cell(D, D, "whether its tensors have names of the whole model is not recorded")
    if degree == "pp" and not saved.flattened_optimizer:
        return Cell(E, D, "whether its optimizer is flattened is not recorded")
    return EXACT


def _buckets(saved: Saved, now: Degrees) -> Cell:
    """Megatron's dp_reshardable asserts equal bucket sizes, which by default depend on DP x CP."""
    if saved.bucket_size is not None:
        return EXACT
    before, after = _bucket(saved.degrees), _bucket(now)
    if before is None or after is None:
        return Cell(E, D, "whether the bucket sizes match is unknown, since DP or CP is")
    if before == after:
        return EXACT
    told = f"the default bucket size changes from {before:,} to {after:,} parameters, which its loader refuses"
    return Cell(E, R, f"{told}; pin ddp_bucket_size")


def _bucket(degrees: Degrees) -> int | None:
    if degrees.dp is None or degrees.cp is None:
        return None
    return max(DEFAULT_BUCKET, BUCKET_PER_RANK * degrees.dp * degrees.cp)


def _universal(stage: int | None, degree: str) -> Cell:
    if stage in (1, 2):
        return _UNIVERSAL_12[degree]
    if stage == 3:
        return _UNIVERSAL_3[degree]
    return Cell(D, D, "the ZeRO stage that it came from is unknown")


def _native_zero(saved: Saved, degree: str) -> Cell:
    """What native ZeRO loads by itself, and else what it loads once it is converted to Universal."""
    if degree == "cp":
        return DRILL
    if degree == "dp" and saved.elastic and saved.zero_stage in (1, 2):
        return Cell(E, D, "elastic_checkpoint is said to load it")
    after = _universal(saved.zero_stage, degree)
    optimizer, words = _converted(after.optimizer), TO_UNIVERSAL
    if degree == "dp":
        return Cell(E, optimizer, _joined(words, after.words) if optimizer is not E else "")
    return Cell(_converted(after.weights), optimizer, _joined(words, after.words))


def _converted(verdict: Verdict) -> Verdict:
    return C if verdict is E else verdict


def _joined(*words: str) -> str:
    return "; ".join(filter(None, words))
