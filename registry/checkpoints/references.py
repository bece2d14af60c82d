"""What a registration names must be there: its parents, and the copies that its scores were measured on."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.placing import Item, Key, Problems
from registry.errors import FieldError, RegistryError
from registry.evals.scores import ReplicaUnknown
from registry.ids import to_text
from registry.lineage import WITHIN_ONE_PROJECT, ParentUnknown
from registry.models import Checkpoint, Replica
from registry.upsert import chunks


def with_known_references(
    session: Session, project_id: int, items: Sequence[Item], problems: Problems
) -> Sequence[Item]:
    """The items whose parents and replicas are known; the others are added to `problems`."""
    parents = _known_parents(session, project_id, items)
    replicas = _keys_of_replicas(session, project_id, items)
    kept = []
    for item in items:
        problem = _unknown_parent(item, parents) or _unknown_replica(item, replicas)
        if problem is None:
            kept.append(item)
        else:
            problems.append((item.index, problem))
    return kept


def _known_parents(session: Session, project_id: int, items: Sequence[Item]) -> set[int]:
    known: set[int] = set()
    for chunk in chunks({parent.checkpoint_id for item in items for parent in item.registration.parents}):
        query = select(Checkpoint.id).where(Checkpoint.project_id == project_id, Checkpoint.id.in_(chunk))
        known.update(session.scalars(query))
    return known


def _keys_of_replicas(session: Session, project_id: int, items: Sequence[Item]) -> dict[int, Key]:
    """Replica id to the key of its checkpoint."""
    named = {score.replica_id for item in items for score in item.registration.scores if score.replica_id is not None}
    found: dict[int, Key] = {}
    for chunk in chunks(named):
        query = (
            select(Replica.id, Checkpoint.run_id, Checkpoint.attempt_number, Checkpoint.step, Checkpoint.kind)
            .join(Checkpoint, Checkpoint.id == Replica.checkpoint_id)
            .where(Replica.project_id == project_id, Replica.id.in_(chunk))
        )
        found.update(
            (replica_id, (run, attempt, step, kind)) for replica_id, run, attempt, step, kind in session.execute(query)
        )
    return found


def _unknown_parent(item: Item, known: set[int]) -> RegistryError | None:
    for at, parent in enumerate(item.registration.parents):
        if parent.checkpoint_id not in known:
            message = f"this project has no checkpoint {to_text(parent.checkpoint_id)}"
            errors = [FieldError(f"/parents/{at}/checkpoint_id", message)]
            return ParentUnknown(
                f"A parent is unknown: {message}. Record it first. {WITHIN_ONE_PROJECT}.", errors=errors
            )
    return None


def _unknown_replica(item: Item, keys: dict[int, Key]) -> RegistryError | None:
    for at, score in enumerate(item.registration.scores):
        if score.replica_id is not None and keys.get(score.replica_id) != item.key:
            return ReplicaUnknown.at(f"/scores/{at}/replica_id", score.replica_id)
    return None
