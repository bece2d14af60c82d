"""The drills that a rollback weighs its copies by: the last one of each copy, and how drills of its kind went."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.models import Drill
from registry.recovery.drills.outcome import Outcome
from registry.recovery.drills.shapes import FAILED, PASSED

Kind = tuple[str, str | None]  # the tier of a copy, the format of its checkpoint


@dataclass(frozen=True, slots=True)
class Drills:
    """`last`: the newest of each copy, by its id; `unnamed`: the newest that names no copy, by the checkpoint's id.

    `counts`: how many passed and failed, by tier and format, in the whole project.
    """

    last: Mapping[int, Outcome]
    unnamed: Mapping[int, Outcome]
    counts: Mapping[Kind, tuple[int, int]]

    @property
    def unreadable(self) -> list[int]:
        """The copies that their last drill could not read, or found to be something else."""
        return [replica_id for replica_id, outcome in self.last.items() if outcome.is_unreadable]


def read_drills(session: Session, project_id: int, run_ids: Collection[int]) -> Drills:
    """In two statements, however many there are; in one where the project has none."""
    counts = _counts(session, project_id)
    if not counts:
        return Drills({}, {}, {})
    said = (Drill.verdict, Drill.read, Drill.verify, Drill.files, Drill.steps_run, Drill.ended_at, Drill.reason)
    query = (
        select(Drill.replica_id, Drill.checkpoint_id, *said)
        .where(Drill.project_id == project_id, Drill.run_id.in_(sorted(run_ids)))
        .order_by(Drill.ended_at, Drill.id)  # the newest of each stays
    )
    last: dict[int, Outcome] = {}
    unnamed: dict[int, Outcome] = {}
    for row in session.execute(query):
        replica_id, checkpoint_id = row[:2]
        outcome = Outcome._make(row[2:])
        if replica_id is None:
            unnamed[checkpoint_id] = outcome
        else:
            last[replica_id] = outcome
    return Drills(last, unnamed, {(tier, name): tried for (tier, name), tried in counts.items() if tier is not None})


def _counts(session: Session, project_id: int) -> dict[tuple[str | None, str | None], tuple[int, int]]:
    amount = func.count()
    passed, failed = (amount.filter(Drill.verdict == verdict) for verdict in (PASSED, FAILED))
    query = select(Drill.tier, Drill.format, passed, failed).where(Drill.project_id == project_id)
    rows = session.execute(query.group_by(Drill.tier, Drill.format))
    return {(tier, format_): (good, bad) for tier, format_, good, bad in rows}
