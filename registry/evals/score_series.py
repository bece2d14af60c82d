"""Series of scores that may be compared with each other: found, or made with their metrics and benchmarks."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from registry import known_ids
from registry.db import Base, now
from registry.errors import FieldError, Invalid
from registry.ids import new_id
from registry.models import Benchmark, ScoreMetric, ScoreSeries
from registry.upsert import any_of, chunks, insert_missing

# Benchmark, metric, filter, n-shot, version, harness, its version, number of samples, and the further keys as JSON.
SeriesKey = tuple[str, str, str, int | None, str | None, str | None, str | None, int | None, str]

MAX_BENCHMARKS = 20_000  # of a project: each search reads their names

# Built once, over the plain table: a registration runs it each time.
_series = Base.metadata.tables[ScoreSeries.__tablename__].c
_BY_DIGEST = select(_series.digest, _series.id, _series.score_metric_id).where(
    _series.project_id == bindparam("project"), _series.digest.in_(bindparam("digests", expanding=True))
)


class TooManyBenchmarks(Invalid):
    code = "too-many-benchmarks"
    title = "A project cannot have that many benchmarks"


class Series(NamedTuple):
    id: int
    metric_id: int


def series_of(session: Session, project_id: int, keys: Collection[SeriesKey]) -> dict[SeriesKey, Series]:
    """The series of each key, made where it is missing. Raises TooManyBenchmarks."""
    found = known_series(session, project_id, keys)
    missing = sorted((key for key in keys if key not in found), key=_digest)
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
                    "digest": _digest(key),
                    "n_shot": key[3],
                    "version": key[4],
                    "harness": key[5],
                    "harness_version": key[6],
                    "n_samples": key[7],
                    "comparability": key[8],
                }
                for key in missing
            ],
        )
        found |= known_series(session, project_id, missing)
    return found


def known_series(session: Session, project_id: int, keys: Collection[SeriesKey]) -> dict[SeriesKey, Series]:
    """The series of those keys that have one."""
    digests = {_digest(key): key for key in keys}
    found: dict[bytes, Series] = known_ids.recall(session, ScoreSeries.__tablename__, project_id, digests)
    read: dict[bytes, Series] = {}
    for chunk in chunks(digest for digest in digests if digest not in found):
        rows = session.execute(_BY_DIGEST, {"project": project_id, "digests": chunk})
        read.update((row.digest, Series(row.id, row.score_metric_id)) for row in rows)
    known_ids.keep(session, ScoreSeries.__tablename__, project_id, read)
    return {digests[digest]: series for digest, series in (found | read).items()}


@lru_cache(maxsize=4_096)
def _digest(key: SeriesKey) -> bytes:
    return blake2b("\0".join(map(str, key)).encode(), digest_size=16).digest()


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
