"""How far a checkpoint lies below the good one, in the words of compare: paired where the single items are kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from registry.errors import FieldError, Invalid
from registry.evals.catalogue import Benchmark
from registry.evals.normalise import TOP
from registry.evals.results import EvalResult, Readings, results_of
from registry.evals.samples import sample_sets
from registry.provenance.bisect.states import Target
from registry.provenance.paired import pair_up
from registry.provenance.score_changes import compare_scores
from registry.provenance.score_pairs import off_scale


class NothingFell(Invalid):
    code = "bisect-nothing-fell"
    title = "There is no fall to search for"


@dataclass(frozen=True, slots=True)
class Measured:
    """One checkpoint against the good one, on the common scale. `stderr` is that of the difference."""

    value: float  # of the checkpoint itself
    delta: float
    stderr: float
    items: int | None
    what: tuple[str, ...]  # benchmark, metric and filter; or the benchmarks of a capability's mean


class Measures:
    """What is recorded of the checkpoints of a search, read once: scores that arrived for whatever reason count."""

    def __init__(self, session: Session, project_id: int, good_id: int, ids: Sequence[int], target: Target) -> None:
        self._session, self._good_id, self._target = session, good_id, target
        every = list(dict.fromkeys([good_id, *ids]))
        self._results, self._readings = results_of(session, project_id, every)
        self._samples = sample_sets(session, project_id, every)
        self._good = self._of_target(good_id)

    def _of_target(self, checkpoint_id: int) -> list[EvalResult]:
        target = self._target
        if target.capability is not None:
            return [
                each for each in self._results[checkpoint_id] if self._reading(each).capability == target.capability
            ]
        return [
            each
            for each in self._results[checkpoint_id]
            if each.benchmark == target.benchmark
            and target.metric in (None, each.metric)
            and target.filter in (None, each.filter)
        ]

    def _reading(self, result: EvalResult) -> Benchmark:
        return self._readings(*result.key)

    @property
    def of_capability(self) -> bool:
        return self._target.capability is not None

    @property
    def readings(self) -> Readings:
        return self._readings

    def measured(self, checkpoint_id: int, like: tuple[str, ...] | None = None) -> Measured | None:
        """The difference from the good one; None where it was not evaluated so, or not comparably.

        `like`: what must have been measured, so that all points of a search are measured by one thing.
        """
        rows = self._of_target(checkpoint_id)
        if not rows or not self._good:
            return None
        paired = {}
        if checkpoint_id != self._good_id:
            paired = pair_up(self._session, self._samples[self._good_id], self._samples[checkpoint_id])
        found = compare_scores(self._good, rows, self._readings, paired)
        if self._target.capability is not None:
            composite = next((each for each in found.capabilities if each.capability == self._target.capability), None)
            if composite is None or like not in (None, composite.benchmarks):
                return None
            return Measured(composite.candidate, composite.delta, composite.stderr, None, composite.benchmarks)
        tested = [each for each in found.scores if each.normalised is not None]
        tested.sort(key=lambda each: self._place(each.benchmark, each.metric, each.filter))
        for each in tested:
            what = (each.benchmark, each.metric, each.filter)
            if like in (None, what) and each.normalised is not None and each.normalised_stderr is not None:
                items = max((row.n_samples or 0 for row in rows if row.key == what), default=0) or None
                return Measured(each.candidate, each.normalised, each.normalised_stderr, items, what)
        return None

    def require_fall(self, bad_id: int) -> Measured:
        """The difference between the two ends. Raises NothingFell."""
        name, measured = self._target.name, self.measured(bad_id)
        if measured is None:
            message = self._why_not(bad_id)
            raise NothingFell(f"Where did it fall? {message}.", errors=[FieldError("", message)])
        if measured.delta >= 0:
            message = f"{name} is not lower on the bad one than on the good one"
            raise NothingFell(f"Nothing to search for: {message}.", errors=[FieldError("/bad", message)])
        return measured

    def _why_not(self, bad_id: int) -> str:
        """What keeps the two ends from being compared."""
        name, rows = self._target.name, self._of_target(bad_id)
        if not rows or not self._good:
            return f"{name} was not evaluated on both ends"
        problems = [each.why for each in compare_scores(self._good, rows, self._readings).scores if each.why]
        if self.of_capability or not problems:
            return f"{name} was not evaluated on both ends in a comparable way"
        return f"{name} cannot be compared between the two ends: {problems[0]}"

    def has_points(self, what: tuple[str, ...]) -> bool:
        """Whether differences are parts of a scale, and not of logarithms or of a scale that nobody knows."""
        if self.of_capability:
            return self._target.capability != "lm"
        return self._readings(*what).scale in TOP

    def off_scale(self, value: float, what: tuple[str, ...]) -> str:
        """Why a value cannot be one of what is searched for, in words; empty where it can."""
        if not self.of_capability:
            return off_scale(value, self._readings(*what), what[1])
        if self._target.capability == "lm" or abs(value) <= 1:  # logarithms of perplexities have no bound
            return ""
        return f"{value:g} lies outside the normalised scale (-1 to 1)"

    def recorded_off_scale(self, checkpoint_id: int, what: tuple[str, ...]) -> tuple[float, str] | None:
        """The newest recorded value, and why it is none; None where it can be one, or was evaluated otherwise."""
        if self.of_capability:
            return None
        value = next((row.value for row in self._of_target(checkpoint_id) if row.key == what), None)
        if value is None or not math.isfinite(value):
            return None
        why = self.off_scale(value, what)
        return (value, why) if why else None

    def _place(self, benchmark: str, metric: str, filter: str) -> int:
        """Metrics in the order of the benchmark table."""
        listed = self._readings(benchmark, metric, filter).metrics
        return listed.index((metric, filter)) if (metric, filter) in listed else len(listed)

    def most_items(self, what: tuple[str, ...]) -> int | None:
        """How many items the benchmark has: as many as the good one was asked, else by the benchmark table."""
        if self._target.capability is not None:
            return None
        asked = [row.n_samples for row in self._good if row.key == what and row.n_samples is not None]
        return max(asked) if asked else self._readings(*what).sample_count

    def span(self, what: tuple[str, ...]) -> tuple[float, float]:
        """(units of the benchmark's own scale in one of the common scale, in its whole scale)."""
        if self._target.capability is not None:
            return 1.0, 1.0
        reading = self._readings(*what)
        top = TOP.get(reading.scale, 1.0)
        return top - (reading.chance or 0.0) if reading.scale in TOP else 1.0, top
