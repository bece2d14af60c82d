"""One frozen dataclass per page: all that its template may use. Values are plain; templates only arrange them."""

from dataclasses import dataclass, field
from datetime import datetime

from ui.charts import LineChart
from ui.filters import Number

# ---- shared by several pages


@dataclass(frozen=True)
class Shell:
    """What the frame around every page shows. `csrf` is empty where nobody has signed in.

    `notices` say what of the address was not understood and left out.
    """

    title: str
    section: str
    signed_in_as: str | None
    csrf: str
    stylesheet: str
    script: str
    icon: str
    now: datetime
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckpointRef:
    """A checkpoint's identity, shown as `run · attempt · step` everywhere."""

    id: str
    project: str
    run_id: str
    run_name: str
    attempt: int
    step: int
    kind: str
    saved_at: datetime | None
    path: str | None = None
    pieces: dict[str, str] | None = None
    superseded: bool = False
    state: str = "committed"
    recorded_at: datetime | None = None  # where nobody said when it was saved


@dataclass(frozen=True)
class Link:
    """A choice that is a link: a sort order, a tab, a page of a list."""

    text: str
    href: str
    chosen: bool = False


@dataclass(frozen=True)
class Command:
    """What to run to fill what is empty."""

    why: str
    text: str
    kind: str = "command"


@dataclass(frozen=True)
class Fact:
    """A name and a value as words; `title` gives every digit or the source."""

    name: str
    value: str
    title: str = ""
    href: str | None = None
    mono: bool = False


