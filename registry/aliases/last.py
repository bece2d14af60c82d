"""Names that promise the end of a run, and whether they keep it: a `final` below the highest step is told."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from registry.aliases.reading import AliasRow
from registry.models import Checkpoint, Run
from registry.types import CheckpointState

_LAST: Final = re.compile(r"(^|[._-])(final|last|latest|newest)([._-]|$)", re.IGNORECASE)


def not_the_last(session: Session, rows: Sequence[AliasRow]) -> Mapping[tuple[int, str], str]:
    """What to say of each (project id, name) that is called the last of its run and is not."""
    called = [row for row in rows if _LAST.search(row.name)]
    if not called:
        return {}
    of = _behind(session, {row.checkpoint_id for row in called})
    return {(row.project_id, row.name): of[row.checkpoint_id] for row in called if row.checkpoint_id in of}


def _behind(session: Session, checkpoint_ids: set[int]) -> dict[int, str]:
    """The checkpoints after which their run committed others, in the order of attempts and steps."""
    target, newest, other = aliased(Checkpoint), aliased(Checkpoint), aliased(Checkpoint)
    last = (
        select(other.id)
        .where(other.project_id == target.project_id, other.run_id == target.run_id)
        .where(other.state == CheckpointState.COMMITTED)
        .order_by(other.attempt_number.desc(), other.step.desc())
        .limit(1)
        .correlate(target)
        .scalar_subquery()
    )
    query = (
        select(target.id, target.attempt_number, target.step, newest.attempt_number, newest.step, Run.name)
        .select_from(target)
        .join(newest, (newest.project_id == target.project_id) & (newest.id == last))
        .join(Run, (Run.project_id == target.project_id) & (Run.id == target.run_id))
        .where(target.id.in_(sorted(checkpoint_ids)))
    )
    return {
        identity: f"not the last of run {run!r}: step {step} of attempt {attempt}, where step {end} of attempt {newer} "
        "is committed"
        for identity, attempt, step, newer, end, run in session.execute(query)
        if (newer, end) > (attempt, step)
    }
