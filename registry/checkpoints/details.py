"""The rows that belong to a checkpoint beside its own: tags, metrics, pieces, replicas, parents, scores."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.registration import Registration, ReplicaSpec
from registry.db import now, split_number
from registry.evals.scores import record_scores
from registry.ids import new_id
from registry.lineage import Edge, link_parents
from registry.models import CheckpointMetric, CheckpointTag, Manifest, Piece, Replica, ReplicaPart
from registry.storage.roots import is_below_a_root
from registry.upsert import any_of, insert_missing

Named = Callable[[Registration], Iterator[dict[str, Any]]]


def write_details(
    session: Session,
    project_id: int,
    registrations: Sequence[tuple[int, Registration]],
    roots: Sequence[str],
    *,
    again: bool = False,
) -> None:
    """Write what belongs to checkpoints (id, registration). `again`: they have rows already, which new ones replace."""
    for table, named in ((CheckpointTag, _tags), (CheckpointMetric, _metrics), (Piece, _pieces)):
        rows = [
            {"project_id": project_id, "checkpoint_id": identity, **values}
            for identity, registration in registrations
            for values in named(registration)
        ]
        if again and rows:
            keys = [(row["project_id"], row["checkpoint_id"], row["name"]) for row in rows]
            session.execute(delete(table).where(any_of((table.project_id, table.checkpoint_id, table.name), keys)))
        insert_missing(session, table, rows)
    _write_replicas(session, project_id, registrations, roots)
    link_parents(
        session,
        project_id,
        [
            Edge(identity, parent.checkpoint_id, parent.relation)
            for identity, registration in registrations
            for parent in registration.parents
        ],
    )
    scored = [(identity, score) for identity, given in registrations for score in given.scores]
    record_scores(session, project_id, scored, unscored=not again)


def _tags(registration: Registration) -> Iterator[dict[str, Any]]:
    return ({"name": name, "value": value} for name, value in registration.tags.items())


def _metrics(registration: Registration) -> Iterator[dict[str, Any]]:
    for name, number in registration.metrics.items():
        value, special = split_number(number)
        yield {"name": name, "value": value, "special": special}


def _pieces(registration: Registration) -> Iterator[dict[str, Any]]:
    for name, piece in registration.pieces.items():
        yield {
            "name": name,
            "presence": piece.presence,
            "evidence": piece.evidence,
            "position_evidence": piece.position_evidence,
            "moment": piece.moment,
        }


def _write_replicas(
    session: Session, project_id: int, registrations: Sequence[tuple[int, Registration]], roots: Sequence[str]
) -> None:
    pairs = [(identity, given, replica) for identity, given in registrations for replica in given.replicas]
    if not pairs:
        return
    rows, parts = [], []
    for identity, given, replica in pairs:
        row = {
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
            "state": _state(given, replica),
            "verification": "unverified",
            "managed": is_below_a_root(replica.uri, roots),
            "recorded_at": now(),
        }
        rows.append(row)
        parts += [
            {
                "project_id": project_id,
                "replica_id": row["id"],
                "host": part.host,
                "ranks": part.ranks,
                "uri": part.uri,
                "bytes": part.bytes,
                "save_id": part.save_id,
            }
            for part in replica.parts
        ]
    insert_missing(session, Replica, rows)
    insert_missing(session, ReplicaPart, parts)


def _state(registration: Registration, replica: ReplicaSpec) -> str:
    """A spread replica is present only where its parts, all of one save, cover every rank."""
    if not replica.parts:
        return "present"
    world_size = registration.layout.world_size if registration.layout else None
    ranks = {rank for part in replica.parts for some in rank_ranges(part.ranks) for rank in some}
    same_save = len({part.save_id for part in replica.parts}) == 1
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
