"""What the template of a rollback may use."""

from dataclasses import dataclass, field

from ui.contexts.shared import Answer, CheckpointRef, Command, Fact, Link, Plot
from ui.filters import Number


@dataclass(frozen=True)
class CandidateRow:
    rank: int
    ref: CheckpointRef
    terms: tuple[Fact, ...]
    reasons: tuple[str, ...]  # those that are not true of every candidate
    compare_href: str | None = None


@dataclass(frozen=True)
class ServedRow:
    """What the alias points at, beside the candidates; `sentence`: whether the first differs from it."""

    ref: CheckpointRef
    terms: tuple[Fact, ...]
    sentence: str


@dataclass(frozen=True)
class ExcludedGroup:
    """Checkpoints that one filter left out for one reason."""

    filter: str
    reason: str
    refs: tuple[CheckpointRef, ...]


@dataclass(frozen=True)
class WatchedRow:
    ref: CheckpointRef
    value: Number
    stderr: Number
    p_bad: float | None
    alone: bool = False  # those around it contradict it


@dataclass(frozen=True)
class RollbackContext:
    answer: Answer
    run_choices: tuple[Link, ...]
    alias_choices: tuple[Link, ...]
    subject: Link | None
    fields: dict[str, str]
    run_names: dict[str, str] = field(default_factory=dict)  # each as it is told apart from the others here
    watch_choices: tuple[str, ...] = ()
    onset: tuple[Fact, ...] = ()
    plot: Plot | None = None
    watched: tuple[WatchedRow, ...] = ()
    last_known_good: CheckpointRef | None = None
    good_is_provisional: bool = False
    candidates: tuple[CandidateRow, ...] = ()
    common_reasons: tuple[str, ...] = ()
    term_names: tuple[str, ...] = ()
    score_of: Fact | None = None  # what the column of scores is made of
    more: Link | None = None
    served: ServedRow | None = None
    excluded: tuple[ExcludedGroup, ...] = ()
    excluded_counts: tuple[Fact, ...] = ()
    assumptions: tuple[str, ...] = ()
    command: Command | None = None
    alias_to_move: str | None = None
    spike: tuple[Fact, ...] = ()
    spike_rewind: CheckpointRef | None = None
    spike_command: Command | None = None
    watch_form: dict[str, str] = field(default_factory=dict)  # what a standing watch of this question would be
    errors: dict[str, str] = field(default_factory=dict)
    empty: tuple[Command, ...] = ()
    actions: tuple[Link, ...] = ()
