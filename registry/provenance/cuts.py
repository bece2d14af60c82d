"""Where the attempts behind two checkpoints changed their data, for the tokens by source that a comparison shows."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from registry.provenance.data_seen import read_mixes
from registry.provenance.past import read_places
from registry.provenance.sides import Recorded
from registry.provenance.stretches import data_changes_within
from registry.upsert import chunks


def with_cuts(session: Session, recorded: Recorded, ids: Sequence[int]) -> Recorded:
    """The same, with the saves at which the data changed within an attempt on the way to one of `ids`."""
    cuts = data_changes_within(session, [place for each in ids for place, _ in recorded.past.line(each)])
    wanted = [identity for found in cuts.values() for _, identity in found]
    if not wanted:
        return recorded
    places = {each.id: each for chunk in chunks(wanted) for each in read_places(session, chunk)}
    versions = {each.data_version.id: each.data_version for each in places.values() if each.data_version is not None}
    unread = [version for key, version in versions.items() if key not in recorded.mixes]
    by_attempt = {attempt: [places[identity] for _, identity in found] for attempt, found in cuts.items()}
    return replace(
        recorded,
        past=replace(recorded.past, cuts=by_attempt),
        mixes={**recorded.mixes, **read_mixes(session, unread)},
    )
