"""Which copy of a checkpoint to read, and why not the others: the fastest that is feasible.

Shared storage and object stores are reached from everywhere. A local copy counts only where every node that holds a
part of it is known to be there, since a local disk goes with its node.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.models import Replica, ReplicaPart
from registry.recovery.restore_time import Measured, RestoreTime, needed_rate, restore_time
from registry.types import Tier
from registry.upsert import chunks
from registry.wording import listed

# Of copies whose time is unknown: shared first, the object store as the fallback, local disks last.
TIER_ORDER: Final = {Tier.SHARED: 0, Tier.OBJECT: 1, Tier.LOCAL: 2}
SOME: Final = 3  # hosts named in a sentence


@dataclass(frozen=True, slots=True)
class Part:
    """What one host holds of a copy that is spread over hosts. Sizes in bytes; None unknown."""

    host: str
    ranks: str
    uri: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """A recorded copy. `has_manifest`: its files are listed, with sizes and perhaps digests."""

    replica_id: int
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    file_count: int | None
    state: str
    verification: str
    has_manifest: bool
    parts: tuple[Part, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts whose disks hold it; empty where nobody said, or where it is on no host's disks."""
        if self.tier != Tier.LOCAL:
            return frozenset()
        return frozenset(part.host for part in self.parts) or frozenset({self.host} if self.host else ())


