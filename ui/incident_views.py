"""Interruptions as the pages show them: one sentence, rows, one incident whole."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from registry.ids import to_text
from registry.incidents.causes import CAUSES, UNKNOWN, WANTED, cause_of
from registry.incidents.queries import CauseCount, Summary
from registry.incidents.shapes import SERVICE, IncidentRow
from registry.overview.briefs import Brief
from ui import filters
from ui.contexts import Answer, CheckpointRef, Command, Fact, Link
from ui.links import address
from ui.refs import ref_of

KIND_WORDS = {
    "crashed": "the job exited",
    "lost": "its heartbeats stopped",
    "stalled": "it made no step",
    "reformed": "its workers formed anew",
    "reported": "reported by a person",
}


@dataclass(frozen=True)
class IncidentLine:
    """One interruption in a table. `ending`: open, closed, or how long the recovery took."""

    id: str
    run_id: str
    run: str
    project: str
    attempt: int | None
    cause: str
    cause_known: bool
    kind: str
    node: str
    occurred_at: datetime
    steps_lost: int | None
    ending: str
    tone: str


@dataclass(frozen=True)
class CauseLine:
    title: str
    href: str
    count: int
    open: int
    steps_lost: int
    share: float


@dataclass(frozen=True)
class IncidentsContext:
    answer: Answer
    rows: tuple[IncidentLine, ...]
    causes: tuple[CauseLine, ...]
    states: tuple[Link, ...]
    chosen: tuple[Link, ...]  # filters in force, each a link that takes it out
    csv_href: str
    newer: str | None
    older: str | None
    empty: tuple[Command, ...] = ()


@dataclass(frozen=True)
class IncidentContext:
    id: str
    run_id: str
    run: str
    project: str
    answer: Answer
    facts: tuple[Fact, ...]
    loaded: CheckpointRef | None
    evidence: tuple[str, ...]
    log: str
    causes: tuple[tuple[str, str], ...]
    cause: str
    note: str
    is_open: bool
    may_write: bool
    notice: str = ""
    actions: tuple[Link, ...] = ()


def sentence(summary: Summary, last: IncidentRow | None, now: datetime) -> Answer:
    """'2 interruptions in 3 days, 1 240 steps lost; last: NCCL timeout on node7, recovered in 14 min.'"""
    if last is None or summary.first_at is None:
        return Answer("No interruption is recorded.", "good")
    head = f"{filters.plural(summary.count, 'interruption')} in {_span(summary.first_at, now)}"
    known = summary.count - summary.unknown_losses
    if known:
        head += f", {filters.plural(summary.steps_lost, 'step')} lost"
    if summary.unknown_losses:
        head += f" ({'not known' if not known else f'not known of {filters.grouped(summary.unknown_losses)}'})"
    still = f"; {filters.grouped(summary.open)} open" if summary.open else ""
    node = f" on {filters.middle(last.node, 40)}" if last.node else ""
    return Answer(
        f"{head}{still}; last: {cause_of(last.cause).title}{node}, {ending(last)}.", "bad" if summary.open else "warn"
    )


def ending(row: IncidentRow) -> str:
    if row.ending is None:
        return "still open"
    if row.recovery_seconds is None:
        return "closed" if row.cause == WANTED else "closed by hand"
    return f"recovered in {filters.duration(row.recovery_seconds)}"


def open_line(row: IncidentRow) -> str:
    """‘atlas-8b’ is interrupted: NCCL timeout on node7, 1 400 steps lost."""
    node = f" on {filters.middle(row.node, 40)}" if row.node else ""
    lost = f", {filters.plural(row.steps_lost, 'step')} lost" if row.steps_lost is not None else ""
    return f"‘{filters.middle(row.run, 60)}’ is interrupted: {cause_of(row.cause).title}{node}{lost}."


def line_of(row: IncidentRow) -> IncidentLine:
    return IncidentLine(
        id=to_text(row.id),
        run_id=to_text(row.run_id),
        run=row.run,
        project=row.project,
        attempt=row.attempt,
        cause=cause_of(row.cause).title,
        cause_known=row.cause != UNKNOWN,
        kind=KIND_WORDS[row.kind],
        node=row.node or filters.MISSING,
        occurred_at=row.occurred_at,
        steps_lost=row.steps_lost,
        ending="open" if row.ending is None else ending(row).removeprefix("recovered "),
        tone="bad" if row.ending is None else "good" if row.ending == "recovered" else "plain",
    )


def cause_lines(counts: Sequence[CauseCount], hrefs: Mapping[str, str]) -> tuple[CauseLine, ...]:
    whole = sum(each.count for each in counts) or 1
    return tuple(
        CauseLine(
            cause_of(each.cause).title,
            hrefs[each.cause],
            each.count,
            each.open,
            each.steps_lost,
            each.count / whole,
        )
        for each in counts
    )


def incident_context(
    row: IncidentRow, loaded: Brief | None, suspect: str, *, may_write: bool, notice: str = ""
) -> IncidentContext:
    names = [(name, cause.title) for name, cause in CAUSES.items()]
    if row.cause not in CAUSES:
        names.append((row.cause, cause_of(row.cause).title))
    return IncidentContext(
        id=to_text(row.id),
        run_id=to_text(row.run_id),
        run=row.run,
        project=row.project,
        answer=_answer(row, suspect),
        facts=_facts(row),
        loaded=ref_of(loaded) if loaded else None,
        evidence=tuple(shown(line) for line in row.evidence),
        log=shown(row.log_excerpt or ""),
        causes=tuple(names),
        cause=row.cause,
        note=row.note or "",
        is_open=row.closed_at is None,
        may_write=may_write,
        notice=notice,
        actions=_actions(row),
    )


def _actions(row: IncidentRow) -> tuple[Link, ...]:
    """What to do about it, and what it may be one of."""
    run = to_text(row.run_id)
    back = str(row.last_step) if row.last_step is not None else ""
    return (
        Link("Which checkpoint to go back to", address("/rollback", run=run, step=back)),
        Link("Interruptions of this run", address("/incidents", run=run)),
        Link("Others with this cause", address("/incidents", cause=row.cause)),
    )


def shown(text: str) -> str:
    """Text of a log with its control and direction characters made visible: it must not rearrange the page."""
    return "".join(
        letter if letter == "\n" or unicodedata.category(letter)[0] != "C" else "\N{REPLACEMENT CHARACTER}"
        for letter in text.replace("\t", "    ")
    )


def _answer(row: IncidentRow, suspect: str) -> Answer:
    cause = cause_of(row.cause)
    node = f" on {filters.middle(row.node, 40)}" if row.node else ""
    lost = (
        f"{filters.plural(row.steps_lost, 'step')} lost" if row.steps_lost is not None else "steps lost are not known"
    )
    return Answer(
        f"{cause.title[0].upper()}{cause.title[1:]}{node}: {KIND_WORDS[row.kind]}; {lost}; {ending(row)}.",
        "bad" if row.ending is None else "plain",
        suspect,
    )


def _facts(row: IncidentRow) -> tuple[Fact, ...]:
    by = row.cause_said_by or ("read from the log" if row.evidence else "nobody has said")
    if row.cause == UNKNOWN and row.cause_said_by is None:
        by = "not known"
    counted = "as reported" if row.steps_lost_said else "counted from the last committed save"
    known = [
        Fact("struck", filters.absolute(row.occurred_at)),
        Fact("training went on", filters.absolute(row.recovered_at)),
        Fact("attempt", filters.MISSING if row.attempt is None else str(row.attempt)),
        Fact("cause named by", by),
        Fact("last step", filters.grouped(row.last_step)),
        Fact("steps lost", filters.grouped(row.steps_lost), counted),
        Fact("exit code", filters.MISSING if row.exit_code is None else str(row.exit_code)),
        Fact("signal", row.signal or filters.MISSING),
        Fact("node", row.node or filters.MISSING),
        Fact("hardware", row.hardware or filters.MISSING),
        Fact("opened by", "the service itself" if row.opened_by == SERVICE else row.opened_by),
    ]
    return tuple(fact for fact in known if fact.value != filters.MISSING)


def _span(first: datetime, now: datetime) -> str:
    """How long ago the first one was, in whole units, rounded up: 3 days, 5 hours."""
    seconds = max((now - first).total_seconds(), 0)
    if seconds < 3600:
        return "an hour"
    if seconds < 86_400:
        return filters.plural(math.ceil(seconds / 3600), "hour")
    return filters.plural(math.ceil(seconds / 86_400), "day")
