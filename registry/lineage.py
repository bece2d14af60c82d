"""Lineage: which checkpoint came from which, and how."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

from sqlalchemy import bindparam, literal, select
from sqlalchemy.orm import Session

from registry.db import Base, now
from registry.errors import FieldError, Invalid
from registry.ids import to_text
from registry.models import Attempt, Checkpoint, LineageEdge
from registry.types import LOSSLESS, Relation
from registry.upsert import chunks, insert_missing

_LOSSLESS: Final = frozenset(relation.value for relation in LOSSLESS)
MAX_EDGES: Final = 10_000  # of an answer, upwards and downwards each
MAX_LEVELS: Final = 12  # that are asked one by one; a deeper chain is read with all edges of its project
MAX_BULK: Final = 200_000  # edges of a project up to which that is done

_LEVEL: Final[Any] = bindparam("level", expanding=True)
_edge, _saved, _attempt = (Base.metadata.tables[table.__tablename__].c for table in (LineageEdge, Checkpoint, Attempt))


class ParentUnknown(Invalid):
    code = "parent-unknown"
    title = "A parent is not registered"


class LineageCycle(Invalid):
    code = "lineage-cycle"
    title = "A checkpoint cannot come from itself"


class Edge(NamedTuple):
    """`child` came from `parent` by `relation`; a lossless relation keeps the weights' values.

    A tuple, since a chain may have 10,000 of them.
    """

    child_id: int
    parent_id: int
    relation: str

    @property
    def lossless(self) -> bool:
        return self.relation in _LOSSLESS


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
    _refuse_circles(session, project_id, edges)
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


def _refuse_circles(session: Session, project_id: int, edges: Sequence[Edge]) -> None:
    """Raises LineageCycle where an edge would make a checkpoint come from itself.

    Nothing comes yet from most children, which are new: then only edges of this very call can close a circle.
    """
    graph: dict[int, set[int]] = {}
    for edge in edges:
        graph.setdefault(edge.child_id, set()).add(edge.parent_id)
    for edge in edges:
        if edge.parent_id == edge.child_id:
            raise _circle(edge.parent_id, edge.child_id)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        first, second, *_ = error.args[1]
        raise _circle(first, second) from None
    for child in _with_descendants(session, project_id, list(graph)):
        above = {parent for each in graph[child] for parent in (each, *ancestor_ids(session, project_id, each))}
        if child in above:
            raise _circle(next(iter(graph[child])), child)


def _circle(parent: int, child: int) -> LineageCycle:
    message = f"{to_text(parent)} already comes from {to_text(child)}"
    return LineageCycle(f"That would close a circle: {message}.", errors=[FieldError("/parents", message)])


def _with_descendants(session: Session, project_id: int, ids: Sequence[int]) -> list[int]:
    found: list[int] = []
    for chunk in chunks(ids):
        query = select(LineageEdge.parent_id).where(
            LineageEdge.parent_project_id == project_id, LineageEdge.parent_id.in_(chunk)
        )
        found += session.scalars(query.distinct())
    return found


def ancestor_ids(session: Session, project_id: int, checkpoint_id: int) -> set[int]:
    """Every checkpoint that this one came from over recorded edges."""
    found = _walk(session, project_id, checkpoint_id, upwards=True, resumed=False, most=MAX_BULK)
    return {edge.parent_id for edge in found}


def edges_around(session: Session, project_id: int, checkpoint_id: int) -> tuple[list[Edge], list[Edge]]:
    """(edges to ancestors, edges to descendants), nearest first, at most MAX_EDGES each.

    Beside the recorded edges, the checkpoint that an attempt loaded is the parent of what the attempt saved.
    """
    up = _walk(session, project_id, checkpoint_id, upwards=True)
    down = _walk(session, project_id, checkpoint_id, upwards=False)
    return up, down


def _walk(
    session: Session,
    project_id: int,
    start: int,
    *,
    upwards: bool,
    resumed: bool = True,
    most: int = MAX_EDGES,
) -> list[Edge]:
    """Level by level. Few levels are one question each; from MAX_LEVELS on, all edges of the project are read once."""
    seen, found, level, depth = {start}, list[Edge](), [start], 0
    queries = _queries(project_id, upwards=upwards, resumed=resumed)
    of_level = [query.where(key.in_(_LEVEL)).limit(MAX_EDGES) for query, key in queries]
    while level and len(found) < most:
        if depth == MAX_LEVELS:
            every = _every_edge(session, project_id, upwards=upwards, resumed=resumed)
            if every is not None:
                _walk_on(level, every, seen, found, upwards=upwards, most=most)
                break
        edges = [
            edge for chunk in chunks(level) for query in of_level for edge in _edges(session, query, {"level": chunk})
        ]
        found.extend(edges)
        level = [
            each
            for each in dict.fromkeys(edge.parent_id if upwards else edge.child_id for edge in edges)
            if each not in seen
        ]
        seen.update(level)
        depth += 1
    return found[:most]


def _walk_on(
    level: list[int],
    every: Mapping[int, Sequence[Edge]],
    seen: set[int],
    found: list[Edge],
    *,
    upwards: bool,
    most: int,
) -> None:
    """The rest of a walk in memory, in the order of its levels: what is reached is added to `level` and `found`."""
    for here in level:  # it grows meanwhile
        for edge in every.get(here, ()):
            found.append(edge)
            there = edge.parent_id if upwards else edge.child_id
            if there not in seen:
                seen.add(there)
                level.append(there)
        if len(found) >= most:
            return


def _queries(project_id: int, *, upwards: bool, resumed: bool) -> list[tuple[Any, Any]]:
    """Statements that give (child, parent, relation), each with the column that a level is looked up by."""
    recorded = select(_edge.child_id, _edge.parent_id, _edge.relation).where(
        (_edge.project_id if upwards else _edge.parent_project_id) == project_id
    )
    found: list[tuple[Any, Any]] = [(recorded, _edge.child_id if upwards else _edge.parent_id)]
    if resumed:
        loaded = select(_saved.id, _attempt.resumed_from_checkpoint_id, literal(Relation.RESUMED.value)).where(
            _attempt.id == _saved.attempt_id,
            _saved.project_id == project_id,
            _attempt.project_id == project_id,
            _attempt.resumed_from_checkpoint_id.is_not(None),
        )
        found.append((loaded, _saved.id if upwards else _attempt.resumed_from_checkpoint_id))
    return found


def _every_edge(
    session: Session, project_id: int, *, upwards: bool, resumed: bool
) -> Mapping[int, Sequence[Edge]] | None:
    """All edges of a project, by the end that a walk comes from; None where there are too many."""
    found: dict[int, list[Edge]] = defaultdict(list)
    count = 0
    for query, _ in _queries(project_id, upwards=upwards, resumed=resumed):
        edges = _edges(session, query.limit(MAX_BULK + 1 - count))
        count += len(edges)
        if count > MAX_BULK:
            return None
        for edge in edges:
            found[edge.child_id if upwards else edge.parent_id].append(edge)
    return found


def _edges(session: Session, query: Any, given: Mapping[str, Any] | None = None) -> list[Edge]:
    """The rows as the driver gives them: named rows would double the time of a deep chain."""
    result: Any = session.connection().execute(query, given)
    with result:
        return list(map(Edge._make, result.cursor.fetchall()))
