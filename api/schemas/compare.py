"""Shapes of compare."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from api.schemas.common import Answer, CheckpointRef, Id, Number, Shape, Time
from api.schemas.lineage import EdgeOut
from api.schemas.parts import CodeOut
from registry.provenance.association import Association
from registry.provenance.compare import CodeChanges, Comparison, DataChanges
from registry.provenance.composites import CapabilityComparison
from registry.provenance.config_diff import ConfigChange
from registry.provenance.score_changes import ScoreComparison
from registry.provenance.suspects import Suspect, Tested


def _no_name(value: Any) -> Any:
    """Refuses the name of a checkpoint, as the command line reads it, with the way to its id."""
    if isinstance(value, str) and "/" in value:
        raise ValueError(
            "expected the id of a checkpoint, and this is a name: GET /api/v1/checkpoints?filter=… with "
            "project = 'llm' and run.name = '7b' and step = 1000 gives the id of llm/7b@1000"
        )
    return value


CheckpointId = Annotated[Id, BeforeValidator(_no_name)]


class CompareIn(Shape):
    """Two checkpoints, as ids: the one that was better, and the one in question."""

    baseline: CheckpointId
    candidate: CheckpointId


class ScoreChangeOut(Answer):
    """One benchmark on both sides. `delta` is candidate - baseline on the benchmark's own scale.

    So negative is worse where `direction` is higher, positive where it is lower; where it is target, what counts is the
    distance from the target, and `why` gives that. `verdict` has taken the direction into account. `stderr` (of the
    delta), `minimum_detectable` (the smallest change that would have been found in 80 % of cases) and the figures in
    `why` are on the same scale.
    """

    benchmark: str
    metric: str
    filter: str
    capability: str | None
    direction: Literal["higher", "lower", "target"]
    baseline: Number | None
    candidate: Number | None
    delta: float | None
    stderr: float | None
    p_value: float | None
    q_value: float | None
    minimum_detectable: float | None
    method: str
    verdict: str
    why: str
    via: list[Id | None]

    @classmethod
    def from_row(cls, row: ScoreComparison) -> Self:
        own = [name for name in cls.model_fields if name != "via"]
        return cls.model_construct(**{name: getattr(row, name) for name in own}, via=list(row.via))


class CapabilityChangeOut(Answer):
    """The mean over the benchmarks that both have, normalised: 0 is guessing, 1 perfect, and negative always worse.

    The figures in `why` are normalised as the fields are.
    """

    capability: str
    baseline: float
    candidate: float
    delta: float
    stderr: float
    p_value: float
    q_value: float
    minimum_detectable: float
    verdict: str
    why: str
    benchmarks: list[str]

    @classmethod
    def from_row(cls, row: CapabilityComparison) -> Self:
        own = [name for name in cls.model_fields if name != "benchmarks"]
        return cls.model_construct(**{name: getattr(row, name) for name in own}, benchmarks=list(row.benchmarks))


class ConfigChangeOut(Answer):
    """`change` is added, removed or changed. `not_recorded_on`: the side that recorded nothing of the whole group that
    the path stands in. The value there is unknown then, and the path is no suspect."""

    path: str
    change: str
    class_: Annotated[str, Field(serialization_alias="class")]
    old: Any
    new: Any
    not_recorded_on: Literal["baseline", "candidate"] | None

    @classmethod
    def from_row(cls, row: ConfigChange) -> Self:
        own = {name: getattr(row, name) for name in ("path", "change", "old", "new", "not_recorded_on")}
        return cls.model_construct(class_=row.kind, **own)


class SourceChangeOut(Answer):
    """Shares are fractions of the mix; tokens seen of the source."""

    source: str
    old_share: float | None
    new_share: float | None
    old_tokens: float | None
    new_tokens: float | None
    jensen_shannon_bits: float | None


class DataChangesOut(Answer):
    """`total_variation` null: a mix is not known; `why` says which.

    `by_lineage`: a side resumed from a checkpoint that had seen other data, so shares and distances are of the tokens
    seen, over all of it. `note`: what of that past could not be counted.
    """

    baseline: str | None
    candidate: str | None
    total_variation: float | None
    jensen_shannon_bits: float | None
    sources: list[SourceChangeOut]
    why: str
    by_lineage: bool
    note: str

    @classmethod
    def from_row(cls, row: DataChanges) -> Self:
        mix = row.mix
        return cls.model_construct(
            baseline=row.baseline,
            candidate=row.candidate,
            total_variation=mix.total_variation,
            jensen_shannon_bits=mix.jensen_shannon_bits,
            sources=[
                SourceChangeOut.model_construct(**{name: getattr(each, name) for name in SourceChangeOut.model_fields})
                for each in mix.sources
            ],
            why=mix.why,
            by_lineage=row.by_lineage,
            note=row.note,
        )


class FileChangeOut(Answer):
    """`class`: what the path suggests that the file is for; code where it suggests nothing."""

    path: str
    change: str
    class_: Annotated[str, Field(serialization_alias="class")]


class CommitOut(Answer):
    commit: str
    at: Time
    subject: str


class CodeChangesOut(Answer):
    """`status`: same, known (then `files` lists them) or unknown, and `why`.

    Where a mirror of the repository knows both commits, `log` names those that only the candidate has, newest first,
    of `commit_count`; `left_behind`: how many only the baseline has.
    """

    status: str
    commits: list[str | None]
    files: list[FileChangeOut]
    log: list[CommitOut]
    commit_count: int | None
    left_behind: int | None
    baseline: CodeOut | None
    candidate: CodeOut | None
    why: str

    @classmethod
    def from_row(cls, row: CodeChanges) -> Self:
        return cls.model_construct(
            status=row.status,
            commits=list(row.commits),
            files=[
                FileChangeOut.model_construct(path=each.path, change=each.change, class_=each.kind)
                for each in row.files
            ],
            log=[
                CommitOut.model_construct(
                    commit=each.commit, at=datetime.fromtimestamp(each.at, UTC), subject=each.subject
                )
                for each in row.log
            ],
            commit_count=row.commit_count,
            left_behind=row.left_behind,
            baseline=row.baseline and CodeOut.from_spec(row.baseline),
            candidate=row.candidate and CodeOut.from_spec(row.candidate),
            why=row.why,
        )


class TestedOut(Answer):
    """What reverting the change and training a short branch showed: confirmed or cleared."""

    verdict: Literal["confirmed", "cleared"]
    branch: Id | None
    note: str | None
    created_by: str
    created_at: Time

    @classmethod
    def from_row(cls, row: Tested) -> Self:
        own = ("verdict", "note", "created_by", "created_at")
        return cls.model_construct(branch=row.branch_id, **{name: getattr(row, name) for name in own})


class AssociationOut(Answer):
    """What earlier pairs of checkpoints say, one a run family: with the change and without it, how many fell."""

    fell_with: int
    held_with: int
    fell_without: int
    held_without: int
    changed_pairs: int
    families: int
    p_value: float
    q_value: float
    shown: bool

    @classmethod
    def from_row(cls, row: Association) -> Self:
        counts = row.counts
        return cls.model_construct(
            fell_with=counts.a,
            held_with=counts.b,
            fell_without=counts.c,
            held_without=counts.d,
            changed_pairs=row.changed_pairs,
            families=row.families,
            p_value=row.p_value,
            q_value=row.q_value,
            shown=row.is_shown,
        )


class SuspectOut(Answer):
    """Changes that may have caused what fell. `share`: of the suspicion over all suspects; an association, no proof.

    `tested`: what became of it when somebody reverted it, as they recorded with `POST /suspects`.
    """

    changes: list[str]
    strength: str
    share: float
    reasons: list[str]
    prior: float
    magnitude: float
    likelihood_ratio: float
    association: AssociationOut | None
    tested: TestedOut | None

    @classmethod
    def from_row(cls, row: Suspect) -> Self:
        own = ("strength", "share", "prior", "magnitude", "likelihood_ratio")
        return cls.model_construct(
            changes=list(row.changes),
            reasons=list(row.reasons),
            association=row.association and AssociationOut.from_row(row.association),
            tested=row.tested and TestedOut.from_row(row.tested),
            **{name: getattr(row, name) for name in own},
        )


class ScoreKeyOut(Answer):
    benchmark: str
    metric: str
    filter: str

    @classmethod
    def of(cls, keys: Sequence[tuple[str, str, str]]) -> list[Self]:
        return [cls.model_construct(benchmark=name, metric=metric, filter=filter) for name, metric, filter in keys]


class ComparisonOut(Answer):
    """`config_why` and `environment_why` say what one side did not record and is not compared; empty where all is.
    `late_why`: whose config or environment was taken, since a checkpoint has none of its own.

    `lineage`: the recorded edges by which one of the two came from the other, the oldest first, and `lineage_why` what
    they mean; empty where none is recorded. Of two with the same weights (copies, or one and the same) no score is
    better or worse.
    """

    baseline: CheckpointRef
    candidate: CheckpointRef
    scores: list[ScoreChangeOut]
    capabilities: list[CapabilityChangeOut]
    only_baseline: list[ScoreKeyOut]
    only_candidate: list[ScoreKeyOut]
    config_changes: list[ConfigChangeOut]
    config_why: str
    data_changes: DataChangesOut
    code_changes: CodeChangesOut
    environment_changes: list[ConfigChangeOut]
    environment_why: str
    late_why: str
    suspects: list[SuspectOut]
    lineage: list[EdgeOut]
    lineage_why: str

    @classmethod
    def from_comparison(cls, row: Comparison) -> Self:
        return cls.model_construct(
            baseline=CheckpointRef.from_row(row.baseline),
            candidate=CheckpointRef.from_row(row.candidate),
            scores=[ScoreChangeOut.from_row(each) for each in row.scores.scores],
            capabilities=[CapabilityChangeOut.from_row(each) for each in row.scores.capabilities],
            only_baseline=ScoreKeyOut.of(row.scores.only_baseline),
            only_candidate=ScoreKeyOut.of(row.scores.only_candidate),
            config_changes=[ConfigChangeOut.from_row(each) for each in row.config_changes],
            config_why=row.config_why,
            data_changes=DataChangesOut.from_row(row.data_changes),
            code_changes=CodeChangesOut.from_row(row.code_changes),
            environment_changes=[ConfigChangeOut.from_row(each) for each in row.environment_changes],
            environment_why=row.environment_why,
            late_why=row.late_why,
            suspects=[SuspectOut.from_row(each) for each in row.suspects],
            lineage=[
                EdgeOut.model_construct(
                    child=each.child_id, parent=each.parent_id, relation=each.relation, lossless=each.lossless
                )
                for each in row.lineage.edges
            ],
            lineage_why=row.lineage_why,
        )
