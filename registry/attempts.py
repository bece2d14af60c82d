"""Attempts: each execution of a run between two starts, and which steps are still live.

Going back in steps is always a new attempt, which says what it loaded. What an older attempt saved beyond that
point is superseded: kept, shown, and no longer on the path that the run went on from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.orm import Session

from registry import snapshots, strict_json
from registry.db import now
from registry.errors import Conflict, FieldError, Invalid, NotFound
from registry.ids import from_text, new_id, to_text
from registry.models import Attempt, AttemptSkip, Checkpoint, Run
from registry.runs import RunNotFound
from registry.snapshots import LayoutSpec
from registry.types import MAX_ATTEMPT, CheckpointState, Kind
from registry.upsert import insert_all, insert_missing


class AttemptNotFound(NotFound):
    code = "attempt-not-found"
    title = "No such attempt"


class AttemptWouldRestart(Conflict):
    code = "attempt-would-restart"
    title = "This attempt would silently start the run over"


class BadResumePoint(Invalid):
    code = "bad-resume-point"
    title = "An attempt cannot resume from there"


class UnknownState(Invalid):
    code = "unknown-attempt-state"
    title = "Not a state of an attempt"


@dataclass(frozen=True)
class ResumePoint:
    """What an attempt loaded: a checkpoint's id, or where its record will be found. `run` None is the same run."""

    checkpoint_id: int | None = None
    run: str | None = None
    attempt: int | None = None
    step: int | None = None
    kind: str | None = None


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


_WAITING = select(Attempt).where(
    Attempt.project_id == bindparam("project"),
    Attempt.resumed_from_step.is_not(None),
    Attempt.resumed_from_checkpoint_id.is_(None),
)


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
            return _read(session, [known])[0], False
    gap = _awaited_number(session, run) if spec.resumed_from is None and not spec.restart else None
    if gap is None and spec.resumed_from is None and not spec.restart:
        _refuse_silent_restart(session, run)
    point = _resolve(session, run, spec.resumed_from)
    number = gap or 1 + max(_newest_number(session, run), _own_number(point))
    if number > MAX_ATTEMPT:
        message = f"attempts are numbered up to {MAX_ATTEMPT}"
        raise BadResumePoint(f"No attempt can follow that: {message}.", errors=[FieldError("/resumed_from", message)])
    attempt = _insert(session, run, number, spec, point)
    recompute_live(session, run.project_id, run.id)
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
    for name in ("state", "ended_at", "exit_code"):
        if name in changes:
            setattr(attempt, name, changes[name])
    if "nodes" in changes:
        attempt.nodes = strict_json.canonical(list(changes["nodes"] or ()))
    beat: datetime | None = changes.get("heartbeat_at")
    if beat is not None and (attempt.heartbeat_at is None or beat >= attempt.heartbeat_at):
        attempt.heartbeat_at = beat
    if changes.get("step") is not None:
        attempt.heartbeat_step = max(changes["step"], attempt.heartbeat_step or 0)
    session.flush()
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


def resolve_waiting(session: Session, project_id: int, run_ids: Sequence[int]) -> None:
    """Tie attempts to the checkpoints they said they loaded, whose records have arrived only now."""
    waiting = session.scalars(_WAITING, {"project": project_id}).all()
    if not waiting:
        return
    names = dict(
        session.execute(select(Run.name, Run.id).where(Run.project_id == project_id, Run.id.in_(run_ids))).all()
    )
    for attempt in waiting:
        source = attempt.run_id if attempt.resumed_from_run is None else names.get(attempt.resumed_from_run)
        if source is not None and source in run_ids:
            attempt.resumed_from_checkpoint_id = _checkpoint_at(
                session,
                project_id,
                source,
                attempt.resumed_from_attempt,
                attempt.resumed_from_step,
                attempt.resumed_from_kind,
            )
    session.flush()


def recompute_live(session: Session, project_id: int, run_id: int) -> None:
    """Set through which step each attempt is live, walking the newest attempt's path back to its start."""
    query = select(Attempt).where(Attempt.project_id == project_id, Attempt.run_id == run_id)
    parents = {attempt.number: _start_of(session, attempt) for attempt in session.scalars(query)}
    for number, live_through in live_steps(parents).items():
        session.execute(
            update(Attempt)
            .where(Attempt.project_id == project_id, Attempt.run_id == run_id, Attempt.number == number)
            .values(live_through_step=live_through)
        )


def _start_of(session: Session, attempt: Attempt) -> tuple[int | None, int] | None:
    """The (attempt, step) of the same run that an attempt went on from; None where it started anew.

    A backfilled attempt that nobody opened went on from before the first step it saved: that is all its files tell.
    """
    if attempt.resumed_from_step is not None:
        return (
            None if attempt.resumed_from_run is not None else (attempt.resumed_from_attempt, attempt.resumed_from_step)
        )
    if attempt.restart or attempt.number == 1:
        return None
    first = session.scalar(
        select(func.min(Checkpoint.step)).where(
            Checkpoint.project_id == attempt.project_id, Checkpoint.attempt_id == attempt.id
        )
    )
    return None if first is None else (None, first - 1)


