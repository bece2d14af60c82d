"""Suspects that somebody tested: reverted the change, trained a short branch, and looked.

Only that confirms a cause; everything else here is an association.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.db import now
from registry.errors import FieldError, Invalid
from registry.ids import new_id, to_text
from registry.models import Checkpoint, SuspectTest
from registry.provenance.suspects import Tested
from registry.upsert import insert_all


class BranchMissing(Invalid):
    code = "branch-missing"
    title = "A cause is confirmed only by a branch"


def record_test(
    session: Session,
    *,
    baseline_id: int,
    candidate_id: int,
    changes: list[str],
    verdict: str,
    branch_id: int | None,
    note: str | None,
    actor: str,
) -> Tested:
    """Keep what became of a suspect of a comparison. A later word on the same change replaces an earlier one.

    Raises CheckpointNotFound, BranchMissing.
    """
    projects = _projects(session, [baseline_id, candidate_id])
    if verdict == "confirmed" and branch_id is None:
        message = "name a checkpoint of the short training in which the change was reverted"
        raise BranchMissing(f"Nothing was reverted: {message}.", errors=[FieldError("/branch", message)])
    if branch_id is not None and (
        branch_id in (baseline_id, candidate_id) or _projects(session, [branch_id])[branch_id] != projects[candidate_id]
    ):
        message = "expected a third checkpoint, of the candidate's project"
        raise BranchMissing(f"That is no branch: {message}.", errors=[FieldError("/branch", message)])
    at = now()
    insert_all(
        session,
        SuspectTest,
        [
            {
                "id": new_id(),
                "project_id": projects[candidate_id],
                "baseline_project_id": projects[baseline_id],
                "baseline_id": baseline_id,
                "candidate_id": candidate_id,
                "change": change,
                "verdict": verdict,
                "branch_id": branch_id,
                "note": note,
                "created_by": actor,
                "created_at": at,
            }
            for change in dict.fromkeys(changes)
        ],
    )
    return Tested(verdict, branch_id, note, actor, at)


def _projects(session: Session, ids: list[int]) -> dict[int, int]:
    query = select(Checkpoint.id, Checkpoint.project_id).where(Checkpoint.id.in_(ids))
    found: dict[int, int] = dict(session.execute(query).all())
    for each in ids:
        if each not in found:
            raise CheckpointNotFound(f"There is no checkpoint {to_text(each)}. GET /api/v1/checkpoints lists them.")
    return found


def tests_of(session: Session, project_id: int, baseline_id: int, candidate_id: int) -> dict[str, Tested]:
    """What became of the suspects of a comparison, by change; the last word on each."""
    query = (
        select(SuspectTest)
        .where(
            SuspectTest.project_id == project_id,
            SuspectTest.candidate_id == candidate_id,
            SuspectTest.baseline_id == baseline_id,
        )
        .order_by(SuspectTest.id)
    )
    return {
        row.change: Tested(row.verdict, row.branch_id, row.note, row.created_by, row.created_at)
        for row in session.scalars(query)
    }
