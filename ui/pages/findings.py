"""What standing watches found, and which watches stand; a finding opens the filled-in rollback."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.errors import Invalid
from registry.evals.catalogue import catalogue
from registry.ids import from_text, id_or, to_text
from registry.overview.briefs import Brief, read_briefs
from registry.projects import find_project
from registry.runs import RunNotFound, get_brief
from registry.types import Scope
from registry.watches.findings import FindingNotFound, FindingRow, amend_finding, count_open, get_finding, list_findings
from registry.watches.standing import (
    WatchNotFound,
    WatchRow,
    WatchSpec,
    end_watch,
    get_watch,
    list_watches,
    stand_watch,
)
from ui import filters
from ui.access import FormViewerDep, ViewerDep, may_write
from ui.contexts import Answer, Command, Link
from ui.contexts.findings import FindingLine, FindingsContext, WatchLine
from ui.links import address, changed, segment
from ui.refs import ref_of
from ui.respond import go_to, show
from ui.words import grouped_steps

router = APIRouter(include_in_schema=False)

STATES = ("open", "acknowledged", "withdrawn")
PER_PAGE, MOST_WATCHES = 50, 200
LOSS = "the loss"


@router.get("/findings")
def findings_page(
    request: Request, session: SessionDep, viewer: ViewerDep, state: str = "open", run: str = "", after: str = ""
) -> HTMLResponse:
    """Findings of one state, or of `all`, the newest first; those nobody has acknowledged, unless asked otherwise."""
    project_ids = None if viewer.caller.project_ids is None else sorted(viewer.caller.project_ids)
    notices = [] if state in (*STATES, "all") else [f"‘{filters.middle(state, 40)}’ is no state of a finding."]
    chosen = state if state in (*STATES, "all") else "open"
    run_id = id_or(run, RunNotFound) if run else None
    rows = list_findings(
        session,
        project_ids,
        states=STATES if chosen == "all" else (chosen,),
        run_ids=None if run_id is None else [run_id],
        after=from_text(after) if after else None,
        limit=PER_PAGE + 1,
    )
    briefs = read_briefs(session, [each.checkpoint.id for each in rows if each.checkpoint is not None])
    watches = list_watches(session, project_ids, run_id=run_id, limit=MOST_WATCHES)
    standing = [each for each in watches if each.ended_at is None]
    here = {"state": chosen if chosen != "open" else "", "run": run}
    context = FindingsContext(
        answer=_answer(rows[:PER_PAGE], chosen, count_open(session, project_ids), len(standing)),
        rows=tuple(_line(each, briefs) for each in rows[:PER_PAGE]),
        states=tuple(Link(each, changed("/findings", here, state=each), each == chosen) for each in (*STATES, "all")),
        watches=tuple(_watch_line(each) for each in standing),
        may_change=may_write(viewer.caller),
        older=changed("/findings", here, after=to_text(rows[PER_PAGE - 1].id)) if len(rows) > PER_PAGE else None,
        newer=changed("/findings", here) if after else None,
        empty=() if watches else (_first_watch(request),),
    )
    return show("findings.html", context, title="Findings", section="Findings", viewer=viewer, notices=notices)


@router.post("/findings/watch")
def stand(
    session: WriteSessionDep,
    viewer: FormViewerDep,
    run: Annotated[str, Form()] = "",
    alias: Annotated[str, Form()] = "",
    watch: Annotated[str, Form(max_length=512)] = "",
) -> Response:
    """Watch a run or an alias from now on, for what the rollback's form calls it; ‘the loss’ is one of the words."""
    viewer.caller.require(Scope.WRITE)
    project_id = find_project(session, alias.partition("/")[0]).id if alias else _project_of(session, run)
    viewer.caller.require_project(project_id)
    stand_watch(session, project_id, _spec(run, alias, watch), actor=viewer.caller.name)
    return go_to("/findings#watches")


@router.post("/findings/watches/{watch_id}/end")
def end(watch_id: str, session: WriteSessionDep, viewer: FormViewerDep) -> Response:
    viewer.caller.require(Scope.WRITE)
    number = id_or(watch_id, WatchNotFound)
    viewer.caller.require_project(get_watch(session, number).project_id)
    end_watch(session, number, actor=viewer.caller.name)
    return go_to("/findings#watches")


