"""Capability composites: the chance-normalised mean over the benchmarks that both sides have, tested as one.

One benchmark of a family enters (gsm8k or gsm8k_cot); where only subtasks were evaluated, their mean stands for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from registry.evals import significance
from registry.evals.normalise import bounds, has_points
from registry.evals.results import ScoreKey
from registry.evals.significance import MARGIN, Change, benjamini_hochberg
from registry.evals.verdict_words import Shown
from registry.provenance.score_pairs import Pair
from registry.wording import counted


@dataclass(frozen=True, slots=True)
class CapabilityComparison:
    """A capability's composite: the mean, chance-normalised, over the benchmarks that both sides have.

    Below 0 is always worse. `why` gives the normalised figures as they are, `why_in_points` in hundredths, where the
    scale has points; `detects`: whether any change that the scales allow would be seen.
    """

    capability: str
    baseline: float
    candidate: float
    delta: float
    stderr: float
    p_value: float
    q_value: float
    minimum_detectable: float
    verdict: str
    why: str
    benchmarks: tuple[str, ...]
    why_in_points: str = ""
    detects: bool = True


def composites(tested: Sequence[Pair]) -> list[CapabilityComparison]:
    members: dict[str, dict[str, list[Pair]]] = {}
    for pair in tested:
        if pair.benchmark.capability is not None:
            members.setdefault(pair.benchmark.capability, {}).setdefault(pair.benchmark.family, []).append(pair)
    means = {name: _mean([_representative(pairs) for pairs in each.values()]) for name, each in members.items()}
    names = list(means)
    drops = benjamini_hochberg([means[name].change.p_drop for name in names])
    gains = benjamini_hochberg([means[name].change.p_gain for name in names])
    return [_composite(name, means[name], *q) for name, *q in zip(names, drops, gains, strict=True)]


@dataclass(frozen=True, slots=True)
class _Mean:
    """One or several results averaged with equal weights, on the common scale."""

    change: Change
    values: tuple[float, float]
    assumed: bool
    benchmarks: tuple[str, ...]
    has_points: bool
    bounds: tuple[float, float] | None  # the worst and the best that the mean can be


def _representative(pairs: Sequence[Pair]) -> _Mean:
    """One member per family: the whole benchmark with the smallest error, else the mean over its parts."""
    whole = [pair for pair in pairs if pair.benchmark.part_of is None]
    if whole:
        return _mean_of_pairs([min(whole, key=_precision)])
    best: dict[str, Pair] = {}
    for pair in pairs:
        known = best.get(pair.benchmark.name)
        if known is None or _precision(pair) < _precision(known):
            best[pair.benchmark.name] = pair
    return _mean_of_pairs(list(best.values()))


def _precision(pair: Pair) -> tuple[bool, int, float, ScoreKey]:
    """Preferred first: a known error, the metric that the benchmark table lists first, the smaller error, the name."""
    assert pair.change is not None
    listed = [metric for metric in pair.benchmark.metrics if metric == (pair.old.metric, pair.old.filter)]
    place = pair.benchmark.metrics.index(listed[0]) if listed else len(pair.benchmark.metrics)
    return pair.assumed, place, pair.change.stderr, pair.old.key


def _mean_of_pairs(pairs: Sequence[Pair]) -> _Mean:
    changes = [pair.change for pair in pairs if pair.change is not None]
    count = len(pairs)
    return _Mean(
        _averaged(changes),
        (math.fsum(pair.values[0] for pair in pairs) / count, math.fsum(pair.values[1] for pair in pairs) / count),
        any(pair.assumed for pair in pairs),
        tuple(sorted(pair.benchmark.name for pair in pairs)),
        all(has_points(pair.benchmark) for pair in pairs),
        _mean_bounds([bounds(pair.benchmark) for pair in pairs]),
    )


def _mean(members: Sequence[_Mean]) -> _Mean:
    count = len(members)
    return _Mean(
        _averaged([member.change for member in members]),
        (math.fsum(m.values[0] for m in members) / count, math.fsum(m.values[1] for m in members) / count),
        any(member.assumed for member in members),
        tuple(sorted(name for member in members for name in member.benchmarks)),
        all(member.has_points for member in members),
        _mean_bounds([member.bounds for member in members]),
    )


def _mean_bounds(each: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [ends for ends in each if ends is not None]
    if len(known) < len(each):
        return None
    return math.fsum(low for low, _ in known) / len(known), math.fsum(high for _, high in known) / len(known)


def _averaged(changes: Sequence[Change]) -> Change:
    """The mean of independent changes; one alone keeps its own test, which may be exact."""
    if len(changes) == 1:
        return changes[0]
    mean = math.fsum(change.difference for change in changes) / len(changes)
    stderr = math.sqrt(math.fsum(change.stderr**2 for change in changes)) / len(changes)
    return significance.from_normal(mean, stderr, "composite z")


def _composite(name: str, mean: _Mean, q_drop: float, q_gain: float) -> CapabilityComparison:
    change = mean.change
    margin = MARGIN if mean.has_points else None
    room = None if mean.bounds is None else (mean.values[0] - mean.bounds[0], mean.bounds[1] - mean.values[0])
    what = "the normalised mean" if mean.has_points else "the mean, turned so that more is better,"
    over = f"over {counted(len(mean.benchmarks), 'benchmark')} that both have"
    said = [
        significance.verdict(
            change,
            q_drop,
            q_gain,
            margin=margin,
            assumed=mean.assumed,
            shown=Shown(change.difference, change.stderr, what=what, note=over, in_points=in_points),
            room=room,
        )
        for in_points in (False, mean.has_points)
    ]
    fell = change.difference < 0
    return CapabilityComparison(
        name,
        *mean.values,
        delta=change.difference,
        stderr=change.stderr,
        p_value=change.p_drop if fell else change.p_gain,
        q_value=q_drop if fell else q_gain,
        minimum_detectable=change.detectable,
        verdict=said[0][0],
        why=said[0][1],
        benchmarks=mean.benchmarks,
        why_in_points=said[1][1],
        detects=room is None or change.detectable <= max(room),
    )
