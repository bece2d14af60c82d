"""Which data a checkpoint has seen, source by source: its own version's, and before it that of what it came from.

A run that went on from a checkpoint of another run, or an attempt that changed the data, has seen the earlier data
for as many tokens as that checkpoint had seen. So the tokens by source add up to the tokens seen in all. One that was
fine-tuned or distilled counts anew, and has seen its parent's tokens as well; a copy has seen what its source saw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.lineage import Edge
from registry.models import DataSource, DataVersion
from registry.provenance.data_mix import Source, shares
from registry.provenance.past import COPIES, Past, Place
from registry.types import Relation

OWN_COUNT: Final = (Relation.FINE_TUNED.value, Relation.DISTILLED.value)

CONTINUED: Final = "continued"  # the attempt went on: with other data, or beyond where another way left it

Mix = dict[str, Source]


@dataclass(frozen=True, slots=True)
class Stage:
    """A checkpoint on the way: the data version recorded for it and the tokens seen until then, None where unknown.

    `came_from`: how, from the next stage; None where training began anew there.
    """

    data_version: DataVersion | None
    tokens_seen: int | None
    came_from: str | None = None


@dataclass(frozen=True, slots=True)
class DataSeen:
    """`mix` None: not known. `by_lineage`: the shares are of the tokens seen, over more than one data version.

    `tokens` seen in all, None where unknown; `name` of the data version. `note`: what of the past could not be counted.
    """

    mix: Mapping[str, Source] | None
    by_lineage: bool = False
    note: str = ""
    tokens: int | None = None
    name: str | None = None


def stages_of(past: Past, checkpoint_id: int) -> list[Stage]:
    """A checkpoint and what it came from, newest first, without copies: those have no data of their own.

    What was loaded and has no record here yet ends the list with an unknown stage.
    """
    found = []
    for place, edge in past.line(checkpoint_id):
        if edge is not None and edge.relation in COPIES and edge.child_id == place.id and edge.parent_id in past.places:
            continue
        relation = edge.relation if edge is not None else Relation.RESUMED.value if place.resumed else None
        within = [place, *_cuts_before(past, place, edge)]
        found += [Stage(each.data_version, each.tokens_seen, CONTINUED) for each in within[:-1]]
        found.append(Stage(within[-1].data_version, within[-1].tokens_seen, relation))
    if found and found[-1].came_from is not None:
        found.append(Stage(None, None))
    return found


def _cuts_before(past: Past, place: Place, edge: Edge | None) -> list[Place]:
    """Where the attempt changed its data on the way, the newest first; of copies and merges nothing.

    A save that had seen as much as the checkpoint has tells of no change: nothing was trained after it.
    """
    if edge is not None and (edge.relation == Relation.MERGED or edge.relation in COPIES):
        return []
    cuts = [each for each in past.cuts.get(place.attempt_id, ()) if each.step < place.step]
    return [each for each in reversed(cuts) if each.tokens_seen is None or each.tokens_seen != place.tokens_seen]


def tokens_in_all(stages: Sequence[Stage]) -> int | None:
    """The tokens that were seen: the newest count, and each earlier one that a fine-tuning left. None where unknown."""
    total, begins = 0, True
    for stage in stages:
        if stage.came_from == Relation.MERGED or (begins and stage.tokens_seen is None):
            return None
        if begins:
            total += stage.tokens_seen or 0
        begins = stage.came_from in OWN_COUNT
    return total if stages else None


def read_mixes(session: Session, versions: Sequence[DataVersion]) -> dict[int, Mix]:
    """The sources of each data version that has some, by its id; one statement."""
    if not versions:
        return {}
    query = select(DataSource).where(
        DataSource.project_id.in_({each.project_id for each in versions}),
        DataSource.data_version_id.in_({each.id for each in versions}),
    )
    found: dict[int, Mix] = {}
    for row in session.scalars(query):
        found.setdefault(row.data_version_id, {})[row.source] = Source(row.weight, row.tokens)
    return found


def data_seen(stages: Sequence[Stage], mixes: Mapping[int, Mix]) -> DataSeen:
    """The sources that a checkpoint has seen. Of one data version only, its mix as it is recorded.

    A stage whose mix is unknown counts as one source, named as its data version is.
    """
    own = stages[0]
    declared = mixes.get(own.data_version.id) if own.data_version is not None else None
    known = DataSeen(
        declared, tokens=tokens_in_all(stages), name=own.data_version.name if own.data_version is not None else None
    )
    if own.came_from == Relation.MERGED:
        return replace(known, note="it merges weights, and what its parents saw is not counted")
    if own.data_version is None:
        return known
    if all(stage.data_version is not None and stage.data_version.id == own.data_version.id for stage in stages):
        return known
    tokens: dict[str, float] = {}
    for stage, earlier in zip(stages, [*stages[1:], None], strict=True):
        amount = _tokens_of(stage, earlier)
        if amount is None or stage.data_version is None:
            if stage.came_from == CONTINUED:
                return replace(known, note="what was seen before its data changed is not counted")
            way = (own.came_from or Relation.RESUMED.value).removesuffix("_from").replace("_", "-")
            how = "resumed" if way == "resumed" else f"was {way}"
            return replace(known, note=f"what was seen before it {how} from another checkpoint is not counted")
        for source, share in _shares(stage.data_version, mixes).items():
            tokens[source] = tokens.get(source, 0.0) + share * amount
    if not any(tokens.values()):
        return known
    return replace(
        known, mix={source: Source(None, amount) for source, amount in tokens.items() if amount}, by_lineage=True
    )


def _tokens_of(stage: Stage, earlier: Stage | None) -> int | None:
    """The tokens seen in a stage alone; None where that is not known."""
    if stage.tokens_seen is None or stage.came_from == Relation.MERGED:
        return None
    if earlier is None or stage.came_from in OWN_COUNT:
        return stage.tokens_seen
    if earlier.tokens_seen is None or earlier.tokens_seen > stage.tokens_seen:
        return None
    return stage.tokens_seen - earlier.tokens_seen


def _shares(version: DataVersion, mixes: Mapping[int, Mix]) -> Mapping[str, float]:
    return shares(mixes.get(version.id, {})) or {version.name: 1.0}
