"""Two checkpoints side by side: what got worse or better, what changed between them, and which change is suspect."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    DataVersion,
    Environment,
    Layout,
    Project,
    Run,
)
from registry.provenance.association import PastPair
from registry.provenance.config_diff import ConfigChange, Scalar, diff_configs
from registry.provenance.data_mix import MixChange, SourceChange, compare_mixes, shares
from registry.provenance.data_seen import DataSeen, Stage, data_seen, earlier_stages, read_mixes
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
ANOTHER_VERSION = "another data version"  # how the words begin where only the names of two mixes are known
NAMED_GROUPS = 6  # of a config, which are named as not recorded

__all__ = ["CodeChanges", "Comparison", "DataChanges", "compare_checkpoints", "compare_scores"]


@dataclass(frozen=True, slots=True)
class DataChanges:
    """The data versions by name (None: not recorded), and how what was seen of their sources differs.

    `by_lineage`: a side has seen an earlier data version as well, through what it resumed from, and the shares are of
    the tokens seen. `note`: what of the past could not be counted.
    """

    baseline: str | None
    candidate: str | None
    mix: MixChange
    by_lineage: bool = False
    note: str = ""


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
    """Everything that a comparison says. `*_known`: whether each side recorded a config, an environment at all.

    `config_why` and `environment_why` say what is not recorded, and on which side; empty where both are whole.
    """

    baseline: CheckpointIdentity
    candidate: CheckpointIdentity
    scores: ScoreChanges
    config_changes: tuple[ConfigChange, ...]
    config_known: tuple[bool, bool]
    config_why: str
    data_changes: DataChanges
    code_changes: CodeChanges
    environment_changes: tuple[ConfigChange, ...]
    environment_known: tuple[bool, bool]
    environment_why: str
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
    resumed: bool


def compare_checkpoints(
    session: Session, baseline_id: int, candidate_id: int, history: Iterable[PastPair] = ()
) -> Comparison:
    """Compare two checkpoints, in at most ten statements. Raises CheckpointNotFound.

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
    config_known = (old.config_id is not None, new.config_id is not None)
    environment_known = (old.environment_id is not None, new.environment_id is not None)
    return Comparison(
        baseline=old.identity,
        candidate=new.identity,
        scores=scores,
        config_changes=tuple(config),
        config_known=config_known,
        config_why=_not_recorded("config", config_known, config),
        data_changes=data,
        code_changes=code,
        environment_changes=tuple(environment),
        environment_known=environment_known,
        environment_why=_not_recorded("environment", environment_known, environment),
        suspects=tuple(suspects),
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
        resumed=attempt.resumed_from_step is not None,
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
        layouts = diff_configs(_layout_values(old.layout), _layout_values(new.layout))
        changes += [replace(each, kind="parallel") for each in layouts]
    return changes


def _not_recorded(what: str, known: tuple[bool, bool], changes: Sequence[ConfigChange]) -> str:
    """What cannot be compared since one side did not record it; what was not recorded has not been removed."""
    missing = [name for name, there in zip(("baseline", "candidate"), known, strict=True) if not there]
    if missing:
        return f"no {what} is recorded for the {' and the '.join(missing)}"
    said = []
    for side in ("baseline", "candidate"):
        paths = [each.path for each in changes if each.not_recorded_on == side]
        groups = list(dict.fromkeys(path.split(".", 1)[0] for path in paths))
        if groups:
            more = f" and {len(groups) - NAMED_GROUPS} more" if len(groups) > NAMED_GROUPS else ""
            values = f"{len(paths)} {'value' if len(paths) == 1 else 'values'}"
            said.append(f"the {side} recorded nothing of {', '.join(groups[:NAMED_GROUPS])}{more} ({values})")
    return "; ".join(said)


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
    found = diff_configs(bodies[old.environment_id], bodies[new.environment_id])
    return [replace(each, kind="env") for each in found]


def _data_changes(session: Session, old: _Side, new: _Side) -> DataChanges:
    resumed = list(dict.fromkeys(each.identity.id for each in (old, new) if each.resumed))
    earlier = earlier_stages(session, resumed) if resumed else {}
    own = [Stage(each.data_version, each.tokens_seen) for each in (old, new)]
    stages = [*own, *(stage for path in earlier.values() for stage in path)]
    versions = {stage.data_version.id: stage.data_version for stage in stages if stage.data_version is not None}
    mixes = read_mixes(session, list(versions.values()))
    sides = [
        data_seen(stage, earlier.get(side.identity.id, []), mixes) for stage, side in zip(own, (old, new), strict=True)
    ]
    names = [each.data_version.name if each.data_version is not None else None for each in (old, new)]
    mix = compare_mixes(sides[0].mix, sides[1].mix, old.tokens_seen, new.tokens_seen)
    notes = "; ".join(
        f"{name}: {side.note}" for name, side in zip(("baseline", "candidate"), sides, strict=True) if side.note
    )
    by_lineage = any(each.by_lineage for each in sides)
    return DataChanges(names[0], names[1], _as_recorded(mix, sides, names), by_lineage, notes)


def _as_recorded(mix: MixChange, sides: Sequence[DataSeen], names: Sequence[str | None]) -> MixChange:
    """Without the distance where it would only say that two data sets have two names.

    A data version with one source, of which the other side has nothing, is a name for a mix that nobody recorded: what
    the two share inside is unknown.
    """
    if None in names:
        return mix
    moved = mix.total_variation is not None and mix.total_variation > WHOLLY_REPLACED
    unknown = [
        name
        for name, side in zip(("baseline", "candidate"), sides, strict=True)
        if shares(side.mix or {}) is None or (moved and len(side.mix or {}) == 1)
    ]
    if not unknown or names[0] == names[1]:
        return mix
    whose = "their mixes are" if len(unknown) == 2 else f"the mix of the {unknown[0]} is"
    bare = tuple(_without_absence(each) for each in mix.sources)
    return MixChange(None, None, bare, f"{ANOTHER_VERSION} ({names[0]} → {names[1]}); {whose} not recorded")


def _without_absence(source: SourceChange) -> SourceChange:
    """Of a mix that nobody recorded, a source with another name may well be part."""
    return replace(
        source,
        old_share=source.old_share or None,
        new_share=source.new_share or None,
        old_tokens=source.old_tokens or None,
        new_tokens=source.new_tokens or None,
        jensen_shannon_bits=None,
    )


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
    if data.mix.total_variation is not None and not replaced:
        return changes_of_mix(data.mix)
    if data.baseline is None or data.candidate is None or data.baseline == data.candidate:
        return changes_of_mix(data.mix)
    if not replaced:
        return [Change("data_version", "data", 1.0, data.mix.why)]
    words = f"data version went from {data.baseline} to {data.candidate}, which have no source in common"
    return [Change("data_version", "data", 1.0, words)]


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
