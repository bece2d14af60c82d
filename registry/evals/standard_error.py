"""How far a score may be off by the choice of its questions: which standard error to believe.

The first that applies: from the samples themselves; the published one, if it is possible at all; the binomial
formula; and for accuracies of unknown size an assumed one, which never carries more than a suspicion.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from registry.evals.catalogue import Benchmark
from registry.evals.normalise import TOP
from registry.evals.significance import Z_TWO_SIDED_95

ASSUMED_SAMPLES = 100  # assumed, where neither the result nor the benchmark table says how many there were
SANITY_FACTOR = 2.0  # a published error of a proportion further than this from the formula is a bug of its harness

# Metrics whose every sample is 0 or 1, so that p(1 - p) is their variance.
PROPORTIONS = frozenset(
    (
        *("acc", "acc_norm", "acc_norm_nosplit", "accuracy", "exact_match", "em", "math_verify", "mc1", "resolved"),
        *("pass@1", "pass_at_1", "pass^1", "overall_accuracy", "pct_stereotype", "asr", "over_refusal", "contains"),
        *("prompt_level_strict_acc", "prompt_level_loose_acc", "inst_level_strict_acc", "inst_level_loose_acc"),
    )
)


@dataclass(frozen=True, slots=True)
class StandardError:
    """In the benchmark's own scale. `source`: per-sample, published, formula or assumed; `note` says what else."""

    value: float
    source: str
    note: str = ""

    @property
    def is_assumed(self) -> bool:
        return self.source == "assumed"


def wilson(successes: float, n: int, z: float = Z_TWO_SIDED_95) -> tuple[float, float]:
    """Wilson's interval of a proportion; unlike the formula it has a width at 0 of n and n of n."""
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def per_sample_error(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> float:
    """sd/sqrt(n) of the samples' scores; cluster-robust where samples share a passage (Miller 2024).

    Needs at least two samples, and as many cluster labels as samples.
    """
    n = len(values)
    if n < 2:
        raise ValueError(f"a standard error needs two samples or more, not {n}")
    mean = math.fsum(values) / n
    if clusters is None:
        return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
    sums: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    return math.sqrt(math.fsum(each * each for each in sums.values())) / n


def proportion_error(p: float, n: int) -> tuple[float, str]:
    """(standard error, note): sqrt(p(1-p)/(n-1)) as lm-eval computes it; at 0 or 1 from Wilson's interval."""
    if n < 2 or p in (0.0, 1.0):
        low, high = wilson(p * n, n)
        return (high - low) / (2 * Z_TWO_SIDED_95), f"from Wilson's interval, as the score is {p:g} of {n}"
    return math.sqrt(p * (1 - p) / (n - 1)), ""


def choose_standard_error(
    value: float,
    published: float | None,
    n_samples: int | None,
    benchmark: Benchmark,
    metric: str,
    samples: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> StandardError | None:
    """The standard error of a score, in its own scale, labelled with where it comes from; None: no test possible.

    A published error of 0, or of a proportion and more than twice or less than half the formula's, is refused
    and replaced; the note then says so (lm-evaluation-harness has published 0.0 for .86, and its 0.4.0
    group errors are 28 times too large).
    """
    if samples is not None and len(samples) > 1:
        return StandardError(per_sample_error(samples, clusters), "per-sample")
    top = TOP.get(benchmark.scale) if benchmark.scale in ("fraction", "percent") else None
    p = value / top if top else None
    if top is None or p is None or not 0 <= p <= 1 or metric not in PROPORTIONS:
        return _bounded(p, published, n_samples or benchmark.sample_count, top)
    n = n_samples or benchmark.sample_count
    error, note = proportion_error(p, n or ASSUMED_SAMPLES)
    if published is not None:
        refusal = _refusal(published / top, error, checkable=n is not None)
        if not refusal:
            return StandardError(published, "published", "" if n else "not checked: number of samples unknown")
        note = "; ".join(filter(None, (f"the published error {published:g} {refusal}", note)))
    if n is None:
        sized = f"assumes {ASSUMED_SAMPLES} samples, since nobody said how many there were"
        return StandardError(error * top, "assumed", "; ".join(filter(None, (sized, note))))
    return StandardError(error * top, "formula", note)


def _refusal(published: float, formula: float, *, checkable: bool) -> str:
    """Why a published error of a proportion cannot be right; empty where it can."""
    if not math.isfinite(published) or published <= 0:
        return "is no error"
    if checkable and not formula / SANITY_FACTOR <= published <= formula * SANITY_FACTOR:
        return f"is {published / formula:.3g} times what the number of samples allows"
    return ""


def _bounded(p: float | None, published: float | None, n: int | None, top: float | None) -> StandardError | None:
    """Metrics that are no proportion: only their published error, and on a 0-to-1 scale none above p(1-p)."""
    if published is None or not math.isfinite(published) or published <= 0:
        return None
    if p is not None and top and n and n > 1 and 0 < p < 1:
        most = math.sqrt(p * (1 - p) / (n - 1)) * top
        if published > SANITY_FACTOR * most:
            return None
    return StandardError(published, "published")
