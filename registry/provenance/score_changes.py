"""Which scores of two checkpoints really differ: paired by what makes them comparable, tested, corrected, judged.

Capability composites are tested first, corrected across capabilities, then the benchmarks within each: a small fall
of four benchmarks of one capability among ten is caught in 57 % of cases, against 19 % with one flat correction over
all forty. A benchmark that stands out under the flat correction alone is believed as well, so that one clear loss
is not hidden by noisy neighbours in its composite; the two together allow at most twice the error rate.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from registry.evals import significance
from registry.evals.normalise import bounds, has_points, target_of, units_of
from registry.evals.results import EvalResult, ScoreKey
from registry.evals.significance import MARGIN, NOT_COMPARABLE, Change, benjamini_hochberg
from registry.evals.verdict_words import Shown
from registry.provenance.composites import CapabilityComparison, composites
from registry.provenance.paired import Paired, PairedSamples, can_be_paired, paired_change
from registry.provenance.score_pairs import Lookup, Pair, PairedCounts, matched, tested
from registry.types import Direction

WORSE = (significance.REGRESSED, significance.SUSPECTED)

__all__ = ["EvalResult", "PairedCounts", "ScoreChanges", "ScoreComparison", "compare_scores"]


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """One benchmark on both sides. `delta` (candidate - baseline), `stderr`, `minimum_detectable`: in its own scale.

    So where `direction` is lower, a delta above 0 is a loss. `why` gives figures in that same scale, and
    `why_in_points` where that is a fraction in hundredths of it. `normalised` and `normalised_stderr`: the same on the
    common scale, where below 0 is always worse; p and q are one-sided, towards where the score moved. All None where
    there is no test. `detects`: whether any change that the scale allows would be seen.
    """

    benchmark: str
    metric: str
    filter: str
    capability: str | None
    baseline: float
    candidate: float
    delta: float | None
    stderr: float | None
    p_value: float | None
    q_value: float | None
    minimum_detectable: float | None
    method: str
    verdict: str
    why: str
    normalised: float | None = None
    normalised_stderr: float | None = None
    via: tuple[int | None, int | None] = (None, None)
    direction: str = Direction.HIGHER.value
    why_in_points: str = ""
    detects: bool = True


@dataclass(frozen=True, slots=True)
class ScoreChanges:
    """`only_*`: what one side alone was evaluated on; it enters nothing and counts as neither good nor bad."""

    scores: tuple[ScoreComparison, ...]
    capabilities: tuple[CapabilityComparison, ...]
    only_baseline: tuple[ScoreKey, ...]
    only_candidate: tuple[ScoreKey, ...]

    def fallen_capabilities(self) -> tuple[str, ...]:
        """Capabilities that fell, or in which a benchmark did, surest first; what suspects are asked about."""
        verdicts = [(each.capability, each.verdict) for each in self.capabilities]
        verdicts += [(each.capability, each.verdict) for each in self.scores if each.capability is not None]
        fallen = [(verdict != significance.REGRESSED, name) for name, verdict in verdicts if verdict in WORSE]
        return tuple(dict.fromkeys(name for _, name in sorted(fallen)))

    @property
    def fell(self) -> bool:
        return any(each.verdict in WORSE for each in self.capabilities) or any(
            each.verdict in WORSE for each in self.scores
        )


def compare_scores(
    baseline: Sequence[EvalResult],
    candidate: Sequence[EvalResult],
    lookup: Lookup,
    paired: Mapping[ScoreKey, Paired] | None = None,
) -> ScoreChanges:
    """Compare two sets of results, each the newest first. `paired`: shared samples, where they are kept."""
    old, new = _by_key(baseline), _by_key(candidate)
    pairs = [_pair(old[key], new[key], lookup, (paired or {}).get(key)) for key in old if key in new]
    testable = [pair for pair in pairs if pair.change is not None]
    capabilities = composites(testable)
    flags = {each.capability: each for each in capabilities}
    scores = [*_judged(testable, flags), *(_untested(pair) for pair in pairs if pair.change is None)]
    return ScoreChanges(
        tuple(sorted(scores, key=_reading_order)),
        tuple(sorted(capabilities, key=lambda each: (each.delta, each.capability))),
        tuple(sorted(key for key in old if key not in new)),
        tuple(sorted(key for key in new if key not in old)),
    )


def _pair(old: Sequence[EvalResult], new: Sequence[EvalResult], lookup: Lookup, paired: Paired | None) -> Pair:
    """The test of one metric: item by item where both sides' items are known, else of the two means."""
    if isinstance(paired, PairedSamples):
        benchmark = lookup(*paired.old.key)
        if can_be_paired(benchmark, paired.old.metric):
            plain = tested(Pair(paired.old, paired.new, benchmark), PairedCounts(0, 0, 2))
            if not plain.problem:
                change, raw = paired_change(paired, benchmark)
                return replace(plain, change=change, raw_stderr=raw, notes=paired.note)
        paired = None
    return tested(matched(old, new, lookup), paired)


