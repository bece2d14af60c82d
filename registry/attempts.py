"""Attempts: each execution of a run between two starts, and which steps are still live.

Going back in steps is always a new attempt, which says what it loaded. What an older attempt saved beyond that
point is superseded: kept, shown, and no longer on the path that the run went on from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import snapshots, strict_json, watching
from registry.db import now
from registry.errors import Conflict, FieldError, NotFound
from registry.ids import new_id, to_text
from registry.incidents import closing, ledger, pulse
from registry.live_path import recompute_live
from registry.models import Attempt, AttemptSkip, Checkpoint, Run
from registry.resume_points import BadResumePoint, ResumePoint, newest_number, resolve
from registry.runs import RunNotFound
from registry.snapshots import LayoutSpec
from registry.types import MAX_ATTEMPT, CheckpointState
from registry.upsert import insert_all, insert_missing


class AttemptNotFound(NotFound):
    code = "attempt-not-found"
    title = "No such attempt"


class AttemptWouldRestart(Conflict):
    code = "attempt-would-restart"
    title = "This attempt would silently start the run over"


@dataclass(frozen=True)
class AttemptSpec:
    """What is known about an attempt when it starts. `skip` holds ranges of steps whose data is left out."""

    key: str | None = None
    resumed_from: ResumePoint | None = None
    restart: bool = False
    command: str | None = None
    reason: str | None = None
    changes: str | None = None
    skip: Sequence[tuple[int, int]] = ()
    config: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] | None = None
    layout: LayoutSpec | None = None
    nodes: Sequence[str] = ()
    started_at: datetime | None = None


@dataclass(frozen=True)
class AttemptRow:
    """An attempt as it is recorded."""

    id: int
    run_id: int
    number: int
    key: str | None
    state: str
    resumed_from: ResumePoint | None
    restart: bool
    live_through_step: int | None
    command: str | None
    reason: str | None
    changes: str | None
    skip: Sequence[tuple[int, int]] = field(default=())
    nodes: Sequence[str] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    heartbeat_at: datetime | None = None
    heartbeat_step: int | None = None
    not_applied: Sequence[str] = ()  # fields that opening it again said otherwise


def open_attempt(session: Session, run_id: int, spec: AttemptSpec) -> tuple[AttemptRow, bool]:
    """The attempt of this key, or the run's next one, and whether it was made just now.

    Raises RunNotFound, BadResumePoint, or AttemptWouldRestart where the run has committed checkpoints and the
    caller neither says what it loaded nor that it means to start over.
    """
    run = _lock_run(session, run_id)
    if spec.key is not None:
        known = session.scalars(
            select(Attempt).where(
                Attempt.project_id == run.project_id, Attempt.run_id == run_id, Attempt.key == spec.key
            )
        ).one_or_none()
        if known is not None:
            not_applied = _complete(session, run, known, spec)
            return replace(_read(session, [known])[0], not_applied=not_applied), False
    gap = _awaited_number(session, run) if spec.resumed_from is None and not spec.restart else None
    if gap is None and spec.resumed_from is None and not spec.restart:
        _refuse_silent_restart(session, run)
    point = resolve(session, run, spec.resumed_from)
    number = gap or 1 + max(newest_number(session, run), _own_number(point))
    if number > MAX_ATTEMPT:
        message = f"attempts are numbered up to {MAX_ATTEMPT}"
        raise BadResumePoint(f"No attempt can follow that: {message}.", errors=[FieldError("/resumed_from", message)])
    attempt = _insert(session, run, number, spec, point)
    recompute_live(session, run.project_id, run.id)
    watching.path_changed(session, run.project_id, run.id)
    return _read(session, [attempt])[0], True


def first_attempts(session: Session, project_id: int, run_ids: Sequence[int]) -> None:
    """Attempt 1 of each run that has none, for callers that do not speak of attempts."""
    insert_missing(session, Attempt, [_plain(project_id, run_id, 1) for run_id in run_ids])


def plain_attempts(session: Session, project_id: int, keys: Sequence[tuple[int, int]]) -> None:
    """The attempts (run id, number) of a backfill, where they are missing."""
    insert_missing(session, Attempt, [_plain(project_id, run_id, number) for run_id, number in keys])
    for run_id in {run_id for run_id, _ in keys}:
        recompute_live(session, project_id, run_id)


def amend_attempt(session: Session, run_id: int, number: int, changes: Mapping[str, Any]) -> AttemptRow:
    """Set what the merge patch names: state, ended_at, exit_code, heartbeat_at, step, nodes.

    A heartbeat that is older than the one recorded changes nothing. Raises RunNotFound, AttemptNotFound.
    """
    run = _lock_run(session, run_id)
    attempt = session.scalars(select(Attempt).where(*_of_run(run), Attempt.number == number)).one_or_none()
    if attempt is None:
        raise AttemptNotFound(f"Run {to_text(run_id)} has no attempt {number}.")
    has_failed = changes.get("state") == "failed" and attempt.state != "failed"
    for name in ("state", "ended_at", "exit_code"):
        if name in changes:
            setattr(attempt, name, changes[name])
    if "nodes" in changes:
        attempt.nodes = strict_json.canonical(list(changes["nodes"] or ()))
    said: datetime | None = changes.get("heartbeat_at")
    beat = None if said is None else min(said, now())  # of a clock that is ahead nobody could be lost
    if beat is not None and (attempt.heartbeat_at is None or beat >= attempt.heartbeat_at):
        attempt.heartbeat_at = beat
    if changes.get("step") is not None:
        attempt.heartbeat_step = max(changes["step"], attempt.heartbeat_step or 0)
    session.flush()
    if beat is not None or changes.get("step") is not None:
        pulse.note_heartbeat(session, attempt, beat or now(), changes.get("step"))
    if has_failed:
        ledger.note_failure(session, attempt)
    closing.settle_open(session, run.project_id, [run.id])
    return _read(session, [attempt])[0]


def get_attempt(session: Session, run_id: int, number: int) -> AttemptRow:
    """Raises RunNotFound, AttemptNotFound."""
    rows = [row for row in list_attempts(session, run_id) if row.number == number]
    if not rows:
        raise AttemptNotFound(f"Run {to_text(run_id)} has no attempt {number}.")
    return rows[0]


def list_attempts(session: Session, run_id: int) -> list[AttemptRow]:
    """Every attempt of a run, in order. Raises RunNotFound."""
    run = session.get(Run, run_id)
    if run is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}.")
    return _read(session, list(session.scalars(select(Attempt).where(*_of_run(run)).order_by(Attempt.number))))


def _own_number(point: ResumePoint | None) -> int:
    """The number of the attempt of this run that a resume point names; 0 where it names none."""
    return point.attempt or 0 if point is not None and point.run is None else 0


def _awaited_number(session: Session, run: Run) -> int | None:
    """1 where later attempts are there but not the first, which alone loaded nothing: its record arrives only now."""
    oldest = session.scalar(select(func.min(Attempt.number)).where(*_of_run(run)))
    return 1 if oldest is not None and oldest > 1 else None


def _lock_run(session: Session, run_id: int) -> Run:
    run = session.scalars(select(Run).where(Run.id == run_id).with_for_update()).one_or_none()
    if run is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}.")
    return run


def _of_run(run: Run) -> tuple[Any, Any]:
    return Attempt.project_id == run.project_id, Attempt.run_id == run.id


def _refuse_silent_restart(session: Session, run: Run) -> None:
    newest = session.execute(
        select(Checkpoint.id, Checkpoint.step, Checkpoint.attempt_number)
        .where(
            Checkpoint.project_id == run.project_id,
            Checkpoint.run_id == run.id,
            Checkpoint.state == CheckpointState.COMMITTED,
        )
        .order_by(Checkpoint.attempt_number.desc(), Checkpoint.step.desc())
        .limit(1)
    ).one_or_none()
    if newest is not None:
        raise AttemptWouldRestart(
            f"Run {run.name!r} already has committed checkpoints, the newest at attempt {newest.attempt_number}, "
            f"step {newest.step} ({to_text(newest.id)}). Say what this attempt loaded in 'resumed_from', "
            'or send "restart": true to start over on purpose, or start a new run.',
            newest_checkpoint=to_text(newest.id),
        )


def _insert(session: Session, run: Run, number: int, spec: AttemptSpec, point: ResumePoint | None) -> Attempt:
    (config_id,) = snapshots.keep_configs(session, run.project_id, [spec.config])
    (environment_id,) = snapshots.keep_environments(session, run.project_id, [spec.environment])
    (layout_id,) = snapshots.keep_layouts(session, run.project_id, [spec.layout])
    attempt = Attempt(**_plain(run.project_id, run.id, number))
    attempt.key = spec.key
    attempt.restart = spec.restart or (point is None and number > 1)  # it had nothing to load
    if point is not None:
        _set_point(attempt, point)
    attempt.command, attempt.reason, attempt.changes = spec.command, spec.reason, spec.changes
    attempt.config_id, attempt.environment_id, attempt.layout_id = config_id, environment_id, layout_id
    attempt.nodes = strict_json.canonical(list(spec.nodes)) if spec.nodes else None
    attempt.started_at = spec.started_at
    session.add(attempt)
    session.flush()
    _insert_skips(session, attempt, spec)
    return attempt


def _set_point(attempt: Attempt, point: ResumePoint) -> None:
    attempt.resumed_from_checkpoint_id = point.checkpoint_id
    attempt.resumed_from_run = point.run
    attempt.resumed_from_attempt = point.attempt
    attempt.resumed_from_step = point.step
    attempt.resumed_from_kind = point.kind


def _insert_skips(session: Session, attempt: Attempt, spec: AttemptSpec) -> None:
    rows = [
        {"project_id": attempt.project_id, "attempt_id": attempt.id, "from_step": start, "to_step": end}
        for start, end in _ranges(spec)
    ]
    insert_all(session, AttemptSkip, rows)


def _ranges(spec: AttemptSpec) -> list[tuple[int, int]]:
    """Of ranges that start alike, the longest."""
    return sorted(dict(sorted(spec.skip)).items())


def _complete(session: Session, run: Run, known: Attempt, spec: AttemptSpec) -> tuple[str, ...]:
    """Add what the first to open it had not said; the fields that it said otherwise, which stay as they are.

    A supervisor opens the attempt that the recorder in its job describes."""
    kept = {
        "config_id": snapshots.keep_configs(session, run.project_id, [spec.config])[0],
        "environment_id": snapshots.keep_environments(session, run.project_id, [spec.environment])[0],
        "layout_id": snapshots.keep_layouts(session, run.project_id, [spec.layout])[0],
        "nodes": strict_json.canonical(list(spec.nodes)) if spec.nodes else None,
        **{name: getattr(spec, name) for name in ("command", "reason", "changes", "started_at")},
    }
    given = {name: value for name, value in kept.items() if value is not None}
    differing = [name.removesuffix("_id") for name, value in given.items() if getattr(known, name) not in (None, value)]
    for name, value in given.items():
        if getattr(known, name) is None:
            setattr(known, name, value)
    session.flush()
    recorded = _read(session, [known])[0]
    if spec.skip and not recorded.skip:
        _insert_skips(session, known, spec)
    elif spec.skip and list(recorded.skip) != _ranges(spec):
        differing.append("skip")
    if not _loaded(session, run, known, spec.resumed_from):
        differing.append("resumed_from")
    return tuple(differing)


def _loaded(session: Session, run: Run, known: Attempt, said: ResumePoint | None) -> bool:
    """Whether the attempt loaded what is said now, which is noted where nothing was said before."""
    if said is None:
        return True
    point = resolve(session, run, said)
    if point is not None and point.run is None and said.checkpoint_id is None and said.attempt is None:
        newest_then = known.resumed_from_attempt or known.number - 1
        point = resolve(session, run, replace(said, attempt=newest_then))
    assert point is not None
    if known.resumed_from_step is not None:
        recorded = (known.resumed_from_run, known.resumed_from_attempt, known.resumed_from_step)
        return recorded == (point.run, point.attempt, point.step) and point.kind in (None, known.resumed_from_kind)
    if known.restart or (point.run is None and not 0 < _own_number(point) < known.number):
        return False
    _set_point(known, point)
    session.flush()
    recompute_live(session, run.project_id, run.id)
    watching.path_changed(session, run.project_id, run.id)
    return True


def _plain(project_id: int, run_id: int, number: int) -> dict[str, Any]:
    return {
        "id": new_id(),
        "project_id": project_id,
        "run_id": run_id,
        "number": number,
        "state": "running",
        "restart": False,
        "created_at": now(),
    }


def _read(session: Session, attempts: Sequence[Attempt]) -> list[AttemptRow]:
    skips: dict[int, list[tuple[int, int]]] = {}
    if attempts:
        query = select(AttemptSkip).where(
            AttemptSkip.project_id == attempts[0].project_id,
            AttemptSkip.attempt_id.in_([attempt.id for attempt in attempts]),
        )
        for skip in session.scalars(query.order_by(AttemptSkip.from_step)):
            skips.setdefault(skip.attempt_id, []).append((skip.from_step, skip.to_step))
    return [
        AttemptRow(
            id=attempt.id,
            run_id=attempt.run_id,
            number=attempt.number,
            key=attempt.key,
            state=attempt.state,
            resumed_from=None
            if attempt.resumed_from_step is None
            else ResumePoint(
                attempt.resumed_from_checkpoint_id,
                attempt.resumed_from_run,
                attempt.resumed_from_attempt,
                attempt.resumed_from_step,
                attempt.resumed_from_kind,
            ),
            restart=attempt.restart,
            live_through_step=attempt.live_through_step,
            command=attempt.command,
            reason=attempt.reason,
            changes=attempt.changes,
            skip=tuple(skips.get(attempt.id, ())),
            nodes=tuple(strict_json.loads(attempt.nodes.encode())) if attempt.nodes else (),
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            exit_code=attempt.exit_code,
            heartbeat_at=attempt.heartbeat_at,
            heartbeat_step=attempt.heartbeat_step,
        )
        for attempt in attempts
    ]
