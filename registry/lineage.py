"""Lineage: which checkpoint came from which, and how."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import bindparam, literal, select, union_all
from sqlalchemy.orm import Session

from registry.db import Base, now
from registry.errors import FieldError, Invalid
from registry.ids import to_text
from registry.models import Attempt, Checkpoint, LineageEdge
from registry.types import LOSSLESS, Relation
from registry.upsert import chunks, insert_missing

_LOSSLESS: Final = frozenset(relation.value for relation in LOSSLESS)
MAX_EDGES: Final = 10_000  # of an answer, upwards and downwards each
MAX_BULK: Final = 200_000  # edges of a project up to which a deep chain is read with all of them
# Levels are asked one by one up to here; from here on with all edges of the project, if it has no more than so many.
BULK_FROM: Final = {4: 20_000, 12: MAX_BULK}

EdgeRow = tuple[int, int, str]  # an Edge that was not made yet: child, parent, relation
_End = Literal[0, 1]  # a place in it: the child's, the parent's
_LEVEL: Final[Any] = bindparam("level", expanding=True)
_edge, _saved, _attempt = (Base.metadata.tables[table.__tablename__].c for table in (LineageEdge, Checkpoint, Attempt))


class ParentUnknown(Invalid):
    code = "parent-unknown"
    title = "A parent is not registered"


# Said whether or not another project has it: a token for one project must not find out about the others.
WITHIN_ONE_PROJECT: Final = (
    "Lineage stays within one project, since tokens may be for one only: a parent that another project has is recorded "
    "here as well, at the same place, and named by its id here"
)


class LineageCycle(Invalid):
    code = "lineage-cycle"
    title = "A checkpoint cannot come from itself"


class Edge(NamedTuple):
    """`child` came from `parent` by `relation`; a lossless relation keeps the weights' values."""

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
            raise ParentUnknown(
                f"A parent is unknown: {message}. {WITHIN_ONE_PROJECT}.", errors=[FieldError("/parents", message)]
            )
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
    return {parent for _, parent, _ in found}


def edges_around(session: Session, project_id: int, checkpoint_id: int) -> tuple[list[Edge], list[Edge]]:
    """(edges to ancestors, edges to descendants), nearest first, at most MAX_EDGES each.

    Beside the recorded edges, the checkpoint that an attempt loaded is the parent of what the attempt saved.
    """
    up, down = rows_around(session, project_id, checkpoint_id)
    return list(map(Edge._make, up)), list(map(Edge._make, down))


def rows_around(session: Session, project_id: int, checkpoint_id: int) -> tuple[list[EdgeRow], list[EdgeRow]]:
    """What `edges_around` gives, as the driver gives it."""
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
) -> list[EdgeRow]:
    """Level by level. Few levels are one question each; for more of them all edges of the project are read once."""
    seen, found, level, depth = {start}, list[EdgeRow](), [start], 0
    queries = _queries(project_id, upwards=upwards, resumed=resumed)
    of_level = union_all(*(query.where(key.in_(_LEVEL)) for query, key in queries)).limit(MAX_EDGES)
    there: _End = 1 if upwards else 0
    while level and len(found) < most:
        if depth in BULK_FROM:
            every = _every_edge(session, [query for query, _ in queries], BULK_FROM[depth], upwards=upwards)
            if every is not None:
                _walk_on(level, every, seen, found, there=there, most=most)
                break
        rows = [row for chunk in chunks(level) for row in _rows(session, of_level, {"level": chunk})]
        found.extend(rows)
        level = [each for each in dict.fromkeys(row[there] for row in rows) if each not in seen]
        seen.update(level)
        depth += 1
    return found[:most]


def _walk_on(
    level: list[int],
    every: Mapping[int, Sequence[EdgeRow]],
    seen: set[int],
    found: list[EdgeRow],
    *,
    there: _End,
    most: int,
) -> None:
    """The rest of a walk in memory, in the order of its levels: what is reached is added to `level` and `found`.

    `there`: the place in a row of the end that the walk comes to.
    """
    for here in level:  # it grows meanwhile
        rows = every.get(here, ())
        found.extend(rows)
        for row in rows:
            if row[there] not in seen:
                seen.add(row[there])
                level.append(row[there])
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
    session: Session, queries: Sequence[Any], most: int, *, upwards: bool
) -> Mapping[int, Sequence[EdgeRow]] | None:
    """All edges of a project, by the end that a walk comes from; None where there are too many."""
    rows = _rows(session, union_all(*queries).limit(most + 1))
    if len(rows) > most:
        return None
    found: dict[int, list[EdgeRow]] = defaultdict(list)
    here: _End = 0 if upwards else 1
    for row in rows:
        found[row[here]].append(row)
    return found


def _rows(session: Session, query: Any, given: Mapping[str, Any] | None = None) -> list[EdgeRow]:
    """(child, parent, relation) as the driver gives them: named rows would double the time of a deep chain."""
    result: Any = session.connection().execute(query, given)
    with result:
        rows: list[EdgeRow] = result.cursor.fetchall()
    return rows
