"""What callers receive: frozen dataclasses with the service's own field names, and the whole answer in `raw`.

Times are aware and in UTC, numbers may be NaN or infinite, what the service left out is None or empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import ANY, FLAG, ITEMS, MAPPING, MOMENT, NUMBER, NUMBER_LIST, NUMBERS, TEXT, TEXTS, WHOLE, many, one


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Base: `raw` is the answer as it came, with fields that this client may not know yet."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Project(Answer):
    id: str = field(metadata=TEXT)
    name: str = field(metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Run(Answer):
    """One training job, across restarts. `project` is a name."""

    id: str = field(metadata=TEXT)
    name: str = field(default="", metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    kind: str | None = field(default=None, metadata=TEXT)
    owner: str | None = field(default=None, metadata=TEXT)
    team: str | None = field(default=None, metadata=TEXT)
    model_family: str | None = field(default=None, metadata=TEXT)
    parameter_count: int | None = field(default=None, metadata=WHOLE)
    tags: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    trackers: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    started_at: datetime | None = field(default=None, metadata=MOMENT)

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Attempt(Answer):
    """One execution of a run between two starts."""

    id: str = field(metadata=TEXT)
    number: int = field(metadata=WHOLE)
    state: str | None = field(default=None, metadata=TEXT)
    key: str | None = field(default=None, metadata=TEXT)
    started_at: datetime | None = field(default=None, metadata=MOMENT)
    ended_at: datetime | None = field(default=None, metadata=MOMENT)


@dataclass(frozen=True, kw_only=True)
class SeriesReport(Answer):
    points: int = field(metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class Curve(Answer):
    """One curve of one attempt; values may be NaN."""

    name: str = field(metadata=TEXT)
    attempt: int | None = field(default=None, metadata=WHOLE)
    steps: tuple[int, ...] = field(default=(), metadata=ITEMS)
    values: tuple[float, ...] = field(default=(), metadata=NUMBER_LIST)


@dataclass(frozen=True, kw_only=True)
class RunRef(Answer):
    id: str = field(metadata=TEXT)
    name: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class CheckpointRef(Answer):
    """How every answer names a checkpoint. `str()` gives `run · attempt · step`."""

    id: str = field(metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    attempt: int | None = field(default=None, metadata=WHOLE)
    step: int | None = field(default=None, metadata=WHOLE)
    kind: str | None = field(default=None, metadata=TEXT)
    saved_at: datetime | None = field(default=None, metadata=MOMENT)

    def __str__(self) -> str:
        name = self.run.name or self.run.id if self.run else "?"
        return f"{name} · {_shown(self.attempt)} · {_shown(self.step)}"


@dataclass(frozen=True, kw_only=True)
class Score(Answer):
    """The result that counts now for a benchmark's metric. `comparability` is what else must be equal to compare."""

    benchmark: str = field(default="", metadata=TEXT)
    metric: str = field(default="", metadata=TEXT)
    filter: str = field(default="", metadata=TEXT)
    value: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    n_samples: int | None = field(default=None, metadata=WHOLE)
    n_shot: int | None = field(default=None, metadata=WHOLE)
    version: str | None = field(default=None, metadata=TEXT)
    harness: str | None = field(default=None, metadata=TEXT)
    harness_version: str | None = field(default=None, metadata=TEXT)
    evaluated_at: datetime | None = field(default=None, metadata=MOMENT)
    comparability: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class ScoreReport(Answer):
    """`recorded` counts the results that were new; an identical one adds nothing."""

    received: int = field(default=0, metadata=WHOLE)
    recorded: int = field(default=0, metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class Checkpoint(CheckpointRef):
    """A checkpoint with what is known about it. `pieces` has the four names, each present, absent, unknown.

    In listings, `values` holds the fields that the question asked for or named, under those names.
    """

    state: str | None = field(default=None, metadata=TEXT)
    tokens_seen: int | None = field(default=None, metadata=WHOLE)
    epoch: float | None = field(default=None, metadata=NUMBER)
    loss: float | None = field(default=None, metadata=NUMBER)
    lr: float | None = field(default=None, metadata=NUMBER)
    metrics: Mapping[str, float] = field(default_factory=dict, metadata=NUMBERS)
    scores: tuple[Score, ...] = field(default=(), metadata=many(Score))
    pieces: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    resumability: str | None = field(default=None, metadata=TEXT)
    superseded: bool | None = field(default=None, metadata=FLAG)
    replicas: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    tags: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    data_version: Any = field(default=None, metadata=ANY)
    code: Any = field(default=None, metadata=ANY)
    config: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    environment: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    layout: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    format: str | None = field(default=None, metadata=TEXT)
    data_cursor: Any = field(default=None, metadata=ANY)
    save_seconds: float | None = field(default=None, metadata=NUMBER)
    stall_seconds: float | None = field(default=None, metadata=NUMBER)
    parents: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    aliases: tuple[str, ...] = field(default=(), metadata=TEXTS)
    notes: str | None = field(default=None, metadata=TEXT)
    milestone: bool | None = field(default=None, metadata=FLAG)
    values: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)

    @staticmethod
    def flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Listings hold the identity under `checkpoint`, beside the rest; here both are one."""
        identity = data.get("checkpoint")
        return {**data, **identity} if isinstance(identity, dict) else data


@dataclass(frozen=True, kw_only=True)
class CheckpointPage(Answer):
    """One page of a listing; `next_cursor` is None on the last. `resolved` says which metric a name meant."""

    items: tuple[Checkpoint, ...] = field(metadata=many(Checkpoint))
    next_cursor: str | None = field(default=None, metadata=TEXT)
    resolved: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class RunPage(Answer):
    items: tuple[Run, ...] = field(metadata=many(Run))
    next_cursor: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class ProjectPage(Answer):
    items: tuple[Project, ...] = field(metadata=many(Project))
    next_cursor: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class BatchResult(Answer):
    """`status` is created, unchanged or committed."""

    index: int = field(metadata=WHOLE)
    id: str = field(metadata=TEXT)
    status: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class BatchReport(Answer):
    accepted: int = field(metadata=WHOLE)
    results: tuple[BatchResult, ...] = field(default=(), metadata=many(BatchResult))


@dataclass(frozen=True, kw_only=True)
class SkippedItem(Answer):
    item: str = field(default="", metadata=TEXT)
    reason: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class ImportedFile(Answer):
    file: str = field(default="", metadata=TEXT)
    format: str | None = field(default=None, metadata=TEXT)
    imported: int = field(default=0, metadata=WHOLE)
    recorded: int = field(default=0, metadata=WHOLE)
    checkpoint_id: str | None = field(default=None, metadata=TEXT)
    notes: tuple[str, ...] = field(default=(), metadata=TEXTS)
    skipped: tuple[SkippedItem, ...] = field(default=(), metadata=many(SkippedItem))


@dataclass(frozen=True, kw_only=True)
class ImportReport(Answer):
    """`imported` counts scores, `recorded` those that were new; what was left out stands in `skipped`."""

    imported: int = field(metadata=WHOLE)
    recorded: int = field(default=0, metadata=WHOLE)
    format: str | None = field(default=None, metadata=TEXT)
    skipped: tuple[SkippedItem, ...] = field(default=(), metadata=many(SkippedItem))
    files: tuple[ImportedFile, ...] = field(default=(), metadata=many(ImportedFile))


@dataclass(frozen=True, kw_only=True)
class Condition(Answer):
    """One condition as it was understood: a capability, a benchmark or a field (`field_`)."""

    capability: str | None = field(default=None, metadata=TEXT)
    benchmark: str | None = field(default=None, metadata=TEXT)
    field_: str | None = field(default=None, metadata={**TEXT, "name": "field"})
    relation: str = field(default="", metadata=TEXT)
    threshold: Any = field(default=None, metadata=ANY)

    def __str__(self) -> str:
        subject = self.capability or self.benchmark or self.field_ or "?"
        if self.relation not in ("strong", "weak"):
            return f"{subject} {self.relation} {self.threshold}"
        return f"{self.relation} {subject}"


@dataclass(frozen=True, kw_only=True)
class Interpretation(Answer):
    """How a question was understood; `unparsed` are the words that were not."""

    conditions: tuple[Condition, ...] = field(default=(), metadata=many(Condition))
    unparsed: tuple[str, ...] = field(default=(), metadata=TEXTS)
    resolved: Any = field(default=None, metadata=ANY)


@dataclass(frozen=True, kw_only=True)
class BenchmarkEvidence(Answer):
    """A score that an answer rests on. `via`: that of a lossless copy; `parts`: the mean of so many subtasks."""

    benchmark: str = field(default="", metadata=TEXT)
    metric: str = field(default="", metadata=TEXT)
    filter: str = field(default="", metadata=TEXT)
    value: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    percentile: float | None = field(default=None, metadata=NUMBER)
    parts: int = field(default=0, metadata=WHOLE)
    via: bool = field(default=False, metadata=FLAG)


@dataclass(frozen=True, kw_only=True)
class Evidence(Answer):
    """What is known of one condition: `percentile` and `coverage` are fractions 0 to 1.

    Neither a percentile nor benchmarks: not evaluated, which is not weak.
    """

    condition: Condition = field(default_factory=Condition, metadata=one(Condition))
    capability: str | None = field(default=None, metadata=TEXT)
    percentile: float | None = field(default=None, metadata=NUMBER)
    composite: float | None = field(default=None, metadata=NUMBER)
    coverage: float | None = field(default=None, metadata=NUMBER)
    basis: str | None = field(default=None, metadata=TEXT)
    met: bool | None = field(default=None, metadata=FLAG)
    benchmarks: tuple[BenchmarkEvidence, ...] = field(default=(), metadata=many(BenchmarkEvidence))


@dataclass(frozen=True, kw_only=True)
class SearchResult(Answer):
    """`score` is the least over the conditions, 1 at best; `same_run` are ids of other results of its run."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    score: float | None = field(default=None, metadata=NUMBER)
    on_front: bool | None = field(default=None, metadata=FLAG)
    evidence: tuple[Evidence, ...] = field(default=(), metadata=many(Evidence))
    same_run: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class SearchAnswer(Answer):
    """`strict` is False where nothing met every condition and the nearest are shown instead.

    `incomplete` are checkpoints that were never evaluated on a part of the question.
    """

    results: tuple[SearchResult, ...] = field(metadata=many(SearchResult))
    interpretation: Interpretation = field(default_factory=Interpretation, metadata=one(Interpretation))
    population: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    strict: bool = field(default=True, metadata=FLAG)
    incomplete: tuple[SearchResult, ...] = field(default=(), metadata=many(SearchResult))


