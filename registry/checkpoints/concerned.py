"""What new checkpoints concern beside themselves: attempts that waited for their record, incidents, watches."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import live_path, resume_points, watching
from registry.checkpoints.placing import Item
from registry.incidents import closing

# Most registrations concern nothing else: one look by index instead of three.
_LOOK: Final = select(
    resume_points.WAITING.exists().label("waiting"),
    closing.OPEN.exists().label("incidents"),
    watching.STANDING.exists().label("watches"),
)


def settle(session: Session, project_id: int, made: Sequence[tuple[int, Item]]) -> None:
    """What follows from checkpoints (id, item) that were just inserted, with their scores, for others."""
    run_ids = sorted({item.run_id for _, item in made})
    asked = {"project": project_id, "runs": run_ids, "kind": watching.SCORE}
    found = session.connection().execute(_LOOK, asked).one()
    if found.waiting:
        resume_points.resolve_waiting(session, project_id, run_ids)
    for run_id in sorted({item.run_id for _, item in made if item.attempt.start_unsaid}):
        live_path.recompute_live(session, project_id, run_id)
    if found.incidents:
        closing.settle_open(session, project_id, run_ids)
    if found.watches:
        watching.scores_arrived(session, project_id, {number for number, item in made if item.registration.scores})
