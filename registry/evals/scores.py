"""Record eval scores: every result is kept, and one per (checkpoint, metric) counts now.

The score that counts is the one with the newest `evaluated_at`, then the last to arrive. One that says no time ranks
before every one that does, so that a late backfill never displaces a dated evaluation.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, or_, select, tuple_
from sqlalchemy.orm import Session

from registry import known_ids, outbox, strict_json, watching
from registry.changes import note_changes
from registry.db import Base, now, split_number, to_micros
from registry.errors import FieldError, Invalid
from registry.evals.copies import spread_over_copies
from registry.ids import new_id, new_ids, to_text
from registry.models import Benchmark, CurrentScore, Replica, Score, ScoreMetric, ScoreSeries
from registry.upsert import any_of, chunks, insert_all, insert_missing, send_rows

# Built once, over the plain table: a registration runs it each time.
_series = Base.metadata.tables[ScoreSeries.__tablename__].c
_SERIES_BY_DIGEST = select(_series.digest, _series.id, _series.score_metric_id).where(
    _series.project_id == bindparam("project"), _series.digest.in_(bindparam("digests", expanding=True))
)


SeriesKey = tuple[str, str, str, int | None, str | None, str | None, str | None, int | None, str]


MAX_BENCHMARKS = 20_000  # of a project: each search reads their names


class TooManyBenchmarks(Invalid):
    code = "too-many-benchmarks"
    title = "A project cannot have that many benchmarks"


class ReplicaUnknown(Invalid):
    code = "replica-unknown"
    title = "The copy that was evaluated is not one of this checkpoint"

    @classmethod
    def at(cls, pointer: str, replica_id: int) -> "ReplicaUnknown":
        message = f"this checkpoint has no copy {to_text(replica_id)}"
        raised = f"A score names a copy that is unknown: {message}. GET the checkpoint to see its copies."
        return cls(raised, errors=[FieldError(pointer, message)])


class NewScore(NamedTuple):
    """One number: checkpoint x benchmark. The value may be non-finite: it is kept and shown, and never ranked.

    `metric` and `filter` are '' where there is none. What makes two scores comparable beside the named fields (hashes
    of template and tasks, judge, scaffold) is in `comparability`.

    A tuple, since a batch has 10,000 of them: a frozen data class takes several times as long to make.
    """

    benchmark: str
    value: float
    metric: str = ""
    filter: str = ""
    stderr: float | None = None
    n_samples: int | None = None
    n_shot: int | None = None
    version: str | None = None
    harness: str | None = None
    harness_version: str | None = None
    evaluated_at: datetime | None = None
    comparability: Mapping[str, Any] = MappingProxyType({})
    replica_id: int | None = None

    @property
    def series_key(self) -> SeriesKey:
        """What it may be compared within: its metric, and every condition it was evaluated under."""
        return (
            self.benchmark,
            self.metric,
            self.filter,
            self.n_shot,
            self.version,
            self.harness,
            self.harness_version,
            self.n_samples,
            strict_json.canonical(self.comparability) if self.comparability else "{}",
        )

    @property
    def identity(self) -> int:
        """63 bits over what makes a result itself: the value, its error, when, and on which copy."""
        micros = None if self.evaluated_at is None else to_micros(self.evaluated_at)
        said = f"{float(self.value)!r} {self.stderr!r} {micros} {self.replica_id}"
        return int.from_bytes(blake2b(said.encode(), digest_size=8).digest(), "big") >> 1


def text_of(score: NewScore) -> str:
    """All that a score says, as one text; no two different scores have the same."""
    return f"{_key_text(score.series_key)}\0{score.identity}"


@lru_cache(maxsize=4_096)
def _key_text(key: SeriesKey) -> str:
    return "\0".join(map(str, key))


def split_metric(metric: str) -> tuple[str, str]:
    """A harness's `metric,filter` at its last comma; the filter `none` is none: 'acc,none' is ('acc', '')."""
    name, comma, filter_name = metric.rpartition(",")
    if not comma:
        return metric, ""
    return name, "" if filter_name == "none" else filter_name


