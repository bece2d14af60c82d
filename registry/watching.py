"""Says which standing watches have something new to look at, in the transaction that brings it.

One look-up by index for a batch: most projects have no watch, and nothing else happens. What a watch makes of it is
found out later by `registry.watches`, outside the transaction of whoever records: a training never waits for it, and
several processes and any order of arrival come to the same findings, since each look reads everything that is there.
"""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import bindparam, or_, select
from sqlalchemy.orm import Session

from registry.ids import new_id
from registry.models import AliasMove, Checkpoint, Watch, WatchDue
from registry.upsert import chunks, insert_all

SCORE: Final = "score"
LOSS: Final = "loss"
_WATCH: Any = Watch.__table__
# Built once, over the plain table: every registration with scores runs it.
STANDING = select(_WATCH.c.id, _WATCH.c.run_id, _WATCH.c.alias_id).where(
    _WATCH.c.project_id == bindparam("project"), _WATCH.c.kind == bindparam("kind"), _WATCH.c.ended_at.is_(None)
)


def scores_arrived(session: Session, project_id: int, checkpoint_ids: Collection[int]) -> None:
    """Scores of these checkpoints are new: the watches of their runs, and of the aliases that served them, are due."""
    standing = _standing(session, project_id, SCORE) if checkpoint_ids else []
    if not standing:
        return
    runs, aliases = set[int](), set[int]()
    for chunk in chunks(sorted(checkpoint_ids)):
        of_run = select(Checkpoint.run_id).where(Checkpoint.project_id == project_id, Checkpoint.id.in_(chunk))
        runs |= set(session.scalars(of_run.distinct()))
        served = select(AliasMove.alias_id).where(
            AliasMove.project_id == project_id, AliasMove.checkpoint_id.in_(chunk)
        )
        aliases |= set(session.scalars(served.distinct()))
    _mark(session, project_id, [id_ for id_, run_id, alias_id in standing if run_id in runs or alias_id in aliases])


def alias_moved(session: Session, project_id: int, alias_id: int) -> None:
    """The watches of an alias follow it."""
    _mark(session, project_id, [id_ for id_, _, other in _standing(session, project_id, SCORE) if other == alias_id])


def loss_arrived(session: Session, project_id: int, run_id: int) -> None:
    """A stretch of the loss of a run is new."""
    _mark(session, project_id, [id_ for id_, other, _ in _standing(session, project_id, LOSS) if other == run_id])


def path_changed(session: Session, project_id: int, run_id: int) -> None:
    """A new attempt left steps of a run behind: what they raised counts no more."""
    query = select(Watch.id).where(
        Watch.project_id == project_id,
        Watch.ended_at.is_(None),
        or_(Watch.run_id == run_id, Watch.alias_id.is_not(None)),
    )
    _mark(session, project_id, list(session.scalars(query)))


def mark_due(session: Session, project_id: int, watch_id: int) -> None:
    """Look at this watch, whatever happened."""
    _mark(session, project_id, [watch_id])


def _standing(session: Session, project_id: int, kind: str) -> list[Any]:
    return list(session.connection().execute(STANDING, {"project": project_id, "kind": kind}).all())


def _mark(session: Session, project_id: int, watch_ids: Collection[int]) -> None:
    rows = [{"id": new_id(), "project_id": project_id, "watch_id": each} for each in watch_ids]
    insert_all(session, WatchDue, rows)
