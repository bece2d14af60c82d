"""Runs: start one, find one, read one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, literal, or_, select, update
from sqlalchemy.orm import Session

from registry import known_ids, snapshots
from registry.db import now
from registry.errors import NotFound
from registry.ids import new_id, to_text
from registry.models import Project, Run, RunTag, TrackerLink
from registry.names import run_name
from registry.projects import ProjectNotFound, find_project
from registry.trackers.links import without_userinfo
from registry.upsert import any_of, chunks, insert_missing


class RunNotFound(NotFound):
    code = "run-not-found"
    title = "No such run"


@dataclass(frozen=True)
class TrackerSpec:
    """Where a run is found in a tracker; `kind` is mlflow or wandb."""

    kind: str
    run_id: str
    uri: str = ""
    entity: str | None = None
    project: str | None = None


@dataclass(frozen=True)
class RunSpec:
    """What is known about a run when it starts."""

    name: str
    kind: str | None = None
    owner: str | None = None
    team: str | None = None
    model_family: str | None = None
    parameter_count: int | None = None
    config: Mapping[str, Any] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    trackers: Sequence[TrackerSpec] = ()
    started_at: datetime | None = None


@dataclass(frozen=True)
class RunRow:
    """A run as it is recorded."""

    id: int
    project_id: int
    project: str
    name: str
    kind: str | None
    owner: str | None
    team: str | None
    model_family: str | None
    parameter_count: int | None
    config_id: int | None
    tags: Mapping[str, str]
    trackers: Sequence[TrackerSpec]
    started_at: datetime | None
    created_at: datetime


def start_run(session: Session, project_id: int, spec: RunSpec) -> tuple[RunRow, bool]:
    """The run of this name, and whether it was made just now. A second start adds what nobody said, changes nothing.

    Any rank may link a tracker (some frameworks hold theirs on the last rank): links of one run are merged. Such a
    rank may come first and knows nothing else of the run, so what was left unsaid is filled in.
    """
    fresh, name = new_id(), run_name(spec.name)
    (config_id,) = snapshots.keep_configs(session, project_id, [spec.config])
    insert_missing(
        session,
        Run,
        [
            {
                "id": fresh,
                "project_id": project_id,
                "name": name,
                "kind": spec.kind,
                "owner": spec.owner,
                "team": spec.team,
                "model_family": spec.model_family,
                "parameter_count": spec.parameter_count,
                "config_id": config_id,
                "started_at": spec.started_at,
                "created_at": now(),
            }
        ],
    )
    run_id = session.scalars(select(Run.id).where(Run.project_id == project_id, Run.name == name)).one()
    if run_id != fresh:
        _fill_in(session, run_id, spec, config_id)
    insert_missing(
        session,
        RunTag,
        [
            {"project_id": project_id, "run_id": run_id, "name": name, "value": value}
            for name, value in spec.tags.items()
        ],
    )
    link_trackers(session, project_id, run_id, spec.trackers)
    return get_run(session, run_id), run_id == fresh


def _fill_in(session: Session, run_id: int, spec: RunSpec, config_id: int | None) -> None:
    """Set what the spec gives and the run lacks, in one statement that two starts at once cannot tear apart."""
    given = {name: getattr(spec, name) for name in ("kind", "owner", "team", "model_family", "parameter_count")}
    given |= {"started_at": spec.started_at, "config_id": config_id}
    missing = {name: value for name, value in given.items() if value is not None}
    if missing:
        session.execute(
            update(Run)
            .where(Run.id == run_id, or_(*(getattr(Run, name).is_(None) for name in missing)))
            .values({name: _known_or(getattr(Run, name), value) for name, value in missing.items()})
        )


def _known_or(column: Any, value: Any) -> Any:
    """The column's value, else this one, written as the column writes it: a time is microseconds on SQLite."""
    return func.coalesce(column, literal(value, column.type))


def link_trackers(session: Session, project_id: int, run_id: int, trackers: Sequence[TrackerSpec]) -> None:
    """Add links; one that is there already adds nothing."""
    insert_missing(
        session,
        TrackerLink,
        [
            {
                "id": new_id(),
                "project_id": project_id,
                "run_id": run_id,
                "kind": tracker.kind,
                "uri": without_userinfo(tracker.uri),
                "entity": tracker.entity,
                "external_project": tracker.project,
                "external_run_id": tracker.run_id,
                "created_at": now(),
            }
            for tracker in trackers
        ],
    )


def get_run(session: Session, run_id: int) -> RunRow:
    """Raises RunNotFound."""
    query = select(Run, Project.name).join(Project, Project.id == Run.project_id).where(Run.id == run_id)
    found = session.execute(query).one_or_none()
    if found is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}. GET /api/v1/runs lists them.")
    return _read(session, [found])[0]


