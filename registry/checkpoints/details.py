"""The rows that belong to a checkpoint beside its own: tags, metrics, pieces, replicas, parents, scores."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from registry.checkpoints.registration import Registration
from registry.checkpoints.replicas import insert_replicas
from registry.db import split_number
from registry.evals.copies import spread_over_copies
from registry.evals.scores import record_scores
from registry.lineage import Edge, link_parents
from registry.models import CheckpointMetric, CheckpointTag, Piece
from registry.types import LOSSLESS
from registry.upsert import any_of, insert_all, insert_missing

Named = Callable[[Registration], Iterator[dict[str, Any]]]


def write_details(
    session: Session,
    project_id: int,
    registrations: Sequence[tuple[int, Registration]],
    roots: Sequence[str],
    *,
    again: bool = False,
) -> None:
    """Write what belongs to checkpoints (id, registration), which were just inserted.

    `again`: they have rows already, which new ones replace.
    """
    insert = insert_missing if again else insert_all
    for table, named in ((CheckpointTag, _tags), (CheckpointMetric, _metrics), (Piece, _pieces)):
        rows = [
            {"project_id": project_id, "checkpoint_id": identity, **values}
            for identity, registration in registrations
            for values in named(registration)
        ]
        if again and rows:
            keys = [(row["project_id"], row["checkpoint_id"], row["name"]) for row in rows]
            session.execute(delete(table).where(any_of((table.project_id, table.checkpoint_id, table.name), keys)))
        insert(session, table, rows)
    insert_replicas(session, project_id, registrations, roots)
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
    record_scores(session, project_id, scored, fresh_checkpoints=not again)


def lend_scores(session: Session, project_id: int, registrations: Sequence[tuple[int, Registration]]) -> None:
    """Let the scores of checkpoints (id, registration) that are lossless copies count for their sources, and back."""
    copied = [identity for identity, given in registrations if any(each.relation in LOSSLESS for each in given.parents)]
    if copied:
        spread_over_copies(session, project_id, copied, lock=True)


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
