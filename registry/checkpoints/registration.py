"""What a checkpoint is registered with, and the digest that says whether two registrations are the same.

The digest is one short hash per field, in the order of FIELDS, so that a conflict can name the fields that differ.
Defaults are filled and order inside sets does not count; state is left out, since committing is no change of content.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final

from registry import strict_json
from registry.db import to_micros
from registry.evals.scores import NewScore, text_of
from registry.snapshots import CodeSpec, DataSpec, LayoutSpec
from registry.types import CheckpointState, Kind, Presence, Relation

BYTES: Final = 8  # of hash per field
_NOT_GIVEN: Final = bytes(BYTES)
_SETS: Final = ("scores", "replicas", "parents")


@dataclass(frozen=True)
class PieceSpec:
    """A piece, and what says so. `position_evidence` (state or counter) belongs to data_position only."""

    presence: str = Presence.PRESENT
    evidence: str | None = None
    position_evidence: str | None = None
    moment: str | None = None


_NOTHING_SAID: Final = PieceSpec(Presence.UNKNOWN)  # as where the piece is left out


@dataclass(frozen=True)
class PartSpec:
    """What one host holds of a spread replica; `ranks` such as '0-3,8'."""

    host: str
    ranks: str
    uri: str
    bytes: int | None = None
    save_id: str | None = None


@dataclass(frozen=True)
class FileSpec:
    path: str
    bytes: int
    digest: str | None = None


@dataclass(frozen=True)
class ReplicaSpec:
    """One copy in one place, or spread over hosts as parts. Sizes in bytes."""

    uri: str
    tier: str
    host: str | None = None
    bytes: int | None = None
    file_count: int | None = None
    digest_algorithm: str | None = None
    digest: str | None = None
    manifest: Sequence[FileSpec] = ()
    parts: Sequence[PartSpec] = ()


@dataclass(frozen=True)
class ParentSpec:
    checkpoint_id: int
    relation: str = Relation.FINE_TUNED


@dataclass(frozen=True)
class Registration:
    """A checkpoint as its trainer describes it. Only `step` must be known; None is unknown, never zero."""

    step: int
    attempt: int | None = None  # None: the run's newest
    kind: str = Kind.ARCHIVE
    state: str = CheckpointState.COMMITTED
    saved_at: datetime | None = None
    tokens_seen: int | None = None
    epoch: float | None = None
    loss: float | None = None
    lr: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    scores: Sequence[NewScore] = ()
    data_version: DataSpec | None = None
    data_cursor: Any = None
    code: CodeSpec | None = None
    config: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] | None = None
    layout: LayoutSpec | None = None
    format: str | None = None
    format_version: str | None = None
    pieces: Mapping[str, PieceSpec] = field(default_factory=dict)
    replicas: Sequence[ReplicaSpec] = ()
    parents: Sequence[ParentSpec] = ()
    save_seconds: float | None = None
    stall_seconds: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    milestone: bool = False
    notes: str | None = None


# The fields of a registration's content, in the order of their hashes. Only ever append.
FIELDS: Final = tuple(
    name for name in (f.name for f in fields(Registration)) if name not in ("step", "attempt", "kind", "state")
)

_JSON: Final = frozenset(("metrics", "data_cursor", "config", "environment", "tags"))  # values that JSON can write


def content_digest(registration: Registration) -> bytes:
    """BYTES of hash for each of FIELDS."""
    said = {name: piece for name, piece in registration.pieces.items() if piece != _NOTHING_SAID}
    return b"".join([_hash(name, said if name == "pieces" else getattr(registration, name)) for name in FIELDS])


def digest_as_sent(registration: Registration) -> bytes:
    """The digest as it was when a member that is sent twice, and a piece said to be unknown, still counted.

    What was recorded then is the same when it is sent again."""
    return b"".join([_hash(name, getattr(registration, name), as_sets=False) for name in FIELDS])


def differing_fields(one: bytes, other: bytes) -> list[str]:
    """The names of the fields in which two digests differ."""
    width = len(FIELDS) * BYTES
    one, other = one.ljust(width, b"\0"), other.ljust(width, b"\0")
    spans = ((name, slice(at * BYTES, (at + 1) * BYTES)) for at, name in enumerate(FIELDS))
    return [name for name, span in spans if one[span] != other[span]]


def given_fields(digest: bytes) -> set[str]:
    """The fields that a registration gave."""
    return set(differing_fields(digest, b""))


def merged_digest(first: bytes, later: bytes) -> bytes:
    """The digest of a pending registration completed by its commit: the later one's fields, else the first one's."""
    pairs = zip(_parts(first), _parts(later), strict=True)
    return b"".join(new if new.strip(b"\0") else old for old, new in pairs)


def _parts(digest: bytes) -> Iterator[bytes]:
    padded = digest.ljust(len(FIELDS) * BYTES, b"\0")
    return (padded[at : at + BYTES] for at in range(0, len(padded), BYTES))


def _hash(name: str, value: Any, *, as_sets: bool = True) -> bytes:
    if not value and (value is None or value is False or not isinstance(value, int | float)):
        return _NOT_GIVEN  # zero is said; nothing, and nothing in a list or object, is not
    if name == "scores":
        value = sorted(map(text_of, value))
    elif name not in _JSON:
        value = _plain(value)
    if name in _SETS and as_sets:
        value = [each for each, _ in groupby(value)]
    return blake2b(strict_json.canonical(value).encode(), digest_size=BYTES).digest()


def _plain(value: Any) -> Any:
    """A value as JSON can write it: data classes as objects without what is unknown, sequences of them as sets."""
    if isinstance(value, datetime):
        return to_micros(value)
    if hasattr(value, "__dataclass_fields__"):
        known = ((name, _plain(getattr(value, name))) for name in value.__dataclass_fields__)
        return {name: item for name, item in known if item not in (None, {}, [])}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        if value and hasattr(value[0], "__dataclass_fields__"):
            items.sort(key=strict_json.canonical)
        return items
    return value
