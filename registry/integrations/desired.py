"""What a tracker should be told of a run: each committed checkpoint, and which are newest, best and aliased.

Compared by a digest with what it was told: so any number of events, lost ones too, end in the same state there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.aliases import list_aliases
from registry.evals.catalogue import catalogue
from registry.ids import from_text, to_text
from registry.incidents.suspicion import suspects_of
from registry.integrations.shapes import CheckpointPush, RunPush
from registry.models import Checkpoint, Replica, TrackerCheckpoint
from registry.overview.briefs import Brief, read_briefs
from registry.overview.scores import MetricName, metrics_of_run, scores_of_run
from registry.trackers.linking import LinkRow
from registry.trackers.settings import Tracking
from registry.types import CheckpointState, Direction
from registry.upsert import chunks


@dataclass(frozen=True)
class Desired:
    """`due`: the checkpoints of which the tracker does not know the newest state, with the digest of it."""

    due: Sequence[tuple[CheckpointPush, bytes]]
    run: RunPush
    total: int


def desired_state(
    session: Session, link: LinkRow, tracking: Tracking, base_url: str, pushed_run: Mapping[str, str]
) -> Desired:
    """What the tracker of a link should know now, as far as it does not."""
    told = {
        row.checkpoint_id: row
        for row in session.scalars(
            select(TrackerCheckpoint).where(
                TrackerCheckpoint.project_id == link.project_id, TrackerCheckpoint.link_id == link.id
            )
        )
    }
    own = (Checkpoint.project_id == link.project_id, Checkpoint.run_id == link.run_id)
    ids = session.scalars(select(Checkpoint.id).where(*own, Checkpoint.state != CheckpointState.PENDING))
    briefs = read_briefs(session, list(ids))
    wanted = [each for each in briefs.values() if each.state == CheckpointState.COMMITTED or each.id in told]
    gone = _gone(session, link.project_id, wanted)
    pushes = _pushes(session, link, wanted, gone, base_url)
    due = []
    for push in pushes:
        digest = digest_of(push)
        row = told.get(from_text(push.checkpoint_id) or 0)
        if row is None or row.digest != digest:
            due.append((replace(push, external_id=None if row is None else row.external_id), digest))
    due.sort(key=lambda pair: (pair[0].attempt, pair[0].step, pair[0].kind))
    return Desired(due, _run_push(session, link, tracking, wanted, gone, base_url, pushed_run), len(pushes))


def digest_of(push: CheckpointPush) -> bytes:
    said = asdict(push) | {"external_id": None, "saved_at": push.saved_at.isoformat()}
    return blake2b(strict_json.canonical(said).encode(), digest_size=16).digest()


def _pushes(
    session: Session, link: LinkRow, wanted: Sequence[Brief], gone: Collection[int], base_url: str
) -> list[CheckpointPush]:
    aliases: dict[int, list[str]] = {}
    for alias in list_aliases(session, [link.project_id]):
        aliases.setdefault(alias.checkpoint_id, []).append(alias.name)
    scores: dict[int, dict[str, float]] = {}
    names = {metric.id: _text(metric) for metric in metrics_of_run(session, link.project_id, link.run_id)}
    for score in scores_of_run(session, link.project_id, link.run_id):
        if score.value is not None:
            scores.setdefault(score.checkpoint_id, {})[names[score.metric_id]] = score.value
    suspect = suspects_of(session, [each.id for each in wanted])
    digests = _digests(session, link.project_id, [each.id for each in wanted])
    return [
        CheckpointPush(
            checkpoint_id=to_text(each.id),
            name=_name(each),
            step=each.step,
            attempt=each.attempt,
            kind=each.kind,
            path=each.copies.uri,
            resumability=each.resumability.value,
            digest=digests.get(each.id),
            bytes=each.copies.bytes,
            saved_at=each.saved_at,
            loss=each.loss,
            scores=scores.get(each.id, {}),
            aliases=tuple(sorted(aliases.get(each.id, ()))),
            verdict="deleted" if each.id in gone else _verdict(each, each.id in suspect),
            link=f"{base_url}/checkpoints/{to_text(each.id)}",
        )
        for each in wanted
    ]


def _gone(session: Session, project_id: int, briefs: Sequence[Brief]) -> set[int]:
    """What was deleted, and what somebody removed every copy of; one of which no copy was ever recorded is not gone."""
    gone = {each.id for each in briefs if each.state == CheckpointState.DELETED}
    there = func.count().filter(Replica.state.in_(("present", "partial")))
    for chunk in chunks(each.id for each in briefs):
        own = (Replica.project_id == project_id, Replica.checkpoint_id.in_(chunk))
        gone.update(
            session.scalars(
                select(Replica.checkpoint_id).where(*own).group_by(Replica.checkpoint_id).having(there == 0)
            )
        )
    return gone


def _verdict(brief: Brief, suspect: bool) -> str:
    not_finite = brief.loss is not None and brief.loss - brief.loss != 0
    return "suspect" if suspect or not_finite else "ok"


def _name(brief: Brief) -> str:
    attempt = f"-attempt-{brief.attempt}" if brief.attempt > 1 else ""
    return f"checkpoint-{brief.step}{attempt}" + ("-light" if brief.kind == "light" else "")


def _text(metric: MetricName) -> str:
    return ".".join(part for part in (metric.benchmark, metric.metric, metric.filter) if part)


def _digests(session: Session, project_id: int, ids: Sequence[int]) -> dict[int, str]:
    """The digest of each checkpoint's first copy that has one."""
    found: dict[int, str] = {}
    for chunk in chunks(ids):
        query = select(Replica).where(Replica.project_id == project_id, Replica.checkpoint_id.in_(chunk))
        for row in session.scalars(query.where(Replica.digest.is_not(None)).order_by(Replica.id)):
            found.setdefault(row.checkpoint_id, f"{row.digest_algorithm}:{row.digest}")
    return found


