"""The way of training to a checkpoint, cut into stretches: each within one attempt, on one version of the data.

An attempt is cut where the data version that its saves record changes (a stretch ends with the last save of a version),
where another way to the checkpoint left it (so that what two parents of a merge share counts once), and where it
trained on after a copy or a merge.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.lineage import MAX_EDGES, Edge, rows_around
from registry.models import Checkpoint
from registry.provenance.past import COPIES, Past, Place, read_past, read_places
from registry.types import CheckpointState, Relation
from registry.upsert import chunks

MAX_STRETCHES: Final = MAX_EDGES
UNTRAINED: Final = (*COPIES, Relation.MERGED.value)  # what came so was not trained on the way
_Cut = tuple[int, int]  # the step and id of a checkpoint where a stretch ends


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `after` (an earlier save of the attempt; None: its beginning) to `end`.

    `parents`: what the attempt or the checkpoint came from; none where it went on within the attempt.
    """

    end: int
    after: int | None
    parents: Sequence[Edge]


@dataclass(frozen=True, slots=True)
class Way:
    """`stretches`: newest first. `parents`: every recorded edge on the way. `is_cut`: there is more than is here."""

    stretches: Sequence[Stretch]
    parents: Sequence[Edge]
    is_cut: bool


def way_to(session: Session, project_id: int, checkpoint_id: int) -> Way:
    """At most MAX_STRETCHES; the number of statements does not grow with the number of attempts."""
    above, _ = rows_around(session, project_id, checkpoint_id)
    past = _read_past(session, Past(), [checkpoint_id, *(parent for _, parent, _ in above)])
    made = {each.child_id for edges in past.parents.values() for each in edges} - past.places.keys()
    if made:  # copies and merges that attempts trained on from
        past = _read_past(session, past, made)
    ends, is_cut = _ends(past, checkpoint_id)
    cut = list(_Cutter(past, ends, data_changes_within(session, ends)).stretches())
    stretches = cut[:MAX_STRETCHES]
    parents = dict.fromkeys(edge for each in stretches for edge in each.parents)
    return Way(stretches, list(parents), is_cut or len(cut) > MAX_STRETCHES)


def _read_past(session: Session, known: Past, ids: Iterable[int]) -> Past:
    read = [each for chunk in chunks(dict.fromkeys(ids)) for each in read_places(session, chunk)]
    return read_past(session, [*known.places.values(), *read], most=2 * MAX_STRETCHES)


def _before(past: Past, place: Place) -> tuple[Sequence[Edge], int | None]:
    """(what a checkpoint came from, the copy or merge of its attempt that it was trained on from)."""
    edges = past.parents.get(place.id, ())
    made = next((each.child_id for each in edges if each.child_id != place.id and each.relation in UNTRAINED), None)
    return ((), made) if made is not None and made in past.places else (edges, None)


def _ends(past: Past, checkpoint_id: int) -> tuple[list[Place], bool]:
    """The checkpoints that other attempts or checkpoints went on from, nearest first; whether there are more."""
    todo, found, is_cut = [checkpoint_id], dict[int, Place](), False
    for here_id in todo:  # it grows meanwhile
        if here_id in found:
            continue
        if here_id not in past.places or len(found) == MAX_STRETCHES:
            is_cut = True
            continue
        here = found[here_id] = past.places[here_id]
        edges, made = _before(past, here)
        todo += [each.parent_id for each in edges] if made is None else [made]
    return list(found.values()), is_cut


class _Cutter:
    """Cuts the way at each end, and at each change of the data between."""

    def __init__(self, past: Past, ends: Sequence[Place], changes: dict[int, list[_Cut]]) -> None:
        self._past, self._ends, self._changes = past, ends, changes
        self._groups: dict[Any, list[_Cut]] = defaultdict(list)
        for each in ends:
            self._groups[self._group(each)].append((each.step, each.id))
        self._cuts = {key: self._all_cuts(key, group) for key, group in self._groups.items()}

    def _group(self, place: Place) -> Any:
        """Ends of an attempt that began alike lie on one way."""
        edges, made = _before(self._past, place)
        return place.attempt_id, made, tuple((each.parent_id, each.relation) for each in edges)

    def _all_cuts(self, key: Any, ends: Sequence[_Cut]) -> list[_Cut]:
        attempt_id, made, parents = key
        if any(relation in UNTRAINED for _, relation in parents):
            return sorted(ends)
        steps = {step for step, _ in ends}
        first = -1 if made is None else self._past.places[made].step
        between = [each for each in self._changes.get(attempt_id, ()) if first < each[0] < max(steps)]
        return sorted([*ends, *(each for each in between if each[0] not in steps)])

    def stretches(self) -> Iterator[Stretch]:
        """Newest first: each end with what lies between it and the end before it."""
        for place in self._ends:
            key = self._group(place)
            cuts, own = self._cuts[key], {identity for _, identity in self._groups[key]}
            edges, made = _before(self._past, place)
            untrained = any(each.relation in UNTRAINED for each in edges)
            at = len(cuts) if untrained else cuts.index((place.step, place.id))
            if untrained:
                yield Stretch(place.id, None, edges)
                continue
            while True:
                before = cuts[at - 1][1] if at else made
                yield Stretch(cuts[at][1], before, () if before is not None else edges)
                at -= 1
                if at < 0 or cuts[at][1] in own:
                    break


def data_changes_within(session: Session, places: Collection[Place]) -> dict[int, list[_Cut]]:
    """By attempt of these, step and id: the last save of each data version that another one followed.

    A save that names no version says nothing.
    """
    version = Checkpoint.data_version_id
    own = (
        Checkpoint.project_id.in_({each.project_id for each in places}),
        Checkpoint.state == CheckpointState.COMMITTED.value,
        version.is_not(None),
    )
    found: dict[int, list[_Cut]] = defaultdict(list)
    for chunk in chunks(sorted({each.attempt_id for each in places})):
        several = (
            select(Checkpoint.attempt_id)
            .where(*own, Checkpoint.attempt_id.in_(chunk))
            .group_by(Checkpoint.attempt_id)
            .having(func.min(version) != func.max(version))
        )
        if not (attempts := session.scalars(several).all()):
            continue
        saves = (
            select(Checkpoint.attempt_id, Checkpoint.step, Checkpoint.id, version)
            .where(*own, Checkpoint.attempt_id.in_(attempts))
            .order_by(Checkpoint.attempt_id, Checkpoint.step, Checkpoint.id)
        )
        for earlier, later in pairwise(session.execute(saves)):
            if earlier[0] == later[0] and earlier[3] != later[3] and earlier[1] < later[1]:
                found[earlier[0]].append((earlier[1], earlier[2]))
    return found
