"""How one checkpoint came from another: the recorded edges between two. What made other weights is a suspect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.checkpoints.rows import CheckpointIdentity
from registry.lineage import Edge
from registry.provenance.past import Past, Place
from registry.provenance.suspects import Change
from registry.types import Relation

# In words. Each of these makes other weights; what only resumed or was copied is no change of its own.
MADE: Final = {
    Relation.QUANTISED.value: "quantised",
    Relation.MERGED.value: "merged",
    Relation.DISTILLED.value: "distilled",
    Relation.FINE_TUNED.value: "fine-tuned",
}
NAMED: Final = 6  # edges of a long way that are told
TOLD: Final = {Relation.CONVERTED.value: "converted", Relation.RESHARDED.value: "resharded"} | MADE


@dataclass(frozen=True, slots=True)
class Way:
    """The recorded edges between two sides, from the older one on. `towards_baseline`: the baseline came from the
    candidate. `beside`: how many other parents the child of each edge has.

    `direct`: one edge stands for all that was trained between. `same_weights`: nothing but copying lies between.
    """

    edges: tuple[Edge, ...] = ()
    towards_baseline: bool = False
    direct: bool = False
    same_weights: bool = False
    beside: Mapping[Edge, int] = field(default_factory=dict)

    @property
    def made(self) -> list[Edge]:
        """The edges that made other weights."""
        return [each for each in self.edges if each.relation in MADE]


NO_WAY: Final = Way()
_Step = tuple[Edge, int]  # an edge, and the checkpoint from which it was climbed: its child, or one saved after that


def way_between(past: Past, baseline_id: int, candidate_id: int) -> Way:
    """How the candidate came from the baseline, or the other way round; no edges where neither is recorded.

    A lossless copy of a side stands for it.
    """
    copies = {each: _copied(past, each) for each in (baseline_id, candidate_id)}
    if copies[baseline_id].keys() & copies[candidate_id].keys():
        shared = next(each for each in copies[candidate_id] if each in copies[baseline_id])
        edges = (*reversed(copies[candidate_id][shared]), *copies[baseline_id][shared])
        return Way(edges, same_weights=True)
    for start, goal, backwards in ((candidate_id, baseline_id, False), (baseline_id, candidate_id, True)):
        found = _climb(past, start, copies[goal])
        if found is not None:
            return _way(past, found, copies[goal], towards_baseline=backwards)
    return NO_WAY


def _way(past: Past, steps: Sequence[_Step], goals: Mapping[int, object], *, towards_baseline: bool) -> Way:
    """Of the steps from the younger side up to the older one."""
    edges = [edge for edge, _ in steps]
    lossy = [each for each in edges if not each.lossless]
    direct = len(lossy) == 1 and lossy[0].relation in MADE and edges[-1].parent_id in goals
    beside = {edge: _parents_beside(past.parents[lower], edge) for edge, lower in steps}
    return Way(tuple(reversed(edges)), towards_baseline, direct, beside=beside)


def _parents_beside(edges: Sequence[Edge], edge: Edge) -> int:
    same = {each.parent_id for each in edges if (each.child_id, each.relation) == (edge.child_id, edge.relation)}
    return len(same - {edge.parent_id})


def _copied(past: Past, checkpoint_id: int) -> dict[int, list[Edge]]:
    """What has the same weights as a checkpoint, upwards, each with the lossless edges that lead there."""
    found: dict[int, list[Edge]] = {checkpoint_id: []}
    level = [checkpoint_id]
    for here in level:  # it grows meanwhile
        for edge in past.parents.get(here, ()):
            if edge.lossless and edge.child_id == here and edge.parent_id not in found:
                found[edge.parent_id] = [*found[here], edge]
                level.append(edge.parent_id)
    return found


def _climb(past: Past, start: int, goals: Mapping[int, object]) -> list[_Step] | None:
    """The fewest steps from a checkpoint up to one of the goals; else to what the attempt of a goal saved after it."""
    came: dict[int, _Step] = {}
    level = [start]
    for here in level:  # it grows meanwhile
        for edge in past.parents.get(here, ()):
            if edge.parent_id not in came and edge.parent_id != start:
                came[edge.parent_id] = edge, here
                level.append(edge.parent_id)
    ends = [past.places[each] for each in goals if each in past.places]
    found = next((each for each in level if each in goals), None)
    if found is None:
        found = next((each for each in level if each in past.places and _saved_after(past.places[each], ends)), None)
    return None if found is None else _down(came, found, start)


def _down(came: Mapping[int, _Step], here: int, start: int) -> list[_Step]:
    found: list[_Step] = []
    while here != start:
        found.append(came[here])
        here = came[here][1]
    return found[::-1]


def _saved_after(here: Place, ends: Sequence[Place]) -> bool:
    return any(here.attempt_id == end.attempt_id and here.step >= end.step for end in ends)


# ---- in words


def told(way: Way, names: Mapping[int, CheckpointIdentity]) -> str:
    """The way as a sentence without its full stop; empty where no recorded edge lies between."""
    said = [each for each in way.edges if each.relation in TOLD]
    if not said:
        return ""
    if way.same_weights:
        return f"the two have the same weights: {_told_edges(said, names)}"
    if way.direct:
        return _told_direct(way, way.made[0])
    ends = ("candidate", "baseline") if way.towards_baseline else ("baseline", "candidate")
    return f"on the way from the {ends[0]} to the {ends[1]}, {_told_edges(said, names)}"


def _told_edges(edges: Sequence[Edge], names: Mapping[int, CheckpointIdentity]) -> str:
    more = f" and {len(edges) - NAMED} more steps" if len(edges) > NAMED else ""
    return ", ".join(_told_edge(each, names) for each in edges[:NAMED]) + more


def _told_edge(edge: Edge, names: Mapping[int, CheckpointIdentity]) -> str:
    return f"{_name(names, edge.child_id)} was {TOLD[edge.relation]} from {_name(names, edge.parent_id)}"


def _name(names: Mapping[int, CheckpointIdentity], checkpoint_id: int) -> str:
    found = names.get(checkpoint_id)
    return f"{found.run.name} step {found.step:,}" if found is not None else "a checkpoint"


def _told_direct(way: Way, edge: Edge) -> str:
    child, parent = ("baseline", "candidate") if way.towards_baseline else ("candidate", "baseline")
    others = way.beside.get(edge, 0)
    beside = "" if not others else " and one other" if others == 1 else f" and {others} others"
    through = " (over lossless copies)" if len(way.edges) > 1 else ""
    return f"the {child} was {TOLD[edge.relation]} from the {parent}{beside}{through}"


def lineage_suspects(way: Way, names: Mapping[int, CheckpointIdentity]) -> list[Change]:
    """One for each kind of edge that made other weights; it may be all that explains a fall."""
    found: dict[str, Change] = {}
    for edge in way.made:
        key = f"lineage.{edge.relation}" + (".baseline" if way.towards_baseline else "")
        words = _told_direct(way, edge) if way.direct else _told_edge(edge, names)
        found.setdefault(key, Change(key, "lineage", 1.0, words, direct=way.direct))
    return list(found.values())