def _run_push(
    session: Session,
    link: LinkRow,
    tracking: Tracking,
    wanted: Sequence[Brief],
    gone: Collection[int],
    base_url: str,
    before: Mapping[str, str],
) -> RunPush:
    by_id = {each.id: each for each in wanted if each.state == CheckpointState.COMMITTED and not each.superseded}
    live = [each for each in by_id.values() if each.id not in gone]
    values: dict[str, str | None] = dict.fromkeys(before)
    if live:
        newest = max(live, key=lambda each: (each.attempt, each.step, each.kind))
        values["newest"] = _line(newest, base_url)
    best = _best(session, link, tracking, {each.id: each for each in live})
    if best is not None:
        values["best"] = f"{_line(best, base_url)} by {tracking.best_by}"
    for alias in list_aliases(session, [link.project_id]):
        if alias.checkpoint_id in by_id:
            name = alias.name if alias.name not in ("newest", "best", "checkpoint") else f"alias.{alias.name}"
            values[name] = _line(by_id[alias.checkpoint_id], base_url)
    return RunPush({key: value for key, value in values.items() if before.get(key) != value})


def _line(brief: Brief, base_url: str) -> str:
    place = f", {brief.copies.uri}" if brief.copies.uri else ""
    return f"step {brief.step}, attempt {brief.attempt}{place}, {base_url}/checkpoints/{to_text(brief.id)}"


def _best(session: Session, link: LinkRow, tracking: Tracking, live: Mapping[int, Brief]) -> Brief | None:
    """By the project's chosen score in its benchmark's direction; of equal ones the earliest, of finite ones only."""
    if tracking.best_by is None:
        return None
    metric = next(
        (m for m in metrics_of_run(session, link.project_id, link.run_id) if _text(m) == tracking.best_by), None
    )
    if metric is None:
        return None
    figures = [
        (score.value, live[score.checkpoint_id])
        for score in scores_of_run(session, link.project_id, link.run_id, [metric.id])
        if score.checkpoint_id in live and score.value is not None and score.value - score.value == 0
    ]
    lower = catalogue().for_metric(metric.benchmark, metric.metric, metric.filter).direction is Direction.LOWER
    ranked = [((-value if lower else value, -each.attempt, -each.step), each) for value, each in figures]
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None
