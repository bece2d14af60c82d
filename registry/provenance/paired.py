"""Paired tests: two checkpoints compared item by item, where the single results of both are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy.orm import Session

from registry.evals import significance
from registry.evals.catalogue import Benchmark
from registry.evals.normalise import TOP, is_logarithmic
from registry.evals.results import EvalResult, ScoreKey
from registry.evals.samples import SampleSet, Shared, sample_sets, shared_items
from registry.evals.significance import Change
from registry.provenance.score_pairs import PairedCounts, difference_of_keys
from registry.types import Direction

LEAST_SHARED = 2  # items, from which there is a test at all


@dataclass(frozen=True, slots=True)
class PairedSamples:
    """Both sides' values on the items that both answered; the results have their means as values."""

    old: EvalResult
    new: EvalResult
    shared: Shared

    @property
    def note(self) -> str:
        if not self.shared.is_partial:
            return ""
        left, right = self.shared.counts
        return f"over the {self.shared.n:,} items that both answered, of {left:,} and {right:,}"


def find_paired(session: Session, old: tuple[int, int], new: tuple[int, int]) -> dict[ScoreKey, PairedSamples]:
    """What two checkpoints (project id, id) answered item by item, for each metric that both have samples of."""
    if old == new:
        return {}
    if old[0] == new[0]:
        found = sample_sets(session, old[0], [old[1], new[1]])
        return pair_up(session, found[old[1]], found[new[1]])
    left, right = (sample_sets(session, project, [each])[each] for project, each in (old, new))
    return pair_up(session, left, right)


def pair_up(
    session: Session, left: Mapping[ScoreKey, Sequence[SampleSet]], right: Mapping[ScoreKey, Sequence[SampleSet]]
) -> dict[ScoreKey, PairedSamples]:
    """The samples of two sides on the items that both answered.

    Samples under other conditions (n-shot, harness version, judge) are not paired; that items and prompts are the
    same, their hashes say.
    """
    matching = {key: _matching(left[key], right[key]) for key in left if key in right}
    pairs = {key: pair for key, pair in matching.items() if pair is not None}
    found = {}
    for (key, (a, b)), shared in zip(pairs.items(), shared_items(session, list(pairs.values())), strict=True):
        if shared.n >= LEAST_SHARED:
            found[key] = PairedSamples(_mean_of(a, shared.old), _mean_of(b, shared.new), shared)
    return found


def _matching(old: Sequence[SampleSet], new: Sequence[SampleSet]) -> tuple[SampleSet, SampleSet] | None:
    """The first two under equal conditions; which items were asked may differ."""
    for left in old:
        for right in new:
            if not difference_of_keys(left.result, right.result, of_items=False):
                return left, right
    return None


def _mean_of(side: SampleSet, values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> EvalResult:
    return replace(side.result, value=float(np.mean(values)), stderr=None, n_samples=len(values))


def can_be_paired(benchmark: Benchmark, metric: str) -> bool:
    """A mean of items turned by a line: no perplexity, and no distance from a target."""
    return benchmark.direction is not Direction.TARGET and not is_logarithmic(benchmark, metric)


def paired_change(samples: PairedSamples, benchmark: Benchmark) -> tuple[Change, float]:
    """(the change on the common scale, its standard error on the benchmark's own scale).

    Right or wrong: McNemar's exact test on the items whose answer turned. Else: the paired t of the differences.
    """
    old, new = samples.shared.old, samples.shared.new
    span = TOP[benchmark.scale] - (benchmark.chance or 0.0) if benchmark.scale in TOP else 1.0
    if benchmark.direction is Direction.LOWER:
        old, new = -old, -new
    difference = new - old
    binary = all(bool(np.all((side == 0) | (np.abs(side) == 1))) for side in (old, new))
    if binary:
        change = significance.paired_binary(int(np.sum(difference < 0)), int(np.sum(difference > 0)), len(old))
    else:
        change = significance.paired_differences(difference.tolist())
    scaled = replace(
        change,
        difference=change.difference / span,
        stderr=change.stderr / span,
        detectable=change.detectable / span,
    )
    return scaled, change.stderr


Paired = PairedCounts | PairedSamples
