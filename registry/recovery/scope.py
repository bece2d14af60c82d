"""Which checkpoints a rollback may speak of: those on the path that led to where a run or an alias stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from registry.aliases import alias_history, get_alias
from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.filters.columns import presence
from registry.live_path import live_steps
from registry.models import Attempt, Checkpoint, CheckpointTag, Replica, Run
from registry.projects import find_project
from registry.runs import get_run
from registry.types import PieceName, Presence

QUARANTINE_TAGS: Final = ("quarantine", "quarantined")
MAX_ANCESTOR_RUNS: Final = 10
_NEEDED: Final = (PieceName.WEIGHTS, PieceName.OPTIMIZER, PieceName.DATA_POSITION)


@dataclass(frozen=True, slots=True)
class Scope:
    """Runs by id, with names; own first. `through`: for (run, attempt) the last step on the path, None for all."""

    project_id: int
    project: str
    run_id: int
    runs: Mapping[int, str]
    through: Mapping[tuple[int, int], int | None]
    at_step: int | None  # how far the run is known to have come
    alias_target: int | None
    served_before: tuple[int, ...]  # what the alias pointed at earlier, newest first


@dataclass(frozen=True, slots=True)
class Seen:
    """One checkpoint of the scope, with what the filters look at. `generation` 0: the run itself, 1: its parent run."""

    identity: CheckpointIdentity
    generation: int
    state: str
    superseded: bool
    saved_at_assumed: bool
    loss_special: str | None
    quarantined: bool
    pieces: Mapping[PieceName, Presence]
    format: str | None
    layout_id: int | None

    @property
    def id(self) -> int:
        return self.identity.id

    @property
    def step(self) -> int:
        return self.identity.step


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a checkpoint that may be read. Sizes in bytes; None unknown."""

    checkpoint_id: int
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    state: str
    verification: str


def scope_of_run(session: Session, run_id: int) -> Scope:
    """The run and the runs it went on from. Raises RunNotFound."""
    run = get_run(session, run_id)
    attempts = _attempts(session, run.project_id, run.id)
    through: dict[tuple[int, int], int | None] = {(run.id, each.number): each.live_through_step for each in attempts}
    runs = {run.id: run.name}
    _add_ancestors(session, run.project_id, attempts, runs, through)
    beats = [each.heartbeat_step for each in attempts[-1:] if each.heartbeat_step is not None]
    return Scope(run.project_id, run.project, run.id, runs, through, max(beats, default=None), None, ())


def scope_of_alias(session: Session, alias: str) -> Scope:
    """The run of what `project/name` points at, and what it served before. Raises ProjectNotFound, AliasNotFound."""
    project_name, _, name = alias.partition("/")
    project = find_project(session, project_name)
    target = get_alias(session, project.id, name).checkpoint_id
    moves = alias_history(session, project.id, name)
    run_id = session.scalars(
        select(Checkpoint.run_id).where(Checkpoint.project_id == project.id, Checkpoint.id == target)
    ).one()
    own = scope_of_run(session, run_id)
    earlier = dict.fromkeys(move.previous_id for move in moves if move.previous_id not in (None, target))
    served = tuple(each for each in earlier if each is not None)
    return Scope(own.project_id, own.project, own.run_id, own.runs, own.through, own.at_step, target, served)


def _attempts(session: Session, project_id: int, run_id: int) -> Sequence[Attempt]:
    query = select(Attempt).where(Attempt.project_id == project_id, Attempt.run_id == run_id)
    return session.scalars(query.order_by(Attempt.number)).all()


def _add_ancestors(
    session: Session,
    project_id: int,
    attempts: Sequence[Attempt],
    runs: dict[int, str],
    through: dict[tuple[int, int], int | None],
) -> None:
    """Follow what the first live attempt loaded from another run, and so on: the steps before the fork are its past."""
    for _ in range(MAX_ANCESTOR_RUNS):
        forks = [each for each in attempts if each.resumed_from_run is not None and each.live_through_step != -1]
        if not forks or forks[0].resumed_from_checkpoint_id is None:
            return
        query = (
            select(Run.id, Run.name, Checkpoint.attempt_number, Checkpoint.step)
            .join(Run, (Run.project_id == Checkpoint.project_id) & (Run.id == Checkpoint.run_id))
            .where(Checkpoint.project_id == project_id, Checkpoint.id == forks[0].resumed_from_checkpoint_id)
        )
        found = session.execute(query).one_or_none()
        if found is None or found.id in runs:
            return
        runs[found.id] = found.name
        attempts = [each for each in _attempts(session, project_id, found.id) if each.number <= found.attempt_number]
        live = live_steps({each.number: _start(each) for each in attempts})
        for number, last in live.items():
            through[found.id, number] = found.step if last is None else min(last, found.step)