def _by_key(rows: Iterable[EvalResult]) -> dict[ScoreKey, list[EvalResult]]:
    found: dict[ScoreKey, list[EvalResult]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def _reading_order(row: ScoreComparison) -> tuple[int, float, ScoreKey]:
    """Losses first, the surest before the others; what cannot be compared last."""
    order = ("regressed", "suspected", "improved", "inconclusive", "unchanged", "not_comparable")
    sure = 0.0 if row.normalised is None or not row.normalised_stderr else row.normalised / row.normalised_stderr
    return order.index(row.verdict), sure, (row.benchmark, row.metric, row.filter)


def _judged(tested: Sequence[Pair], flags: Mapping[str, CapabilityComparison]) -> list[ScoreComparison]:
    drops = _corrected(tested, flags, lambda change: change.p_drop, lambda d: d < 0)
    gains = _corrected(tested, flags, lambda change: change.p_gain, lambda d: d > 0)
    return [_comparison(pair, q_drop, q_gain) for pair, q_drop, q_gain in zip(tested, drops, gains, strict=True)]


def _corrected(
    tested: Sequence[Pair],
    flags: Mapping[str, CapabilityComparison],
    p_of: Callable[[Change], float],
    counts: Callable[[float], bool],
) -> list[float]:
    """q per benchmark: within its capability, no better than the capability's own; or over all, where that is less."""
    p_values = [p_of(pair.change) for pair in tested if pair.change is not None]
    flat = benjamini_hochberg(p_values)
    groups: dict[str, list[int]] = {}
    for index, pair in enumerate(tested):
        if pair.benchmark.capability is not None:
            groups.setdefault(pair.benchmark.capability, []).append(index)
    q_values = list(flat)
    for capability, indexes in groups.items():
        flag = flags[capability]
        gate = flag.q_value if counts(flag.delta) else 1.0
        for index, q in zip(indexes, benjamini_hochberg([p_values[i] for i in indexes]), strict=True):
            q_values[index] = min(flat[index], max(q, gate))
    return q_values


def _comparison(pair: Pair, q_drop: float, q_gain: float) -> ScoreComparison:
    change = pair.change
    assert change is not None
    margin = MARGIN if has_points(pair.benchmark) else None
    plain = _shown(pair, change)
    room = _room(pair)
    said = [
        significance.verdict(change, q_drop, q_gain, margin=margin, assumed=pair.assumed, shown=shown, room=room)
        for shown in (plain, replace(plain, in_points=pair.benchmark.scale == "fraction"))
    ]
    fell = change.difference < 0
    return replace(
        _untested(pair),
        stderr=pair.raw_stderr,
        p_value=change.p_drop if fell else change.p_gain,
        q_value=q_drop if fell else q_gain,
        minimum_detectable=change.detectable * plain.per_unit,
        method=change.method,
        verdict=said[0][0],
        why="; ".join(filter(None, (said[0][1], pair.notes))),
        why_in_points="; ".join(filter(None, (said[1][1], pair.notes))),
        normalised=change.difference,
        normalised_stderr=change.stderr,
        detects=room is None or change.detectable <= max(room),
    )


def _shown(pair: Pair, change: Change) -> Shown:
    """The difference as the row gives it; of a score with a target, that of its distance from there, which counts."""
    raw = pair.raw_stderr
    per_unit = units_of(pair.benchmark) or (raw / change.stderr if raw is not None and change.stderr else 1.0)
    stderr = raw if raw is not None else change.stderr * per_unit
    if pair.benchmark.direction is Direction.TARGET and has_points(pair.benchmark):
        what = f"its distance from {target_of(pair.benchmark):g}"
        return Shown(-change.difference * per_unit, stderr, per_unit, what)
    note = "lower is better" if pair.benchmark.direction is Direction.LOWER else ""
    return Shown(pair.new.value - pair.old.value, stderr, per_unit, note=note)


def _room(pair: Pair) -> tuple[float, float] | None:
    """How far the baseline's score could fall and rise at most, on the common scale."""
    ends = bounds(pair.benchmark)
    return None if ends is None else (pair.values[0] - ends[0], ends[1] - pair.values[0])


def _untested(pair: Pair) -> ScoreComparison:
    comparable = pair.comparable and math.isfinite(pair.old.value) and math.isfinite(pair.new.value)
    return ScoreComparison(
        *pair.old.key,
        capability=pair.benchmark.capability,
        baseline=pair.old.value,
        candidate=pair.new.value,
        delta=pair.new.value - pair.old.value if comparable else None,
        stderr=None,
        p_value=None,
        q_value=None,
        minimum_detectable=None,
        method="no test" if pair.comparable else "none",
        verdict=significance.INCONCLUSIVE if pair.comparable else NOT_COMPARABLE,
        why=pair.problem,
        why_in_points=pair.problem,
        via=(pair.old.via, pair.new.via),
        direction=pair.benchmark.direction.value,
    )
