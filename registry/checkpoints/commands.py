"""Register, commit and amend checkpoints.

One path for one and for thousands: a registration is a batch of one. The key (run, attempt, step, kind) makes every
write safe to repeat; other content under the same key is refused, naming the fields that differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from registry import audit
from registry.checkpoints.errors import BatchInConflict, BatchRefused
from registry.checkpoints.placing import Item, Problems, place
from registry.checkpoints.references import with_known_references
from registry.checkpoints.registration import Registration, given_fields
from registry.checkpoints.writing import (
    Registered,
    commit,
    compare_committed,
    lock,
    refuse_deleted,
    what_differs,
    write_items,
)
from registry.db import split_number
from registry.errors import Conflict, FieldError, RegistryError
from registry.models import Checkpoint, CheckpointTag
from registry.projects import create_project
from registry.runs import RunSpec, get_brief, run_ids_by_name, start_run
from registry.types import CheckpointState
from registry.upsert import insert_into


@dataclass(frozen=True)
class BatchItem:
    """A registration that names its project and run; both are made where they are missing."""

    project: str
    run: str
    registration: Registration


def register_checkpoint(
    session: Session,
    run_id: int,
    registration: Registration,
    *,
    project_id: int | None = None,
    roots: Sequence[str] = (),
) -> Registered:
    """The checkpoint of this key, made where it is missing; a pending one is committed by a committed registration.

    `project_id` is that of the run, where the caller knows it already. Raises RunNotFound, AttemptNotFound,
    CheckpointExists, or Invalid where a value cannot be kept.
    """
    project_id = get_brief(session, run_id).project_id if project_id is None else project_id
    items, problems = _place(session, project_id, [(0, run_id, registration)], make_attempts=False)
    results = write_items(session, project_id, items, problems, roots)
    for _, problem in problems:
        raise problem
    return results[0]


def register_batch(session: Session, items: Sequence[BatchItem], *, roots: Sequence[str] = ()) -> list[Registered]:
    """Register all or none, in order. Raises BatchRefused or BatchInConflict, whose errors name each refused item."""
    problems: Problems = []
    runs = _runs_of_batch(session, items, problems)
    results: dict[int, Registered] = {}
    by_project: dict[int, list[tuple[int, int, Registration]]] = {}
    for index, item in enumerate(items):
        if (item.project, item.run) in runs:
            project_id, run_id = runs[item.project, item.run]
            by_project.setdefault(project_id, []).append((index, run_id, item.registration))
    for project_id, given in by_project.items():
        placed, refused = _place(session, project_id, given, make_attempts=True)
        results |= write_items(session, project_id, placed, refused, roots)
        problems += refused
    if problems:
        _refuse_batch(problems)
    return [results[index] for index in range(len(items))]


def commit_checkpoint(
    session: Session, checkpoint_id: int, registration: Registration, *, roots: Sequence[str] = ()
) -> Registered:
    """Commit a pending checkpoint, completing it with whatever is given. Committing again the same way is unchanged.

    `registration` carries the new fields; its step, attempt and kind are the checkpoint's own.
    """
    checkpoint = lock(session, checkpoint_id)
    own = replace(
        registration,
        step=checkpoint.step,
        attempt=checkpoint.attempt_number,
        kind=checkpoint.kind,
        state=CheckpointState.COMMITTED,
    )
    items, problems = _place(session, checkpoint.project_id, [(0, checkpoint.run_id, own)], make_attempts=False)
    for _, problem in problems:
        raise problem
    if checkpoint.state == CheckpointState.PENDING:
        return commit(session, checkpoint, items[0], roots)
    given = given_fields(items[0].digest)
    differing = [name for name in what_differs(checkpoint, items[0]) if name in given]
    return compare_committed(checkpoint, items[0], differing)


def amend_checkpoint(session: Session, checkpoint_id: int, changes: Mapping[str, Any], *, actor: str) -> None:
    """Set what a merge patch names: tags (None removes one), notes, milestone, loss. The registration stays."""
    checkpoint = lock(session, checkpoint_id)
    refuse_deleted(checkpoint)
    if "notes" in changes:
        checkpoint.notes = changes["notes"]
    if "milestone" in changes:
        checkpoint.milestone = bool(changes["milestone"])
    if "loss" in changes:
        checkpoint.loss, checkpoint.loss_special = split_number(changes["loss"])
    session.flush()
    if "tags" in changes:
        _amend_tags(session, checkpoint, changes["tags"])
    if not changes:
        return
    audit.record(
        session,
        actor=actor,
        action="checkpoint.amend",
        project_id=checkpoint.project_id,
        subject_id=checkpoint.id,
        detail=dict(changes),
    )


def _place(
    session: Session, project_id: int, given: Sequence[tuple[int, int, Registration]], *, make_attempts: bool
) -> tuple[Sequence[Item], Problems]:
    placed, problems = place(session, project_id, given, make_attempts=make_attempts)
    return with_known_references(session, project_id, placed, problems), problems


def _amend_tags(session: Session, checkpoint: Checkpoint, tags: Mapping[str, str | None] | None) -> None:
    own = (CheckpointTag.project_id == checkpoint.project_id, CheckpointTag.checkpoint_id == checkpoint.id)
    if tags is None:
        session.execute(delete(CheckpointTag).where(*own))
        return
    removed = [name for name, value in tags.items() if value is None]
    session.execute(delete(CheckpointTag).where(*own, CheckpointTag.name.in_(removed)))
    statement = insert_into(session, CheckpointTag)
    rows = [
        {"project_id": checkpoint.project_id, "checkpoint_id": checkpoint.id, "name": name, "value": value}
        for name, value in tags.items()
        if value is not None
    ]
    if rows:
        session.execute(
            statement.on_conflict_do_update(
                index_elements=["project_id", "checkpoint_id", "name"], set_={"value": statement.excluded.value}
            ),
            rows,
        )


def _runs_of_batch(
    session: Session, items: Sequence[BatchItem], problems: Problems
) -> dict[tuple[str, str], tuple[int, int]]:
    first: dict[tuple[str, str], int] = {}
    for index, item in enumerate(items):
        first.setdefault((item.project, item.run), index)
    runs = run_ids_by_name(session, list(first))
    for (project, run), index in first.items():
        if (project, run) not in runs:
            try:
                project_row, _ = create_project(session, project)
                run_row, _ = start_run(session, project_row.id, RunSpec(run))
                runs[project, run] = (project_row.id, run_row.id)
            except RegistryError as problem:
                problems.append((index, problem))
    return runs


def _refuse_batch(problems: Problems) -> None:
    problems = sorted(problems, key=lambda pair: pair[0])
    errors = []
    for index, problem in problems:
        for error in problem.errors or (FieldError("", problem.message),):
            errors.append(FieldError(f"/{index}{error.pointer}", error.message))
    in_conflict = all(isinstance(problem, Conflict) for _, problem in problems)
    kind = BatchInConflict if in_conflict else BatchRefused
    first = problems[0][1].message
    raise kind(f"{len(problems)} of the items cannot be recorded. The first: {first}", errors=errors)
