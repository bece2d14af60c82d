"""Write placed registrations: what is new is inserted, what is there is met, what is pending is committed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import bindparam, select, tuple_
from sqlalchemy.orm import Session

from registry import strict_json
from registry.changes import note_changes
from registry.checkpoints import concerned
from registry.checkpoints.details import replace_details, write_details
from registry.checkpoints.errors import CheckpointDeleted, CheckpointExists, CheckpointNotFound
from registry.checkpoints.placing import Item, Key, Problems
from registry.checkpoints.registration import differing_fields, digest_as_sent, given_fields, merged_digest
from registry.checkpoints.shared import SharedColumns
from registry.db import now, split_number
from registry.errors import FieldError, RegistryError
from registry.ids import new_id, to_text
from registry.incidents import closing
from registry.models import Checkpoint
from registry.types import CheckpointState
from registry.upsert import chunks, insert_new

_KEY: Final = tuple_(Checkpoint.run_id, Checkpoint.attempt_number, Checkpoint.step, Checkpoint.kind)
_AT_KEYS: Final = (
    select(Checkpoint)
    .where(Checkpoint.project_id == bindparam("project"), _KEY.in_(bindparam("keys", expanding=True)))
    .execution_options(populate_existing=True)
)


@dataclass(frozen=True)
class Registered:
    """What became of a registration, and the checkpoint's identity within its run."""

    checkpoint_id: int
    status: Literal["created", "unchanged", "committed"]
    attempt: int
    step: int
    kind: str
    saved_at: datetime
    state: str
    superseded: bool


def write_items(
    session: Session, project_id: int, items: Sequence[Item], problems: Problems, roots: Sequence[str]
) -> dict[int, Registered]:
    """By index what became of each; what is refused is added to `problems`."""
    results: dict[int, Registered] = {}
    for items_of_round in _rounds(items):
        # In the order of their keys, so that two batches that overlap never wait for each other in a circle.
        results |= _insert(session, project_id, sorted(items_of_round, key=lambda item: item.key), roots)
        there = [item for item in items_of_round if item.index not in results]
        existing = _existing(session, project_id, there)
        for item in there:
            try:
                results[item.index] = _meet(session, existing[item.key], item, roots)
            except RegistryError as problem:
                problems.append((item.index, problem))
    return results


def commit(session: Session, checkpoint: Checkpoint, item: Item, roots: Sequence[str]) -> Registered:
    """Commit a pending checkpoint, which the caller has locked, with the fields that the item gives."""
    values = _row(checkpoint.project_id, checkpoint.id, item)
    values |= SharedColumns(session, checkpoint.project_id, [item]).of(0)
    for name in given_fields(item.digest):
        for column in _COLUMNS.get(name, ()):
            setattr(checkpoint, column, values[column])
    checkpoint.state, checkpoint.committed_at = CheckpointState.COMMITTED, now()
    checkpoint.commit_registration = item.digest
    session.flush()
    replace_details(session, checkpoint.project_id, checkpoint.id, item.registration, roots)
    closing.settle_open(session, checkpoint.project_id, [checkpoint.run_id])
    note_changes(session, checkpoint.project_id, [checkpoint.id])
    return _registered(checkpoint, item, "committed")


def lock(session: Session, checkpoint_id: int) -> Checkpoint:
    """The checkpoint, until the transaction ends. Raises CheckpointNotFound."""
    query = select(Checkpoint).where(Checkpoint.id == checkpoint_id).with_for_update()
    found = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if found is None:
        raise CheckpointNotFound(
            f"There is no checkpoint {to_text(checkpoint_id)}. GET /api/v1/checkpoints lists them."
        )
    return found


def refuse_deleted(checkpoint: Checkpoint) -> None:
    """Raises CheckpointDeleted."""
    if checkpoint.state == CheckpointState.DELETED:
        raise CheckpointDeleted(f"Checkpoint {to_text(checkpoint.id)} was deleted; undelete it before changing it.")


def compare_committed(checkpoint: Checkpoint, item: Item, differing: Sequence[str]) -> Registered:
    """Unchanged where nothing differs. Raises CheckpointExists, CheckpointDeleted."""
    refuse_deleted(checkpoint)
    if differing:
        raise CheckpointExists(
            f"Checkpoint {to_text(checkpoint.id)} already stands at attempt {checkpoint.attempt_number}, "
            f"step {checkpoint.step} ({checkpoint.kind}), and differs in: {', '.join(differing)}. "
            "A save after going back in steps belongs to a new attempt; PATCH amends tags, notes, milestone and loss.",
            errors=[FieldError(f"/{name}", "differs from what is recorded") for name in differing],
            checkpoint_id=to_text(checkpoint.id),
            fields=list(differing),
        )
    return _registered(checkpoint, item, "unchanged")