def record_scores(
    session: Session, project_id: int, scored: Sequence[tuple[int, NewScore]], *, fresh_checkpoints: bool = False
) -> int:
    """Keep scores of checkpoints (id, score); gives how many of them were new. Sending them again adds nothing.

    `fresh_checkpoints`: the caller made them in this transaction. They have no scores yet and no copies, nobody else
    sees them, and the caller announces them.
    """
    if not scored:
        return 0
    _require_replicas(session, project_id, scored)
    series = _series_ids(session, project_id, [score for _, score in scored])
    rows: dict[tuple[int, int, int], dict[str, Any]] = {}
    for arrival, (checkpoint_id, score) in zip(new_ids(len(scored)), scored, strict=True):
        series_id, _ = series[score.series_key]
        value, special = split_number(score.value)
        identity = score.identity
        rows.setdefault(
            (checkpoint_id, series_id, identity),
            {
                "project_id": project_id,
                "checkpoint_id": checkpoint_id,
                "series_id": series_id,
                "digest": identity,
                "value": value,
                "special": special,
                "stderr": score.stderr,
                "evaluated_at": score.evaluated_at,
                "arrival": arrival,
                "replica_id": score.replica_id,
            },
        )
    metric_of = dict(series.values())
    if fresh_checkpoints:
        insert_all(session, Score, list(rows.values()))
        insert_all(session, CurrentScore, _current(rows.values(), metric_of))
        note_changes(session, project_id, {key[0] for key in rows})
        return len(rows)
    known = _known(session, project_id, list(rows))
    fresh = [row for key, row in rows.items() if key not in known]
    scored_ids = {row["checkpoint_id"] for row in fresh}
    if fresh:
        insert_missing(session, Score, fresh)
        send_rows(session, CurrentScore, _current(fresh, metric_of), _only_if_newer)
    note_changes(session, project_id, scored_ids)
    watching.scores_arrived(session, project_id, scored_ids)
    spread_over_copies(session, project_id, scored_ids)
    outbox.announce(session, project_id, "score.recorded", sorted(scored_ids))
    return len(fresh)


def _current(rows: Iterable[Mapping[str, Any]], metric_of: Mapping[int, int]) -> list[dict[str, Any]]:
    """The rows of `current_score` that rows of `score` make: the newest for each checkpoint and metric, by key."""
    newest: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        micros = 0 if row["evaluated_at"] is None else to_micros(row["evaluated_at"])
        key = row["checkpoint_id"], metric_of[row["series_id"]]
        before = newest.get(key)
        if before is None or (micros, row["arrival"]) > (before["evaluated_micros"], before["arrival"]):
            newest[key] = {
                "project_id": row["project_id"],
                "checkpoint_id": row["checkpoint_id"],
                "score_metric_id": key[1],
                "series_id": row["series_id"],
                "value": row["value"],
                "special": row["special"],
                "stderr": row["stderr"],
                "evaluated_micros": micros,
                "arrival": row["arrival"],
                "via_checkpoint_id": None,
            }
    return [newest[key] for key in sorted(newest)]


def _only_if_newer(statement: Any) -> Any:
    new, old = statement.excluded, CurrentScore
    columns = ("series_id", "value", "special", "stderr", "evaluated_micros", "arrival", "via_checkpoint_id")
    newer = tuple_(new.evaluated_micros, new.arrival) > tuple_(old.evaluated_micros, old.arrival)
    return statement.on_conflict_do_update(
        index_elements=["project_id", "checkpoint_id", "score_metric_id"],
        set_={name: new[name] for name in columns},
        where=or_(old.via_checkpoint_id.is_not(None), newer),
    )


def _require_replicas(session: Session, project_id: int, scored: Sequence[tuple[int, NewScore]]) -> None:
    """Raises ReplicaUnknown where a score was measured on a copy that is not one of its checkpoint."""
    owners: dict[int, int] = {}
    for chunk in chunks({score.replica_id for _, score in scored if score.replica_id is not None}):
        query = select(Replica.id, Replica.checkpoint_id).where(Replica.project_id == project_id, Replica.id.in_(chunk))
        owners.update(session.execute(query).all())
    for at, (checkpoint_id, score) in enumerate(scored):
        if score.replica_id is not None and owners.get(score.replica_id) != checkpoint_id:
            raise ReplicaUnknown.at(f"/{at}/replica_id", score.replica_id)


def _series_digest(key: SeriesKey) -> bytes:
    return blake2b("\0".join(map(str, key)).encode(), digest_size=16).digest()


