"""Register, commit, amend, list and read checkpoints, and record their scores."""

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import Field, TypeAdapter
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import CREATED, answer, created
from api.deps import (
    AnyLimit,
    CallerDep,
    Cursor,
    Limit,
    RawBody,
    SessionDep,
    SettingsDep,
    WriterDep,
    WriteSessionDep,
    json_body,
    refuse_compressed,
    validate,
)
from api.paging import decode_cursor, encode_cursor, part_of
from api.problems import TooLarge
from api.room import room
from api.schemas.checkpoints import (
    BatchItemIn,
    BatchReport,
    CheckpointIn,
    CheckpointItem,
    CheckpointOut,
    CheckpointPage,
    CheckpointPatch,
    CommitIn,
    RegisteredOut,
    ScoreOut,
    ScorePage,
    ScoreReport,
)
from api.schemas.common import LeftOutProjects
from api.schemas.parts import ReplicaIn, ScoreIn
from registry import ids, runs, strict_json
from registry.checkpoints import commands, detail, queries, replicas
from registry.checkpoints.errors import CheckpointNotFound
from registry.config import Settings
from registry.errors import FieldError
from registry.evals import read, scores
from registry.evals.outdated import outdated_notes
from registry.evals.scales import scale_notes
from registry.evals.scores import NewScore
from registry.projects import find_project
from registry.runs import RunNotFound
from registry.search.query import capability_resolver
from registry.tokens import Caller

router = room("checkpoints")

BATCH: TypeAdapter[Any] = TypeAdapter(list[BatchItemIn])
SCORES = Annotated[list[ScoreIn], Field(max_length=10_000)]
REPLICAS = Annotated[list[ReplicaIn], Field(min_length=1, max_length=1_000)]


@router.post("/runs/{run_id}/checkpoints", response_model=RegisteredOut, responses=CREATED)
def register_checkpoint(
    run_id: str,
    body: Annotated[CheckpointIn, json_body(CheckpointIn)],
    session: WriteSessionDep,
    caller: WriterDep,
    settings: SettingsDep,
) -> Response:
    """Register a checkpoint; only `step` is required.

    The same content again answers 200. Other content under the same (run, attempt, step, kind): 409 with the fields
    that differ. A committed registration of one's own pending checkpoint commits it.
    """
    run = runs.get_brief(session, ids.id_or(run_id, RunNotFound))
    caller.require_project(run.project_id)
    given = body.to_registration()
    done = commands.register_checkpoint(session, run.id, given, project_id=run.project_id, roots=settings.storage_roots)
    made = done.status == "created"
    said = body.pieces.to_specs() if made else detail.read_pieces(session, run.project_id, done.checkpoint_id)
    warnings = scale_notes(session, run.project_id, given.scores)
    session.commit()  # in the thread that wrote: another one would take it up later, and everybody waits for the writer
    return created(RegisteredOut.of(done, run, said, warnings), made)


def batch_body(request: Request, raw: RawBody, settings: SettingsDep) -> list[BatchItemIn]:
    items: list[BatchItemIn] = validate(BATCH, _batch_values(request, raw, settings))
    return items


# A line of NDJSON is one item; the description has no word for that yet.
batch_body.__dict__["body_models"] = {
    "application/json": Annotated[list[BatchItemIn], Field(description="All are recorded, or none.")],
    "application/x-ndjson": Annotated[str, Field(description="One item a line, each as in the array.")],
}


@router.post("/checkpoints:batch", response_model=BatchReport)
def register_batch(
    body: Annotated[list[BatchItemIn], Depends(batch_body)],
    session: WriteSessionDep,
    caller: WriterDep,
    settings: SettingsDep,
) -> Response:
    """Register many, all or none: a JSON array, or one object a line as application/x-ndjson.

    Projects and runs are named, and made where they are missing. A refused batch names each refused item.
    """
    items = [item.to_item() for item in body]
    if caller.project_ids is not None:
        for project in {item.project for item in items}:
            own_project(session, project, caller)
    results = commands.register_batch(session, items, roots=settings.storage_roots)
    warnings = _batch_warnings(session, items)
    session.commit()
    return answer(BatchReport.from_results(results, warnings))


