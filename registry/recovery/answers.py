"""What a rollback answers, as values: the candidates with their terms, what was left out, and what was seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.checkpoints.rows import CheckpointIdentity
from registry.ids import to_text
from registry.recovery.every_capability import Fallen
from registry.recovery.onset import Onset
from registry.recovery.ranking import Terms
from registry.recovery.shown import Copy
from registry.recovery.spikes import Spike
from registry.recovery.watched import Watch


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint to go back to, in its place. `terms` are the figures behind it, `reasons` sentences."""

    checkpoint: CheckpointIdentity
    rank: int
    terms: Terms
    reasons: tuple[str, ...]
    copy: Copy


@dataclass(frozen=True, slots=True)
class Excluded:
    """A checkpoint that the named filter left out, and why."""

    checkpoint: CheckpointIdentity
    filter: str
    reason: str


@dataclass(frozen=True, slots=True)
class WatchedPoint:
    """One evaluated checkpoint on the scanned path; figures on the common scale, larger is better."""

    checkpoint: CheckpointIdentity
    value: float
    stderr: float | None
    p_bad: float | None


@dataclass(frozen=True, slots=True)
class WatchedOnset:
    """What was watched and what the scan found. `onset` is None where there was nothing to scan.

    `why`: whose results do not count, and why there is no scan where there is none; '' where there is nothing to say.
    `points` are some of `evaluated`: the newest ones, those around the fall, and of the others every so many.
    """

    watch: Watch
    made_of: tuple[str, ...]
    onset: Onset | None
    points: tuple[WatchedPoint, ...]
    evaluated: int
    why: str

    @property
    def is_established(self) -> bool:
        return self.onset is not None and self.onset.is_established

    @property
    def alone(self) -> tuple[int, ...]:
        """The steps whose score stands alone."""
        return self.onset.alone if self.onset is not None else ()


@dataclass(frozen=True, slots=True)
class Served:
    """What the alias points at, to hold the candidates against: the terms of its rank, were it one, and a sentence."""

    checkpoint: CheckpointIdentity
    terms: Terms
    sentence: str
    is_beaten: bool = False  # the first candidate scores better by more than the errors allow
    is_best: bool = False  # it scores worse by more than they allow


@dataclass(frozen=True, slots=True)
class SpikeFound:
    """The newest spike of the loss of a run, and what undoes it: the checkpoint to load and the data to skip.

    Where there is nothing to load, the run starts again from nothing, if that `is_needed`.
    """

    run_id: int
    spike: Spike
    curve: str
    rewind_to: CheckpointIdentity | None
    skip: tuple[tuple[int, int], ...]
    sentence: str
    is_needed: bool = True

    @property
    def attempt(self) -> dict[str, Any] | None:
        """What a new attempt says of itself: what it loads, which data it skips, and why; None: none is needed."""
        if not self.is_needed:
            return None
        start = {"restart": True} if self.rewind_to is None else {"resumed_from": to_text(self.rewind_to.id)}
        where = f"steps {self.spike.from_step} to {self.spike.to_step}"
        return {
            **start,
            "reason": f"loss spike at {where}",
            "skip": [{"from": start, "to": end} for start, end in self.skip],
        }


@dataclass(frozen=True, slots=True)
class RollbackAnswer:
    """Everything an answer says. `excluded` is the newest of them; `excluded_counts` counts all by filter.

    `headline`: the part of the sentence that says where to go back to; '' where there is no candidate.
    """

    mode: str
    sentence: str
    headline: str
    onset: WatchedOnset | None
    spike: SpikeFound | None
    last_known_good: CheckpointIdentity | None
    served: Served | None
    candidates: tuple[Candidate, ...]
    excluded: tuple[Excluded, ...]
    excluded_counts: Mapping[str, int]
    considered: int
    at_step: int | None
    assumptions: tuple[str, ...]
    judged_by: tuple[str, ...]  # in production mode, the benchmarks whose composite ranks
    fallen: tuple[Fallen, ...] = ()  # where nothing is watched: the capabilities that fell all the same
    looked_at: tuple[str, ...] = ()  # of these
    loosen: Mapping[str, str] = field(default_factory=dict)  # where no candidate is left: by filter, how to get one

    @property
    def speaks_for_going_back(self) -> bool:
        """Whether what was asked about fell; or, where nothing was, whether the loss spiked and has not come back."""
        if self.onset is not None:
            return self.onset.is_established
        return self.spike is not None and not self.spike.spike.recovered
