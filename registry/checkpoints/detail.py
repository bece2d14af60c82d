"""Everything that is known about one checkpoint, in a constant number of statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.aliases import list_aliases
from registry.checkpoints.completeness import resumability_of
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import PieceSpec
from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.db import join_number
from registry.ids import to_text
from registry.lineage import Edge
from registry.models import (
    Attempt,
    Checkpoint,
    CheckpointMetric,
    CheckpointTag,
    CodeVersion,
    Config,
    DataSource,
    DataVersion,
    Environment,
    Layout,
    LineageEdge,
    Piece,
    Project,
    Replica,
    ReplicaPart,
    Run,
)
from registry.snapshots import CodeSpec, DataSpec, LayoutSpec, SourceSpec
from registry.types import PieceName, Presence, Resumability
from registry.upsert import chunks


@dataclass(frozen=True)
class ReplicaRow:
    """A recorded copy. Sizes in bytes."""

    id: int
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    file_count: int | None
    digest_algorithm: str | None
    digest: str | None
    state: str
    verification: str
    managed: bool
    parts: Sequence[tuple[str, str, str]]  # host, ranks, uri
    recorded_at: datetime


@dataclass(frozen=True)
class CheckpointDetail:
    """One checkpoint. What is None is unknown."""

    checkpoint: CheckpointIdentity
    project_id: int
    run_id: int
    attempt_id: int
    state: str
    superseded: bool
    resumability: Resumability
    pieces: Mapping[PieceName, PieceSpec]
    saved_at_assumed: bool
    tokens_seen: int | None
    epoch: float | None
    loss: float | None
    lr: float | None
    metrics: Mapping[str, float | None]
    tags: Mapping[str, str]
    milestone: bool
    notes: str | None
    config: Mapping[str, Any] | None
    environment: Mapping[str, Any] | None
    layout: LayoutSpec | None
    code: CodeSpec | None
    data_version: DataSpec | None
    data_cursor: Any
    format: str | None
    format_version: str | None
    save_seconds: float | None
    stall_seconds: float | None
    replicas: Sequence[ReplicaRow]
    parents: Sequence[Edge]
    aliases: Sequence[str]
    created_at: datetime
    committed_at: datetime | None


def project_of(session: Session, checkpoint_id: int) -> int:
    """The project id of a checkpoint. Raises CheckpointNotFound."""
    found = session.scalars(select(Checkpoint.project_id).where(Checkpoint.id == checkpoint_id)).one_or_none()
    if found is None:
        raise CheckpointNotFound(
            f"There is no checkpoint {to_text(checkpoint_id)}. GET /api/v1/checkpoints lists them."
        )
    return found


def read_identities(session: Session, checkpoint_ids: Sequence[int]) -> dict[int, CheckpointIdentity]:
    """The identity of each checkpoint that exists, by id."""
    found: dict[int, CheckpointIdentity] = {}
    for chunk in chunks(checkpoint_ids):
        query = (
            select(Checkpoint, Project.name, Run.name)
            .join(Project, Project.id == Checkpoint.project_id)
            .join(Run, Run.id == Checkpoint.run_id)
            .where(Checkpoint.id.in_(chunk))
        )
        for row, project, run in session.execute(query):
            found[row.id] = _identity(row, project, run)
    return found


def get_checkpoint(session: Session, checkpoint_id: int) -> CheckpointDetail:
    """Raises CheckpointNotFound."""
    query = (
        select(Checkpoint, Project.name, Run.name, Attempt.live_through_step)
        .join(Project, Project.id == Checkpoint.project_id)
        .join(Run, Run.id == Checkpoint.run_id)
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(Checkpoint.id == checkpoint_id)
    )
    found = session.execute(query).one_or_none()
    if found is None:
        raise CheckpointNotFound(
            f"There is no checkpoint {to_text(checkpoint_id)}. GET /api/v1/checkpoints lists them."
        )
    row, project, run, live_through = found
    pieces = read_pieces(session, row.project_id, row.id)
    return CheckpointDetail(
        checkpoint=_identity(row, project, run),
        project_id=row.project_id,
        run_id=row.run_id,
        attempt_id=row.attempt_id,
        state=row.state,
        superseded=live_through is not None and row.step > live_through,
        resumability=resumability_of({name: Presence(piece.presence) for name, piece in pieces.items()}),
        pieces=pieces,
        saved_at_assumed=row.saved_at_assumed,
        tokens_seen=row.tokens_seen,
        epoch=row.epoch,
        loss=join_number(row.loss, row.loss_special),
        lr=join_number(row.lr, row.lr_special),
        metrics=_metrics(session, row),
        tags=_tags(session, row),
        milestone=row.milestone,
        notes=row.notes,
        config=read_config(session, row.config_id),
        environment=read_environment(session, row.environment_id),
        layout=_layout(session, row.layout_id),
        code=_code(session, row.code_version_id),
        data_version=read_data_version(session, row.project_id, row.data_version_id),
        data_cursor=None if row.data_cursor is None else strict_json.loads(row.data_cursor.encode()),
        format=row.format,
        format_version=row.format_version,
        save_seconds=row.save_seconds,
        stall_seconds=row.stall_seconds,
        replicas=_replicas(session, row),
        parents=_parents(session, row),
        aliases=[alias.name for alias in list_aliases(session, [row.project_id], checkpoint_ids=[row.id])],
        created_at=row.created_at,
        committed_at=row.committed_at,
    )


def _identity(row: Checkpoint, project: str, run: str) -> CheckpointIdentity:
    return CheckpointIdentity(
        row.id, project, RunName(row.run_id, run), row.attempt_number, row.step, row.kind, row.saved_at
    )


def read_config(session: Session, config_id: int | None) -> dict[str, Any] | None:
    """A configuration as it was sent, numbers written as they were."""
    return _unpacked(session, Config, config_id)


def read_environment(session: Session, environment_id: int | None) -> dict[str, Any] | None:
    """An environment as it was sent."""
    return _unpacked(session, Environment, environment_id)


def read_data_version(session: Session, project_id: int, data_version_id: int | None) -> DataSpec | None:
    """A data version with its mix, where that is known."""
    version = None if data_version_id is None else session.get(DataVersion, data_version_id)
    if version is None:
        return None
    query = select(DataSource).where(DataSource.project_id == project_id, DataSource.data_version_id == data_version_id)
    mix = {row.source: SourceSpec(row.weight, row.tokens) for row in session.scalars(query.order_by(DataSource.source))}
    return DataSpec(version.name, mix, version.uri)


def _unpacked(session: Session, table: Any, identity: int | None) -> dict[str, Any] | None:
    if identity is None:
        return None
    body = session.scalars(select(table.body).where(table.id == identity)).one()
    value: dict[str, Any] = strict_json.unpack(body)
    return value


def read_pieces(session: Session, project_id: int, checkpoint_id: int) -> dict[PieceName, PieceSpec]:
    """All four pieces; one of which nobody spoke is unknown."""
    query = select(Piece).where(Piece.project_id == project_id, Piece.checkpoint_id == checkpoint_id)
    said = {
        piece.name: PieceSpec(piece.presence, piece.evidence, piece.position_evidence, piece.moment)
        for piece in session.scalars(query)
    }
    return {name: said.get(name, PieceSpec(Presence.UNKNOWN)) for name in PieceName}


def _metrics(session: Session, row: Checkpoint) -> dict[str, float | None]:
    query = select(CheckpointMetric).where(
        CheckpointMetric.project_id == row.project_id, CheckpointMetric.checkpoint_id == row.id
    )
    found = session.scalars(query.order_by(CheckpointMetric.name))
    return {metric.name: join_number(metric.value, metric.special) for metric in found}


def _tags(session: Session, row: Checkpoint) -> dict[str, str]:
    query = select(CheckpointTag.name, CheckpointTag.value).where(
        CheckpointTag.project_id == row.project_id, CheckpointTag.checkpoint_id == row.id
    )
    return dict(session.execute(query.order_by(CheckpointTag.name)).all())


def _layout(session: Session, identity: int | None) -> LayoutSpec | None:
    row = None if identity is None else session.get(Layout, identity)
    if row is None:
        return None
    extra = strict_json.loads(row.extra.encode()) if row.extra else {}
    return LayoutSpec(row.world_size, row.tp, row.pp, row.dp, row.cp, row.ep, row.sharding, extra)


def _code(session: Session, identity: int | None) -> CodeSpec | None:
    row = None if identity is None else session.get(CodeVersion, identity)
    return None if row is None else CodeSpec(row.commit, row.dirty, row.diff_digest, row.remote)


def _replicas(session: Session, row: Checkpoint) -> list[ReplicaRow]:
    query = select(Replica).where(Replica.project_id == row.project_id, Replica.checkpoint_id == row.id)
    replicas = list(session.scalars(query.order_by(Replica.tier, Replica.uri)))
    own = select(ReplicaPart).where(
        ReplicaPart.project_id == row.project_id, ReplicaPart.replica_id.in_([replica.id for replica in replicas])
    )
    parts: dict[int, list[tuple[str, str, str]]] = {}
    for part in session.scalars(own.order_by(ReplicaPart.host)) if replicas else ():
        parts.setdefault(part.replica_id, []).append((part.host, part.ranks, part.uri))
    return [
        ReplicaRow(
            id=replica.id,
            uri=replica.uri,
            tier=replica.tier,
            host=replica.host,
            bytes=replica.bytes,
            file_count=replica.file_count,
            digest_algorithm=replica.digest_algorithm,
            digest=replica.digest,
            state=replica.state,
            verification=replica.verification,
            managed=replica.managed,
            parts=tuple(parts.get(replica.id, ())),
            recorded_at=replica.recorded_at,
        )
        for replica in replicas
    ]


def _parents(session: Session, row: Checkpoint) -> list[Edge]:
    query = select(LineageEdge).where(LineageEdge.project_id == row.project_id, LineageEdge.child_id == row.id)
    return [Edge(edge.child_id, edge.parent_id, edge.relation) for edge in session.scalars(query)]