def _series_ids(session: Session, project_id: int, scores: Sequence[NewScore]) -> dict[SeriesKey, tuple[int, int]]:
    """The (series id, metric id) of every score's series, made where missing."""
    digests = {key: _series_digest(key) for key in {score.series_key for score in scores}}
    found = _known_series(session, project_id, list(digests.values()))
    missing = [key for key, digest in digests.items() if digest not in found]
    if missing:
        metrics = _metric_ids(session, project_id, [key[:3] for key in missing])
        insert_missing(
            session,
            ScoreSeries,
            [
                {
                    "id": new_id(),
                    "project_id": project_id,
                    "score_metric_id": metrics[key[:3]],
                    "digest": digests[key],
                    "n_shot": key[3],
                    "version": key[4],
                    "harness": key[5],
                    "harness_version": key[6],
                    "n_samples": key[7],
                    "comparability": key[8],
                }
                for key in sorted(missing, key=lambda key: digests[key])
            ],
        )
        found |= _known_series(session, project_id, [digests[key] for key in missing])
    return {key: found[digest] for key, digest in digests.items()}


def series_ids(session: Session, project_id: int, scores: Sequence[NewScore]) -> dict[SeriesKey, int]:
    """The series of scores that are recorded, by key."""
    digests = {key: _series_digest(key) for key in {score.series_key for score in scores}}
    found = _known_series(session, project_id, list(digests.values()))
    return {key: found[digest][0] for key, digest in digests.items() if digest in found}


def _known_series(session: Session, project_id: int, digests: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
    known: dict[bytes, tuple[int, int]] = known_ids.recall(session, ScoreSeries.__tablename__, project_id, digests)
    found: dict[bytes, tuple[int, int]] = {}
    for chunk in chunks(digest for digest in digests if digest not in known):
        rows = session.execute(_SERIES_BY_DIGEST, {"project": project_id, "digests": chunk})
        found.update((row.digest, (row.id, row.score_metric_id)) for row in rows)
    known_ids.keep(session, ScoreSeries.__tablename__, project_id, found)
    return known | found


def _metric_ids(
    session: Session, project_id: int, keys: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], int]:
    benchmarks = _benchmark_ids(session, project_id, sorted({key[0] for key in keys}))
    wanted = {(benchmarks[benchmark], metric, name): (benchmark, metric, name) for benchmark, metric, name in keys}
    insert_missing(
        session,
        ScoreMetric,
        [
            {"id": new_id(), "project_id": project_id, "benchmark_id": key[0], "metric": key[1], "filter": key[2]}
            for key in sorted(wanted)
        ],
    )
    found: dict[tuple[str, str, str], int] = {}
    for chunk in chunks(wanted):
        query = select(ScoreMetric).where(
            ScoreMetric.project_id == project_id,
            any_of((ScoreMetric.benchmark_id, ScoreMetric.metric, ScoreMetric.filter), chunk),
        )
        for row in session.scalars(query):
            found[wanted[row.benchmark_id, row.metric, row.filter]] = row.id
    return found


def _benchmark_ids(session: Session, project_id: int, names: Sequence[str]) -> dict[str, int]:
    found = _known_benchmarks(session, project_id, names)
    fresh = [name for name in names if name not in found]
    if not fresh:
        return found
    taken = session.scalar(select(func.count()).select_from(Benchmark).where(Benchmark.project_id == project_id)) or 0
    if taken + len(fresh) > MAX_BENCHMARKS:
        message = f"{len(fresh)} more benchmarks, beside {taken}; a project has at most {MAX_BENCHMARKS}"
        raise TooManyBenchmarks(f"That would make {message}.", errors=[FieldError("/benchmark", message)])
    rows = [{"id": new_id(), "project_id": project_id, "name": name, "created_at": now()} for name in fresh]
    insert_missing(session, Benchmark, rows)
    return found | _known_benchmarks(session, project_id, fresh)


def _known_benchmarks(session: Session, project_id: int, names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for chunk in chunks(names):
        query = select(Benchmark.name, Benchmark.id).where(
            Benchmark.project_id == project_id, Benchmark.name.in_(chunk)
        )
        found.update(session.execute(query).all())
    return found


def _known(session: Session, project_id: int, keys: Sequence[tuple[int, int, int]]) -> set[tuple[int, int, int]]:
    """Which (checkpoint, series, digest) are there already. A checkpoint made in this call has none, at little cost."""
    found: set[tuple[int, int, int]] = set()
    for chunk in chunks({key[0] for key in keys}):
        query = select(Score.checkpoint_id, Score.series_id, Score.digest).where(
            Score.project_id == project_id, Score.checkpoint_id.in_(chunk)
        )
        found.update(session.execute(query).all())
    return found
