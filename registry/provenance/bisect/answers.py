"""What a search answers: every gap with its probability, what to evaluate next, and what it has taken."""

from dataclasses import dataclass

from registry.checkpoints.rows import CheckpointIdentity
from registry.provenance.bisect.states import Target


@dataclass(frozen=True, slots=True)
class Gap:
    """Two neighbours among the checkpoints that can be asked, and the probability that it fell between them."""

    after: CheckpointIdentity
    before: CheckpointIdentity
    probability: float


@dataclass(frozen=True, slots=True)
class NextEvaluation:
    checkpoint: CheckpointIdentity
    items: int
    probability_bad: float
    uri: str | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A score that the search has taken. `delta` from the good one and `stderr` are on the common scale."""

    checkpoint: CheckpointIdentity
    value: float
    delta: float
    stderr: float
    items: int | None
    source: str  # posted, or recorded: it arrived as any score does
    probability_bad: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """A score that is kept and does not count: it cannot be of the benchmark's scale, or is of one of the ends."""

    checkpoint: CheckpointIdentity
    value: float
    source: str
    why: str


@dataclass(frozen=True, slots=True)
class BisectAnswer:
    """`posterior`: every gap in order. `credible`: the places in it of the shortest stretch that holds 95 %.

    `left_out`: checkpoints on the way without a copy to evaluate and without a score. `skipped`: scores that cannot
    count. `is_proven`: the bad end is worse than the good one beyond chance. `why`: how it stands, in words.
    `whole`: how many items the benchmark has, where that is known.
    """

    id: int
    project_id: int
    good: CheckpointIdentity
    bad: CheckpointIdentity
    target: Target
    what: tuple[str, ...]
    drop: float
    discordance: float
    items: int
    next: NextEvaluation | None
    posterior: tuple[Gap, ...]
    credible: tuple[int, ...]
    evaluations: tuple[Evaluation, ...]
    left_out: int
    done: bool
    why: str
    skipped: tuple[Skipped, ...] = ()
    is_proven: bool = True
    whole: int | None = None

    @property
    def gap(self) -> Gap:
        """The likeliest one."""
        return max(self.posterior, key=lambda each: each.probability)
