"""The rows that belong to a checkpoint beside its own: tags, metrics, pieces, replicas, parents, scores."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from registry import outbox
from registry.checkpoints.registration import Registration
from registry.checkpoints.replicas import insert_replicas
from registry.db import split_number
from registry.evals.copies import spread_over_copies
from registry.evals.score_series import series_of
from registry.evals.scores import record_first_scores, record_scores
from registry.lineage import Edge, link_parents
from registry.models import CheckpointMetric, CheckpointTag, Piece
from registry.together import in_turns
from registry.types import LOSSLESS, CheckpointState
from registry.upsert import any_of, insert_all, insert_missing

COMMITTED: Final = "checkpoint.committed"

Named = Callable[[Registration], Iterator[dict[str, Any]]]


def write_details(
    session: Session, project_id: int, registrations: Sequence[tuple[int, Registration]], roots: Sequence[str]
) -> None:
    """Write what belongs to checkpoints (id, registration), which were just inserted."""
    _link(session, project_id, registrations, roots)
    series = series_of(session, project_id, {each.series_key for _, given in registrations for each in given.scores})

    def insert(some: Sequence[tuple[int, Registration]]) -> None:
        for table, named in _NAMED:
            insert_all(session, table, _rows(project_id, some, named))
        scored = [(identity, score) for identity, given in some for score in given.scores]
        record_first_scores(session, project_id, scored, series)
        committed = [identity for identity, given in some if given.state == CheckpointState.COMMITTED]
        outbox.announce(session, project_id, COMMITTED, committed)

    in_turns(session, registrations, insert)
    _lend_scores(session, project_id, registrations)


def replace_details(
    session: Session, project_id: int, checkpoint_id: int, given: Registration, roots: Sequence[str]
) -> None:
    """Write what a commit gives of a checkpoint that is there: it takes the place of what had the same name."""
    registrations = [(checkpoint_id, given)]
    for table, named in _NAMED:
        rows = _rows(project_id, registrations, named)
        if rows:
            keys = [(row["project_id"], row["checkpoint_id"], row["name"]) for row in rows]
            session.execute(delete(table).where(any_of((table.project_id, table.checkpoint_id, table.name), keys)))
        insert_missing(session, table, rows)
    _link(session, project_id, registrations, roots)
    record_scores(session, project_id, [(checkpoint_id, score) for score in given.scores])
    _lend_scores(session, project_id, registrations)
    outbox.announce(session, project_id, COMMITTED, [checkpoint_id])


def _link(
    session: Session, project_id: int, registrations: Sequence[tuple[int, Registration]], roots: Sequence[str]
) -> None:
    """The copies and the parents that registrations name."""
    insert_replicas(session, project_id, registrations, roots)
    edges = [
        Edge(identity, parent.checkpoint_id, parent.relation)
        for identity, given in registrations
        for parent in given.parents
    ]
    link_parents(session, project_id, edges)


def _lend_scores(session: Session, project_id: int, registrations: Sequence[tuple[int, Registration]]) -> None:
    """Let the scores of checkpoints (id, registration) that are lossless copies count for their sources, and back."""
    copied = [identity for identity, given in registrations if any(each.relation in LOSSLESS for each in given.parents)]
    if copied:
        spread_over_copies(session, project_id, copied, lock=True)


def _rows(project_id: int, registrations: Sequence[tuple[int, Registration]], named: Named) -> list[dict[str, Any]]:
    return [
        {"project_id": project_id, "checkpoint_id": identity, **values}
        for identity, registration in registrations
        for values in named(registration)
    ]


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


# The tables of a checkpoint's named values.
_NAMED: Final = ((CheckpointTag, _tags), (CheckpointMetric, _metrics), (Piece, _pieces))
