"""Lineage: which checkpoint came from which, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import CTE, BigInteger, literal, select
from sqlalchemy.orm import Session

from registry.db import now
from registry.errors import FieldError, Invalid
from registry.ids import to_text
from registry.models import Attempt, Checkpoint, LineageEdge
from registry.types import LOSSLESS, Relation
from registry.upsert import chunks, insert_missing

MAX_EDGES: Final = 10_000


class ParentUnknown(Invalid):
    code = "parent-unknown"
    title = "A parent is not registered"


class LineageCycle(Invalid):
    code = "lineage-cycle"
    title = "A checkpoint cannot come from itself"


@dataclass(frozen=True)
class Edge:
    """`child` came from `parent` by `relation`; a lossless relation keeps the weights' values."""

    child_id: int
    parent_id: int
    relation: str

    @property
    def lossless(self) -> bool:
        return self.relation in LOSSLESS


def link_parents(session: Session, project_id: int, edges: Sequence[Edge]) -> None:
    """Record edges; one that is there already adds nothing. Raises ParentUnknown, LineageCycle."""
    if not edges:
        return
    projects: dict[int, int] = {}
    for chunk in chunks({edge.parent_id for edge in edges}):
        query = select(Checkpoint.id, Checkpoint.project_id).where(
            Checkpoint.project_id == project_id, Checkpoint.id.in_(chunk)
        )
        projects.update(session.execute(query).all())
    for edge in edges:
        if edge.parent_id not in projects:
            message = f"this project has no checkpoint {to_text(edge.parent_id)}"
            raise ParentUnknown(f"A parent is unknown: {message}.", errors=[FieldError("/parents", message)])
        if edge.parent_id == edge.child_id or edge.child_id in ancestor_ids(session, project_id, edge.parent_id):
            message = f"{to_text(edge.parent_id)} already comes from {to_text(edge.child_id)}"
            raise LineageCycle(f"That would close a circle: {message}.", errors=[FieldError("/parents", message)])
    at: datetime = now()
    insert_missing(
        session,
        LineageEdge,
        [
            {
                "project_id": project_id,
                "child_id": edge.child_id,
                "parent_id": edge.parent_id,
                "relation": edge.relation,
                "parent_project_id": projects[edge.parent_id],
                "created_at": at,
            }
            for edge in edges
        ],
    )


def ancestor_ids(session: Session, project_id: int, checkpoint_id: int) -> set[int]:
    """Every checkpoint that this one came from over recorded edges."""
    walk = _upwards(project_id, checkpoint_id)
    return set(session.scalars(select(walk.c.id).where(walk.c.id != checkpoint_id).limit(MAX_EDGES)))


def edges_around(session: Session, project_id: int, checkpoint_id: int) -> tuple[list[Edge], list[Edge]]:
    """(edges to ancestors, edges to descendants), nearest first, at most MAX_EDGES each.

    Beside the recorded edges, the checkpoint that an attempt loaded is the parent of what the attempt saved.
    """
    up = _walk(session, project_id, [checkpoint_id], upwards=True)
    down = _walk(session, project_id, [checkpoint_id], upwards=False)
    return up, down


def _walk(session: Session, project_id: int, start: list[int], *, upwards: bool) -> list[Edge]:
    seen, found, level = set(start), list[Edge](), list(start)
    while level and len(found) < MAX_EDGES:
        edges = [edge for chunk in chunks(level) for edge in _one_level(session, project_id, chunk, upwards=upwards)]
        found.extend(edges)
        level = list({edge.parent_id if upwards else edge.child_id for edge in edges} - seen)
        seen.update(level)
    return found[:MAX_EDGES]


def _one_level(session: Session, project_id: int, ids: list[int], *, upwards: bool) -> list[Edge]:
    recorded = select(LineageEdge.child_id, LineageEdge.parent_id, LineageEdge.relation)
    if upwards:
        recorded = recorded.where(LineageEdge.project_id == project_id, LineageEdge.child_id.in_(ids))
    else:
        recorded = recorded.where(LineageEdge.parent_project_id == project_id, LineageEdge.parent_id.in_(ids))
    resumed = (
        select(Checkpoint.id, Attempt.resumed_from_checkpoint_id, literal(Relation.RESUMED.value))
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(
            Checkpoint.project_id == project_id,
            Attempt.project_id == project_id,
            Attempt.resumed_from_checkpoint_id.is_not(None),
        )
    )
    resumed = resumed.where(Checkpoint.id.in_(ids) if upwards else Attempt.resumed_from_checkpoint_id.in_(ids)).limit(
        MAX_EDGES
    )
    rows = [*session.execute(recorded.limit(MAX_EDGES)), *session.execute(resumed)]
    return [Edge(child, parent, relation) for child, parent, relation in rows]


def _upwards(project_id: int, checkpoint_id: int) -> CTE:
    base = select(literal(checkpoint_id, BigInteger).label("id")).cte("ancestor", recursive=True)
    step = select(LineageEdge.parent_id).join(base, LineageEdge.child_id == base.c.id)
    return base.union(step.where(LineageEdge.project_id == project_id))
