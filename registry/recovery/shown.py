"""The checkpoints that an answer names, read once they are few."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.filters import tables
from registry.many_ids import is_among
from registry.types import PieceName, Presence


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the record of a checkpoint says that may leave it out. `loss_special`: the loss, where it is not finite."""

    state: str
    loss_special: str | None


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


@dataclass(frozen=True, slots=True)
class Shown:
    identities: Mapping[int, CheckpointIdentity]
    recorded: Mapping[int, Recorded]

    @classmethod
    def read(cls, session: Session, project_id: int, project: str, checkpoint_ids: Iterable[int]) -> "Shown":
        """One statement for any number of them."""
        checkpoint, run = tables.checkpoint, tables.run
        query = (
            select(
                checkpoint.c.id,
                checkpoint.c.run_id,
                run.c.name,
                checkpoint.c.attempt_number,
                checkpoint.c.step,
                checkpoint.c.kind,
                checkpoint.c.saved_at,
                checkpoint.c.state,
                checkpoint.c.loss_special,
            )
            .join(run, and_(run.c.project_id == checkpoint.c.project_id, run.c.id == checkpoint.c.run_id))
            .where(checkpoint.c.project_id == project_id, is_among(session, checkpoint.c.id, checkpoint_ids))
        )
        found, recorded = {}, {}
        names: dict[int, RunName] = {}
        for identity, run_id, name, attempt, step, kind, saved_at, *said in session.execute(query).all():
            run_name = names.setdefault(run_id, RunName(run_id, name))
            found[identity] = CheckpointIdentity(identity, project, run_name, attempt, step, kind, saved_at)
            recorded[identity] = Recorded(*said)
        return cls(found, recorded)

    def identity(self, checkpoint_id: int) -> CheckpointIdentity:
        return self.identities[checkpoint_id]


def read_pieces(session: Session, project_id: int, checkpoint_ids: list[int]) -> dict[int, dict[PieceName, Presence]]:
    """What is said of the pieces of these checkpoints."""
    piece = tables.piece
    found: dict[int, dict[PieceName, Presence]] = {}
    if not checkpoint_ids:
        return found
    query = select(piece.c.checkpoint_id, piece.c.name, piece.c.presence).where(
        piece.c.project_id == project_id, is_among(session, piece.c.checkpoint_id, checkpoint_ids)
    )
    for checkpoint_id, name, presence in session.execute(query):
        found.setdefault(checkpoint_id, {})[PieceName(name)] = Presence(presence)
    return found


def read_chosen_copies(session: Session, project_id: int, replica_ids: Sequence[int]) -> dict[int, Copy]:
    """The copies of the candidates, by replica id, with where they lie."""
    replica = tables.replica.c
    query = select(
        replica.id,
        replica.checkpoint_id,
        replica.uri,
        replica.tier,
        replica.host,
        replica.bytes,
        replica.state,
        replica.verification,
    ).where(replica.project_id == project_id, replica.id.in_(list(replica_ids)))
    return {row[0]: Copy(*row[1:]) for row in session.execute(query)} if replica_ids else {}