def _start(attempt: Attempt) -> tuple[int | None, int] | None:
    if attempt.resumed_from_run is not None or attempt.resumed_from_step is None:
        return None
    return attempt.resumed_from_attempt, attempt.resumed_from_step


def scope_select(scope: Scope) -> Select[Any]:
    """Every checkpoint of the runs and of the alias's past, newest first; apart, so that a test can read its plan."""
    tagged = (
        select(CheckpointTag.name)
        .where(
            CheckpointTag.project_id == Checkpoint.project_id,
            CheckpointTag.checkpoint_id == Checkpoint.id,
            CheckpointTag.name.in_(QUARANTINE_TAGS),
        )
        .correlate(Checkpoint)
        .exists()
    )
    query: Any = (
        select(
            Checkpoint.id,
            Checkpoint.run_id,
            Run.name.label("run_name"),
            Checkpoint.attempt_number,
            Checkpoint.step,
            Checkpoint.kind,
            Checkpoint.state,
            Checkpoint.saved_at,
            Checkpoint.saved_at_assumed,
            Checkpoint.loss_special,
            Checkpoint.format,
            Checkpoint.layout_id,
            tagged.label("quarantined"),
            *(presence(piece).label(piece.value) for piece in _NEEDED),
        )
        .join(Run, (Run.project_id == Checkpoint.project_id) & (Run.id == Checkpoint.run_id))
        .where(Checkpoint.project_id == scope.project_id, _in_scope(scope))
        .order_by(Checkpoint.run_id, Checkpoint.attempt_number.desc(), Checkpoint.step.desc(), Checkpoint.kind)
    )
    found: Select[Any] = query
    return found


def _in_scope(scope: Scope) -> Any:
    of_runs = Checkpoint.run_id.in_(list(scope.runs))
    return or_(of_runs, Checkpoint.id.in_(scope.served_before)) if scope.served_before else of_runs


def read_scope(session: Session, scope: Scope) -> list[Seen]:
    """The checkpoints, own run first, the newest of each first. What a path of another run left behind is not in it."""
    generations = {run_id: place for place, run_id in enumerate(scope.runs)}
    served = set(scope.served_before)
    found = []
    for row in session.execute(scope_select(scope)):
        key = (row.run_id, row.attempt_number)
        generation = generations.get(row.run_id)
        if row.run_id != scope.run_id and row.id not in served and not _on_path(scope, key, row.step):
            continue
        limit = scope.through.get(key)
        found.append(
            Seen(
                identity=CheckpointIdentity(
                    row.id,
                    scope.project,
                    RunName(row.run_id, row.run_name),
                    row.attempt_number,
                    row.step,
                    row.kind,
                    row.saved_at,
                ),
                generation=generation if generation is not None else len(generations),
                state=row.state,
                superseded=row.run_id == scope.run_id and limit is not None and row.step > limit,
                saved_at_assumed=row.saved_at_assumed,
                loss_special=row.loss_special,
                quarantined=row.quarantined,
                pieces={piece: Presence(getattr(row, piece.value)) for piece in _NEEDED},
                format=row.format,
                layout_id=row.layout_id,
            )
        )
    return sorted(found, key=lambda each: (each.generation, -each.identity.attempt, -each.step, each.identity.kind))


def _on_path(scope: Scope, key: tuple[int, int], step: int) -> bool:
    if key not in scope.through:
        return False
    limit = scope.through[key]
    return limit is None or step <= limit


def read_copies(session: Session, scope: Scope) -> dict[int, list[Copy]]:
    """By checkpoint, the copies that are recorded as there: present or partial, of any verification."""
    query = (
        select(
            Replica.checkpoint_id,
            Replica.uri,
            Replica.tier,
            Replica.host,
            Replica.bytes,
            Replica.state,
            Replica.verification,
        )
        .join(Checkpoint, (Checkpoint.project_id == Replica.project_id) & (Checkpoint.id == Replica.checkpoint_id))
        .where(
            Checkpoint.project_id == scope.project_id,
            _in_scope(scope),
            Replica.state.in_(("present", "partial")),
        )
    )
    found: dict[int, list[Copy]] = {}
    for row in session.execute(query):
        found.setdefault(row.checkpoint_id, []).append(Copy(*row))
    return found


def seconds_per_step(seen: Sequence[Seen]) -> float | None:
    """The median time of a step between neighbouring checkpoints of one attempt; None where no times are known."""
    rates = []
    for newer, older in pairwise(seen):
        same = (newer.identity.run.id, newer.identity.attempt) == (older.identity.run.id, older.identity.attempt)
        steps = newer.step - older.step
        if not same or steps <= 0 or newer.saved_at_assumed or older.saved_at_assumed:
            continue
        seconds = _seconds(older.identity.saved_at, newer.identity.saved_at)
        if seconds > 0:
            rates.append(seconds / steps)
    return sorted(rates)[len(rates) // 2] if rates else None


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()
