"""Where a checkpoint comes from, and what testing a suspect showed."""

from typing import Annotated, Literal

from fastapi import Request
from starlette.responses import Response

from api.answers import answer
from api.deps import CallerDep, SessionDep, WriterDep, WriteSessionDep, json_body
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.provenance import ProvenanceOut, SuspectTestIn, SuspectTestOut
from registry.checkpoints import detail
from registry.provenance.bundle import read_provenance
from registry.provenance.model_card import to_markdown
from registry.provenance.suspect_tests import record_test

router = room("provenance")
MARKDOWN = "text/markdown"


@router.get(
    "/checkpoints/{checkpoint_id}/provenance",
    response_model=ProvenanceOut,
    responses={200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}},
)
def get_provenance(
    checkpoint_id: str,
    request: Request,
    session: SessionDep,
    caller: CallerDep,
    format: Literal["json", "markdown"] | None = None,
) -> Response:
    """The whole chain behind a checkpoint: data, config, code, parents, tokens seen per source, and what is unknown.

    With `format=markdown`, or where `Accept` asks for text/markdown, a section of a model card.
    """
    _, number = own_checkpoint(session, checkpoint_id, caller)
    found = read_provenance(session, number)
    if format == "markdown" or (format is None and MARKDOWN in request.headers.get("accept", "")):
        return Response(to_markdown(found), media_type=f"{MARKDOWN}; charset=utf-8")
    return answer(ProvenanceOut.from_row(found))


@router.post("/suspects", response_model=SuspectTestOut)
def test_suspect(
    body: Annotated[SuspectTestIn, json_body(SuspectTestIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Record what became of a suspect of a comparison: confirmed or cleared, by a short training without the change.

    `POST /compare` of the two shows it from then on; a later word on the same change replaces an earlier one.
    """
    for number in (body.baseline, body.candidate, *([body.branch] if body.branch is not None else [])):
        caller.require_project(detail.project_of(session, number))
    record_test(
        session,
        baseline_id=body.baseline,
        candidate_id=body.candidate,
        changes=body.changes,
        verdict=body.verdict,
        branch_id=body.branch,
        note=body.note,
        actor=caller.name,
    )
    return answer(SuspectTestOut.from_body(body))
