"""Which checkpoints a rollback may speak of: those on the path that led to where a run or an alias stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.aliases import alias_history, get_alias
from registry.live_path import live_steps
from registry.models import Attempt, Checkpoint, Run
from registry.projects import find_project
from registry.runs import get_brief

MAX_ANCESTOR_RUNS: Final = 10


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


def scope_of_run(session: Session, run_id: int) -> Scope:
    """The run and the runs it went on from. Raises RunNotFound."""
    run = get_brief(session, run_id)
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
