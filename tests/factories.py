"""The least that is valid; a test states what matters to it."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from registry.attempts import AttemptRow, AttemptSpec, open_attempt
from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.registration import PieceSpec, Registration, ReplicaSpec
from registry.evals.scores import NewScore, record_scores
from registry.projects import ProjectRow, create_project
from registry.resume_points import ResumePoint
from registry.runs import RunRow, RunSpec, get_run, start_run

_numbers = itertools.count(1)

ALL_PIECES = {name: PieceSpec() for name in ("weights", "optimizer", "data_position", "random_state")}


def at(text: str) -> datetime:
    """A UTC time from '2026-11-01' or '2026-11-01T12:00'."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def make_project(session: Session, name: str | None = None) -> ProjectRow:
    return create_project(session, name or f"project-{next(_numbers)}")[0]


def make_run(session: Session, project: ProjectRow | None = None, name: str | None = None, **known: Any) -> RunRow:
    project = project or make_project(session)
    return start_run(session, project.id, RunSpec(name or f"run-{next(_numbers)}", **known))[0]


def make_attempt(session: Session, run: RunRow, *, resumed_from: ResumePoint | None = None, **known: Any) -> AttemptRow:
    known.setdefault("restart", resumed_from is None)
    return open_attempt(session, run.id, AttemptSpec(resumed_from=resumed_from, **known))[0]


def make_checkpoint(
    session: Session,
    run: RunRow | None = None,
    step: int = 1000,
    *,
    scores: dict[str, float] | Sequence[NewScore] = (),
    pieces: Sequence[str] = (),
    replica: str | None = None,
    **known: Any,
) -> int:
    """The id of a committed checkpoint; `pieces` are present ones, `replica` a URI on shared storage."""
    run = run or make_run(session)
    if isinstance(scores, dict):
        scores = [NewScore(benchmark, value) for benchmark, value in scores.items()]
    if pieces:
        known["pieces"] = {name: PieceSpec() for name in pieces}
    if replica:
        known["replicas"] = (ReplicaSpec(replica, "shared"),)
    return register_checkpoint(session, run.id, Registration(step, scores=tuple(scores), **known)).checkpoint_id


def make_score(session: Session, checkpoint_id: int, benchmark: str, value: float, **known: Any) -> None:
    from registry.models import Checkpoint

    checkpoint = session.get_one(Checkpoint, checkpoint_id)
    record_scores(session, checkpoint.project_id, [(checkpoint_id, NewScore(benchmark, value, **known))])


def run_of(session: Session, run: RunRow) -> RunRow:
    return get_run(session, run.id)
