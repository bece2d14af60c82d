"""Bisects: after which checkpoint did it get worse, and which one to evaluate next."""

from typing import Annotated

from starlette.responses import Response

from api.answers import CREATED, answer, created
from api.deps import CallerDep, SessionDep, WriterDep, WriteSessionDep, json_body
from api.room import room
from api.schemas.bisects import BisectIn, BisectOut, ObservationIn
from registry import ids
from registry.checkpoints import detail
from registry.errors import FieldError, Invalid
from registry.provenance.bisect import BisectNotFound, get_bisect, observe, project_of_bisect, start_bisect

router = room("bisects")


class TwoProjects(Invalid):
    code = "bisect-two-projects"
    title = "A search stays within one project"


@router.post("/bisects", response_model=BisectOut, responses=CREATED, summary="Start Bisect")
def start(body: Annotated[BisectIn, json_body(BisectIn)], session: WriteSessionDep, caller: WriterDep) -> Response:
    """Start a search; the same question again goes on where it was.

    Evaluate `next.checkpoint` on `next.items` items and post the score; scores that arrive otherwise (an import, the
    trainer's own) count by themselves. The search ends at a probability of .95, or where no evaluation would tell more.
    """
    projects = [detail.project_of(session, number) for number in (body.good, body.bad)]
    for project_id in projects:
        caller.require_project(project_id)
    if projects[0] != projects[1]:
        message = "the two checkpoints are of different projects"
        raise TwoProjects(f"No way leads there: {message}.", errors=[FieldError("/bad", message)])
    found, is_new = start_bisect(
        session,
        projects[0],
        body.good,
        body.bad,
        body.to_target(),
        discordance=body.discordance,
        drop=body.drop,
        actor=caller.name,
    )
    return created(BisectOut.from_answer(found), is_new)


@router.get("/bisects/{bisect_id}", response_model=BisectOut, summary="Get Bisect")
def get(bisect_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """How a search stands, with every score that has arrived until now."""
    number = ids.id_or(bisect_id, BisectNotFound)
    caller.require_project(project_of_bisect(session, number))
    return answer(BisectOut.from_answer(get_bisect(session, number)))


@router.post("/bisects/{bisect_id}/observations", response_model=BisectOut)
def add_observation(
    bisect_id: str,
    body: Annotated[ObservationIn, json_body(ObservationIn)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Take a score of a checkpoint on the way; the same again changes nothing."""
    number = ids.id_or(bisect_id, BisectNotFound)
    caller.require_project(project_of_bisect(session, number))
    found = observe(
        session,
        number,
        body.checkpoint,
        value=body.value,
        stderr=body.stderr,
        n_samples=body.n_samples,
        actor=caller.name,
    )
    return answer(BisectOut.from_answer(found))
