"""Register, commit and amend checkpoints.

One path for one and for thousands: a registration is a batch of one. The key (run, attempt, step, kind) makes every
write safe to repeat; other content under the same key is refused, naming the fields that differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from registry import attempts, audit, outbox, snapshots, strict_json
from registry.attempts import AttemptNotFound
from registry.checkpoints.details import write_details
from registry.checkpoints.registration import (
    Registration,
    content_digest,
    differing_fields,
    given_fields,
    merged_digest,
)
from registry.db import now, split_number
from registry.errors import Conflict, FieldError, Invalid, NotFound, RegistryError
from registry.ids import new_id, to_text
from registry.models import Attempt, Checkpoint, CheckpointTag, Run
from registry.projects import create_project
from registry.runs import RunNotFound, RunSpec, run_ids_by_name, start_run
from registry.types import CheckpointState
from registry.upsert import any_of, chunks, insert_into, insert_missing

MAX_CURSOR_CHARACTERS: Final = 65_536


class CheckpointNotFound(NotFound):
    code = "checkpoint-not-found"
    title = "No such checkpoint"


class CheckpointExists(Conflict):
    code = "checkpoint-exists"
    title = "This step is already recorded, with other content"


class CheckpointDeleted(Conflict):
    code = "checkpoint-deleted"
    title = "This checkpoint was deleted"


class BadCursor(Invalid):
    code = "data-cursor-too-large"
    title = "The data cursor is too large"


class BatchRefused(Invalid):
    code = "batch-refused"
    title = "The batch was refused as a whole; nothing of it was kept"


class BatchInConflict(Conflict):
    code = "batch-in-conflict"
    title = "The batch was refused as a whole; nothing of it was kept"


@dataclass(frozen=True)
class Registered:
    checkpoint_id: int
    status: Literal["created", "unchanged", "committed"]


@dataclass(frozen=True)
class BatchItem:
    """A registration that names its project and run; both are made where they are missing."""

    project: str
    run: str
    registration: Registration


@dataclass(frozen=True)
class _Item:
    index: int
    run_id: int
    attempt_id: int
    attempt_number: int
    registration: Registration
    digest: bytes

    @property
    def key(self) -> tuple[int, int, int, str]:
        return self.run_id, self.attempt_number, self.registration.step, self.registration.kind


def register_checkpoint(
    session: Session, run_id: int, registration: Registration, *, roots: Sequence[str] = ()
) -> Registered:
    """The checkpoint of this key, made where it is missing; a pending one is committed by a committed registration.

    Raises RunNotFound, AttemptNotFound, CheckpointExists, or Invalid where a value cannot be kept.
    """
    project_id = session.scalars(select(Run.project_id).where(Run.id == run_id)).one_or_none()
    if project_id is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}. POST /api/v1/runs makes one.")
    items, problems = _place(session, project_id, [(0, run_id, registration)], make_attempts=False)
    results = _register(session, project_id, items, problems, roots)
    for _, problem in problems:
        raise problem
    return results[0]


def register_batch(session: Session, items: Sequence[BatchItem], *, roots: Sequence[str] = ()) -> list[Registered]:
    """Register all or none, in order. Raises BatchRefused or BatchInConflict, whose errors name each refused item."""
    problems: list[tuple[int, RegistryError]] = []
    runs = _runs_of_batch(session, items, problems)
    results: dict[int, Registered] = {}
    by_project: dict[int, list[tuple[int, int, Registration]]] = {}
    for index, item in enumerate(items):
        if (item.project, item.run) in runs:
            project_id, run_id = runs[item.project, item.run]
            by_project.setdefault(project_id, []).append((index, run_id, item.registration))
    for project_id, placed in by_project.items():
        ready, refused = _place(session, project_id, placed, make_attempts=True)
        results |= _register(session, project_id, ready, refused, roots)
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
    checkpoint = _locked(session, checkpoint_id)
    item = _Item(
        0,
        checkpoint.run_id,
        checkpoint.attempt_id,
        checkpoint.attempt_number,
        replace(registration, step=checkpoint.step, kind=checkpoint.kind, state=CheckpointState.COMMITTED),
        content_digest(registration),
    )
    _check_values(item.registration)
    if checkpoint.state == CheckpointState.PENDING:
        return _commit(session, checkpoint, item, roots)
    _refuse_deleted(checkpoint)
    given = given_fields(item.digest)
    other = [name for name in differing_fields(checkpoint.registration, item.digest) if name in given]
    if other:
        raise _exists(checkpoint, other)
    return Registered(checkpoint.id, "unchanged")


def amend_checkpoint(session: Session, checkpoint_id: int, changes: Mapping[str, Any], *, actor: str) -> None:
    """Set what a merge patch names: tags (None removes one), notes, milestone, loss. The registration stays."""
    checkpoint = _locked(session, checkpoint_id)
    _refuse_deleted(checkpoint)
    if "notes" in changes:
        checkpoint.notes = changes["notes"]
    if "milestone" in changes:
        checkpoint.milestone = bool(changes["milestone"])
    if "loss" in changes:
        checkpoint.loss, checkpoint.loss_special = split_number(changes["loss"])
    session.flush()
    if "tags" in changes:
        _amend_tags(session, checkpoint, changes["tags"])
    audit.record(
        session,
        actor=actor,
        action="checkpoint.amend",
        project_id=checkpoint.project_id,
        subject_id=checkpoint.id,
        detail=dict(changes),
    )


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
    session: Session, items: Sequence[BatchItem], problems: list[tuple[int, RegistryError]]
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


def _refuse_batch(problems: Sequence[tuple[int, RegistryError]]) -> None:
    errors = []
    for index, problem in sorted(problems, key=lambda pair: pair[0]):
        for error in problem.errors or (FieldError("", problem.message),):
            errors.append(FieldError(f"/{index}{error.pointer}", error.message))
    in_conflict = all(isinstance(problem, Conflict) for _, problem in problems)
    kind = BatchInConflict if in_conflict else BatchRefused
    first = problems[0][1].message
    raise kind(f"{len(problems)} of the items cannot be recorded. The first: {first}", errors=errors)


def _place(
    session: Session, project_id: int, items: Sequence[tuple[int, int, Registration]], *, make_attempts: bool
) -> tuple[list[_Item], list[tuple[int, RegistryError]]]:
    """Each registration with its attempt; those that cannot be placed, or hold a value that cannot be kept, apart."""
    known = _attempts_of(session, project_id, {run_id for _, run_id, _ in items})
    without = sorted({run_id for _, run_id, _ in items if run_id not in known})
    if without:
        attempts.first_attempts(session, project_id, without)
    missing = {
        (run_id, registration.attempt)
        for _, run_id, registration in items
        if registration.attempt is not None and registration.attempt not in known.get(run_id, {1: 0})
    }
    if missing and make_attempts:
        attempts.plain_attempts(session, project_id, sorted(missing))
    if without or (missing and make_attempts):
        known = _attempts_of(session, project_id, {run_id for _, run_id, _ in items})
    ready: list[_Item] = []
    problems: list[tuple[int, RegistryError]] = []
    for index, run_id, registration in items:
        number = max(known[run_id]) if registration.attempt is None else registration.attempt
        try:
            if number not in known[run_id]:
                message = f"run {to_text(run_id)} has no attempt {number}; its newest is {max(known[run_id])}"
                raise AttemptNotFound(f"Cannot record: {message}.", errors=[FieldError("/attempt", message)])
            _check_values(registration)
            digest = content_digest(registration)
            ready.append(_Item(index, run_id, known[run_id][number], number, registration, digest))
        except RegistryError as problem:
            problems.append((index, problem))
    return ready, problems


def _attempts_of(session: Session, project_id: int, run_ids: Iterable[int]) -> dict[int, dict[int, int]]:
    """Run id to attempt number to attempt id."""
    known: dict[int, dict[int, int]] = {}
    for chunk in chunks(sorted(run_ids)):
        query = select(Attempt.run_id, Attempt.number, Attempt.id).where(
            Attempt.project_id == project_id, Attempt.run_id.in_(chunk)
        )
        for row in session.execute(query):
            known.setdefault(row.run_id, {})[row.number] = row.id
    return known


def _check_values(registration: Registration) -> None:
    """Raises Invalid for what the database could not hold, or could hold only changed."""
    if registration.data_cursor is not None:
        text = snapshots.canonical_within_limits({"": registration.data_cursor}, "/data_cursor")
        if len(text) > MAX_CURSOR_CHARACTERS:
            message = f"{len(text)} characters; at most {MAX_CURSOR_CHARACTERS} are kept: send a digest instead"
            raise BadCursor(f"The data cursor has {message}.", errors=[FieldError("/data_cursor", message)])
    for value, pointer in ((registration.config, "/config"), (registration.environment, "/environment")):
        if value is not None and strict_json.depth_of(value) > strict_json.MAX_DEPTH:
            snapshots.canonical_within_limits(value, pointer)


def _register(
    session: Session,
    project_id: int,
    items: Sequence[_Item],
    problems: list[tuple[int, RegistryError]],
    roots: Sequence[str],
) -> dict[int, Registered]:
    """Register in rounds in which no key occurs twice; what is refused is added to `problems`."""
    results: dict[int, Registered] = {}
    for items_of_round in _rounds(items):
        existing = _existing(session, project_id, items_of_round)
        # In the order of their keys, so that two batches that overlap never wait for each other in a circle.
        fresh = sorted((item for item in items_of_round if item.key not in existing), key=lambda item: item.key)
        if fresh:
            made = _insert(session, project_id, fresh, roots)
            results.update(made)
            lost = [item for item in fresh if item.index not in made]  # another writer was first, just now
            if lost:
                existing |= _existing(session, project_id, lost)
        for item in items_of_round:
            if item.index not in results:
                try:
                    results[item.index] = _meet(session, existing[item.key], item, roots)
                except RegistryError as problem:
                    problems.append((item.index, problem))
    return results


def _rounds(items: Sequence[_Item]) -> Iterable[list[_Item]]:
    current: dict[Any, _Item] = {}
    for item in items:
        if item.key in current:
            yield list(current.values())
            current = {}
        current[item.key] = item
    if current:
        yield list(current.values())


def _existing(session: Session, project_id: int, items: Sequence[_Item]) -> dict[tuple[int, int, int, str], Checkpoint]:
    found: dict[tuple[int, int, int, str], Checkpoint] = {}
    columns = (Checkpoint.run_id, Checkpoint.attempt_number, Checkpoint.step, Checkpoint.kind)
    for chunk in chunks(item.key for item in items):
        query = select(Checkpoint).where(Checkpoint.project_id == project_id, any_of(columns, chunk))
        for row in session.scalars(query.execution_options(populate_existing=True)):
            found[row.run_id, row.attempt_number, row.step, row.kind] = row
    return found


def _meet(session: Session, checkpoint: Checkpoint, item: _Item, roots: Sequence[str]) -> Registered:
    """What a registration does to a checkpoint that is there already."""
    differing = differing_fields(checkpoint.registration, item.digest)
    if checkpoint.state == CheckpointState.PENDING and item.registration.state == CheckpointState.COMMITTED:
        return _commit(session, _locked(session, checkpoint.id), item, roots)
    if differing:
        raise _exists(checkpoint, differing)
    return Registered(checkpoint.id, "unchanged")


def _exists(checkpoint: Checkpoint, differing: Sequence[str]) -> CheckpointExists:
    return CheckpointExists(
        f"Checkpoint {to_text(checkpoint.id)} already stands at attempt {checkpoint.attempt_number}, "
        f"step {checkpoint.step} ({checkpoint.kind}), and differs in: {', '.join(differing)}. "
        "A save after going back in steps belongs to a new attempt; PATCH amends tags, notes, milestone and loss.",
        errors=[FieldError(f"/{name}", "differs from what is recorded") for name in differing],
        checkpoint_id=to_text(checkpoint.id),
        fields=list(differing),
    )


def _insert(session: Session, project_id: int, items: Sequence[_Item], roots: Sequence[str]) -> dict[int, Registered]:
    """Insert what no other writer has inserted meanwhile, with everything that belongs to it."""
    shared = _Shared(session, project_id, items)
    rows = {new_id(): (at, item) for at, item in enumerate(items)}
    insert_missing(
        session,
        Checkpoint,
        [_row(project_id, identity, item, shared.columns(at)) for identity, (at, item) in rows.items()],
    )
    kept: set[int] = set()
    for chunk in chunks(rows):
        query = select(Checkpoint.id).where(Checkpoint.project_id == project_id, Checkpoint.id.in_(chunk))
        kept.update(session.scalars(query))
    mine = [(identity, item) for identity, (_, item) in rows.items() if identity in kept]
    write_details(session, project_id, [(identity, item.registration) for identity, item in mine], roots)
    committed = [identity for identity, item in mine if item.registration.state == CheckpointState.COMMITTED]
    outbox.announce(session, project_id, "checkpoint.committed", committed)
    _settle(session, project_id, items)
    return {item.index: Registered(identity, "created") for identity, item in mine}


def _settle(session: Session, project_id: int, items: Sequence[_Item]) -> None:
    """What follows from new checkpoints for the attempts of their runs."""
    run_ids = sorted({item.run_id for item in items})
    attempts.resolve_waiting(session, project_id, run_ids)
    for run_id in attempts.runs_with_unsaid_starts(session, project_id, run_ids):
        attempts.recompute_live(session, project_id, run_id)


def _commit(session: Session, checkpoint: Checkpoint, item: _Item, roots: Sequence[str]) -> Registered:
    given = given_fields(item.digest)
    shared = _Shared(session, checkpoint.project_id, [item])
    values = _row(checkpoint.project_id, checkpoint.id, item, shared.columns(0))
    for name in given:
        for column in _COLUMNS.get(name, ()):
            setattr(checkpoint, column, values[column])
    checkpoint.state, checkpoint.committed_at = CheckpointState.COMMITTED, now()
    checkpoint.registration = merged_digest(checkpoint.registration, item.digest)
    session.flush()
    write_details(session, checkpoint.project_id, [(checkpoint.id, item.registration)], roots, again=True)
    outbox.announce(session, checkpoint.project_id, "checkpoint.committed", [checkpoint.id])
    return Registered(checkpoint.id, "committed")


# The columns of `checkpoint` that each field of a registration sets.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "saved_at": ("saved_at", "saved_at_assumed"),
    "loss": ("loss", "loss_special"),
    "lr": ("lr", "lr_special"),
    "data_version": ("data_version_id",),
    "code": ("code_version_id",),
    "config": ("config_id",),
    "environment": ("environment_id",),
    "layout": ("layout_id",),
} | {
    name: (name,)
    for name in (
        "tokens_seen",
        "epoch",
        "data_cursor",
        "format",
        "format_version",
        "save_seconds",
        "stall_seconds",
        "milestone",
        "notes",
    )
}


class _Shared:
    """The ids of what checkpoints share (config, layout ...), found or made for a whole batch at once.

    A checkpoint without a config of its own has its attempt's, else its run's; likewise environment and layout.
    """

    def __init__(self, session: Session, project_id: int, items: Sequence[_Item]) -> None:
        given = [item.registration for item in items]
        self._items = items
        self._inherited = _inherited(session, project_id, {item.attempt_id for item in items})
        self._config = snapshots.keep_configs(session, project_id, [each.config for each in given])
        self._environment = snapshots.keep_environments(session, project_id, [each.environment for each in given])
        self._layout = snapshots.keep_layouts(session, project_id, [each.layout for each in given])
        self._code = snapshots.keep_code_versions(session, project_id, [each.code for each in given])
        self._data = snapshots.keep_data_versions(session, project_id, [each.data_version for each in given])

    def columns(self, at: int) -> dict[str, int | None]:
        config, environment, layout = self._inherited[self._items[at].attempt_id]
        return {
            "config_id": self._config[at] or config,
            "environment_id": self._environment[at] or environment,
            "layout_id": self._layout[at] or layout,
            "code_version_id": self._code[at],
            "data_version_id": self._data[at],
        }


def _inherited(
    session: Session, project_id: int, attempt_ids: Iterable[int]
) -> dict[int, tuple[int | None, int | None, int | None]]:
    found: dict[int, tuple[int | None, int | None, int | None]] = {}
    for chunk in chunks(sorted(attempt_ids)):
        query = (
            select(
                Attempt.id,
                func.coalesce(Attempt.config_id, Run.config_id).label("config_id"),
                Attempt.environment_id,
                Attempt.layout_id,
            )
            .join(Run, Run.id == Attempt.run_id)
            .where(Attempt.project_id == project_id, Attempt.id.in_(chunk))
        )
        found.update((row.id, (row.config_id, row.environment_id, row.layout_id)) for row in session.execute(query))
    return found


def _row(project_id: int, identity: int, item: _Item, shared: Mapping[str, int | None]) -> dict[str, Any]:
    given, at = item.registration, now()
    loss, loss_special = split_number(given.loss)
    lr, lr_special = split_number(given.lr)
    committed_at: datetime | None = at if given.state == CheckpointState.COMMITTED else None
    return {
        "id": identity,
        "project_id": project_id,
        "run_id": item.run_id,
        "attempt_id": item.attempt_id,
        "attempt_number": item.attempt_number,
        "step": given.step,
        "kind": given.kind,
        "state": given.state,
        "saved_at": given.saved_at or at,
        "saved_at_assumed": given.saved_at is None,
        "tokens_seen": given.tokens_seen,
        "epoch": given.epoch,
        "loss": loss,
        "loss_special": loss_special,
        "lr": lr,
        "lr_special": lr_special,
        "data_cursor": None if given.data_cursor is None else strict_json.canonical(given.data_cursor),
        "format": given.format,
        "format_version": given.format_version,
        "save_seconds": given.save_seconds,
        "stall_seconds": given.stall_seconds,
        "milestone": given.milestone,
        "notes": given.notes,
        "registration": item.digest,
        "created_at": at,
        "committed_at": committed_at,
        **shared,
    }


def _locked(session: Session, checkpoint_id: int) -> Checkpoint:
    query = select(Checkpoint).where(Checkpoint.id == checkpoint_id).with_for_update()
    found = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if found is None:
        raise CheckpointNotFound(
            f"There is no checkpoint {to_text(checkpoint_id)}. GET /api/v1/checkpoints lists them."
        )
    return found


def _refuse_deleted(checkpoint: Checkpoint) -> None:
    if checkpoint.state == CheckpointState.DELETED:
        raise CheckpointDeleted(f"Checkpoint {to_text(checkpoint.id)} was deleted; undelete it before changing it.")
