"""Copies of checkpoints: those that a registration names, and those that are made or found later."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import audit, outbox, strict_json
from registry.checkpoints.errors import CheckpointDeleted, CheckpointNotFound
from registry.checkpoints.registration import PartSpec, Registration, ReplicaSpec
from registry.db import now
from registry.errors import Conflict, FieldError
from registry.ids import new_id, to_text
from registry.models import Checkpoint, Layout, Manifest, Replica, ReplicaPart
from registry.storage.roots import is_below_a_root
from registry.types import CheckpointState
from registry.upsert import insert_missing


class ReplicaDiffers(Conflict):
    code = "replica-differs"
    title = "This is no copy of what is recorded"


def add_replicas(
    session: Session, checkpoint_id: int, replicas: Sequence[ReplicaSpec], roots: Sequence[str], *, actor: str
) -> int:
    """Record further copies of a checkpoint; gives how many were not known. Sending them again adds nothing.

    A copy that was removed and is there again is present again; of a spread one each host may add its own parts.
    Raises CheckpointNotFound, CheckpointDeleted, ReplicaDiffers.
    """
    query = select(Checkpoint).where(Checkpoint.id == checkpoint_id).with_for_update()
    checkpoint = session.scalars(query).one_or_none()
    if checkpoint is None:
        raise CheckpointNotFound(f"There is no checkpoint {to_text(checkpoint_id)}.")
    if checkpoint.state == CheckpointState.DELETED:
        raise CheckpointDeleted(f"Checkpoint {to_text(checkpoint_id)} was deleted; undelete it before changing it.")
    known = _recorded(session, checkpoint)
    for at, replica in enumerate(replicas):
        _refuse_other_content(at, replica, list(known.values()))
    world_size = session.scalar(select(Layout.world_size).where(Layout.id == checkpoint.layout_id))
    fresh = [each for each in replicas if each.uri not in known]
    back = [each for each in replicas if each.uri in known and known[each.uri].state not in ("present", "partial")]
    _insert(session, checkpoint.project_id, [(checkpoint.id, world_size, each) for each in fresh], roots)
    for replica in replicas:
        if replica.uri in known:
            _meet(session, known[replica.uri], replica, world_size)
    if fresh or back:
        outbox.announce(session, checkpoint.project_id, "checkpoint.copies_found", [checkpoint.id])
    if fresh:
        audit.record(
            session,
            actor=actor,
            action="replica.add",
            project_id=checkpoint.project_id,
            subject_id=checkpoint.id,
            detail={"uris": [each.uri for each in fresh[:20]]},
        )
    return len(fresh)


def insert_replicas(
    session: Session, project_id: int, registrations: Sequence[tuple[int, Registration]], roots: Sequence[str]
) -> None:
    """The copies that registrations of checkpoints (id, registration) name."""
    pairs = [
        (identity, given.layout.world_size if given.layout else None, replica)
        for identity, given in registrations
        for replica in given.replicas
    ]
    if pairs:
        _insert(session, project_id, pairs, roots)


def _recorded(session: Session, checkpoint: Checkpoint) -> dict[str, Replica]:
    query = select(Replica).where(Replica.project_id == checkpoint.project_id, Replica.checkpoint_id == checkpoint.id)
    return {row.uri: row for row in session.scalars(query)}


def _refuse_other_content(at: int, replica: ReplicaSpec, known: Sequence[Replica]) -> None:
    """A digest of the same algorithm, or the size of the same files, must be the same everywhere."""
    for row in known:
        other = replica.digest is not None and row.digest_algorithm == replica.digest_algorithm
        if other and row.digest != replica.digest:
            message = f"its {replica.digest_algorithm} digest is {replica.digest}, that of {row.uri} is {row.digest}"
            raise ReplicaDiffers(f"No copy: {message}.", errors=[FieldError(f"/{at}/digest", message)])
        if row.uri == replica.uri and None not in (row.bytes, replica.bytes) and row.bytes != replica.bytes:
            message = f"{replica.bytes} bytes, where {row.bytes} are recorded of {row.uri}"
            raise ReplicaDiffers(
                f"Not the copy that is recorded: {message}.", errors=[FieldError(f"/{at}/bytes", message)]
            )


def _meet(session: Session, row: Replica, replica: ReplicaSpec, world_size: int | None) -> None:
    """What is known of a copy that is recorded, completed by what is said of it now."""
    for name in ("bytes", "file_count", "host"):
        if getattr(row, name) is None:
            setattr(row, name, getattr(replica, name))
    if row.digest is None:
        row.digest_algorithm, row.digest = replica.digest_algorithm, replica.digest
    if row.manifest_id is None:
        row.manifest_id = _keep_manifest(session, replica)
    insert_missing(session, ReplicaPart, [_part_row(row.project_id, row.id, part) for part in replica.parts])
    query = select(ReplicaPart).where(ReplicaPart.project_id == row.project_id, ReplicaPart.replica_id == row.id)
    row.state = _state([(part.ranks, part.save_id) for part in session.scalars(query)], world_size)
    session.flush()


def _insert(
    session: Session, project_id: int, pairs: Sequence[tuple[int, int | None, ReplicaSpec]], roots: Sequence[str]
) -> None:
    """Rows of (checkpoint id, world size of its layout, copy)."""
    rows: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for identity, world_size, replica in pairs:
        row: dict[str, Any] = {
            "id": new_id(),
            "project_id": project_id,
            "checkpoint_id": identity,
            "uri": replica.uri,
            "tier": replica.tier,
            "host": replica.host,
            "bytes": replica.bytes,
            "file_count": replica.file_count,
            "digest_algorithm": replica.digest_algorithm,
            "digest": replica.digest,
            "manifest_id": _keep_manifest(session, replica),
            "state": _state([(part.ranks, part.save_id) for part in replica.parts], world_size),
            "verification": "unverified",
            "managed": is_below_a_root(replica.uri, roots),
            "recorded_at": now(),
        }
        rows.append(row)
        parts += [_part_row(project_id, row["id"], part) for part in replica.parts]
    insert_missing(session, Replica, rows)
    insert_missing(session, ReplicaPart, parts)


def _part_row(project_id: int, replica_id: int, part: PartSpec) -> dict[str, Any]:
    named = {name: getattr(part, name) for name in ("host", "ranks", "uri", "bytes", "save_id")}
    return {"project_id": project_id, "replica_id": replica_id, **named}


def _state(parts: Sequence[tuple[str, str | None]], world_size: int | None) -> str:
    """A spread copy (ranks and save of each part) is present only where parts of one save cover every rank."""
    if not parts:
        return "present"
    ranks = {rank for text, _ in parts for some in rank_ranges(text) for rank in some}
    same_save = len({save_id for _, save_id in parts}) == 1
    return "present" if same_save and world_size is not None and ranks == set(range(world_size)) else "partial"


def rank_ranges(text: str) -> list[range]:
    """'0-3,8' as [range(0, 4), range(8, 9)]; text of another form raises ValueError."""
    ends = (part.partition("-") for part in text.split(","))
    return [range(int(first), int(last or first) + 1) for first, _, last in ends]


def _keep_manifest(session: Session, replica: ReplicaSpec) -> int | None:
    if not replica.manifest:
        return None
    files = [
        [file.path, file.bytes] if file.digest is None else [file.path, file.bytes, file.digest]
        for file in sorted(replica.manifest, key=lambda file: file.path)
    ]
    text = strict_json.canonical(files)
    digest = strict_json.digest(text)
    insert_missing(
        session, Manifest, [{"id": new_id(), "digest": digest, "body": strict_json.pack(text), "created_at": now()}]
    )
    return session.scalars(select(Manifest.id).where(Manifest.digest == digest)).one()
