"""The list of runs: a row for each, its columns with the order that each asks for, and what the list says first."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from registry.checkpoints.placing import AHEAD
from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.overview.runs import RunOverview, Totals
from ui import filters
from ui.charts import colour_of
from ui.contexts import Answer
from ui.contexts.runs import Column, RunRow
from ui.links import Value, changed
from ui.refs import ref_of, run_state, saved_in_words

# Each order by its name in the address: the head of its column, and whether it begins with the largest.
COLUMNS: Final = {
    "name": ("run", False),
    "state": ("state", False),
    "step": ("last step", True),
    "loss": ("last loss", False),
    "heartbeat": ("heartbeat", True),
    "saved": ("saved", True),
    "checkpoints": ("checkpoints", True),
    "attempts": ("attempts", True),
    "size": ("parameters", True),
}
INTERRUPTED: Final = "interrupted"


def columns_of(here: Mapping[str, Value], sort: str) -> dict[str, Column]:
    """The column that is ordered by leads to the other direction, every other to its own first one."""
    chosen, turned = sort.removeprefix("-"), sort.startswith("-")
    columns = {}
    for name, (text, descending) in COLUMNS.items():
        order = "" if name != chosen else "descending" if descending != turned else "ascending"
        wanted = f"-{name}" if name == chosen and not turned else name
        columns[name] = Column(text, changed("/runs", here, sort=wanted if wanted != "saved" else ""), order)
    return columns


def row_of(run: RunOverview, briefs: Mapping[int, Brief], moment: datetime) -> RunRow:
    newest, measured = briefs.get(run.newest_id or 0), briefs.get(run.loss_id or 0)
    state = run_state(run, moment)
    struck = run.open_incident_id
    if struck is not None and state in ("running", "silent", "not reported"):
        state = INTERRUPTED
    return RunRow(
        id=to_text(run.id),
        name=run.name,
        project=run.project,
        colour=colour_of(to_text(run.id)),
        state=state,
        incident=None if struck is None else f"/incidents/{to_text(struck)}",
        owner=run.owner,
        attempts=run.attempts,
        checkpoints=run.checkpoints,
        newest=ref_of(newest) if newest else None,
        last_step=_last_step(run, newest),
        heartbeat_at=run.heartbeat_at,
        parameter_count=run.parameter_count,
        loss=measured.loss if measured else None,
        loss_step=measured.step if measured else None,
        data_version=newest.data_version if newest else None,
    )


def _last_step(run: RunOverview, newest: Brief | None) -> int | None:
    """Of the newest attempt's last save and heartbeat the later; before it has either, the run's last save."""
    if newest is None or newest.attempt != run.attempt:
        return run.heartbeat_step if run.heartbeat_step is not None else newest.step if newest else None
    return max(newest.step, run.heartbeat_step or 0)


def answer_of(
    totals: Totals, down: int, briefs: Mapping[int, Brief], query: str, found: bool, project: str, moment: datetime
) -> Answer:
    """How many there are, how many of them are down, and how old the newest checkpoint is."""
    where = f"in {project}" if project else f"in {filters.plural(totals.projects, 'project')}"
    if not totals.runs:
        return Answer("No run yet: the first checkpoint makes one." if not project else f"No run {where} yet.")
    if query and not found:
        return Answer(f"No run {where} has ‘{query[:60]}’ in its name.", "warn", "Try a shorter part of the name.")
    if query:
        return Answer(f"Runs {where} with ‘{query[:60]}’ in their names.")
    head = f"{filters.plural(totals.runs, 'run')} {where}"
    head, tone = (f"{head}, {filters.grouped(down)} of them down", "bad") if down else (head, "plain")
    newest = briefs.get(totals.newest_id or 0)
    if newest is None:
        return Answer(f"{head}, and no checkpoint yet.", tone)
    place = f"‘{filters.middle(newest.run_name, 80)}’ at step {filters.grouped(newest.step)}"
    return Answer(f"{head}; the newest checkpoint {_when(newest, moment)}.", tone, f"It is {place}.")


def _when(newest: Brief, moment: datetime) -> str:
    """Of a time to come, which is no longer taken, that it is none."""
    if newest.saved_at > moment + AHEAD:
        return f"is dated {newest.saved_at:%Y-%m-%d}, by a clock that was wrong"
    return f"was {saved_in_words(newest, moment)}"


def order_note(rows: tuple[RunOverview, ...], briefs: Mapping[int, Brief]) -> str:
    """Where the order by save time rests on a time that nobody gave."""
    newest = [briefs[row.newest_id] for row in rows if row.newest_id is not None and row.newest_id in briefs]
    assumed = sum(brief.saved_at_assumed for brief in newest)
    if not assumed:
        return ""
    whose = "these runs" if assumed == len(newest) else f"{filters.grouped(assumed)} of these runs"
    return f"Nobody said when {whose} saved: their place in this order is when their records arrived."
