"""Kept answers: a decision with its question and its evidence, as it was, under a link."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, SettingsDep, WriteSessionDep
from registry.ids import from_text, to_text
from registry.provenance.records import DecisionNotFound, DecisionRow, get_decision, list_decisions
from registry.tokens import Caller
from registry.types import Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.contexts import Answer, Command
from ui.evidence import RecordContext, RecordRow, RecordsContext
from ui.kept_answers import again_of, answer_of, question_of, tables_of, title_of
from ui.links import from_cursor, to_cursor
from ui.respond import HEADERS, go_to, show
from ui.rollback.question import question

router = APIRouter(include_in_schema=False)

PAGE = 50


@router.get("/decisions")
def records_page(session: SessionDep, viewer: ViewerDep, after: str = "") -> HTMLResponse:
    """Every record that the viewer may see, the newest first."""
    place = from_cursor(after)
    before = place[0] if place and isinstance(place[0], int) else None
    rows = list_decisions(session, viewer.caller.project_ids, before=before, limit=PAGE + 1)
    shown = rows[:PAGE]
    older = f"/decisions?after={to_cursor([shown[-1].id])}" if len(rows) > PAGE else None
    count = filters.plural(len(shown), "record")
    answer = Answer(f"{count} of decisions{' on this page' if older or after else ''}.")
    command = None
    if not rows:
        answer = Answer("No answer has been kept yet.")
        command = Command(
            "Compare, Roll back and, in one project, Find have a button that keeps their answer. From a program:",
            'client.record_decision("compare", {"baseline": ID, "candidate": ID}, note="why")',
            "command",
        )
    page = RecordsContext(
        answer,
        tuple(
            RecordRow(
                f"/decisions/{to_text(row.id)}", title_of(row), row.project, row.note, row.created_by, row.created_at
            )
            for row in shown
        ),
        older,
        command,
    )
    return show("records.html", page, title="Decisions", section="Decisions", viewer=viewer)


async def read_form(request: Request) -> dict[str, str]:
    return {name: value.strip() for name, value in (await request.form()).items() if isinstance(value, str)}


@router.post("/decisions")
def keep(
    request: Request,
    form: Annotated[dict[str, str], Depends(read_form)],
    session: WriteSessionDep,
    viewer: FormViewerDep,
    settings: SettingsDep,
) -> Response:
    """Answer the question of a page now, and keep the answer. Whatever the question's own page would say applies."""
    viewer.caller.require(Scope.WRITE)
    kind = form.get("kind", "")
    asked = _question(session, viewer.caller, kind, form)
    number = request.app.state.keep_decision(
        session, viewer.caller, settings, kind, asked, form.get("note", "")[:4_000] or None
    )
    return go_to(f"/decisions/{to_text(number)}")


def _question(session: Session, caller: Caller, kind: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The question in the words of the API, from the fields that its page has in its address."""
    if kind == "compare":
        return {name: form.get(name, "") for name in ("baseline", "candidate")}
    if kind == "rollback":
        return question(session, caller, form)
    if kind == "search":
        return {"query": form.get("q", ""), "limit": 20} | ({"project": form["project"]} if form.get("project") else {})
    raise DecisionNotFound("Only a comparison, a rollback or a search can be kept. Use the button on its page.")


@router.get("/decisions/{decision_id}.json")
def record_json(decision_id: str, session: SessionDep, viewer: ViewerDep) -> Response:
    """Question and answer, whole."""
    row = _own(session, viewer.caller, decision_id)
    text = json.dumps({"kind": row.kind, "request": row.request, "answer": row.answer}, ensure_ascii=False, indent=1)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="decision-{decision_id}.json"'}
    return Response(text, media_type="application/json", headers=headers)


@router.get("/decisions/{decision_id}")
def record_page(decision_id: str, session: SessionDep, viewer: ViewerDep) -> HTMLResponse:
    """The answer as it was given, with who kept it, when and why."""
    row = _own(session, viewer.caller, decision_id)
    page = RecordContext(
        answer=answer_of(row),
        kind=row.kind,
        project=row.project,
        note=row.note,
        kept_by=row.created_by,
        kept_at=row.created_at,
        question=question_of(row),
        tables=tables_of(row),
        json_href=f"/decisions/{decision_id}.json",
        again_href=again_of(row),
    )
    return show("record.html", page, title=title_of(row), section="Decisions", viewer=viewer)


def _own(session: Session, caller: Caller, decision_id: str) -> DecisionRow:
    number = from_text(decision_id)
    if number is None:
        raise DecisionNotFound(f"There is no record {decision_id[:40]!r}.")
    row = get_decision(session, number)
    for project_id in row.project_ids:
        caller.require_project(project_id)
    return row
