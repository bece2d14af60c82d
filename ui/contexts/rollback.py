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
class ExcludedRow:
    ref: CheckpointRef
    filter: str
    reason: str


@dataclass(frozen=True)
class WatchedRow:
    ref: CheckpointRef
    value: Number
    stderr: Number
    p_bad: float | None


@dataclass(frozen=True)
class RollbackContext:
    answer: Answer
    run_choices: tuple[Link, ...]
    alias_choices: tuple[Link, ...]
    subject: Link | None
    fields: dict[str, str]
    watch_choices: tuple[str, ...] = ()
    onset: tuple[Fact, ...] = ()
    plot: Plot | None = None
    watched: tuple[WatchedRow, ...] = ()
    last_known_good: CheckpointRef | None = None
    candidates: tuple[CandidateRow, ...] = ()
    common_reasons: tuple[str, ...] = ()
    term_names: tuple[str, ...] = ()
    more: Link | None = None
    excluded: tuple[ExcludedRow, ...] = ()
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
