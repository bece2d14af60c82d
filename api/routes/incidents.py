"""The fault ledger: what stopped a run, what a resume restored, which checkpoints are suspect."""

from typing import Annotated

from fastapi import Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import CREATED, answer, created
from api.deps import AnyLimit, CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep, json_body
from api.paging import decode_cursor, one_page, part_of
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.common import NO_NUL
from api.schemas.incidents import (
    AttemptRefIn,
    IncidentIn,
    IncidentItem,
    IncidentOut,
    IncidentPage,
    IncidentPatch,
    ReceiptIn,
    ReceiptOut,
    ReceiptPage,
    SuspectOut,
    SuspicionIn,
    SuspicionOut,
)
from registry import ids, runs
from registry.checkpoints.detail import read_identities
from registry.db import to_micros
from registry.incidents import ledger, queries, receipts, suspicion
from registry.incidents.queries import Asked
from registry.incidents.shapes import IncidentNotFound, IncidentRow
from registry.models import Checkpoint
from registry.runs import RunNotFound
from registry.tokens import Caller

router = room("incidents")

NameQuery = Annotated[str, Query(max_length=512, pattern=NO_NUL)]
IdQuery = Annotated[str, Query(max_length=64, pattern=NO_NUL)]


@router.post("/incidents", response_model=IncidentOut, responses=CREATED)
def open_incident(
    body: Annotated[IncidentIn, json_body(IncidentIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Record what interrupted a run. The same `key` again answers 200 with the same incident.

    A report of an interruption that is known already (the service noticed the silence, another host reported first)
    completes that incident and answers 200; `not_applied` names what of it was not taken over, since somebody said
    otherwise before: PATCH the incident to change that. While a run is down its interruption is one. What struck at
    another `occurred_at`, after which the attempt went on, is an incident of its own.
    """
    run = _named_run(session, body.run_id, body.project, body.run, caller)
    row, made = ledger.open_incident(session, run, body.to_new(), actor=caller.name)
    return created(_shape(session, row), made)


@router.get("/incidents", response_model=IncidentPage)
def list_incidents(
    session: SessionDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: NameQuery | None = None,
    run_id: IdQuery | None = None,
    open: bool | None = None,
    cause: NameQuery | None = None,
) -> Response:
    """Incidents, the newest first: of a project, of a run, the open or the closed ones, of a cause."""
    wanted = caller.project_ids
    if project is not None:
        wanted = frozenset({own_project(session, project, caller).id})
    number = None if run_id is None else _own_run(session, run_id, caller)
    query = ("incidents", project, run_id, str(open), cause, caller.token_id)
    asked = Asked(wanted, number, open, cause)
    values = decode_cursor(cursor, *query) if cursor is not None else None
    found = queries.list_incidents(session, asked, after_values=values, limit=limit + 1)
    rows, more = one_page(found, limit, lambda row: [to_micros(row.occurred_at), row.id], *query)
    known = read_identities(session, sorted({row.checkpoint_id for row in rows if row.checkpoint_id is not None}))
    items = [IncidentItem.from_row(row, known) for row in rows]
    return answer(IncidentPage.model_construct(items=items, next_cursor=more))


@router.get("/incidents/{incident_id}", response_model=IncidentOut)
def get_incident(incident_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """One incident, with the end of its log, and what to load instead where the checkpoint is suspect."""
    return answer(_shape(session, _own_incident(session, incident_id, caller)))


@router.patch("/incidents/{incident_id}", response_model=IncidentOut)
def amend_incident(
    incident_id: str,
    body: Annotated[IncidentPatch, json_body(IncidentPatch)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Set the cause, the note, the node or the hardware; close it, or open it again."""
    row = _own_incident(session, incident_id, caller)
    return answer(_shape(session, ledger.amend_incident(session, row.id, body.to_changes(), actor=caller.name)))


@router.post("/resume-receipts", response_model=ReceiptOut, responses=CREATED)
def record_receipt(
    body: Annotated[ReceiptIn, json_body(ReceiptIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Say which pieces an attempt really restored. The same receipt again answers 200.

    An attempt that resumed and has no receipt stays unconfirmed: loading the optimizer may have been a no-op.
    """
    run = _run_of_receipt(session, body, caller)
    row, made = receipts.record_receipt(session, run, body.to_new())
    return created(ReceiptOut.from_row(row), made)


@router.get("/runs/{run_id}/resume-receipts", response_model=ReceiptPage)
def list_receipts(
    run_id: str, session: SessionDep, caller: CallerDep, limit: AnyLimit = None, cursor: Cursor = None
) -> Response:
    """The receipts of a run, by attempt."""
    brief = runs.get_brief(session, _own_run(session, run_id, caller))
    rows = receipts.list_receipts(session, brief.project_id, brief.id)
    page, more = part_of(rows, limit, cursor, lambda row: [row.id], "receipts", brief.id, caller.token_id)
    return answer(ReceiptPage.model_construct(items=[ReceiptOut.from_row(row) for row in page], next_cursor=more))


@router.get("/checkpoints/{checkpoint_id}/suspicion", response_model=SuspicionOut)
def get_suspicion(checkpoint_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """Whether the checkpoint, or one copy of it, is suspect, why, and what to load instead."""
    _, number = own_checkpoint(session, checkpoint_id, caller)
    return answer(_suspicion(session, number))


@router.put("/checkpoints/{checkpoint_id}/suspicion", response_model=SuspicionOut)
def say_suspect(
    checkpoint_id: str,
    body: Annotated[SuspicionIn, json_body(SuspicionIn)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Call a checkpoint suspect, or lift every suspicion of it; further incidents of the kind bring it back."""
    _, number = own_checkpoint(session, checkpoint_id, caller)
    checkpoint = session.get_one(Checkpoint, number)
    suspicion.say_suspect(session, checkpoint, suspect=body.suspect, reason=body.reason, actor=caller.name)
    return answer(_suspicion(session, number))


def _own_run(session: Session, run_id: str, caller: Caller) -> int:
    brief = runs.get_brief(session, ids.id_or(run_id, RunNotFound))
    caller.require_project(brief.project_id)
    return brief.id


def _named_run(session: Session, run_id: int | None, project: str | None, run: str | None, caller: Caller) -> int:
    if run_id is None:
        own_project(session, project or "", caller)
        return runs.find_run(session, project or "", run or "").id
    caller.require_project(runs.get_brief(session, run_id).project_id)
    return run_id


def _run_of_receipt(session: Session, body: ReceiptIn, caller: Caller) -> int:
    """The run of the attempt that is named, else that of the checkpoint."""
    if isinstance(body.attempt, AttemptRefIn):
        return _named_run(session, body.attempt.run_id, None, None, caller)
    if body.run_id is not None or body.run is not None:
        return _named_run(session, body.run_id, body.project, body.run, caller)
    if body.checkpoint_id is not None:
        _, number = own_checkpoint(session, ids.to_text(body.checkpoint_id), caller)
        return session.get_one(Checkpoint, number).run_id
    said = body.checkpoint
    if said is None or said.project is None or said.run is None:
        raise receipts.BadReceipt.at("/run_id", "name the run, or a checkpoint that tells it")
    return _named_run(session, None, said.project, said.run, caller)


def _own_incident(session: Session, incident_id: str, caller: Caller) -> IncidentRow:
    row = queries.get_incident(session, ids.id_or(incident_id, IncidentNotFound))
    caller.require_project(row.project_id)
    return row


def _shape(session: Session, row: IncidentRow) -> IncidentOut:
    if row.checkpoint_id is None:
        return IncidentOut.from_row(row, {})
    known = read_identities(session, [row.checkpoint_id])
    suspect = suspicion.suspects_of(session, [row.checkpoint_id]).get(row.checkpoint_id)
    if suspect is None and row.replica_id is not None:
        suspect = suspicion.suspect_copies_of(session, [row.checkpoint_id]).get(row.replica_id)
    shown = SuspectOut.from_row(suspect, suspicion.advise(session, suspect)) if suspect is not None else None
    return IncidentOut.from_row(row, known, shown)


def _suspicion(session: Session, number: int) -> SuspicionOut:
    whole = suspicion.suspects_of(session, [number]).get(number)
    copies = suspicion.suspect_copies_of(session, [number])
    return SuspicionOut.model_construct(
        suspect=whole is not None,
        suspicion=SuspectOut.from_row(whole, suspicion.advise(session, whole)) if whole is not None else None,
        copies=[SuspectOut.from_row(each, suspicion.advise(session, each)) for each in copies.values()],
    )
