"""Scores follow lossless edges: an evaluation of a converted or resharded copy counts for its source, and back.

What counts for a checkpoint without a result of its own is written beside the own ones, marked with the copy that was
evaluated (`current_score.via_checkpoint_id`). So a filter, an order, a search and a profile all see it by one index,
and a result of the checkpoint's own, once it arrives, takes its place. Never over a lossy edge.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from registry import watching
from registry.changes import note_changes
from registry.models import Checkpoint, CurrentScore, LineageEdge
from registry.types import LOSSLESS
from registry.upsert import chunks, send_rows

MAX_COPIES: Final = 1_000  # checkpoints of the same weights that are looked at together
_VALUES: Final = ("series_id", "value", "special", "stderr", "evaluated_micros", "arrival")


def spread_over_copies(
    session: Session, project_id: int, checkpoint_ids: Collection[int], *, lock: bool = False
) -> None:
    """Let the scores of these checkpoints and of their lossless copies count for each other.

    `lock`: an edge is new. Whoever records a score at this moment holds its checkpoint, so one of the two sees the
    other's work.
    """
    members = copies_around(session, project_id, checkpoint_ids)
    if not members:
        return
    numbers = sorted({number for group in members for number in group})
    if lock:
        for chunk in chunks(numbers):
            query = select(Checkpoint.id).where(Checkpoint.id.in_(chunk)).order_by(Checkpoint.id).with_for_update()
            session.execute(query)
    rows = _scores_of(session, project_id, numbers)
    wanted = [row for group in members for row in _lent(rows, group)]
    if wanted:
        send_rows(session, CurrentScore, wanted, _unless_own)
        lent_to = {row["checkpoint_id"] for row in wanted}
        note_changes(session, project_id, lent_to)
        watching.scores_arrived(session, project_id, lent_to)


def copies_around(session: Session, project_id: int, checkpoint_ids: Collection[int]) -> list[set[int]]:
    """The sets of checkpoints with the same weights that these belong to; alone is no set."""
    group_of: dict[int, set[int]] = {}
    level = set(checkpoint_ids)
    while level and len(group_of) < MAX_COPIES:
        reached: set[int] = set()
        for child, parent in _edges(session, project_id, level):
            reached |= {child, parent} - group_of.keys() - level
            merged = group_of.get(child, {child}) | group_of.get(parent, {parent})
            group_of.update(dict.fromkeys(merged, merged))
        level = reached
    return list({id(group): group for group in group_of.values()}.values())


def _edges(session: Session, project_id: int, level: Iterable[int]) -> list[tuple[int, int]]:
    edge = select(LineageEdge.child_id, LineageEdge.parent_id).where(
        LineageEdge.project_id == project_id,
        LineageEdge.parent_project_id == project_id,
        LineageEdge.relation.in_([relation.value for relation in LOSSLESS]),
    )
    found: list[tuple[int, int]] = []
    for chunk in chunks(sorted(level)):
        both = union_all(edge.where(LineageEdge.child_id.in_(chunk)), edge.where(LineageEdge.parent_id.in_(chunk)))
        found += [(child, parent) for child, parent in session.execute(both)]
    return found


def _scores_of(session: Session, project_id: int, checkpoint_ids: Collection[int]) -> dict[int, dict[int, Any]]:
    """For each metric, the current row of each checkpoint."""
    found: dict[int, dict[int, Any]] = defaultdict(dict)
    columns = CurrentScore.__table__.c
    for chunk in chunks(checkpoint_ids):
        query = select(*columns).where(columns.project_id == project_id, columns.checkpoint_id.in_(chunk))
        for row in session.execute(query):
            found[row.score_metric_id][row.checkpoint_id] = row
    return found


def _lent(rows: dict[int, dict[int, Any]], group: set[int]) -> list[dict[str, Any]]:
    """The rows to write for members without a result of their own: that of the copy evaluated last, a finite one
    before one that is not."""
    lent = []
    for metric, row_of in rows.items():
        own = [row for number in group if (row := row_of.get(number)) is not None and row.via_checkpoint_id is None]
        if not own:
            continue
        donor = max(own, key=lambda row: (row.value is not None, row.evaluated_micros, row.arrival))
        owners = {row.checkpoint_id for row in own}
        for number in sorted(group - owners):
            before = row_of.get(number)
            if before is None or any(getattr(before, name) != getattr(donor, name) for name in _VALUES):
                values = {name: getattr(donor, name) for name in _VALUES}
                keys = {"project_id": donor.project_id, "checkpoint_id": number, "score_metric_id": metric}
                lent.append(keys | values | {"via_checkpoint_id": donor.checkpoint_id})
    return lent


def _unless_own(statement: Any) -> Any:
    new, columns = statement.excluded, (*_VALUES, "via_checkpoint_id")
    return statement.on_conflict_do_update(
        index_elements=["project_id", "checkpoint_id", "score_metric_id"],
        set_={name: new[name] for name in columns},
        where=CurrentScore.via_checkpoint_id.is_not(None),
    )
