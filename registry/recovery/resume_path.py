"""Which checkpoints a launch may go on from: the live ones of its run, the newest first, then those before a fork."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.models import Attempt, Checkpoint
from registry.recovery.scope import Scope
from registry.types import CheckpointState, Kind

MAX_LOOKED_AT: Final = 500  # of the newest; what lies behind so many that are unfit is for a rollback to find
PAGES: Final = (25, 100, MAX_LOOKED_AT)  # read at once: the first usually does


@dataclass(frozen=True, slots=True)
class PathRow:
    """A checkpoint of the path; `state` is pending or committed."""

    identity: CheckpointIdentity
    state: str
    loss_special: str | None


def live_select(project_id: int, run_id: int) -> Select[Any]:
    """The newest live checkpoints of a run, apart from its execution so that a test can read its plan."""
    query = _columns().where(
        Checkpoint.project_id == project_id,
        Checkpoint.run_id == run_id,
        or_(Attempt.live_through_step.is_(None), Checkpoint.step <= Attempt.live_through_step),
    )
    return _newest_first(query)


def _ancestors_select(scope: Scope) -> Select[Any] | None:
    """What the runs before a fork had saved by then."""
    paths = [
        (Checkpoint.run_id == run_id)
        & (Checkpoint.attempt_number == number)
        & (Checkpoint.step <= through if through is not None else True)
        for (run_id, number), through in scope.through.items()
        if run_id != scope.run_id and through != -1
    ]
    if not paths:
        return None
    return _newest_first(_columns().where(Checkpoint.project_id == scope.project_id, or_(*paths)))


def _columns() -> Select[Any]:
    query: Any = (
        select(
            Checkpoint.id,
            Checkpoint.run_id,
            Checkpoint.attempt_number,
            Checkpoint.step,
            Checkpoint.kind,
            Checkpoint.state,
            Checkpoint.saved_at,
            Checkpoint.loss_special,
        )
        .join(Attempt, (Attempt.project_id == Checkpoint.project_id) & (Attempt.id == Checkpoint.attempt_id))
        .where(Checkpoint.state != CheckpointState.DELETED.value)
    )
    found: Select[Any] = query
    return found


def _newest_first(query: Select[Any]) -> Select[Any]:
    """Of the two kinds of one step, the archive first."""
    order = (Checkpoint.attempt_number.desc(), Checkpoint.step.desc(), (Checkpoint.kind == Kind.ARCHIVE).desc())
    return query.order_by(*order).limit(MAX_LOOKED_AT)


def newest_pages(session: Session, scope: Scope) -> Iterator[Sequence[PathRow]]:
    own = session.execute(live_select(scope.project_id, scope.run_id)).all()
    yield from _cut(own, scope)
    before = _ancestors_select(scope)
    if before is not None:
        generation = {run_id: place for place, run_id in enumerate(scope.runs)}
        rows = sorted(session.execute(before).all(), key=lambda row: generation[row.run_id])
        yield from _cut(rows, scope)


def _cut(rows: Sequence[Any], scope: Scope) -> Iterator[Sequence[PathRow]]:
    start = 0
    for size in PAGES:
        page = rows[start : start + size]
        start += size
        if not page:
            return
        yield [
            PathRow(
                CheckpointIdentity(
                    row.id,
                    scope.project,
                    RunName(row.run_id, scope.runs[row.run_id]),
                    row.attempt_number,
                    row.step,
                    row.kind,
                    row.saved_at,
                ),
                row.state,
                row.loss_special,
            )
            for row in page
        ]