@dataclass(frozen=True)
class Plot:
    """A chart, its caption, and where its numbers are."""

    chart: LineChart
    caption: str = ""
    csv_href: str | None = None
    table_href: str | None = None
    mark_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The sentence a page opens with; `tone` is good, warn, bad, unknown or plain."""

    text: str
    tone: str = "plain"
    detail: str = ""


@dataclass(frozen=True)
class Chip:
    """One understood condition, or one alias."""

    text: str
    href: str | None = None
    title: str = ""
    tone: str = ""


# ---- runs


@dataclass(frozen=True)
class RunRow:
    id: str
    name: str
    project: str
    colour: int
    state: str
    owner: str | None
    attempts: int
    checkpoints: int
    newest: CheckpointRef | None
    newest_step: int | None
    parameter_count: int | None
    loss: Number
    data_version: str | None


@dataclass(frozen=True)
class RunsContext:
    answer: Answer
    rows: tuple[RunRow, ...]
    projects: tuple[Link, ...]
    query: str
    project: str | None
    sorts: dict[str, Link]
    order: str
    newer: str | None
    older: str | None
    order_note: str = ""
    empty: tuple[Command, ...] = ()


# ---- one run


@dataclass(frozen=True)
class AttemptRow:
    number: int
    state: str
    resumed_from: CheckpointRef | None
    resumed_words: str
    started_at: datetime | None
    ended_at: datetime | None
    last_step: int | None
    live_through: int | None
    reason: str | None
    checkpoints: int
    started_over: bool = False  # a newer attempt took none of its steps over
    skips: tuple[tuple[int, int], ...] = ()
    changes: str = ""


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
class ScoreTableRow:
    ref: CheckpointRef
    cells: tuple[tuple[Number, Number], ...]


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
    trackers: tuple[Fact, ...]
    config: tuple[Fact, ...]
    actions: tuple[Link, ...]
    empty: tuple[Command, ...] = ()


# ---- one checkpoint


@dataclass(frozen=True)
class PieceRow:
    name: str
    presence: str
    evidence: str
    consequence: str


@dataclass(frozen=True)
class ReplicaRow:
    id: str
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    files: int | None
    state: str
    digest: str | None
    recorded_at: datetime
    managed: str
    parts: str = ""


@dataclass(frozen=True)
class ScoreRow:
    benchmark: str
    metric: str
    filter: str
    value: Number
    stderr: Number
    n_shot: int | None
    n_samples: int | None
    version: str | None
    evaluated_at: datetime | None
    earlier: int = 0
    note: str = ""


@dataclass(frozen=True)
class CapabilityRow:
    name: str
    percentile: float | None
    coverage: str
    scores: tuple[ScoreRow, ...]
    folded: str = ""  # what is folded away, where it is


@dataclass(frozen=True)
class LineageRow:
    direction: str
    relation: str
    ref: CheckpointRef | None
    words: str = ""


@dataclass(frozen=True)
class SourceRow:
    name: str
    weight: float | None
    tokens: float | None


@dataclass(frozen=True)
class CheckpointContext:
    ref: CheckpointRef
    colour: int
    answer: Answer
    facts: tuple[Fact, ...]
    aliases: tuple[Chip, ...]
    tags: tuple[Fact, ...]
    notes: str | None
    pieces: tuple[PieceRow, ...]
    replicas: tuple[ReplicaRow, ...]
    capabilities: tuple[CapabilityRow, ...]
    rank_href: str | None
    metrics: tuple[Fact, ...]
    layout: tuple[Fact, ...]
    config: tuple[Fact, ...]
    config_digest: str | None
    data_version: str | None
    data_sources: tuple[SourceRow, ...]
    code: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    lineage: tuple[LineageRow, ...]
    actions: tuple[Link, ...]
    csv_href: str
    previous: Link | None = None
    next: Link | None = None
    score_command: Command | None = None

    @property
    def largest_share(self) -> float:
        return max((row.weight or 0.0 for row in self.data_sources), default=0.0)


# ---- compare


@dataclass(frozen=True)
class VerdictRow:
    """One benchmark or capability on both sides.

    `delta` and `stderr` are shares of the score's own scale, `delta_text` their text; a capability's are normalised.
    """

    name: str
    metric: str
    baseline: str
    candidate: str
    delta: Number
    stderr: Number
    delta_text: str
    p_value: float | None
    q_value: float | None
    minimum_detectable: str
    verdict: str
    why: str
    method: str = ""
    capability: str = ""
    in_points: bool = True


@dataclass(frozen=True)
class ChangeRow:
    path: str
    change: str
    kind: str
    old: str
    new: str


@dataclass(frozen=True)
class MixRow:
    source: str
    baseline: float | None
    candidate: float | None
    divergence: float | None
    baseline_tokens: float | None = None
    candidate_tokens: float | None = None


@dataclass(frozen=True)
class SuspectRow:
    changes: tuple[str, ...]
    strength: str
    share: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class CompareContext:
    baseline: CheckpointRef | None
    candidate: CheckpointRef | None
    answer: Answer
    capabilities: tuple[VerdictRow, ...] = ()
    scores: tuple[VerdictRow, ...] = ()
    show_all: Link | None = None
    reach: float = 0.1
    config_changes: tuple[ChangeRow, ...] = ()
    config_words: str = ""
    inert_changes: int = 0
    mix: tuple[MixRow, ...] = ()
    mix_words: str = ""
    code_words: str = ""
    code_files: tuple[ChangeRow, ...] = ()
    environment_changes: tuple[ChangeRow, ...] = ()
    environment_words: str = ""
    suspects: tuple[SuspectRow, ...] = ()
    only_baseline: int = 0
    only_candidate: int = 0
    swap_href: str = ""
    csv_href: str = ""
    suggestions: tuple[Link, ...] = ()
    typed_baseline: str = ""
    typed_candidate: str = ""
    problem: str = ""

    @property
    def largest_share(self) -> float:
        return max((max(row.baseline or 0.0, row.candidate or 0.0) for row in self.mix), default=0.0)


# ---- find


@dataclass(frozen=True)
class EvidenceRow:
    text: str
    percentile: float | None = None
    coverage: str = ""
    title: str = ""


@dataclass(frozen=True)
class FoundRow:
    ref: CheckpointRef
    colour: int
    score: float | None
    evidence: tuple[EvidenceRow, ...]
    compare_href: str | None = None


@dataclass(frozen=True)
class FilterColumn:
    name: str
    sort: Link | None
    numeric: bool = True
    order: str = "descending"


@dataclass(frozen=True)
class FilterCell:
    text: str
    numeric: bool = True
    title: str = ""


@dataclass(frozen=True)
class FilterRow:
    ref: CheckpointRef
    cells: tuple[FilterCell, ...]


@dataclass(frozen=True)
class PlaceOfMistake:
    """A mistake in a filter: the text before the place, the letter there, the rest, and what was expected."""

    before: str
    at: str
    after: str
    message: str


@dataclass(frozen=True)
class FindContext:
    mode: str
    modes: tuple[Link, ...]
    answer: Answer
    query: str
    filter: str
    order_by: str
    columns: str
    project: str | None
    projects: tuple[str, ...]
    chips: tuple[Chip, ...] = ()
    unparsed: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    population: str = ""
    results: tuple[FoundRow, ...] = ()
    incomplete: tuple[FoundRow, ...] = ()
    incomplete_words: str = ""
    loosen: str = ""
    loosen_links: tuple[Link, ...] = ()
    mistake: PlaceOfMistake | None = None
    filter_columns: tuple[FilterColumn, ...] = ()
    filter_rows: tuple[FilterRow, ...] = ()
    older: str | None = None
    examples: tuple[Link, ...] = ()
    csv_href: str | None = None
    as_filter: Link | None = None


# ---- rollback


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
    subject: str
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
    errors: dict[str, str] = field(default_factory=dict)


# ---- aliases


@dataclass(frozen=True)
class AliasRow:
    project: str
    name: str
    href: str
    target: CheckpointRef | None
    moved_at: datetime | None
    moved_by: str | None
    reason: str | None


@dataclass(frozen=True)
class AliasesContext:
    answer: Answer
    rows: tuple[AliasRow, ...]
    empty: tuple[Command, ...] = ()


@dataclass(frozen=True)
class AliasMoveRow:
    target: CheckpointRef | None
    moved_at: datetime
    moved_by: str | None
    reason: str | None
    current: bool


@dataclass(frozen=True)
class AliasContext:
    project: str
    name: str
    answer: Answer
    current: CheckpointRef | None
    proposed: CheckpointRef | None
    consequence: str
    back_to: CheckpointRef | None
    history: tuple[AliasMoveRow, ...]
    typed: str = ""
    problem: str = ""
    may_move: bool = False
    notice: str = ""


# ---- signing in, and problems


@dataclass(frozen=True)
class LoginContext:
    next: str
    problem: str


@dataclass(frozen=True)
class ProblemKind:
    """What one error code means, whoever met it."""

    code: str
    title: str
    status: int
    meaning: str
    href: str


@dataclass(frozen=True)
class ProblemKindsContext:
    """`chosen` is the one asked for; without it, all are listed."""

    answer: Answer
    chosen: ProblemKind | None
    kinds: tuple[ProblemKind, ...]


@dataclass(frozen=True)
class ProblemContext:
    status: int
    title: str
    message: str
    code: str
    errors: tuple[Fact, ...]
    kept: str
    next_step: Link | None
