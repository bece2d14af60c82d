"""Two checkpoints side by side: what got worse or better, what changed between them, and which change is suspect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.evals.results import EvalResult, Readings, results_of
from registry.ids import to_text
from registry.models import (
    Attempt,
    Checkpoint,
    CodeVersion,
    Config,
    DataSource,
    DataVersion,
    Environment,
    Layout,
    Project,
    Run,
)
from registry.provenance.association import PastPair
from registry.provenance.config_diff import ConfigChange, Scalar, diff_configs
from registry.provenance.data_mix import MixChange, Source, compare_mixes
from registry.provenance.score_changes import ScoreChanges, compare_scores
from registry.provenance.suspects import (
    Change,
    Suspect,
    changes_of_config,
    changes_of_mix,
    rank_suspects,
    relative_change,
)
from registry.snapshots import CodeSpec, flatten

WHOLLY_REPLACED = 0.999  # total variation from which two mixes have nothing in common

__all__ = ["CodeChanges", "Comparison", "DataChanges", "compare_checkpoints", "compare_scores"]


@dataclass(frozen=True, slots=True)
class DataChanges:
    """The data versions by name (None: not recorded), and how their mixes differ."""

    baseline: str | None
    candidate: str | None
    mix: MixChange


@dataclass(frozen=True, slots=True)
class CodeChanges:
    """`status`: same, known (then `files` lists them) or unknown, and `why`. A side of None has nothing recorded."""

    status: str
    baseline: CodeSpec | None
    candidate: CodeSpec | None
    files: tuple[tuple[str, str], ...]  # (path, added | removed | changed)
    why: str

    @property
    def commits(self) -> tuple[str | None, str | None]:
        return (
            self.baseline.commit if self.baseline is not None else None,
            self.candidate.commit if self.candidate is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that a comparison says. `config_known`: whether each side recorded a config at all."""

    baseline: CheckpointIdentity
    candidate: CheckpointIdentity
    scores: ScoreChanges
    config_changes: tuple[ConfigChange, ...]
    config_known: tuple[bool, bool]
    data_changes: DataChanges
    code_changes: CodeChanges
    environment_changes: tuple[ConfigChange, ...]
    suspects: tuple[Suspect, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """One checkpoint with what was recorded of it; what it did not say itself it has from its attempt or run."""

    identity: CheckpointIdentity
    project_id: int
    tokens_seen: int | None
    config_id: int | None
    environment_id: int | None
    layout: Layout | None
    data_version: DataVersion | None
    code: CodeSpec | None
    attempt_changes: str | None


def compare_checkpoints(
    session: Session, baseline_id: int, candidate_id: int, history: Iterable[PastPair] = ()
) -> Comparison:
    """Compare two checkpoints, in at most nine statements. Raises CheckpointNotFound.

    `history` holds earlier pairs whose outcome is known; without it every likelihood ratio of a suspect is 1.
    """
    old, new = _sides(session, baseline_id, candidate_id)
    scores = _score_changes(session, old, new)
    config = _config_changes(session, old, new)
    data = _data_changes(session, old, new)
    code = _code_changes(old.code, new.code)
    environment = _environment_changes(session, old, new)
    suspects: list[Suspect] = []
    if scores.fell:
        changes = [
            *_data_suspects(data),
            *changes_of_config(config),
            *_code_suspects(code),
            *changes_of_config(environment, "environment"),
            *_attempt_suspects(old, new),
            *_training_suspects(old, new),
        ]
        suspects = rank_suspects(changes, scores.fallen_capabilities(), history)
    return Comparison(
        old.identity,
        new.identity,
        scores,
        tuple(config),
        (old.config_id is not None, new.config_id is not None),
        data,
        code,
        tuple(environment),
        tuple(suspects),
    )


# ---- the two sides


def _sides(session: Session, baseline_id: int, candidate_id: int) -> tuple[_Side, _Side]:
    own = (Checkpoint.project_id, Checkpoint.id)
    query = (
        select(Checkpoint, Project.name, Run.name, Attempt, Layout, DataVersion, CodeVersion)
        .join(Project, Project.id == Checkpoint.project_id)
        .join(Run, (Run.project_id == own[0]) & (Run.id == Checkpoint.run_id))
        .join(Attempt, (Attempt.project_id == own[0]) & (Attempt.id == Checkpoint.attempt_id))
        .outerjoin(Layout, (Layout.project_id == own[0]) & (Layout.id == Checkpoint.layout_id))
        .outerjoin(DataVersion, (DataVersion.project_id == own[0]) & (DataVersion.id == Checkpoint.data_version_id))
        .outerjoin(CodeVersion, (CodeVersion.project_id == own[0]) & (CodeVersion.id == Checkpoint.code_version_id))
        .where(Checkpoint.id.in_({baseline_id, candidate_id}))
    )
    found = {row[0].id: _side(*row) for row in session.execute(query)}
    for wanted in (baseline_id, candidate_id):
        if wanted not in found:
            raise CheckpointNotFound(f"There is no checkpoint {to_text(wanted)}. GET /api/v1/checkpoints lists them.")
    return found[baseline_id], found[candidate_id]


def _side(
    checkpoint: Checkpoint,
    project: str,
    run_name: str,
    attempt: Attempt,
    layout: Layout | None,
    data: DataVersion | None,
    code: CodeVersion | None,
) -> _Side:
    return _Side(
        identity=CheckpointIdentity(
            id=checkpoint.id,
            project=project,
            run=RunName(checkpoint.run_id, run_name),
            attempt=checkpoint.attempt_number,
            step=checkpoint.step,
            kind=checkpoint.kind,
            saved_at=checkpoint.saved_at,
        ),
        project_id=checkpoint.project_id,
        tokens_seen=checkpoint.tokens_seen,
        config_id=checkpoint.config_id,
        environment_id=checkpoint.environment_id,
        layout=layout,
        data_version=data,
        code=None if code is None else CodeSpec(code.commit, code.dirty, code.diff_digest, code.remote),
        attempt_changes=attempt.changes,
    )


# ---- scores


def _score_changes(session: Session, old: _Side, new: _Side) -> ScoreChanges:
    ids = list(dict.fromkeys((old.identity.id, new.identity.id)))
    rows: dict[int, list[EvalResult]] = {}
    readings: Readings | None = None
    for project_id in dict.fromkeys((new.project_id, old.project_id)):
        here = [each.identity.id for each in (old, new) if each.project_id == project_id]
        found, readings = results_of(session, project_id, list(dict.fromkeys(here)))
        rows |= found
    assert readings is not None
    return compare_scores(rows[ids[0]], rows[ids[-1]], readings)


# ---- what changed


def _bodies(session: Session, table: Any, sides: Iterable[tuple[int, int | None]]) -> dict[int, dict[str, Scalar]]:
    """The flattened objects by id; one statement."""
    ids = {identity for _, identity in sides if identity is not None}
    if not ids:
        return {}
    projects = {project_id for project_id, identity in sides if identity is not None}
    query = select(table.id, table.body).where(table.project_id.in_(projects), table.id.in_(ids))
    return {identity: dict(flatten(strict_json.unpack(body))) for identity, body in session.execute(query)}


def _config_changes(session: Session, old: _Side, new: _Side) -> list[ConfigChange]:
    """Both configs, and the layouts below `layout.`; nothing where one side recorded none, since that is unknown."""
    changes = []
    if old.config_id is not None and new.config_id is not None and old.config_id != new.config_id:
        sides = [(each.project_id, each.config_id) for each in (old, new)]
        bodies = _bodies(session, Config, sides)
        changes = diff_configs(bodies[old.config_id], bodies[new.config_id])
    if old.layout is not None and new.layout is not None and old.layout.id != new.layout.id:
        changes += [
            ConfigChange(each.path, each.change, "parallel", each.old, each.new)
            for each in diff_configs(_layout_values(old.layout), _layout_values(new.layout))
        ]
    return changes


def _layout_values(layout: Layout) -> dict[str, Scalar]:
    """What is known of a layout: an unknown degree is left out, so it shows as added or removed, never as one."""
    names = ("world_size", "tp", "pp", "dp", "cp", "ep", "sharding")
    known = {f"layout.{name}": getattr(layout, name) for name in names}
    return {path: value for path, value in known.items() if value is not None}


def _environment_changes(session: Session, old: _Side, new: _Side) -> list[ConfigChange]:
    if old.environment_id is None or new.environment_id is None or old.environment_id == new.environment_id:
        return []
    sides = [(each.project_id, each.environment_id) for each in (old, new)]
    bodies = _bodies(session, Environment, sides)
    return [
        ConfigChange(each.path, each.change, "env", each.old, each.new)
        for each in diff_configs(bodies[old.environment_id], bodies[new.environment_id])
    ]


def _data_changes(session: Session, old: _Side, new: _Side) -> DataChanges:
    versions = [each.data_version for each in (old, new)]
    mixes = _mixes(session, [each for each in versions if each is not None])
    sides: list[Mapping[str, Source] | None] = [mixes.get(each.id) if each is not None else None for each in versions]
    mix = compare_mixes(sides[0], sides[1], old.tokens_seen, new.tokens_seen)
    names = [each.name if each is not None else None for each in versions]
    return DataChanges(names[0], names[1], mix)


def _mixes(session: Session, versions: Iterable[DataVersion]) -> dict[int, dict[str, Source]]:
    wanted = list(versions)
    if not wanted:
        return {}
    query = select(DataSource).where(
        DataSource.project_id.in_({each.project_id for each in wanted}),
        DataSource.data_version_id.in_({each.id for each in wanted}),
    )
    found: dict[int, dict[str, Source]] = {}
    for row in session.scalars(query):
        found.setdefault(row.data_version_id, {})[row.source] = Source(row.weight, row.tokens)
    return found


def _code_changes(old: CodeSpec | None, new: CodeSpec | None) -> CodeChanges:
    """Same only where that is certain: one commit, and both trees clean or with the same diff."""
    if old is None or new is None or old.commit is None or new.commit is None:
        missing = [
            name for name, side in (("baseline", old), ("candidate", new)) if side is None or side.commit is None
        ]
        return CodeChanges("unknown", old, new, (), f"no commit is recorded for the {' and the '.join(missing)}")
    if old.commit != new.commit:
        return CodeChanges(
            "unknown", old, new, (), "the commits differ, and no repository is connected to list the files"
        )
    if old.dirty is False and new.dirty is False:
        return CodeChanges("same", old, new, (), "both ran the same commit with a clean tree")
    if old.diff_digest is not None and old.diff_digest == new.diff_digest:
        return CodeChanges("same", old, new, (), "both ran the same commit with the same uncommitted changes")
    if old.dirty is None or new.dirty is None:
        return CodeChanges("unknown", old, new, (), "one commit, but nobody said whether the trees were clean")
    return CodeChanges(
        "unknown", old, new, (), "one commit, but with uncommitted changes that are not known to be the same"
    )


# ---- what may be to blame


def _data_suspects(data: DataChanges) -> list[Change]:
    """By source; as a whole where the mix is unknown, or nothing of it stayed, so that no source stands out."""
    replaced = data.mix.total_variation is not None and data.mix.total_variation > WHOLLY_REPLACED
    if data.baseline == data.candidate or (data.mix.total_variation is not None and not replaced):
        return changes_of_mix(data.mix)
    if data.baseline is None or data.candidate is None:
        return []
    why = "which have no source in common" if replaced else data.mix.why
    return [Change("data_version", "data", 1.0, f"data version went from {data.baseline} to {data.candidate}, {why}")]


def _code_suspects(code: CodeChanges) -> list[Change]:
    old, new = code.commits
    if code.status == "same" or old is None or new is None:
        return []
    if old != new:
        return [Change("code", "code", 1.0, f"code went from {old[:12]} to {new[:12]}; {code.why}")]
    return [Change("code", "code", 0.5, f"code at {old[:12]}: {code.why}")]


def _attempt_suspects(old: _Side, new: _Side) -> list[Change]:
    """What the person who opened the candidate's attempt wrote that they changed."""
    same = (old.identity.run.id, old.identity.attempt) == (new.identity.run.id, new.identity.attempt)
    if same or not new.attempt_changes:
        return []
    words = f"attempt {new.identity.attempt} was opened with changes: {new.attempt_changes[:200]}"
    return [Change("attempt.changes", "other", 1.0, words)]


def _training_suspects(old: _Side, new: _Side) -> list[Change]:
    """That the candidate saw fewer tokens: what it has not learned it has not lost."""
    before, after = old.tokens_seen, new.tokens_seen
    if before is None or after is None or after >= before:
        return []
    words = f"it was trained on {after / 1e9:.3g}B tokens, the baseline on {before / 1e9:.3g}B"
    return [Change("tokens_seen", "schedule", relative_change(before, after), words)]
