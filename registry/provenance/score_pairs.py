"""Two results of one benchmark: whether they may be compared at all, and the test of their difference."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from registry.evals import significance
from registry.evals.catalogue import Benchmark
from registry.evals.columns import off_scale as is_off_scale
from registry.evals.normalise import TOP, is_logarithmic, orient
from registry.evals.results import EvalResult
from registry.evals.significance import Change
from registry.evals.standard_error import StandardError, choose_standard_error

LIMITS = {"fraction": "0 to 1", "percent": "-100 to 100", "ten": "0 to 10"}
OF_ITEMS = ("items_digest",)  # keys that say which items were asked
Lookup = Callable[[str, str, str], Benchmark]  # (benchmark, metric, filter) -> how its figures read


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Samples that both checkpoints answered: how many turned wrong, how many turned right, of how many."""

    right_to_wrong: int
    wrong_to_right: int
    n: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two results of one benchmark; `problem` says why they cannot be tested, with `change` None."""

    old: EvalResult
    new: EvalResult
    benchmark: Benchmark
    problem: str = ""
    comparable: bool = True
    change: Change | None = None
    values: tuple[float, float] = (math.nan, math.nan)  # both, on the common scale
    raw_stderr: float | None = None
    assumed: bool = False
    notes: str = ""


def difference_of_keys(old: EvalResult, new: EvalResult, *, of_items: bool = True) -> str:
    """The first comparability key that differs, with both values; empty where all are equal.

    Not `of_items`: which items were asked, and how many, may differ, since the two will be compared item by item.

    What one side did not record is unknown, and unknown is not equal; the number of samples alone may be missing, since
    harnesses of one version take the same task in full.
    """
    for name in ("version", "n_shot", "harness", "harness_version"):
        left, right = getattr(old, name), getattr(new, name)
        if left != right:
            return _differs(name, left, right)
    if of_items and None not in (old.n_samples, new.n_samples) and old.n_samples != new.n_samples:
        return _differs("n_samples", old.n_samples, new.n_samples)
    of_the_items = () if of_items else OF_ITEMS
    for name in sorted(old.comparability.keys() | new.comparability.keys()):
        if name in of_the_items:
            continue
        left, right = old.comparability.get(name), new.comparability.get(name)
        if _text(left) != _text(right):
            return _differs(name, left, right)
    return ""


def _differs(name: str, left: Any, right: Any) -> str:
    said = [_text(value)[:80] if value is not None else "not recorded" for value in (left, right)]
    return f"{name} differs: {said[0]} for the baseline, {said[1]} for the candidate"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def matched(old: Sequence[EvalResult], new: Sequence[EvalResult], lookup: Lookup) -> Pair:
    """The first results with equal keys; where there are none, the first of each with the key that differs."""
    benchmark = lookup(*old[0].key)
    for left in old:
        for right in new:
            if not difference_of_keys(left, right):
                return Pair(left, right, benchmark)
    return Pair(old[0], new[0], benchmark, difference_of_keys(old[0], new[0]), comparable=False)


def off_scale(value: float, benchmark: Benchmark, metric: str) -> str:
    """Why a value cannot be one of the benchmark's scale: it was reported in another, and is not rescaled by guess."""
    if is_logarithmic(benchmark, metric) and value <= 0:
        return f"{value:g} is no perplexity, which lies above 0"
    if benchmark.scale in TOP and is_off_scale(np.array([value]), benchmark).any():
        return f"{value:g} lies outside the {benchmark.scale} scale ({LIMITS[benchmark.scale]})"
    return ""


def tested(pair: Pair, counts: PairedCounts | None) -> Pair:
    if pair.problem:
        return pair
    for side, row in (("baseline", pair.old), ("candidate", pair.new)):
        if not math.isfinite(row.value):
            return replace(pair, problem=f"the {side}'s value is {_special(row.value)}", comparable=False)
        wrong = off_scale(row.value, pair.benchmark, row.metric)
        if wrong:
            return replace(pair, problem=f"the {side}'s value {wrong}", comparable=False)
    metric = pair.old.metric
    errors = [
        choose_standard_error(row.value, row.stderr, row.n_samples, pair.benchmark, metric)
        for row in (pair.old, pair.new)
    ]
    left, right = (
        orient(row.value, error.value if error else None, pair.benchmark, metric)
        for row, error in zip((pair.old, pair.new), errors, strict=True)
    )
    pair = replace(pair, values=(left.value, right.value))
    if counts is not None:
        return _with_counts(pair, counts)
    if left.stderr is None or right.stderr is None or errors[0] is None or errors[1] is None:
        side = (
            "both sides"
            if left.stderr is None and right.stderr is None
            else ("the baseline" if left.stderr is None else "the candidate")
        )
        return replace(
            pair, problem=f"no standard error is known for {side}, and none can be computed for {metric or 'it'}"
        )
    change = significance.unpaired(left.value, right.value, left.stderr, right.stderr)
    return replace(
        pair,
        change=replace(change, method=f"unpaired z, {_sources(errors[0], errors[1])}"),
        raw_stderr=math.hypot(errors[0].value, errors[1].value),
        assumed=errors[0].is_assumed or errors[1].is_assumed,
        notes="; ".join(dict.fromkeys(error.note for error in (errors[0], errors[1]) if error.note)),
    )


def _with_counts(pair: Pair, counts: PairedCounts) -> Pair:
    """The paired test, stretched to the common scale. Of a score where lower is better, a right answer is a loss."""
    change = significance.paired_binary(counts.right_to_wrong, counts.wrong_to_right, counts.n)
    top, chance = TOP.get(pair.benchmark.scale, 1.0), pair.benchmark.chance or 0.0
    stretch = top / (top - chance)
    scaled = replace(
        change,
        difference=change.difference * stretch,
        stderr=change.stderr * stretch,
        detectable=change.detectable * stretch,
    )
    return replace(pair, change=scaled, raw_stderr=change.stderr * top)


def _sources(old: StandardError, new: StandardError) -> str:
    return f"{old.source} errors" if old.source == new.source else f"{old.source} and {new.source} errors"


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
