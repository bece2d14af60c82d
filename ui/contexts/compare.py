"""What the template of a comparison may use."""

from dataclasses import dataclass
from datetime import datetime

from ui.contexts.shared import Answer, CheckpointRef, Command, Fact, Link
from ui.filters import Number


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
    figures: tuple[Fact, ...] = ()  # behind the strength, for who asks
    tested: str = ""  # confirmed or cleared, where somebody reverted it


@dataclass(frozen=True)
class CommitRow:
    commit: str
    at: datetime
    subject: str


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
    mix_figures: tuple[Fact, ...] = ()
    code_words: str = ""
    code_files: tuple[ChangeRow, ...] = ()
    environment_changes: tuple[ChangeRow, ...] = ()
    environment_words: str = ""
    lineage: str = ""
    suspects: tuple[SuspectRow, ...] = ()
    only_baseline: int = 0
    only_candidate: int = 0
    swap_href: str = ""
    csv_href: str = ""
    actions: tuple[Link, ...] = ()
    empty: tuple[Command, ...] = ()
    suggestions: tuple[Link, ...] = ()
    typed_baseline: str = ""
    typed_candidate: str = ""
    problem: str = ""
    log: tuple[CommitRow, ...] = ()
    search: dict[str, str] | None = None  # what a search for the fall would ask, where something fell

    @property
    def largest_share(self) -> float:
        return max((max(row.baseline or 0.0, row.candidate or 0.0) for row in self.mix), default=0.0)
