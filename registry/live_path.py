"""Which steps of a run are still live: those on the path that its newest attempt stands on."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from registry.changes import note_changes
from registry.many_ids import is_among
from registry.models import Attempt, Checkpoint

_ATTEMPT: Final[Any] = Attempt.__table__
_CHECKPOINT: Final[Any] = Checkpoint.__table__
_READ: Final = (
    *(Attempt.id, Attempt.number, Attempt.restart, Attempt.live_through_step),
    *(Attempt.resumed_from_run, Attempt.resumed_from_attempt, Attempt.resumed_from_step),
)


def recompute_live(session: Session, project_id: int, run_id: int) -> None:
    """Set through which step each attempt is live, walking the newest attempt's path back to its start.

    A run that was cut up into hundreds of attempts asks this each time: three statements, and writes of what changed.
    """
    session.flush()
    own = (Attempt.project_id == project_id, Attempt.run_id == run_id)
    attempts = session.execute(select(*_READ).where(*own)).all()
    parents = _parents(attempts, _first_steps(session, project_id, attempts))
    known = {row.number: row for row in attempts}
    changed: dict[int | None, list[int]] = {}
    for number, live_through in live_steps(parents).items():
        if known[number].live_through_step != live_through:
            changed.setdefault(live_through, []).append(known[number].id)
    for live_through, ids in changed.items():
        session.execute(
            update(Attempt).where(is_among(session, _ATTEMPT.c.id, ids)).values(live_through_step=live_through)
        )
    if changed:
        note_changes(session, project_id, chain.from_iterable(changed.values()))


def _is_untold(attempt: Any) -> bool:
    """Whether nobody said what it loaded: a backfilled attempt that nobody opened."""
    return attempt.resumed_from_step is None and not attempt.restart and attempt.number > 1


def _first_steps(session: Session, project_id: int, attempts: Sequence[Any]) -> dict[int, int]:
    """The first step that each attempt saved of which nobody said what it loaded."""
    untold = [row.id for row in attempts if _is_untold(row)]
    if not untold:
        return {}
    query = select(Checkpoint.attempt_id, func.min(Checkpoint.step)).where(
        Checkpoint.project_id == project_id, is_among(session, _CHECKPOINT.c.attempt_id, untold)
    )
    return dict(session.execute(query.group_by(Checkpoint.attempt_id)).all())


def _parents(attempts: Sequence[Any], first_steps: Mapping[int, int]) -> dict[int, tuple[int | None, int] | None]:
    """For each attempt the (attempt, step) of the same run that it went on from; None where it started anew.

    One that nobody opened went on from before the first step it saved: that is all its files tell.
    """
    parents: dict[int, tuple[int | None, int] | None] = {}
    for row in attempts:
        parents[row.number] = None
        if row.resumed_from_step is not None and row.resumed_from_run is None:
            parents[row.number] = row.resumed_from_attempt, row.resumed_from_step
        elif row.id in first_steps:
            parents[row.number] = None, first_steps[row.id] - 1
    return parents


def live_steps(parents: Mapping[int, tuple[int | None, int] | None]) -> dict[int, int | None]:
    """For each attempt number, the last step that the newest attempt's path stands on.

    `parents` gives for each attempt the (attempt, step) of this run that it resumed from, or None where it started
    anew. None in the answer means all steps, -1 none of them.
    """
    live: dict[int, int | None] = dict.fromkeys(parents, -1)
    numbers = sorted(parents)
    number: int | None = numbers[-1] if numbers else None
    through: int | None = None
    while number is not None:
        live[number] = through
        parent = parents[number]
        if parent is None:
            break
        # Who names no attempt loaded from an earlier one; the newest before it is the likeliest.
        named, step = parent
        through = step if through is None else min(step, through)
        place = bisect_left(numbers, number)
        if named is not None:
            number = named if named < number and named in parents else None
        else:
            number = numbers[place - 1] if place else None
    return live
