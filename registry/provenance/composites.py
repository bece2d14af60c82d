"""Capability composites: the chance-normalised mean over the benchmarks that both sides have, tested as one.

One benchmark of a family enters (gsm8k or gsm8k_cot); where only subtasks were evaluated, their mean stands for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from registry.evals import significance
from registry.evals.normalise import has_points
from registry.evals.results import ScoreKey
from registry.evals.significance import MARGIN, Change, benjamini_hochberg
from registry.provenance.score_pairs import Pair


@dataclass(frozen=True, slots=True)
class CapabilityComparison:
    """A capability's composite: the mean, chance-normalised, over the benchmarks that both sides have."""

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
    )


def _mean(members: Sequence[_Mean]) -> _Mean:
    count = len(members)
    return _Mean(
        _averaged([member.change for member in members]),
        (math.fsum(m.values[0] for m in members) / count, math.fsum(m.values[1] for m in members) / count),
        any(member.assumed for member in members),
        tuple(sorted(name for member in members for name in member.benchmarks)),
        all(member.has_points for member in members),
    )


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
    verdict, why = significance.verdict(change, q_drop, q_gain, margin=margin, assumed=mean.assumed)
    fell = change.difference < 0
    count = len(mean.benchmarks)
    return CapabilityComparison(
        name,
        *mean.values,
        delta=change.difference,
        stderr=change.stderr,
        p_value=change.p_drop if fell else change.p_gain,
        q_value=q_drop if fell else q_gain,
        minimum_detectable=change.detectable,
        verdict=verdict,
        why=f"over {count} {'benchmark' if count == 1 else 'benchmarks'} that both have: {why}",
        benchmarks=mean.benchmarks,
    )