@dataclass(frozen=True, kw_only=True)
class Standing(Answer):
    """One capability of a checkpoint: where it stands among the checkpoints of its project."""

    capability: str = field(default="", metadata=TEXT)
    percentile: float | None = field(default=None, metadata=NUMBER)
    percentile_for_size: float | None = field(default=None, metadata=NUMBER)
    composite: float | None = field(default=None, metadata=NUMBER)
    coverage: float | None = field(default=None, metadata=NUMBER)
    population_size: int | None = field(default=None, metadata=WHOLE)
    benchmarks: tuple[BenchmarkEvidence, ...] = field(default=(), metadata=many(BenchmarkEvidence))
    warning: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Profile(Answer):
    """What a checkpoint is good at. `not_evaluated` are capabilities without a score, which is not weak."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    capabilities: tuple[Standing, ...] = field(default=(), metadata=many(Standing))
    not_evaluated: tuple[str, ...] = field(default=(), metadata=TEXTS)
    unknown: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class Onset(Answer):
    """When what is watched began to fall; `established` False: it may be noise. `sentence` says it in words."""

    sentence: str = field(default="", metadata=TEXT)
    watch: str = field(default="", metadata=TEXT)
    established: bool | None = field(default=None, metadata=FLAG)
    shape: str | None = field(default=None, metadata=TEXT)
    p_no_change: float | None = field(default=None, metadata=NUMBER)
    drop: float | None = field(default=None, metadata=NUMBER)
    drop_stderr: float | None = field(default=None, metadata=NUMBER)
    after_step: int | None = field(default=None, metadata=WHOLE)
    by_step: int | None = field(default=None, metadata=WHOLE)
    points: tuple[Any, ...] = field(default=(), metadata=ITEMS)


@dataclass(frozen=True, kw_only=True)
class Candidate(Answer):
    """One checkpoint to go back to, `rank` 1 first; `terms` are what the rank was computed from.

    `copy` is the replica that the restore time is reckoned for.
    """

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    rank: int | None = field(default=None, metadata=WHOLE)
    terms: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    reasons: tuple[str, ...] = field(default=(), metadata=TEXTS)
    copy: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class Excluded(Answer):
    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    filter: str = field(default="", metadata=TEXT)
    reason: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class RollbackAnswer(Answer):
    """Where to go back to; `sentence` says it in words. `onset` is None where nothing was watched.

    `excluded` shows the newest of those left out, `excluded_counts` counts all of them by filter.
    """

    candidates: tuple[Candidate, ...] = field(metadata=many(Candidate))
    sentence: str = field(default="", metadata=TEXT)
    mode: str | None = field(default=None, metadata=TEXT)
    onset: Onset | None = field(default=None, metadata=one(Onset))
    last_known_good: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    excluded: tuple[Excluded, ...] = field(default=(), metadata=many(Excluded))
    excluded_counts: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    considered: int | None = field(default=None, metadata=WHOLE)
    assumptions: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class ScoreChange(Answer):
    """One benchmark in both checkpoints; `delta` is oriented, negative is worse. `verdict` is one of regressed,
    suspected, unchanged, inconclusive, improved, not_comparable; `why` explains it."""

    benchmark: str = field(default="", metadata=TEXT)
    metric: str = field(default="", metadata=TEXT)
    filter: str = field(default="", metadata=TEXT)
    capability: str | None = field(default=None, metadata=TEXT)
    baseline: float | None = field(default=None, metadata=NUMBER)
    candidate: float | None = field(default=None, metadata=NUMBER)
    delta: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    p_value: float | None = field(default=None, metadata=NUMBER)
    q_value: float | None = field(default=None, metadata=NUMBER)
    minimum_detectable: float | None = field(default=None, metadata=NUMBER)
    method: str | None = field(default=None, metadata=TEXT)
    verdict: str = field(default="", metadata=TEXT)
    why: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class CapabilityChange(Answer):
    capability: str = field(default="", metadata=TEXT)
    delta: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    q_value: float | None = field(default=None, metadata=NUMBER)
    verdict: str = field(default="", metadata=TEXT)
    why: str | None = field(default=None, metadata=TEXT)
    benchmarks: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class ConfigChange(Answer):
    """`class_` is the answer's `class`: data, optimiser, schedule, model, ..."""

    path: str = field(default="", metadata=TEXT)
    change: str = field(default="", metadata=TEXT)
    class_: str | None = field(default=None, metadata={**TEXT, "name": "class"})
    old: Any = field(default=None, metadata=ANY)
    new: Any = field(default=None, metadata=ANY)