@router.get("/checkpoints", response_model=CheckpointPage)
def list_checkpoints(
    session: SessionDep,
    caller: CallerDep,
    filter: str = "",
    order_by: str = "",
    fields: str = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Checkpoints that a filter finds, the newest first unless `order_by` says otherwise.

    The filter language: `scores.gsm8k > 0.6 and (run.name like 'llama%' or tags.phase = 'sft') and not superseded`.
    `fields` names what else to answer: `scores.gsm8k, tags.phase`.
    """
    query = ("checkpoints", filter, order_by, caller.token_id)
    page = queries.list_checkpoints(
        session,
        project_ids=caller.project_ids,
        filter=filter or None,
        order_by=order_by,
        fields=fields,
        limit=limit,
        after=None if cursor is None else decode_cursor(cursor, *query),
        capabilities=capability_resolver(session, caller.project_ids),
    )
    shape = CheckpointPage.model_construct(
        items=[CheckpointItem.from_row(row) for row in page.rows],
        next_cursor=encode_cursor(page.next_after, *query) if page.next_after else None,
        resolved=dict(page.resolved),
        left_out=LeftOutProjects.by_name(page.left_out),
    )
    return answer(shape)


@router.get("/checkpoints/{checkpoint_id}", response_model=CheckpointOut)
def get_checkpoint(checkpoint_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """Everything that is known about one checkpoint."""
    return answer(_read(session, own_checkpoint(session, checkpoint_id, caller)[1]))


@router.post("/checkpoints/{checkpoint_id}/commit", response_model=CheckpointOut)
def commit_checkpoint(
    checkpoint_id: str,
    body: Annotated[CommitIn, json_body(CommitIn, optional=True)],
    session: WriteSessionDep,
    caller: WriterDep,
    settings: SettingsDep,
) -> Response:
    """Commit a pending checkpoint, completing it with any field of registration."""
    _, number = own_checkpoint(session, checkpoint_id, caller)
    commands.commit_checkpoint(session, number, body.to_registration(), roots=settings.storage_roots)
    return answer(_read(session, number))


@router.patch("/checkpoints/{checkpoint_id}", response_model=CheckpointOut)
def amend_checkpoint(
    checkpoint_id: str,
    body: Annotated[CheckpointPatch, json_body(CheckpointPatch)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Amend tags (null takes one away), notes, milestone, loss."""
    _, number = own_checkpoint(session, checkpoint_id, caller)
    commands.amend_checkpoint(session, number, body.to_changes(), actor=caller.name)
    return answer(_read(session, number))


@router.post("/checkpoints/{checkpoint_id}/replicas", response_model=CheckpointOut)
def add_replicas(
    checkpoint_id: str,
    body: Annotated[list[ReplicaIn], json_body(REPLICAS)],
    session: WriteSessionDep,
    caller: WriterDep,
    settings: SettingsDep,
) -> Response:
    """Record further copies, or the parts that one host has of a spread one. A copy that is known adds nothing.

    409 `replica-differs` where a digest of the same algorithm, or a size, contradicts what is recorded.
    """
    _, number = own_checkpoint(session, checkpoint_id, caller)
    specs = [replica.to_spec() for replica in body]
    replicas.add_replicas(session, number, specs, settings.storage_roots, actor=caller.name)
    return answer(_read(session, number))


@router.post("/checkpoints/{checkpoint_id}/scores", response_model=ScoreReport)
def record_scores(
    checkpoint_id: str, body: Annotated[list[ScoreIn], json_body(SCORES)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Record eval scores. A re-evaluation is kept beside the first; an identical result adds nothing.

    The score that counts is that with the newest `evaluated_at`, then the last to arrive. So a value that was there
    before a wrong one counts again when it is sent again; `warnings` say where a later evaluation keeps counting.
    """
    project_id, number = own_checkpoint(session, checkpoint_id, caller)
    given = [score.to_score() for score in body]
    new = scores.record_scores(session, project_id, [(number, score) for score in given], on_purpose=True)
    warnings = [
        *scale_notes(session, project_id, given),
        *outdated_notes(session, project_id, number, given),
    ]
    return answer(ScoreReport.model_construct(received=len(body), recorded=new, warnings=warnings))


@router.get("/checkpoints/{checkpoint_id}/scores", response_model=ScorePage)
def list_scores(
    checkpoint_id: str, session: SessionDep, caller: CallerDep, limit: AnyLimit = None, cursor: Cursor = None
) -> Response:
    """Every result of a checkpoint, re-evaluations included; `current` marks those that count now."""
    project_id, number = own_checkpoint(session, checkpoint_id, caller)
    rows = read.list_scores(session, project_id, [number], every=True)
    query = ("scores", number, caller.token_id)
    page, more = part_of(rows, limit, cursor, lambda row: [row.series_id, row.arrival], *query)
    return answer(ScorePage.model_construct(items=[ScoreOut.from_row(row) for row in page], next_cursor=more))


def own_checkpoint(session: Session, checkpoint_id: str, caller: Caller) -> tuple[int, int]:
    """(project id, checkpoint id) of a checkpoint that the caller may touch. Raises CheckpointNotFound."""
    number = ids.id_or(checkpoint_id, CheckpointNotFound)
    project_id = detail.project_of(session, number)
    caller.require_project(project_id)
    return project_id, number


def _read(session: Session, number: int) -> CheckpointOut:
    found = detail.get_checkpoint(session, number)
    return CheckpointOut.from_detail(found, read.list_scores(session, found.project_id, [number]))


def _batch_warnings(session: Session, items: Sequence[commands.BatchItem]) -> list[str]:
    by_project: dict[str, list[NewScore]] = {}
    for item in items:
        by_project.setdefault(item.project, []).extend(item.registration.scores)
    warnings: list[str] = []
    for project, given in by_project.items():
        warnings += scale_notes(session, find_project(session, project).id, given)
    return warnings


def _batch_values(request: Request, raw: bytes, settings: Settings) -> list[Any]:
    refuse_compressed(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-ndjson", "application/jsonl"):
        values = _lines(raw, settings.max_batch_items + 1)
    else:
        values = strict_json.loads(raw)
        if not isinstance(values, list):
            message = "expected an array of checkpoints"
            raise strict_json.MalformedJson(f"The batch is no array: {message}.", errors=[FieldError("", message)])
    if len(values) > settings.max_batch_items:
        raise TooLarge(f"The batch has more than {settings.max_batch_items} items. Send smaller batches.")
    return values


def _lines(raw: bytes, most: int) -> list[Any]:
    """The values of the first lines that are not blank. Raises MalformedJson, naming every line that is no JSON."""
    values: list[Any] = []
    errors: list[FieldError] = []
    numbered = ((number, line) for number, line in enumerate(raw.split(b"\n"), 1) if line.strip())
    for index, (number, line) in enumerate(itertools.islice(numbered, most)):
        try:
            values.append(strict_json.loads(line))
        except strict_json.MalformedJson as error:
            whole = error.message.removeprefix("Line 1, ").rstrip(".")
            said = error.errors or (FieldError("", whole[:1].lower() + whole[1:]),)
            errors += [FieldError(f"/{index}{each.pointer}", f"line {number}, {each.message}") for each in said]
    if errors:
        raise strict_json.MalformedJson(f"At {errors[0].pointer}: {errors[0].message}.", errors=errors)
    return values
