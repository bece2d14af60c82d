"""What the template of one run may use."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ui.contexts.shared import Answer, CheckpointRef, Chip, Command, Fact, Link, Plot
from ui.filters import Number

if TYPE_CHECKING:
    from ui.incident_views import IncidentLine
    from ui.tracker_views import TrackersBlock


@dataclass(frozen=True)
class AttemptRow:
    number: int
    state: str
    resumed_from: CheckpointRef | None
    resumed_words: str
    started_at: datetime | None
    ended_at: datetime | None
    last_step: int | None  # made, as far as anybody told
    saved_step: int | None
    live_through: int | None
    reason: str | None
    checkpoints: int
    started_over: bool = False  # a newer attempt took none of its steps over
    skips: tuple[tuple[int, int], ...] = ()
    changes: str = ""
    resume: str = ""  # what its receipts confirm of what it loaded; '' where it loaded nothing
    resume_tone: str = "unknown"


@dataclass(frozen=True)
class CheckpointRow:
    ref: CheckpointRef
    resumability: str
    loss: Number
    tokens_seen: int | None
    bytes: int | None
    replicas: str
    scores: int
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoreChoices:
    """The scores of one capability that can be plotted: per benchmark its metrics, each a link."""

    name: str
    rows: tuple[tuple[str, tuple[Link, ...]], ...]


@dataclass(frozen=True)
class ScoreColumn:
    label: str
    href: str | None = None


@dataclass(frozen=True)
class ScoreCell:
    """`via` is the address of the lossless copy that the score was measured on."""

    value: Number = None
    stderr: Number = None
    via: str | None = None


@dataclass(frozen=True)
class ScoreTableRow:
    ref: CheckpointRef
    cells: tuple[ScoreCell, ...]


@dataclass(frozen=True)
class RunContext:
    id: str
    name: str
    project: str
    colour: int
    answer: Answer
    facts: tuple[Fact, ...]
    aliases: tuple[Chip, ...]
    plots: tuple[Plot, ...]
    plotted: tuple[Link, ...]
    plot_choices: tuple[ScoreChoices, ...]
    axis_choices: tuple[Link, ...]
    score_columns: tuple[ScoreColumn, ...]
    score_rows: tuple[ScoreTableRow, ...]
    attempts: tuple[AttemptRow, ...]
    checkpoints: tuple[CheckpointRow, ...]
    older: str | None
    newer: str | None
    trackers: "TrackersBlock"
    config: tuple[Fact, ...]
    actions: tuple[Link, ...]
    empty: tuple[Command, ...] = ()
    findings: tuple[Link, ...] = ()
    interruptions: Answer | None = None
    incidents: "tuple[IncidentLine, ...]" = ()
