"""What is said of a result that was sent and does not count, since one that was evaluated later does."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import from_micros, join_number, to_micros
from registry.evals.scores import NewScore
from registry.models import Benchmark, CurrentScore, ScoreMetric

MOST: Final = 10  # notes of one answer


def outdated_notes(session: Session, project_id: int, checkpoint_id: int, sent: Sequence[NewScore]) -> list[str]:
    """A sentence for each metric of which none of the results that were just recorded is the one that counts."""
    query = (
        select(
            *(CurrentScore.value, CurrentScore.special, CurrentScore.evaluated_micros),
            *(Benchmark.name, ScoreMetric.metric, ScoreMetric.filter),
        )
        .join(ScoreMetric, ScoreMetric.id == CurrentScore.score_metric_id)
        .join(Benchmark, Benchmark.id == ScoreMetric.benchmark_id)
        .where(CurrentScore.project_id == project_id, CurrentScore.checkpoint_id == checkpoint_id)
    )
    newest: dict[tuple[str, str, str], int] = {}
    for each in sent:
        key = each.benchmark, each.metric, each.filter
        newest[key] = max(newest.get(key, 0), 0 if each.evaluated_at is None else to_micros(each.evaluated_at))
    notes = [
        _note(row[3:], join_number(row.value, row.special), row.evaluated_micros, newest[row[3:]])
        for row in session.execute(query)
        if row.evaluated_micros > newest.get(row[3:], row.evaluated_micros)
    ]
    return notes if len(notes) <= MOST else [*notes[:MOST], f"and {len(notes) - MOST} more metrics do not count either"]


def _note(key: Sequence[str], value: float | None, counts: int, newest: int) -> str:
    when = from_micros(counts).isoformat(timespec="seconds").replace("+00:00", "Z")
    sent = "which is later than this one" if newest else "this one says no time"
    name = ".".join(filter(None, key))
    return f"{name}: kept, but {value:g} of {when} still counts: {sent}. If it is right, give it a later evaluated_at"
