"""The checkpoints that an answer names, read once they are few."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.filters import tables
from registry.types import PieceName, Presence
from registry.upsert import chunks


@dataclass(frozen=True, slots=True)
class Shown:
    identities: Mapping[int, CheckpointIdentity]

    @classmethod
    def read(cls, session: Session, project_id: int, project: str, checkpoint_ids: Iterable[int]) -> "Shown":
        """One statement for 500 of them."""
        checkpoint, run = tables.checkpoint, tables.run
        found = {}
        for chunk in chunks(dict.fromkeys(checkpoint_ids)):
            query = (
                select(
                    checkpoint.c.id,
                    checkpoint.c.run_id,
                    run.c.name,
                    checkpoint.c.attempt_number,
                    checkpoint.c.step,
                    checkpoint.c.kind,
                    checkpoint.c.saved_at,
                )
                .join(run, and_(run.c.project_id == checkpoint.c.project_id, run.c.id == checkpoint.c.run_id))
                .where(checkpoint.c.project_id == project_id, checkpoint.c.id.in_(chunk))
            )
            for identity, run_id, name, attempt, step, kind, saved_at in session.execute(query).all():
                run_name = RunName(run_id, name)
                found[identity] = CheckpointIdentity(identity, project, run_name, attempt, step, kind, saved_at)
        return cls(found)

    def identity(self, checkpoint_id: int) -> CheckpointIdentity:
        return self.identities[checkpoint_id]


def read_pieces(session: Session, project_id: int, checkpoint_ids: list[int]) -> dict[int, dict[PieceName, Presence]]:
    """What is said of the pieces of these checkpoints."""
    piece = tables.piece
    found: dict[int, dict[PieceName, Presence]] = {}
    for chunk in chunks(checkpoint_ids):
        query = select(piece.c.checkpoint_id, piece.c.name, piece.c.presence).where(
            piece.c.project_id == project_id, piece.c.checkpoint_id.in_(chunk)
        )
        for checkpoint_id, name, presence in session.execute(query):
            found.setdefault(checkpoint_id, {})[PieceName(name)] = Presence(presence)
    return found
