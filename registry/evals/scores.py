"""Record eval scores: every result is kept, and one per (checkpoint, metric) counts now.

The score that counts is the one with the newest `evaluated_at`, then the last to arrive. One that says no time ranks
before every one that does, so that a late backfill never displaces a dated evaluation. A result that is said again on
purpose has arrived last: so a typo is put right by sending the right value, also where that was there before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import or_, select, tuple_, update
from sqlalchemy.orm import Session

from registry import outbox, strict_json, watching
from registry.changes import note_changes
from registry.db import split_number, to_micros
from registry.errors import FieldError, Invalid
from registry.evals.copies import spread_over_copies
from registry.evals.score_series import Series, SeriesKey, known_series, series_of
from registry.ids import new_ids, to_text
from registry.models import CurrentScore, Replica, Score
from registry.upsert import chunks, insert_all, insert_missing, send_rows


class ReplicaUnknown(Invalid):
    code = "replica-unknown"
    title = "The copy that was evaluated is not one of this checkpoint"

    @classmethod
    def at(cls, pointer: str, replica_id: int) -> "ReplicaUnknown":
        message = f"this checkpoint has no copy {to_text(replica_id)}"
        raised = f"A score names a copy that is unknown: {message}. GET the checkpoint to see its copies."
        return cls(raised, errors=[FieldError(pointer, message)])


class _Said(NamedTuple):
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


class NewScore(_Said):
    """One number: checkpoint x benchmark. The value may be non-finite: it is kept and shown, and never ranked.

    `metric` and `filter` are '' where there is none. What makes two scores comparable beside the named fields (hashes
    of template and tasks, judge, scaffold) is in `comparability`.

    A tuple, since a batch has 10,000 of them: a frozen data class takes several times as long to make.
    """

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
        kept: dict[str, int] = self.__dict__
        if "identity" not in kept:
            kept["identity"] = self._hash()
        return kept["identity"]

    def _hash(self) -> int:
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
    session: Session, project_id: int, scored: Sequence[tuple[int, NewScore]], *, on_purpose: bool = False
) -> int:
    """Keep scores of checkpoints (id, score); gives how many of them were new. Sending them again adds nothing.

    `on_purpose`: somebody says them now, other than a registration, a file or a tracker that is read again. One that is
    known, and that another of the same time of evaluation displaced, then counts again.
    """
    if not scored:
        return 0
    _require_replicas(session, project_id, scored)
    series = series_of(session, project_id, {score.series_key for _, score in scored})
    rows = _rows(project_id, scored, series)
    known = _known(session, project_id, list(rows))
    fresh = [row for key, row in rows.items() if key not in known]
    again = [row for key, row in rows.items() if key in known] if on_purpose else []
    again = _displaced(session, project_id, again, series) if again else []
    scored_ids = {row["checkpoint_id"] for row in (*fresh, *again)}
    if fresh:
        insert_missing(session, Score, fresh)
    for row in again:
        session.execute(update(Score).where(*_is(row)).values(arrival=row["arrival"]))
    if fresh or again:
        send_rows(session, CurrentScore, _current([*fresh, *again], series), _only_if_newer)
    note_changes(session, project_id, scored_ids)
    watching.scores_arrived(session, project_id, scored_ids)
    spread_over_copies(session, project_id, scored_ids)
    outbox.announce(session, project_id, "score.recorded", sorted(scored_ids))
    return len(fresh)


def record_first_scores(
    session: Session, project_id: int, scored: Sequence[tuple[int, NewScore]], series: Mapping[SeriesKey, Series]
) -> None:
    """Keep scores of checkpoints that the caller made in this transaction, whose series are there.

    They have no scores yet and no copies, nobody else sees them, and the caller announces them. Only inserts.
    """
    rows = _rows(project_id, scored, series)
    insert_all(session, Score, list(rows.values()))
    insert_all(session, CurrentScore, _current(rows.values(), series))
    note_changes(session, project_id, {key[0] for key in rows})


def _rows(
    project_id: int, scored: Sequence[tuple[int, NewScore]], series: Mapping[SeriesKey, Series]
) -> dict[tuple[int, int, int], dict[str, Any]]:
    """The rows of `score`, by (checkpoint, series, identity): what is said twice is one, that arrived last."""
    rows: dict[tuple[int, int, int], dict[str, Any]] = {}
    for arrival, (checkpoint_id, score) in zip(new_ids(len(scored)), scored, strict=True):
        series_id, identity = series[score.series_key].id, score.identity
        value, special = split_number(score.value)
        rows[checkpoint_id, series_id, identity] = {
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
        }
    return rows


def _current(rows: Iterable[Mapping[str, Any]], series: Mapping[SeriesKey, Series]) -> list[dict[str, Any]]:
    """The rows of `current_score` that rows of `score` make: the newest for each checkpoint and metric, by key."""
    metric_of = {each.id: each.metric_id for each in series.values()}
    newest: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        micros = _micros(row)
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


def series_ids(session: Session, project_id: int, scores: Sequence[NewScore]) -> dict[SeriesKey, int]:
    """The series of scores that are recorded, by key."""
    found = known_series(session, project_id, {score.series_key for score in scores})
    return {key: series.id for key, series in found.items()}


def _require_replicas(session: Session, project_id: int, scored: Sequence[tuple[int, NewScore]]) -> None:
    """Raises ReplicaUnknown where a score was measured on a copy that is not one of its checkpoint."""
    owners: dict[int, int] = {}
    for chunk in chunks({score.replica_id for _, score in scored if score.replica_id is not None}):
        query = select(Replica.id, Replica.checkpoint_id).where(Replica.project_id == project_id, Replica.id.in_(chunk))
        owners.update(session.execute(query).all())
    for at, (checkpoint_id, score) in enumerate(scored):
        if score.replica_id is not None and owners.get(score.replica_id) != checkpoint_id:
            raise ReplicaUnknown.at(f"/{at}/replica_id", score.replica_id)


def _known(session: Session, project_id: int, keys: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int, int], int]:
    """When each (checkpoint, series, digest) that is there arrived. A checkpoint made in this call has none, at little
    cost."""
    found: dict[tuple[int, int, int], int] = {}
    for chunk in chunks({key[0] for key in keys}):
        query = select(Score.checkpoint_id, Score.series_id, Score.digest, Score.arrival).where(
            Score.project_id == project_id, Score.checkpoint_id.in_(chunk)
        )
        found.update(((checkpoint, of, digest), arrival) for checkpoint, of, digest, arrival in session.execute(query))
    return found


def _displaced(
    session: Session, project_id: int, rows: Sequence[dict[str, Any]], series: Mapping[SeriesKey, Series]
) -> list[dict[str, Any]]:
    """Those of known results that do not count, since another one of the same time of evaluation came later."""
    metric_of = {each.id: each.metric_id for each in series.values()}
    counts: dict[tuple[int, int], Any] = {}
    for chunk in chunks({row["checkpoint_id"] for row in rows}):
        query = select(CurrentScore.__table__).where(
            CurrentScore.project_id == project_id, CurrentScore.checkpoint_id.in_(chunk)
        )
        counts.update(((each.checkpoint_id, each.score_metric_id), each) for each in session.execute(query))
    wanted = []
    for row in rows:
        now = counts.get((row["checkpoint_id"], metric_of[row["series_id"]]))
        same = ("series_id", "value", "special", "stderr")
        if now is not None and now.evaluated_micros == _micros(row) and any(getattr(now, k) != row[k] for k in same):
            wanted.append(row)
    return wanted


def _is(row: Mapping[str, Any]) -> list[Any]:
    return [getattr(Score, name) == row[name] for name in ("project_id", "checkpoint_id", "series_id", "digest")]


def _micros(row: Mapping[str, Any]) -> int:
    return 0 if row["evaluated_at"] is None else to_micros(row["evaluated_at"])
