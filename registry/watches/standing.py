"""Standing watches: make one, list them, end one. The same watch again is the same one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from registry import audit, watching
from registry.aliases import get_alias_id
from registry.checkpoints.rows import RunName
from registry.db import now
from registry.errors import FieldError, Invalid, NotFound
from registry.evals.catalogue import catalogue
from registry.evals.known import nearest_capabilities, unknown_benchmarks
from registry.ids import new_id, to_text
from registry.models import Alias, Checkpoint, Project, Run, Watch
from registry.recovery.watched import Watch as Watched
from registry.recovery.watched import read_watched
from registry.runs import get_brief
from registry.upsert import insert_missing
from registry.watching import LOSS, SCORE


class WatchNotFound(NotFound):
    code = "watch-not-found"
    title = "No such watch"


class BadWatch(Invalid):
    code = "bad-watch"
    title = "This cannot be watched"


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """What to watch: of a run or an alias, a benchmark or a capability (neither: all together); or a run's loss."""

    kind: str = SCORE
    run_id: int | None = None
    alias: str | None = None
    benchmark: str | None = None
    capability: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class WatchRow:
    """`warning`: why nothing can be found yet. Nobody knows the benchmark, or no score of it counts."""

    id: int
    project_id: int
    project: str
    run: RunName | None
    alias: str | None
    kind: str
    benchmark: str | None
    capability: str | None
    note: str | None
    created_at: datetime
    created_by: str
    ended_at: datetime | None
    warning: str | None = None

    @property
    def words(self) -> str:
        """What is watched, in words."""
        return "the loss" if self.kind == LOSS else self.benchmark or self.capability or "all capabilities"


def stand_watch(session: Session, project_id: int, spec: WatchSpec, *, actor: str) -> tuple[WatchRow, bool]:
    """The watch, and whether it was made or begun again just now. It looks at what is there already as well.

    A benchmark may be watched before its first score; see `WatchRow.warning`. Raises BadWatch, RunNotFound,
    AliasNotFound.
    """
    _check(spec)
    alias_id = get_alias_id(session, project_id, spec.alias) if spec.alias is not None else None
    if spec.run_id is not None and get_brief(session, spec.run_id).project_id != project_id:
        raise BadWatch("The run is of another project.", errors=[FieldError("/run_id", "a run of the project")])
    capability = _capability(spec.capability)
    fresh, target = new_id(), _target(spec, alias_id, capability)
    row = {
        "id": fresh,
        "project_id": project_id,
        "run_id": spec.run_id,
        "alias_id": alias_id,
        "kind": spec.kind,
        "benchmark": spec.benchmark,
        "capability": capability,
        "target": target,
        "note": spec.note,
        "created_at": now(),
        "created_by": actor,
    }
    insert_missing(session, Watch, [row])
    own = (Watch.project_id == project_id, Watch.target == target)
    found = session.scalars(select(Watch).where(*own).execution_options(populate_existing=True)).one()
    begun = found.id == fresh or found.ended_at is not None
    if begun:
        session.execute(update(Watch).where(*own).values(ended_at=None))
        watching.mark_due(session, project_id, found.id)
        detail = {"watch": to_text(found.id), "target": target}
        audit.record(session, actor=actor, action="watch.stand", project_id=project_id, detail=detail)
    return get_watch(session, found.id), begun


def end_watch(session: Session, watch_id: int, *, actor: str) -> WatchRow:
    """It looks no more; what it found stays. Raises WatchNotFound."""
    row = get_watch(session, watch_id)
    if row.ended_at is None:
        session.execute(update(Watch).where(Watch.id == watch_id).values(ended_at=now()))
        audit.record(
            session, actor=actor, action="watch.end", project_id=row.project_id, detail={"watch": to_text(watch_id)}
        )
        session.flush()
    return get_watch(session, watch_id)


def get_watch(session: Session, watch_id: int, *, with_scores: bool = True) -> WatchRow:
    """`with_scores`: look at the scores for its warning as well. Raises WatchNotFound."""
    found = session.execute(_select().where(Watch.id == watch_id)).one_or_none()
    if found is None:
        raise WatchNotFound(f"There is no watch {to_text(watch_id)}. GET /api/v1/watches lists them.")
    (row,) = _rows(session, [found])
    return _warned(session, row, found[-1]) if with_scores else row


