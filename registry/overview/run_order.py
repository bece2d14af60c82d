"""By what a list of runs can be ordered, as SQL: what a person looks for first comes first, what is missing last."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import ScalarSelect, Subquery, and_, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from registry.keyset import Key, KeyType
from registry.models import Attempt, Checkpoint, Incident, Run
from registry.types import CheckpointState

SORTS: Final = ("saved", "name", "state", "step", "loss", "heartbeat", "checkpoints", "attempts", "size")
BY_ATTEMPT: Final = ("state", "step", "heartbeat")  # orders that need NEWEST_ATTEMPT to be joined
ENDED: Final = ("finished", "stopped")
# States of the newest attempt from that which needs somebody to that which needs nobody.
_RANKS: Final = {"failed": 1, "lost": 1, "stalled": 1, "running": 2, "stopped": 3, "finished": 4}

_newest = aliased(Attempt)
NEWEST_ATTEMPT: Final = _newest
OF_RUN: Final = and_(
    _newest.project_id == Run.project_id,
    _newest.run_id == Run.id,
    _newest.number
    == select(func.max(Attempt.number))
    .where(Attempt.project_id == Run.project_id, Attempt.run_id == Run.id)
    .correlate(Run)
    .scalar_subquery(),
)
IS_OPEN: Final = (
    select(Incident.id)
    .where(Incident.project_id == Run.project_id, Incident.run_id == Run.id, Incident.closed_at.is_(None))
    .correlate(Run)
    .exists()
)
# Whether somebody opened the attempt or spoke of it since; one made for a backfill is only a place to hang on.
_IS_REPORTED: Final = or_(
    _newest.state != "running",
    _newest.restart.is_(True),
    _newest.key.is_not(None),
    _newest.started_at.is_not(None),
    _newest.heartbeat_at.is_not(None),
    _newest.ended_at.is_not(None),
    _newest.resumed_from_step.is_not(None),
)


def keys_of(sort: str, counts: Subquery) -> list[Key]:
    """`sort` is one of SORTS, with a minus before it the other way round; `counts` has `checkpoints` and `saved_at`."""
    name = sort.removeprefix("-")
    key = {
        "saved": Key(counts.c.saved_at, KeyType.TIME, descending=True),
        "name": Key(Run.name, KeyType.TEXT, nullable=False),
        "state": Key(_rank(), KeyType.INTEGER),
        "step": Key(_last_step(), KeyType.INTEGER, descending=True),
        "loss": Key(_last_loss(), KeyType.NUMBER),
        "heartbeat": Key(_newest.heartbeat_at, KeyType.TIME, descending=True),
        "checkpoints": Key(func.coalesce(counts.c.checkpoints, 0), KeyType.INTEGER, descending=True, nullable=False),
        "attempts": Key(_attempts(), KeyType.INTEGER, descending=True, nullable=False),
        "size": Key(Run.parameter_count, KeyType.INTEGER, descending=True),
    }[name]
    first = Key(key.expression, key.type, key.descending != sort.startswith("-"), key.nullable)
    return [first, Key(Run.created_at, KeyType.TIME, True, False), Key(Run.id, KeyType.INTEGER, True, False)]


def last_with_loss() -> ScalarSelect[Any]:
    """The id of a run's last checkpoint, in the order of (attempt, step), of which a loss is recorded."""
    return last_saved(Checkpoint.id, or_(Checkpoint.loss.is_not(None), Checkpoint.loss_special.is_not(None)))


def count_interrupted(session: Session, project_ids: Collection[int] | None) -> int:
    """Runs with an open incident whose newest attempt has not ended well."""
    query = (
        select(func.count(Incident.run_id.distinct()))
        .join(Run, Run.id == Incident.run_id)
        .outerjoin(_newest, OF_RUN)
        .where(Incident.closed_at.is_(None), func.coalesce(_newest.state, "running").not_in(ENDED))
    )
    if project_ids is not None:
        query = query.where(Incident.project_id.in_(project_ids))
    return session.scalars(query).one()


def _rank() -> Any:
    down = and_(IS_OPEN, func.coalesce(_newest.state, "running").not_in(ENDED))
    return case((down, 0), (_IS_REPORTED, case(_RANKS, value=_newest.state)))


def _last_step() -> Any:
    """The step of the newest attempt's last save or heartbeat, whichever is later; else the run's last saved one."""
    own = last_saved(Checkpoint.step, Checkpoint.attempt_number == _newest.number)
    beat = _newest.heartbeat_step
    later = case((own.is_(None), beat), (beat.is_(None), own), (beat > own, beat), else_=own)
    return func.coalesce(later, last_saved(Checkpoint.step))


def _last_loss() -> Any:
    """As in `last_with_loss`; not a number where that is not finite."""
    return last_saved(Checkpoint.loss, or_(Checkpoint.loss.is_not(None), Checkpoint.loss_special.is_not(None)))


def _attempts() -> Any:
    query = select(func.count(Attempt.id)).where(Attempt.project_id == Run.project_id, Attempt.run_id == Run.id)
    return query.correlate(Run).scalar_subquery()


def last_saved(column: Any, *conditions: Any) -> ScalarSelect[Any]:
    """A column of a run's last checkpoint that was not deleted: one step down its index."""
    return (
        select(column)
        .where(
            Checkpoint.project_id == Run.project_id,
            Checkpoint.run_id == Run.id,
            Checkpoint.state != CheckpointState.DELETED.value,
            *conditions,
        )
        .order_by(Checkpoint.attempt_number.desc(), Checkpoint.step.desc(), Checkpoint.kind)
        .limit(1)
        .correlate(Run, _newest)
        .scalar_subquery()
    )