@dataclass(frozen=True, slots=True)
class Option:
    """A copy, whether it can be used, and the time of a restore from it; `reason` why not, or what to know of it.

    `awaits`: the hosts that can use it, where nothing is against it but that nobody said whether they are there.
    """

    place: Place
    feasible: bool
    reason: str
    time: RestoreTime | None
    awaits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Drilled:
    """What drills say of a copy. `fault`: why it cannot be read or is not what is recorded; `remark`: what to know."""

    measured: Measured | None = None
    fault: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a copy. `hosts`: those that are there; None: nobody said. Seconds; None: no limit."""

    hosts: frozenset[str] | None = None
    rto_seconds: float | None = None
    is_resharded: bool = False
    is_converted: bool = False
    suspect_replicas: frozenset[int] = frozenset()
    drilled: Mapping[int, Drilled] = field(default_factory=dict)  # by replica


UNDRILLED: Final = Drilled()


def read_places(session: Session, project_id: int, checkpoint_ids: Collection[int]) -> dict[int, list[Place]]:
    """The recorded copies by checkpoint, removed ones as well."""
    found: dict[int, list[Place]] = {}
    for chunk in chunks(sorted(checkpoint_ids)):
        query = select(Replica).where(Replica.project_id == project_id, Replica.checkpoint_id.in_(chunk))
        rows = session.scalars(query.order_by(Replica.id)).all()
        parts = _read_parts(
            session, project_id, [row.id for row in rows if row.tier == Tier.LOCAL or row.bytes is None]
        )
        for row in rows:
            own = parts.get(row.id, ())
            found.setdefault(row.checkpoint_id, []).append(
                Place(
                    replica_id=row.id,
                    uri=row.uri,
                    tier=row.tier,
                    host=row.host,
                    bytes=row.bytes if row.bytes is not None else _sum(own),
                    file_count=row.file_count,
                    state=row.state,
                    verification=row.verification,
                    has_manifest=row.manifest_id is not None,
                    parts=tuple(own),
                )
            )
    return found


def _read_parts(session: Session, project_id: int, replica_ids: Sequence[int]) -> dict[int, list[Part]]:
    found: dict[int, list[Part]] = {}
    for chunk in chunks(replica_ids):
        query = select(ReplicaPart).where(ReplicaPart.project_id == project_id, ReplicaPart.replica_id.in_(chunk))
        for row in session.scalars(query.order_by(ReplicaPart.host)):
            found.setdefault(row.replica_id, []).append(Part(row.host, row.ranks, row.uri, row.bytes))
    return found


def _sum(parts: Sequence[Part]) -> int | None:
    sizes = [part.bytes for part in parts if part.bytes is not None]
    return sum(sizes) if sizes and len(sizes) == len(parts) else None


def weigh_copies(places: Sequence[Place], wanted: Wanted) -> tuple[Option, ...]:
    """Every copy with its verdict: the feasible ones first, the fastest of them before the others."""
    return tuple(sorted((_weigh(place, wanted) for place in places), key=_order))


def _weigh(place: Place, wanted: Wanted) -> Option:
    drilled = wanted.drilled.get(place.replica_id, UNDRILLED)
    time = restore_time(place.bytes, Tier(place.tier), measured=drilled.measured)
    why = _unusable(place, wanted) or _too_slow(place, time, wanted)
    named = replace(wanted, hosts=place.hosts or None)
    is_open = bool(why) and wanted.hosts is None and not (_unusable(place, named) or _too_slow(place, time, wanted))
    awaits = place.hosts if is_open else frozenset()
    return Option(place, not why, why or _remark(place, time, wanted), time, awaits)


def _unusable(place: Place, wanted: Wanted) -> str:
    if place.state == "partial":
        return "its parts do not cover every rank, or are of different saves"
    if place.state != "present":
        return "it was removed" if place.state == "removed" else "somebody else removed it"
    if place.verification == "corrupt":
        return "it is corrupt"
    if place.replica_id in wanted.suspect_replicas:
        return "it is suspect: attempts that loaded it failed alike"
    if fault := wanted.drilled.get(place.replica_id, UNDRILLED).fault:
        return fault
    return _out_of_reach(place, wanted) if place.tier == Tier.LOCAL else ""


def _out_of_reach(place: Place, wanted: Wanted) -> str:
    """Why the local disks that hold a copy cannot be counted on; '' where they can."""
    if not place.hosts:
        return "on whose disks it lies is not recorded"
    if wanted.hosts is None:
        return f"whether {still_running(place.hosts)} is not known; name the hosts that are there"
    if gone := place.hosts - wanted.hosts:
        verb = "is" if len(gone) == 1 else "are"
        return f"{listed(sorted(gone), SOME)} {verb} not among the hosts that are there"
    if place.parts and wanted.is_resharded:
        return "each host holds only what its own ranks saved, and the layout changes"
    if not place.parts and len(wanted.hosts) > 1:
        return f"only {listed(sorted(place.hosts), SOME)} can read it, and {len(wanted.hosts)} hosts are to load it"
    return ""


def _too_slow(place: Place, time: RestoreTime | None, wanted: Wanted) -> str:
    if wanted.rto_seconds is None:
        return ""
    limit = f"{minutes(wanted.rto_seconds)}"
    if time is None:
        return f"its size is unknown, so a restore within {limit} cannot be promised"
    if wanted.is_converted:
        return f"it must be converted first, which nobody has timed, so {limit} cannot be promised"
    if time.p95 <= wanted.rto_seconds:
        return ""
    rate = needed_rate(place.bytes or 0, wanted.rto_seconds)
    told = f"; {rate / 1e9:.2f} GB/s would be needed" if rate is not None else ""
    return f"a restore takes up to {minutes(time.p95)} (95 %), over {limit}{told}"


def _remark(place: Place, time: RestoreTime | None, wanted: Wanted) -> str:
    told = []
    if time is None:
        told.append("its size is unknown, and so is the time")
    if wanted.is_converted:
        told.append("the time of the conversion comes on top: nobody has measured it")
    if remark := wanted.drilled.get(place.replica_id, UNDRILLED).remark:
        told.append(remark)
    elif place.verification != "verified":
        told.append("its content was never verified")
    return "; ".join(told)


def _order(option: Option) -> tuple[bool, bool, float, bool, int, str]:
    place, time = option.place, option.time
    known = time.expected if time is not None else 0.0
    verified = place.verification == "verified"
    return not option.feasible, time is None, known, not verified, TIER_ORDER[Tier(place.tier)], place.uri


def minutes(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def about(seconds: float) -> str:
    """'about 12 s'; 'less than 1 s' is rough enough as it stands."""
    return f"about {minutes(seconds)}" if seconds >= 1 else minutes(seconds)


def still_running(hosts: Collection[str]) -> str:
    return f"{listed(sorted(hosts), SOME)} still {'runs' if len(hosts) == 1 else 'run'}"


def tier_in_words(tier: str) -> str:
    words: Mapping[str, str] = {
        Tier.LOCAL: "local disk",
        Tier.SHARED: "shared storage",
        Tier.OBJECT: "the object store",
    }
    return words[tier]