def list_watches(
    session: Session,
    project_ids: Collection[int] | None,
    *,
    run_id: int | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[WatchRow]:
    """Watches that stand, and those that ended, the newest first; `after` is the last of the page before."""
    query = _select().order_by(Watch.id.desc()).limit(limit)
    if project_ids is not None:
        query = query.where(Watch.project_id.in_(sorted(project_ids)))
    if run_id is not None:
        query = query.where(Watch.run_id == run_id)
    if after is not None:
        query = query.where(Watch.id < after)
    found = session.execute(query).all()
    return [_warned(session, row, each[-1]) for row, each in zip(_rows(session, found), found, strict=True)]


def _check(spec: WatchSpec) -> None:
    message = pointer = ""
    if spec.kind not in (SCORE, LOSS):
        message, pointer = "expected score or loss", "/kind"
    elif (spec.run_id is None) == (spec.alias is None):
        message, pointer = "expected either run_id or alias", ""
    elif spec.kind == LOSS and spec.run_id is None:
        message, pointer = "a loss is of a run: expected run_id", "/alias"
    elif spec.kind == LOSS and (spec.benchmark or spec.capability):
        message, pointer = "a watch of the loss names no benchmark and no capability", "/watch"
    elif spec.benchmark and spec.capability:
        message, pointer = "expected either a benchmark or a capability", "/watch"
    if message:
        raise BadWatch(f"This cannot be watched: {message}.", errors=[FieldError(pointer, message)])


def _capability(name: str | None) -> str | None:
    """As the benchmark table calls it, so that 数学 and math are one watch. Raises BadWatch for one that it has not."""
    if name is None:
        return None
    known = catalogue().capability(name)
    if known is None:
        message = f"there is no capability {name[:60]!r}. {nearest_capabilities(name)}"
        raise BadWatch(f"This cannot be watched: {message}", errors=[FieldError("/watch/capability", message)])
    return known.name


def _target(spec: WatchSpec, alias_id: int | None, capability: str | None) -> str:
    subject = f"run {to_text(spec.run_id)}" if spec.run_id is not None else f"alias {to_text(alias_id or 0)}"
    what = f"benchmark {spec.benchmark}" if spec.benchmark else f"capability {capability}" if capability else "all"
    return f"{subject}: {LOSS if spec.kind == LOSS else what}"


def _select() -> Any:
    return (
        select(Watch, Project.name, Run.name, Alias.name, func.coalesce(Watch.run_id, Checkpoint.run_id))
        .join(Project, Project.id == Watch.project_id)
        .outerjoin(Run, (Run.project_id == Watch.project_id) & (Run.id == Watch.run_id))
        .outerjoin(Alias, (Alias.project_id == Watch.project_id) & (Alias.id == Watch.alias_id))
        .outerjoin(Checkpoint, (Checkpoint.project_id == Alias.project_id) & (Checkpoint.id == Alias.checkpoint_id))
        .execution_options(populate_existing=True)
    )


def _rows(session: Session, found: Sequence[Any]) -> list[WatchRow]:
    named = {(watch.project_id, watch.benchmark) for watch, *_ in found if watch.benchmark is not None}
    unknown = {project_id: dict[str, str]() for project_id, _ in named}
    for project_id in unknown:
        benchmarks = sorted(benchmark for project, benchmark in named if project == project_id)
        unknown[project_id] = unknown_benchmarks(session, [project_id], benchmarks)
    return [_row(each, unknown.get(each[0].project_id, {}).get(each[0].benchmark)) for each in found]


def _warned(session: Session, row: WatchRow, run_id: int | None) -> WatchRow:
    """With a warning where the run has scores of it and none that counts: such a watch would never find anything."""
    if row.warning is not None or row.kind == LOSS or row.ended_at is not None or run_id is None:
        return row
    watched = read_watched(session, row.project_id, [run_id], Watched(row.benchmark, row.capability), or_nothing=True)
    if len(watched.ids) or not watched.left_out:
        return row
    return replace(row, warning=f"No score of it counts, so that nothing can be found yet: {watched.left_out}.")


def _row(found: Any, nearest: str | None) -> WatchRow:
    """`nearest`: known benchmarks beside the one that is watched, where that is unknown ('': none is near)."""
    watch, project, run, alias, _ = found
    return WatchRow(
        watch.id,
        watch.project_id,
        project,
        RunName(watch.run_id, run) if watch.run_id is not None else None,
        alias,
        watch.kind,
        watch.benchmark,
        watch.capability,
        watch.note,
        watch.created_at,
        watch.created_by,
        watch.ended_at,
        None if nearest is None else f"No result here and no benchmark table has it yet. {nearest}".rstrip(),
    )