def live_steps(parents: Mapping[int, tuple[int | None, int] | None]) -> dict[int, int | None]:
    """For each attempt number, the last step that the newest attempt's path stands on.

    `parents` gives for each attempt the (attempt, step) of this run that it resumed from, or None where it started
    anew. None in the answer means all steps, -1 none of them.
    """
    live: dict[int, int | None] = dict.fromkeys(parents, -1)
    number: int | None = max(parents, default=None)
    through: int | None = None
    while number is not None:
        live[number] = through
        parent = parents[number]
        if parent is None:
            break
        # Who names no attempt loaded from an earlier one; the newest before it is the likeliest.
        named, step = parent
        through = step if through is None else min(step, through)
        earlier = [other for other in parents if other < number and (named is None or other == named)]
        number = max(earlier, default=None)
    return live


def _newest_number(session: Session, run: Run) -> int:
    return session.scalar(select(func.max(Attempt.number)).where(*_of_run(run))) or 0


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


def _resolve(session: Session, run: Run, point: ResumePoint | None) -> ResumePoint | None:
    """The point with everything known filled in. `run` becomes None where it is this run."""
    if point is None:
        return None
    if point.checkpoint_id is not None:
        found = session.execute(
            select(Checkpoint, Run.name)
            .join(Run, Run.id == Checkpoint.run_id)
            .where(Checkpoint.project_id == run.project_id, Checkpoint.id == point.checkpoint_id)
        ).one_or_none()
        if found is None:
            message = f"project has no checkpoint {to_text(point.checkpoint_id)}"
            raise BadResumePoint(f"This {message}.", errors=[FieldError("/resumed_from", message)])
        checkpoint, name = found
        elsewhere = None if checkpoint.run_id == run.id else name
        return ResumePoint(checkpoint.id, elsewhere, checkpoint.attempt_number, checkpoint.step, checkpoint.kind)
    if point.step is None:
        message = "give a checkpoint id, or a step with run, attempt and kind as far as they are known"
        raise BadResumePoint(f"'resumed_from' is incomplete: {message}.", errors=[FieldError("/resumed_from", message)])
    other, source = _other_run(session, run, point.run)
    number = point.attempt
    if number is None and other is None:
        number = _newest_number(session, run) or None
    checkpoint_id = None
    if source is not None:
        checkpoint_id = _checkpoint_at(session, run.project_id, source, number, point.step, point.kind)
    return ResumePoint(checkpoint_id, other, number, point.step, point.kind)


def _other_run(session: Session, run: Run, said: str | None) -> tuple[str | None, int | None]:
    """(name, id) of the run that a resume point names by name or id: (None, own id) for this run itself."""
    if said is None or said == run.name or from_text(said) == run.id:
        return None, run.id
    identity = from_text(said)
    query = select(Run.id, Run.name).where(Run.project_id == run.project_id)
    row = session.execute(query.where((Run.name == said) | (Run.id == (identity or 0)))).first()
    return (row.name, row.id) if row is not None else (said, None)


def _checkpoint_at(
    session: Session, project_id: int, run_id: int, number: int | None, step: int | None, kind: str | None
) -> int | None:
    query = select(Checkpoint.id).where(
        Checkpoint.project_id == project_id, Checkpoint.run_id == run_id, Checkpoint.step == step
    )
    if number is not None:
        query = query.where(Checkpoint.attempt_number == number)
    if kind is not None:
        query = query.where(Checkpoint.kind == kind)
    return session.scalars(
        query.order_by(Checkpoint.attempt_number.desc(), (Checkpoint.kind == Kind.ARCHIVE).desc()).limit(1)
    ).one_or_none()


def _insert(session: Session, run: Run, number: int, spec: AttemptSpec, point: ResumePoint | None) -> Attempt:
    (config_id,) = snapshots.keep_configs(session, run.project_id, [spec.config])
    (environment_id,) = snapshots.keep_environments(session, run.project_id, [spec.environment])
    (layout_id,) = snapshots.keep_layouts(session, run.project_id, [spec.layout])
    attempt = Attempt(**_plain(run.project_id, run.id, number))
    attempt.key = spec.key
    attempt.restart = spec.restart or (point is None and number > 1)  # it had nothing to load
    if point is not None:
        attempt.resumed_from_checkpoint_id = point.checkpoint_id
        attempt.resumed_from_run = point.run
        attempt.resumed_from_attempt = point.attempt
        attempt.resumed_from_step = point.step
        attempt.resumed_from_kind = point.kind
    attempt.command, attempt.reason, attempt.changes = spec.command, spec.reason, spec.changes
    attempt.config_id, attempt.environment_id, attempt.layout_id = config_id, environment_id, layout_id
    attempt.nodes = strict_json.canonical(list(spec.nodes)) if spec.nodes else None
    attempt.started_at = spec.started_at
    session.add(attempt)
    session.flush()
    insert_all(
        session,
        AttemptSkip,
        [
            {"project_id": run.project_id, "attempt_id": attempt.id, "from_step": start, "to_step": end}
            for start, end in sorted(dict(sorted(spec.skip)).items())  # of ranges that start alike, the longest
        ],
    )
    return attempt


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
