"""Everything that a run page is made of, read once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from registry.aliases import AliasRow, list_aliases
from registry.attempts import AttemptRow, list_attempts
from registry.checkpoints.queries import list_checkpoints
from registry.db import now
from registry.evals.project_table import ProjectTable, read_project_table
from registry.ids import to_text
from registry.incidents.queries import Asked, list_incidents
from registry.incidents.shapes import IncidentRow
from registry.overview.briefs import Brief, read_briefs
from registry.overview.runs import RunOverview
from registry.overview.scores import MetricName, RunScore, metrics_of_run, scores_of_run
from registry.runs import RunRow
from ui.run.plots import chosen_metrics

TABLE_ROWS = 30
INCIDENTS = 200  # as marks on the plots


@dataclass(frozen=True)
class RunRead:
    """`shown` are the checkpoints of this page of the table, `scored` those of the score table, newest first."""

    run: RunRow
    overview: RunOverview
    moment: datetime
    attempts: Sequence[AttemptRow]
    metrics: Sequence[MetricName]
    table: ProjectTable
    chosen: Sequence[MetricName]
    scores: Sequence[RunScore]
    shown: Sequence[int]
    next_after: list[Any] | None
    scored: Sequence[int]
    aliases: Sequence[AliasRow]
    struck: Sequence[IncidentRow]
    briefs: dict[int, Brief]

    @property
    def newest(self) -> Brief | None:
        return self.briefs.get(self.overview.newest_id or 0)

    @property
    def own_aliases(self) -> list[AliasRow]:
        return [alias for alias in self.aliases if self.briefs[alias.checkpoint_id].run_id == self.run.id]


def read_run_page(
    session: Session, run: RunRow, overview: RunOverview, asked_scores: Sequence[str], after: list[Any] | None
) -> RunRead:
    """`asked_scores` are scores to plot as a filter names them; `after` is where the table of checkpoints goes on."""
    attempts = list_attempts(session, run.id)
    metrics = metrics_of_run(session, run.project_id, run.id)
    table = read_project_table(session, [run.project_id])
    chosen = chosen_metrics(metrics, asked_scores, table)
    scores = scores_of_run(session, run.project_id, run.id, [metric.id for metric in chosen]) if chosen else []
    page = list_checkpoints(
        session,
        project_ids=[run.project_id],
        filter=f"run.id = '{to_text(run.id)}'",
        order_by="attempt desc, step desc",
        limit=TABLE_ROWS,
        after=after,
    )
    aliases = list_aliases(session, [run.project_id])
    shown = [row.checkpoint.id for row in page.rows]
    scored = list(dict.fromkeys(each.checkpoint_id for each in reversed(scores)))[:TABLE_ROWS]
    resumed = [a.resumed_from.checkpoint_id for a in attempts if a.resumed_from and a.resumed_from.checkpoint_id]
    newest = [overview.newest_id] if overview.newest_id else []
    named = [*shown, *resumed, *newest, *scored, *(alias.checkpoint_id for alias in aliases)]
    return RunRead(
        run,
        overview,
        now(),
        attempts,
        metrics,
        table,
        chosen,
        scores,
        shown,
        page.next_after,
        scored,
        aliases,
        list_incidents(session, Asked([run.project_id], run.id), limit=INCIDENTS),
        read_briefs(session, named),
    )
