"""What checkpoints came from, read for any number of them together: what was loaded, and the recorded parents.

A checkpoint comes from its own recorded parents; else from what its attempt loaded; else from the parents that were
recorded for an earlier checkpoint of its attempt.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select, union
from sqlalchemy.orm import Session, aliased

from registry.lineage import Edge
from registry.models import Attempt, Checkpoint, DataVersion, LineageEdge
from registry.types import Relation
from registry.upsert import chunks

MAX_PLACES: Final = 5_000  # checkpoints of the past that are looked at together
MAX_GENERATIONS: Final = 64  # of recorded parents; what attempts loaded counts as one
COPIES: Final = (Relation.CONVERTED.value, Relation.RESHARDED.value, Relation.QUANTISED.value)
_PARENT = aliased(Checkpoint)  # made once: it takes milliseconds


@dataclass(frozen=True, slots=True)
class Place:
    """A checkpoint and what is recorded of its data. `loaded`: what its attempt loaded, where that has a record;
    `resumed`: whether it loaded anything."""

    id: int
    project_id: int
    attempt_id: int
    step: int
    tokens_seen: int | None
    data_version: DataVersion | None
    resumed: bool
    loaded: int | None


@dataclass(frozen=True, slots=True)
class Past:
    """Places by id, and what each came from, in the order of the parents' ids; nothing where training began anew.

    The child of an edge is the checkpoint itself, or an earlier one of its attempt for which the edge was recorded.
    `cuts`: by attempt, in order, the last save of each data version that another one followed; where they were read.
    """

    places: Mapping[int, Place] = field(default_factory=dict)
    parents: Mapping[int, Sequence[Edge]] = field(default_factory=dict)
    cuts: Mapping[int, Sequence[Place]] = field(default_factory=dict)

    def line(self, checkpoint_id: int) -> Iterator[tuple[Place, Edge | None]]:
        """The checkpoint and what it came from, one after the other; of several parents the first."""
        here: int | None = checkpoint_id
        been: set[int] = set()
        while here is not None and here in self.places and here not in been:
            been.add(here)
            edge = next(iter(self.parents.get(here, ())), None)
            yield self.places[here], edge
            here = None if edge is None else edge.parent_id


def read_past(session: Session, starts: Iterable[Place], *, most: int = MAX_PLACES) -> Past:
    """The past of all of `starts`: a statement or two for each generation of recorded parents."""
    places = {each.id: each for each in starts}
    edges = _Edges(session)
    parents: dict[int, Sequence[Edge]] = {}
    level = list(places.values())
    for _ in range(MAX_GENERATIONS):
        if not level or len(places) > most:
            break
        unread = [each for each in level if each.loaded not in places]
        loaded = [each for each in _loaded_by(session, unread) if each.id not in places]
        places.update((each.id, each) for each in loaded)
        fresh = [*level, *loaded]
        edges.read(fresh)
        parents.update((each.id, edges.before(each)) for each in fresh)
        missing = {edge.parent_id for each in fresh for edge in parents[each.id]} - places.keys()
        level = [each for chunk in chunks(sorted(missing)) for each in read_places(session, chunk)]
        places.update((each.id, each) for each in level)
    return Past(places, parents)


def _loaded_by(session: Session, level: Sequence[Place]) -> list[Place]:
    """What the attempts of these loaded, what the attempts of that loaded, and so on: one statement."""
    found = []
    for chunk in chunks(sorted({each.loaded for each in level if each.loaded is not None})):
        own = aliased(Checkpoint)
        path = select(Checkpoint.project_id, Checkpoint.id).where(Checkpoint.id.in_(chunk)).cte("path", recursive=True)
        further = (
            select(path.c.project_id, Attempt.resumed_from_checkpoint_id)
            .join(own, (own.project_id == path.c.project_id) & (own.id == path.c.id))
            .join(Attempt, (Attempt.project_id == own.project_id) & (Attempt.id == own.attempt_id))
            .where(Attempt.resumed_from_checkpoint_id.is_not(None))
        )
        found += read_places(session, select(path.union(further).c.id))
    return found


def read_places(session: Session, ids: Any) -> list[Place]:
    """Checkpoints by their ids, or by a statement that gives these."""
    own = Checkpoint.project_id
    query = (
        select(
            *(Checkpoint.id, own, Checkpoint.attempt_id, Checkpoint.step, Checkpoint.tokens_seen, DataVersion),
            *(Attempt.resumed_from_step, Attempt.resumed_from_checkpoint_id),
        )
        .join(Attempt, (Attempt.project_id == own) & (Attempt.id == Checkpoint.attempt_id))
        .outerjoin(DataVersion, (DataVersion.project_id == own) & (DataVersion.id == Checkpoint.data_version_id))
        .where(Checkpoint.id.in_(ids))
    )
    return [Place(*row[:6], resumed=row[6] is not None, loaded=row[7]) for row in session.execute(query)]


class _Edges:
    """Recorded edges by child, and by the attempt of the child; each attempt is read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: dict[int, list[Edge]] = defaultdict(list)
        self._of_attempt: dict[int, list[tuple[int, Edge]]] = defaultdict(list)
        self._known: set[int] = set()  # attempts that were read as a whole

    def read(self, places: Sequence[Place]) -> None:
        """Those of these checkpoints, and of all checkpoints of the attempts among them that loaded nothing.

        That an attempt went on from what it had saved itself is nothing that it came from.
        """
        edge = (
            select(
                *(LineageEdge.child_id, LineageEdge.parent_id, LineageEdge.relation),
                *(Checkpoint.attempt_id, Checkpoint.step, _PARENT.attempt_id.label("parent_attempt_id")),
            )
            .join(
                Checkpoint, (Checkpoint.project_id == LineageEdge.project_id) & (Checkpoint.id == LineageEdge.child_id)
            )
            .join(
                _PARENT, (_PARENT.project_id == LineageEdge.parent_project_id) & (_PARENT.id == LineageEdge.parent_id)
            )
            .where(
                (_PARENT.attempt_id != Checkpoint.attempt_id) | (LineageEdge.relation != Relation.RESUMED.value),
            )
        )
        for chunk in chunks([each for each in places if each.attempt_id not in self._known]):
            roots = {each.attempt_id for each in chunk if each.loaded is None}
            projects = {each.project_id for each in chunk}
            within = (LineageEdge.project_id.in_(projects), LineageEdge.parent_project_id == LineageEdge.project_id)
            both = union(
                edge.where(*within, LineageEdge.child_id.in_({each.id for each in chunk})),
                edge.where(*within, Checkpoint.project_id.in_(projects), Checkpoint.attempt_id.in_(roots)),
            )
            rows = self._session.execute(both.order_by("parent_id"))
            for child, parent, relation, attempt_id, step, parent_attempt_id in rows:
                found = Edge(child, parent, relation)
                if found in self._own[child]:
                    continue
                self._own[child].append(found)
                if parent_attempt_id != attempt_id:  # else a copy or a mean of what the attempt saved, beside its way
                    self._of_attempt[attempt_id].append((step, found))
            self._known |= roots

    def before(self, place: Place) -> Sequence[Edge]:
        """What a checkpoint came from."""
        if place.id in self._own:
            return self._own[place.id]
        if place.loaded is not None:
            return [Edge(place.id, place.loaded, Relation.RESUMED.value)]
        return [edge for step, edge in self._of_attempt[place.attempt_id] if step < place.step]
