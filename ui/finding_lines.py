"""The lines of findings on the pages of runs."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from registry.ids import to_text
from registry.watches.findings import FindingRow, list_findings
from ui import filters
from ui.contexts import Link
from ui.links import address
from ui.words import grouped_steps


def finding_lines(session: Session, project_ids: Sequence[int] | None, run_id: int | None = None) -> tuple[Link, ...]:
    """A line for each of the newest findings that nobody has acknowledged, for the pages of runs."""
    rows = list_findings(session, project_ids, states=["open"], run_ids=None if run_id is None else [run_id], limit=4)
    lines = [Link(_line(each, run_id is None), address("/rollback", **each.parameters)) for each in rows[:3]]
    if len(rows) > 3:
        lines.append(Link("All findings", address("/findings", run=to_text(run_id) if run_id else "")))
    return tuple(lines)


def _line(each: FindingRow, with_run: bool) -> str:
    """The sentence of a finding; among several runs with that of which it speaks."""
    sentence = grouped_steps(each.sentence)
    return f"‘{filters.middle(each.run.name, 60)}’: {sentence}" if with_run else sentence
