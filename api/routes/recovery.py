"""Restoring and resuming: from which copy, which checkpoint, and the same one on every host."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api.answers import answer
from api.deps import CallerDep, SessionDep, WriterDep, WriteSessionDep, json_body
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.common import NO_NUL
from api.schemas.recovery import RestorePlanOut, read_layout
from api.schemas.resume import AgreementOut, ResumePlanIn, ResumePlanOut, VoteIn
from registry import ids, runs
from registry.recovery.agreement import agree
from registry.recovery.restore_plan import plan_restore
from registry.recovery.resume import plan_resume
from registry.runs import RunNotFound
from registry.tokens import Caller

router = room("recovery")

LayoutQuery = Annotated[str, Query(max_length=200, pattern=NO_NUL, description="Degrees: tp=4,pp=2,dp=8")]
HostQuery = Annotated[str, Query(min_length=1, max_length=512, pattern=NO_NUL)]
RtoQuery = Annotated[float, Query(gt=0, le=1e9)]


@router.get("/checkpoints/{checkpoint_id}/restore-plan", response_model=RestorePlanOut)
def restore_plan(
    checkpoint_id: str,
    session: SessionDep,
    caller: CallerDep,
    layout: LayoutQuery | None = None,
    rto_seconds: RtoQuery | None = None,
    host: Annotated[list[HostQuery] | None, Query(max_length=1_000)] = None,
) -> Response:
    """The fastest feasible copy with its predicted time against an RTO, the others with why not, the pieces one by one.

    `layout` is that of the GPUs that are there; `host` names a node that is there, and may be repeated: a local copy is
    feasible only where every node that holds a part of it is.
    """
    _, number = own_checkpoint(session, checkpoint_id, caller)
    plan = plan_restore(
        session,
        number,
        layout=read_layout(layout) if layout is not None else None,
        rto_seconds=rto_seconds,
        hosts=host or (),
    )
    return answer(RestorePlanOut.from_plan(plan))


@router.post("/runs/{run_id}/resume-plan", response_model=ResumePlanOut)
def resume_plan(
    run_id: str,
    body: Annotated[ResumePlanIn, json_body(ResumePlanIn, optional=True)],
    session: SessionDep,
    caller: CallerDep,
) -> Response:
    """Which checkpoint a launch goes on from: the newest that is whole, fits and has a copy; what was passed over, why.

    A checkpoint without the pieces that are required is refused: ask for fewer in `require` to go on without.
    """
    return answer(ResumePlanOut.from_plan(plan_resume(session, _own_run(session, run_id, caller), body.to_question())))


@router.post("/runs/{run_id}/resume-agreements", response_model=AgreementOut)
def resume_agreement(
    run_id: str, body: Annotated[VoteIn, json_body(VoteIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """The same checkpoint on every host of a launch. The first that asks proposes; `all_ready`: all can read it."""
    return answer(AgreementOut.from_row(agree(session, _own_run(session, run_id, caller), body.to_vote())))


def _own_run(session: SessionDep, run_id: str, caller: Caller) -> int:
    run = runs.get_brief(session, ids.id_or(run_id, RunNotFound))
    caller.require_project(run.project_id)
    return run.id
