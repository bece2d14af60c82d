"""Which steps of a run are still live: those on the path that its newest attempt stands on."""

from collections.abc import Mapping

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from registry.changes import note_changes
from registry.models import Attempt, Checkpoint


def recompute_live(session: Session, project_id: int, run_id: int) -> None:
    """Set through which step each attempt is live, walking the newest attempt's path back to its start."""
    query = select(Attempt).where(Attempt.project_id == project_id, Attempt.run_id == run_id)
    parents = {attempt.number: _start_of(session, attempt) for attempt in session.scalars(query)}
    for number, live_through in live_steps(parents).items():
        session.execute(
            update(Attempt)
            .where(Attempt.project_id == project_id, Attempt.run_id == run_id, Attempt.number == number)
            .values(live_through_step=live_through)
        )
    if len(parents) > 1:  # the only attempt of a run is live as it was
        attempts = session.scalars(select(Attempt.id).where(Attempt.project_id == project_id, Attempt.run_id == run_id))
        note_changes(session, project_id, attempts)


def _start_of(session: Session, attempt: Attempt) -> tuple[int | None, int] | None:
    """The (attempt, step) of the same run that an attempt went on from; None where it started anew.

    A backfilled attempt that nobody opened went on from before the first step it saved: that is all its files tell.
    """
    if attempt.resumed_from_step is not None:
        return (
            None if attempt.resumed_from_run is not None else (attempt.resumed_from_attempt, attempt.resumed_from_step)
        )
    if attempt.restart or attempt.number == 1:
        return None
    first = session.scalar(
        select(func.min(Checkpoint.step)).where(
            Checkpoint.project_id == attempt.project_id, Checkpoint.attempt_id == attempt.id
        )
    )
    return None if first is None else (None, first - 1)


def live_steps(parents: Mapping[int, tuple[int | None, int] | None]) -> dict[int, int | None]:
    """For each attempt number, the last step that the newest attempt's path stands on.

    `parents` gives for each attempt the (attempt, step) of this run that it resumed from, or None where it started
    anew. None in the answer means all steps, -1 none of them.
    """
    live: dict[int, int | None] = dict.fromkeys(parents, -1)
    number: int | None = max(parents, default=None)
    through: int | None = None
    while number is not None:
        live[number] = through
        parent = parents[number]
        if parent is None:
            break
        # Who names no attempt loaded from an earlier one; the newest before it is the likeliest.
        named, step = parent
        through = step if through is None else min(step, through)
        earlier = [other for other in parents if other < number and (named is None or other == named)]
        number = max(earlier, default=None)
    return live