@dataclass(frozen=True)
class RunBrief:
    """What is needed to write into a run, and to name it."""

    id: int
    project_id: int
    project: str
    name: str


_BRIEF = (
    select(Run.project_id, Project.name.label("project"), Run.name)
    .join(Project, Project.id == Run.project_id)
    .where(Run.id == bindparam("run"))
)


def get_brief(session: Session, run_id: int) -> RunBrief:
    """Raises RunNotFound."""
    known: dict[int, RunBrief] = known_ids.recall(session, Run.__tablename__, 0, [run_id])
    if run_id in known:
        return known[run_id]
    row = session.execute(_BRIEF, {"run": run_id}).one_or_none()
    if row is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}. POST /api/v1/runs makes one.")
    brief = RunBrief(run_id, row.project_id, row.project, row.name)
    known_ids.keep(session, Run.__tablename__, 0, {run_id: brief})
    return brief


def find_run(session: Session, project: str, name: str) -> RunRow:
    """The run of this name. Raises ProjectNotFound or RunNotFound."""
    project_row = find_project(session, project)
    query = select(Run, Project.name).join(Project, Project.id == Run.project_id)
    query = query.where(Run.project_id == project_row.id, Run.name == run_name(name))
    found = session.execute(query).one_or_none() if "\0" not in name else None  # which PostgreSQL refuses to read
    if found is None:
        raise RunNotFound(f"Project {project!r} has no run {name[:128]!r}. GET /api/v1/runs lists them.")
    return _read(session, [found])[0]


def run_ids_by_name(session: Session, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """(project, run) names as they are said to (project id, run id), for those that exist."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    by_project: dict[str, dict[str, list[str]]] = {}
    for project, said in keys:
        by_project.setdefault(project, {}).setdefault(run_name(said), []).append(said)
    for project, names in by_project.items():
        try:
            project_id = find_project(session, project).id
        except ProjectNotFound:
            continue
        for chunk in chunks(sorted(names)):
            query = select(Run.name, Run.id).where(Run.project_id == project_id, Run.name.in_(chunk))
            for row in session.execute(query):
                found.update(((project, said), (project_id, row.id)) for said in names[row.name])
    return found


def not_applied(spec: RunSpec, row: RunRow, config: Mapping[str, Any] | None) -> list[str]:
    """The fields that a second start gave and that say something else than the run: the first start stays."""
    given = {name: getattr(spec, name) for name in ("kind", "owner", "team", "model_family", "parameter_count")}
    given["started_at"] = spec.started_at
    differing = [name for name, value in given.items() if value is not None and value != getattr(row, name)]
    if spec.config is not None and spec.config != config:
        differing.append("config")
    return differing + [f"tags.{name}" for name, value in spec.tags.items() if row.tags.get(name) != value]


def list_runs(
    session: Session,
    *,
    project_ids: Sequence[int] | None = None,
    name: str | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[RunRow]:
    """Runs, the newest first by id, those after the id `after`; `project_ids` None means every project."""
    query = select(Run, Project.name).join(Project, Project.id == Run.project_id).order_by(Run.id.desc()).limit(limit)
    if project_ids is not None:
        query = query.where(Run.project_id.in_(project_ids))
    if name is not None:
        query = query.where(Run.name == run_name(name))
    if after is not None:
        query = query.where(Run.id < after)
    return _read(session, list(session.execute(query)))


def _read(session: Session, found: Sequence[tuple[Run, str]]) -> list[RunRow]:
    tags: dict[int, dict[str, str]] = {}
    trackers: dict[int, list[TrackerSpec]] = {}
    for chunk in chunks([(run.project_id, run.id) for run, _ in found]):
        own = any_of((RunTag.project_id, RunTag.run_id), chunk)
        for tag in session.execute(select(RunTag).where(own).order_by(RunTag.name)).scalars():
            tags.setdefault(tag.run_id, {})[tag.name] = tag.value
        own = any_of((TrackerLink.project_id, TrackerLink.run_id), chunk)
        links = select(TrackerLink).where(own).order_by(TrackerLink.id)
        for link in session.execute(links).scalars():
            spec = TrackerSpec(link.kind, link.external_run_id, link.uri, link.entity, link.external_project)
            trackers.setdefault(link.run_id, []).append(spec)
    return [
        RunRow(
            id=run.id,
            project_id=run.project_id,
            project=project,
            name=run.name,
            kind=run.kind,
            owner=run.owner,
            team=run.team,
            model_family=run.model_family,
            parameter_count=run.parameter_count,
            config_id=run.config_id,
            tags=tags.get(run.id, {}),
            trackers=tuple(trackers.get(run.id, ())),
            started_at=run.started_at,
            created_at=run.created_at,
        )
        for run, project in found
    ]