@dataclass(frozen=True, kw_only=True)
class Suspect(Answer):
    """Changes that may have caused what fell: an association, no proof. `share` is of all suspicion, 0 to 1."""

    changes: tuple[str, ...] = field(default=(), metadata=TEXTS)
    strength: str = field(default="", metadata=TEXT)
    share: float | None = field(default=None, metadata=NUMBER)
    reasons: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class Comparison(Answer):
    """What changed from `baseline` to `candidate`, and what is suspected of having done it."""

    scores: tuple[ScoreChange, ...] = field(metadata=many(ScoreChange))
    baseline: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    candidate: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    capabilities: tuple[CapabilityChange, ...] = field(default=(), metadata=many(CapabilityChange))
    config_changes: tuple[ConfigChange, ...] = field(default=(), metadata=many(ConfigChange))
    data_changes: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    code_changes: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    environment_changes: tuple[ConfigChange, ...] = field(default=(), metadata=many(ConfigChange))
    suspects: tuple[Suspect, ...] = field(default=(), metadata=many(Suspect))


@dataclass(frozen=True, kw_only=True)
class Edge(Answer):
    """The checkpoint `child` (an id) came from `parent`. Over a lossless edge the weights have the same values."""

    child: str = field(metadata=TEXT)
    parent: str = field(metadata=TEXT)
    relation: str = field(default="", metadata=TEXT)
    lossless: bool = field(default=False, metadata=FLAG)


@dataclass(frozen=True, kw_only=True)
class Lineage(Answer):
    """Where a checkpoint comes from and what came from it, nearest first; `checkpoints` describes every id."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    ancestors: tuple[Edge, ...] = field(default=(), metadata=many(Edge))
    descendants: tuple[Edge, ...] = field(default=(), metadata=many(Edge))
    checkpoints: tuple[CheckpointRef, ...] = field(default=(), metadata=many(CheckpointRef))


@dataclass(frozen=True, kw_only=True)
class Alias(Answer):
    """A name that points at one committed checkpoint, such as `production`."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    name: str = field(default="", metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    moved_at: datetime | None = field(default=None, metadata=MOMENT)

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class AliasMove(Answer):
    """One move of an alias; `previous` is None for the first."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    previous: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    reason: str | None = field(default=None, metadata=TEXT)
    moved_by: str = field(default="", metadata=TEXT)
    moved_at: datetime | None = field(default=None, metadata=MOMENT)


def _shown(value: int | None) -> str:
    return "?" if value is None else str(value)
