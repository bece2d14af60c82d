"""What is kept of a search: its question and the scores that were posted for it. All else follows from these."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.errors import NotFound
from registry.ids import new_id, to_text
from registry.models import Bisect, BisectObservation
from registry.upsert import insert_missing


class BisectNotFound(NotFound):
    code = "bisect-not-found"
    title = "There is no such search"


@dataclass(frozen=True, slots=True)
class Target:
    """What fell: a benchmark (with metric and filter where one is meant), or a capability."""

    benchmark: str | None = None
    metric: str | None = None
    filter: str | None = None
    capability: str | None = None

    @property
    def name(self) -> str:
        return self.capability or ".".join(filter(None, (self.benchmark, self.metric, self.filter)))


@dataclass(frozen=True, slots=True)
class Levels:
    """On the common scale; `drop` is what items are reckoned from, as a fraction of the benchmark's own scale."""

    good: float
    bad: float
    good_stderr: float
    bad_stderr: float
    drop: float
    discordance: float


def keep_bisect(
    session: Session,
    project_id: int,
    ends: tuple[int, int],
    target: Target,
    levels: Levels,
    path: Sequence[int],
    actor: str,
) -> tuple[int, bool]:
    """(id, whether it is new). The same two ends and target are the same search: it goes on where it was."""
    digest = _digest(ends, target)
    found = _known(session, project_id, digest)
    if found is not None:
        return found, False
    identity = new_id()
    row = {
        "id": identity,
        "project_id": project_id,
        "digest": digest,
        "good_id": ends[0],
        "bad_id": ends[1],
        "benchmark": target.benchmark,
        "metric": target.metric,
        "filter": target.filter,
        "capability": target.capability,
        "good_level": levels.good,
        "bad_level": levels.bad,
        "good_stderr": levels.good_stderr,
        "bad_stderr": levels.bad_stderr,
        "drop_size": levels.drop,
        "discordance": levels.discordance,
        "path": strict_json.pack(strict_json.canonical([to_text(each) for each in path])),
        "created_by": actor,
        "created_at": now(),
    }
    insert_missing(session, Bisect, [row])
    kept = _known(session, project_id, digest)
    assert kept is not None
    return kept, kept == identity


def find_same(session: Session, project_id: int, ends: tuple[int, int], target: Target) -> int | None:
    """The id of the search with this question, where there is one."""
    return _known(session, project_id, _digest(ends, target))


def _digest(ends: tuple[int, int], target: Target) -> bytes:
    said = [*ends, target.benchmark, target.metric, target.filter, target.capability]
    return blake2b(strict_json.canonical(said).encode(), digest_size=16).digest()


def _known(session: Session, project_id: int, digest: bytes) -> int | None:
    return session.scalar(select(Bisect.id).where(Bisect.project_id == project_id, Bisect.digest == digest))


def read_bisect(session: Session, bisect_id: int) -> Bisect:
    row = session.scalar(select(Bisect).where(Bisect.id == bisect_id))
    if row is None:
        raise BisectNotFound(f"There is no search {to_text(bisect_id)}. POST /api/v1/bisects starts one.")
    return row


def target_of(row: Bisect) -> Target:
    return Target(row.benchmark, row.metric, row.filter, row.capability)


def project_of_bisect(session: Session, bisect_id: int) -> int:
    return read_bisect(session, bisect_id).project_id


def keep_observation(
    session: Session,
    row: Bisect,
    checkpoint_id: int,
    *,
    value: float,
    stderr: float | None,
    n_samples: int | None,
    actor: str,
) -> None:
    """Keep a score that was measured for the search; the same again adds nothing, and is the newest word."""
    said = blake2b(f"{value!r} {stderr!r} {n_samples}".encode(), digest_size=8).digest()
    digest, arrival = int.from_bytes(said, "big") >> 1, new_id()
    insert_missing(
        session,
        BisectObservation,
        [
            {
                "project_id": row.project_id,
                "bisect_id": row.id,
                "checkpoint_id": checkpoint_id,
                "digest": digest,
                "value": value,
                "stderr": stderr,
                "n_samples": n_samples,
                "arrival": arrival,
                "created_by": actor,
                "created_at": now(),
            }
        ],
    )

    own = (BisectObservation.project_id == row.project_id, BisectObservation.bisect_id == row.id)
    session.execute(
        update(BisectObservation)
        .where(*own, BisectObservation.checkpoint_id == checkpoint_id, BisectObservation.digest == digest)
        .values(arrival=arrival)
    )


def observations_of(session: Session, row: Bisect) -> list[BisectObservation]:
    query = (
        select(BisectObservation)
        .where(BisectObservation.project_id == row.project_id, BisectObservation.bisect_id == row.id)
        .order_by(BisectObservation.arrival)
    )
    return list(session.scalars(query))