@router.post("/findings/{finding_id}")
def acknowledge(
    finding_id: str,
    session: WriteSessionDep,
    viewer: FormViewerDep,
    state: Annotated[str, Form()] = "acknowledged",
    note: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Say that somebody has seen it, or open it again."""
    viewer.caller.require(Scope.WRITE)
    number = id_or(finding_id, FindingNotFound)
    viewer.caller.require_project(get_finding(session, number).project_id)
    if state not in ("open", "acknowledged"):
        raise UnknownState(f"A finding is open or acknowledged; {state[:40]!r} is neither.")
    changes = {"state": state} | ({"note": note.strip()} if note.strip() else {})
    amend_finding(session, number, changes, actor=viewer.caller.name)
    return go_to("/findings")


class UnknownState(Invalid):
    code = "unknown-finding-state"
    title = "A finding has no such state"


def _project_of(session: Session, run: str) -> int:
    return get_brief(session, id_or(run, RunNotFound)).project_id


def _spec(run: str, alias: str, watch: str) -> WatchSpec:
    run_id, name = (None, alias.partition("/")[2]) if alias else (from_text(run), None)
    if watch == LOSS:
        return WatchSpec("loss", run_id, name)
    capability = catalogue().capability(watch) if watch else None
    if capability is not None:
        return WatchSpec("score", run_id, name, capability=capability.name)
    return WatchSpec("score", run_id, name, benchmark=watch or None)


def _answer(rows: Sequence[FindingRow], state: str, open_ones: int, standing: int) -> Answer:
    looking = f"{filters.plural(standing, 'watch', 'watches')} {'stands' if standing == 1 else 'stand'}"
    if open_ones:
        newest = next((each for each in rows if each.state == "open"), None)
        told = f" The newest: {grouped_steps(newest.sentence)}" if newest is not None else ""
        return Answer(
            f"{filters.plural(open_ones, 'finding')} that nobody has acknowledged.{told}", "bad", f"{looking}."
        )
    if standing:
        return Answer(f"Nothing is open; {looking}.", "good")
    return Answer("No watch stands, so nothing is looked for.", "unknown")


def _line(row: FindingRow, briefs: dict[int, Brief]) -> FindingLine:
    brief = briefs.get(row.checkpoint.id) if row.checkpoint is not None else None
    return FindingLine(
        id=to_text(row.id),
        sentence=grouped_steps(row.sentence),
        state=row.state,
        subject=_subject(row.project, row.alias, row.run.name, row.run.id),
        checkpoint=ref_of(brief) if brief is not None else None,
        opened_at=row.opened_at,
        acknowledged_at=row.acknowledged_at,
        acknowledged_by=row.acknowledged_by,
        note=row.note,
        rollback=address("/rollback", **row.parameters),
    )


def _subject(project: str, alias: str | None, run: str, run_id: int) -> Link:
    if alias is not None:
        return Link(f"{project}/{alias}", f"/aliases/{segment(project)}/{segment(alias)}")
    return Link(filters.middle(run, 44), f"/runs/{to_text(run_id)}")


def _watch_line(row: WatchRow) -> WatchLine:
    run_name, run_id = (row.run.name, row.run.id) if row.run is not None else ("", 0)
    subject = _subject(row.project, row.alias, run_name, run_id)
    return WatchLine(to_text(row.id), subject, row.words, row.created_at, row.created_by, row.note, row.warning)


def _first_watch(request: Request) -> Command:
    base = str(request.base_url).rstrip("/")
    text = (
        f"curl -X POST {base}/api/v1/watches \\\n"
        '  -H "Authorization: Bearer $CAIRN_TOKEN" -H "Content-Type: application/json" \\\n'
        '  -d \'{"alias": "PROJECT/production", "watch": {"capability": "math"}}\''
    )
    return Command(
        "A watch tests each score that arrives for a run or an alias, or a run's loss. The page of a rollback makes "
        "one, and so does:",
        text,
    )