def _rounds(items: Sequence[Item]) -> Iterable[list[Item]]:
    """The items in runs in which no key occurs twice."""
    current: dict[Key, Item] = {}
    for item in items:
        if item.key in current:
            yield list(current.values())
            current = {}
        current[item.key] = item
    if current:
        yield list(current.values())


def _existing(session: Session, project_id: int, items: Sequence[Item]) -> dict[Key, Checkpoint]:
    found: dict[Key, Checkpoint] = {}
    for chunk in chunks(item.key for item in items):
        for row in session.scalars(_AT_KEYS, {"project": project_id, "keys": chunk}):
            found[row.run_id, row.attempt_number, row.step, row.kind] = row
    return found


def _meet(session: Session, checkpoint: Checkpoint, item: Item, roots: Sequence[str]) -> Registered:
    """What a registration does to a checkpoint that is there already."""
    if checkpoint.state == CheckpointState.PENDING and item.registration.state == CheckpointState.COMMITTED:
        locked = lock(session, checkpoint.id)
        if locked.state == CheckpointState.PENDING:
            return commit(session, locked, item, roots)
        checkpoint = locked
    return compare_committed(checkpoint, item, what_differs(checkpoint, item))


def what_differs(checkpoint: Checkpoint, item: Item) -> list[str]:
    """The fields in which a registration differs from a checkpoint; none where it is one that was accepted before."""
    accepted = (checkpoint.registration, checkpoint.commit_registration)
    if item.digest in accepted:
        return []
    as_sent = digest_as_sent(item.registration)
    if as_sent in accepted:
        return []
    recorded = checkpoint.registration
    if checkpoint.commit_registration is not None:
        recorded = merged_digest(recorded, checkpoint.commit_registration)
    otherwise = differing_fields(recorded, as_sent)
    return [name for name in differing_fields(recorded, item.digest) if name in otherwise]


def _insert(session: Session, project_id: int, items: Sequence[Item], roots: Sequence[str]) -> dict[int, Registered]:
    """Insert what is not there yet, with everything that belongs to it; by index what became of it.

    Whether it is there is not asked before: the key says so itself, and most registrations are new.
    """
    shared = SharedColumns(session, project_id, items)
    identities = [new_id() for _ in items]
    rows = [_row(project_id, identities[at], item) | shared.of(at) for at, item in enumerate(items)]
    inserted = insert_new(session, Checkpoint, rows)
    mine = [at for at, identity in enumerate(identities) if identity in inserted]
    if not mine:
        return {}
    write_details(session, project_id, [(identities[at], items[at].registration) for at in mine], roots)
    concerned.settle(session, project_id, [(identities[at], items[at]) for at in mine])
    return {
        items[at].index: Registered(
            identities[at],
            "created",
            items[at].attempt.number,
            items[at].registration.step,
            items[at].registration.kind,
            rows[at]["saved_at"],
            items[at].registration.state,
            _superseded(items[at]),
        )
        for at in mine
    }


def _registered(checkpoint: Checkpoint, item: Item, status: Literal["created", "unchanged", "committed"]) -> Registered:
    return Registered(
        checkpoint.id,
        status,
        checkpoint.attempt_number,
        checkpoint.step,
        checkpoint.kind,
        checkpoint.saved_at,
        checkpoint.state,
        _superseded(item),
    )


def _superseded(item: Item) -> bool:
    through = item.attempt.live_through_step
    return through is not None and item.registration.step > through


def _row(project_id: int, identity: int, item: Item) -> dict[str, Any]:
    given, at = item.registration, now()
    loss, loss_special = split_number(given.loss)
    lr, lr_special = split_number(given.lr)
    return {
        "id": identity,
        "project_id": project_id,
        "run_id": item.run_id,
        "attempt_id": item.attempt.id,
        "attempt_number": item.attempt.number,
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
        "committed_at": at if given.state == CheckpointState.COMMITTED else None,
    }


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
    **{
        name: (name,)
        for name in ("tokens_seen", "epoch", "data_cursor", "format", "format_version", "milestone", "notes")
    },
    **{name: (name,) for name in ("save_seconds", "stall_seconds")},
}
