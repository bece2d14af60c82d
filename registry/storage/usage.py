"""How many bytes lie where: by run, tier and state, superseded and pending checkpoints apart from the live ones."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, case, func, literal_column, select
from sqlalchemy.orm import Session

from registry.checkpoints.rows import RunName
from registry.models import Attempt, Checkpoint, Project, Replica, ReplicaPart, Run

THERE = ("present", "partial")


@dataclass(frozen=True, slots=True)
class Usage:
    """What the checkpoints of one run hold in one tier. `tier` None: no copy of them is recorded.

    `unknown_sizes`: copies whose size nobody recorded, which `bytes` leaves out.
    """

    project: str
    run: RunName
    tier: str | None
    state: str
    superseded: bool
    checkpoints: int
    copies: int
    bytes: int
    unknown_sizes: int


def usage_select(project_ids: Collection[int] | None, run_id: int | None) -> Select[Any]:
    """The one statement, apart from its execution so that a test can read its plan."""
    parts = (
        select(func.sum(ReplicaPart.bytes))
        .where(ReplicaPart.project_id == Replica.project_id, ReplicaPart.replica_id == Replica.id)
        .correlate(Replica)
        .scalar_subquery()
    )
    size = func.coalesce(Replica.bytes, parts)
    beyond = and_(Attempt.live_through_step.is_not(None), Checkpoint.step > Attempt.live_through_step)
    superseded = case((beyond, literal_column("1")), else_=literal_column("0"))
    groups: tuple[Any, ...] = (
        Checkpoint.project_id,
        Checkpoint.run_id,
        Replica.tier,
        Checkpoint.state,
        superseded.label("superseded"),
    )
    sums: Any = (
        select(
            *groups,
            func.count(Checkpoint.id.distinct()).label("checkpoints"),
            func.count(Replica.id).label("copies"),
            func.coalesce(func.sum(size), 0).label("bytes"),
            func.sum(case((and_(Replica.id.is_not(None), size.is_(None)), 1), else_=0)).label("unknown"),
        )
        .select_from(Checkpoint)
        .join(Attempt, and_(Attempt.project_id == Checkpoint.project_id, Attempt.id == Checkpoint.attempt_id))
        .outerjoin(
            Replica,
            and_(
                Replica.project_id == Checkpoint.project_id,
                Replica.checkpoint_id == Checkpoint.id,
                Replica.state.in_(THERE),
            ),
        )
        .group_by(*groups)
    )
    if project_ids is not None:
        sums = sums.where(Checkpoint.project_id.in_(sorted(project_ids)))
    if run_id is not None:
        sums = sums.where(Checkpoint.run_id == run_id)
    inner = sums.subquery("sums")  # names join the few groups, not each checkpoint
    own = (inner.c.tier, inner.c.state, inner.c.superseded, inner.c.checkpoints, inner.c.copies, inner.c.bytes)
    query: Any = (
        select(Project.name, Run.id, Run.name, *own, inner.c.unknown)
        .join(Project, Project.id == inner.c.project_id)
        .join(Run, and_(Run.project_id == inner.c.project_id, Run.id == inner.c.run_id))
    )
    found: Select[Any] = query
    return found


def storage_usage(
    session: Session, *, project_ids: Collection[int] | None = None, run_id: int | None = None
) -> list[Usage]:
    """What lies where, the largest first; of some projects (None: all), of one run. Copies that are gone count not."""
    rows = session.execute(usage_select(project_ids, run_id)).all()
    found = [
        Usage(project, RunName(number, run), tier, state, bool(beyond), checkpoints, copies, int(size), unknown)
        for project, number, run, tier, state, beyond, checkpoints, copies, size, unknown in rows
    ]
    return sorted(
        found, key=lambda each: (-each.bytes, each.project, each.run.name, each.tier or "", each.state, each.superseded)
    )
