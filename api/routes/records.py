"""Decision records: a question answered now, and kept with its answer under a link."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import CallerDep, Cursor, Limit, SessionDep, SettingsDep, WriterDep, WriteSessionDep, json_body, validate
from api.paging import id_after, one_page
from api.room import room
from api.routes import decisions
from api.schemas.compare import CompareIn
from api.schemas.records import DecisionIn, DecisionItem, DecisionOut, DecisionPage
from api.schemas.rollback import RollbackIn
from api.schemas.search import SearchIn
from registry import ids, runs, strict_json
from registry.checkpoints import detail
from registry.config import Settings
from registry.errors import FieldError, Invalid
from registry.projects import find_project
from registry.provenance.records import DecisionNotFound, DecisionRow, get_decision, keep_decision, list_decisions
from registry.tokens import Caller

router = room("decisions")


class ProjectNeeded(Invalid):
    code = "decision-needs-project"
    title = "A record belongs to a project"


def keep(
    session: Session, caller: Caller, settings: Settings, kind: str, request: Mapping[str, Any], note: str | None
) -> int:
    """Answer a question as its own route would, and keep both; gives the id of the record. Pages call this, too."""
    body, projects, found = _answered(session, caller, settings, kind, request)
    return keep_decision(
        session,
        project_id=projects[0],
        other_project_id=projects[-1],
        kind=kind,
        request=strict_json.loads(body.model_dump_json(by_alias=True, exclude_unset=True).encode()),
        answer=strict_json.loads(bytes(answer(found).body)),
        note=note or None,
        actor=caller.name,
    )


def _answered(
    session: Session, caller: Caller, settings: Settings, kind: str, request: Mapping[str, Any]
) -> tuple[BaseModel, list[int], BaseModel]:
    """The question as it was understood, the projects it is about, and the answer."""
    given = dict(request)
    if kind == "compare":
        compared: CompareIn = validate(TypeAdapter(CompareIn), given, prefix="/request")
        sides = [detail.project_of(session, each) for each in (compared.candidate, compared.baseline)]
        return compared, sides, decisions.answer_compare(compared, session, caller, settings)
    if kind == "rollback":
        asked: RollbackIn = validate(TypeAdapter(RollbackIn), given, prefix="/request")
        if asked.run_id is not None:
            project_id = runs.get_brief(session, asked.run_id).project_id
        else:
            project_id = own_project(session, (asked.alias or "").partition("/")[0], caller).id
        return asked, [project_id], decisions.answer_rollback(asked, session, caller)
    searched: SearchIn = validate(TypeAdapter(SearchIn), given, prefix="/request")
    if searched.project is None:
        message = "name the project that is searched"
        raise ProjectNeeded(
            f"Where does the record belong? {message[0].upper()}{message[1:]}.",
            errors=[FieldError("/request/project", message)],
        )
    project_id = find_project(session, searched.project).id
    return searched, [project_id], decisions.answer_search(searched, session, caller)


@router.post("/decisions", response_model=DecisionOut, status_code=201)
def record_decision(
    body: Annotated[DecisionIn, json_body(DecisionIn)],
    session: WriteSessionDep,
    caller: WriterDep,
    settings: SettingsDep,
) -> Response:
    """Answer a comparison, a rollback or a search now, and keep the answer with its question under a link.

    Whoever may see the projects that it tells of may read it. Later scores, copies and moves change nothing in it.
    """
    number = keep(session, caller, settings, body.kind, body.request, body.note)
    return answer(DecisionOut.from_row(get_decision(session, number), settings.base_url), 201)


@router.get("/decisions", response_model=DecisionPage)
def list_records(
    session: SessionDep, caller: CallerDep, settings: SettingsDep, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The records that the caller may see, the newest first."""
    bound = ("decisions", caller.token_id)
    rows = list_decisions(session, caller.project_ids, before=id_after(cursor, *bound), limit=limit + 1)
    page, further = one_page(rows, limit, lambda row: [row.id], *bound)
    items = [DecisionItem.from_row(row, settings.base_url) for row in page]
    return answer(DecisionPage.model_construct(items=items, next_cursor=further))


@router.get("/decisions/{decision_id}", response_model=DecisionOut)
def get_record(decision_id: str, session: SessionDep, caller: CallerDep, settings: SettingsDep) -> Response:
    """One record: the question, and the answer as it was given."""
    row = own_decision(session, decision_id, caller)
    return answer(DecisionOut.from_row(row, settings.base_url))


def own_decision(session: Session, decision_id: str, caller: Caller) -> DecisionRow:
    row = get_decision(session, ids.id_or(decision_id, DecisionNotFound))
    for project_id in row.project_ids:
        caller.require_project(project_id)
    return row
