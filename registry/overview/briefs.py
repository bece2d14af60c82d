"""A checkpoint in brief: its identity, its pieces, where its files are. Three statements for any number of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.completeness import resumability_of
from registry.db import join_number
from registry.models import Attempt, Checkpoint, DataVersion, Piece, Project, Replica, Run
from registry.types import PieceName, Presence, Resumability, Tier
from registry.upsert import chunks

# Which copy's path stands for the checkpoint: one that every host can read, then the nearest.
_TIER_ORDER: Final = {Tier.SHARED: 0, Tier.LOCAL: 1, Tier.OBJECT: 2}


@dataclass(frozen=True, slots=True)
class Copies:
    """The present copies of a checkpoint: the path to show, the tiers, and the size of one copy in bytes."""

    uri: str | None = None
    tiers: tuple[str, ...] = ()
    bytes: int | None = None
    verified_tiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """What a page says of a checkpoint wherever it names it. Non-finite losses are floats."""

    id: int
    project_id: int
    project: str
    run_id: int
    run_name: str
    attempt: int
    step: int
    kind: str
    state: str
    saved_at: datetime
    saved_at_assumed: bool  # nobody said when: this is when the record arrived
    superseded: bool
    loss: float | None
    tokens_seen: int | None
    data_version: str | None
    parameter_count: int | None
    pieces: Mapping[PieceName, Presence]
    copies: Copies

    @property
    def resumability(self) -> Resumability:
        return resumability_of(self.pieces)


def read_briefs(session: Session, ids: Iterable[int]) -> dict[int, Brief]:
    """The briefs of the checkpoints that exist, by id."""
    found: dict[int, Brief] = {}
    for chunk in chunks(dict.fromkeys(ids)):
        pieces, copies = _pieces(session, chunk), _copies(session, chunk)
        for row in session.execute(_identities(chunk)):
            values = dict(row._mapping)
            values["loss"] = join_number(values["loss"], values.pop("loss_special"))
            live = values.pop("live_through_step")
            values["superseded"] = live is not None and row.step > live
            own = pieces.get(row.id, {})
            found[row.id] = Brief(
                **values,
                pieces={name: own.get(name, Presence.UNKNOWN) for name in PieceName},
                copies=copies.get(row.id, Copies()),
            )
    return found


def _identities(ids: list[int]) -> Any:
    return (
        select(
            Checkpoint.id,
            Checkpoint.project_id,
            Project.name.label("project"),
            Checkpoint.run_id,
            Run.name.label("run_name"),
            Checkpoint.attempt_number.label("attempt"),
            Checkpoint.step,
            Checkpoint.kind,
            Checkpoint.state,
            Checkpoint.saved_at,
            Checkpoint.saved_at_assumed,
            Checkpoint.loss,
            Checkpoint.loss_special,
            Checkpoint.tokens_seen,
            DataVersion.name.label("data_version"),
            Run.parameter_count,
            Attempt.live_through_step,
        )
        .join(Project, Project.id == Checkpoint.project_id)
        .join(Run, Run.id == Checkpoint.run_id)
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .outerjoin(DataVersion, DataVersion.id == Checkpoint.data_version_id)
        .where(Checkpoint.id.in_(ids))
    )


def _projects_of(ids: list[int]) -> Any:
    """The projects of these checkpoints: their parts are found by (project, checkpoint)."""
    return select(Checkpoint.project_id).where(Checkpoint.id.in_(ids)).distinct().scalar_subquery()


def _pieces(session: Session, ids: list[int]) -> dict[int, dict[PieceName, Presence]]:
    query = select(Piece.checkpoint_id, Piece.name, Piece.presence).where(
        Piece.project_id.in_(_projects_of(ids)), Piece.checkpoint_id.in_(ids)
    )
    found: dict[int, dict[PieceName, Presence]] = {}
    for row in session.execute(query):
        found.setdefault(row.checkpoint_id, {})[PieceName(row.name)] = Presence(row.presence)
    return found


def _copies(session: Session, ids: list[int]) -> dict[int, Copies]:
    query = select(
        Replica.checkpoint_id, Replica.uri, Replica.tier, Replica.bytes, Replica.verification, Replica.id
    ).where(Replica.project_id.in_(_projects_of(ids)), Replica.checkpoint_id.in_(ids), Replica.state == "present")
    rows: dict[int, list[Any]] = {}
    for row in session.execute(query):
        rows.setdefault(row.checkpoint_id, []).append(row)
    return {checkpoint_id: _summary(found) for checkpoint_id, found in rows.items()}


def _summary(rows: list[Any]) -> Copies:
    rows = sorted(rows, key=lambda row: (_TIER_ORDER[Tier(row.tier)], row.id))
    return Copies(
        uri=rows[0].uri,
        tiers=tuple(dict.fromkeys(row.tier for row in rows)),
        bytes=next((row.bytes for row in rows if row.bytes is not None), None),
        verified_tiers=tuple(dict.fromkeys(row.tier for row in rows if row.verification == "verified")),
    )
