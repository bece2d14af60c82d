"""The three questions: which checkpoint to go back to, why a capability got worse, which one is strong where."""

from typing import Annotated

from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import CallerDep, SessionDep, SettingsDep, json_body
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.common import CheckpointRef
from api.schemas.compare import CompareIn, ComparisonOut
from api.schemas.rollback import RollbackIn, RollbackOut
from api.schemas.search import PopulationName, ProfileOut, SearchIn, SearchOut
from registry import runs
from registry.checkpoints import detail
from registry.config import Settings
from registry.evals.profile import profile
from registry.provenance.compare import compare_checkpoints
from registry.recovery.rollback import find_rollback_candidates
from registry.search.conditions import read_conditions
from registry.search.query import capability_resolver, search_checkpoints
from registry.tokens import Caller

router = room("decisions")


@router.post("/search", response_model=SearchOut)
def search(body: Annotated[SearchIn, json_body(SearchIn)], session: SessionDep, caller: CallerDep) -> Response:
    """Find checkpoints by profile, in plain English or Chinese, or by conditions.

    The answer shows how the question was understood and what was not; a missing score is never read as weak.
    """
    return answer(answer_search(body, session, caller))


def answer_search(body: SearchIn, session: Session, caller: Caller) -> SearchOut:
    if body.project is not None:
        own_project(session, body.project, caller)
    found = search_checkpoints(
        session,
        project_ids=caller.project_ids,
        query=body.query,
        conditions=body.conditions,
        like=body.like,
        project=body.project,
        order=body.order,
        population=body.population,
        limit=body.limit,
    )
    return SearchOut.from_answer(found)


@router.post("/rollback", response_model=RollbackOut)
def rollback(body: Annotated[RollbackIn, json_body(RollbackIn)], session: SessionDep, caller: CallerDep) -> Response:
    """Which checkpoint to go back to: ranked with the terms of the ranking, the excluded ones with their filter."""
    return answer(answer_rollback(body, session, caller))


def answer_rollback(body: RollbackIn, session: Session, caller: Caller) -> RollbackOut:
    if body.run_id is not None:
        project_id = runs.get_brief(session, body.run_id).project_id
    else:
        project_id = own_project(session, (body.alias or "").partition("/")[0], caller).id
    caller.require_project(project_id)
    found = find_rollback_candidates(
        session,
        run_id=body.run_id,
        alias=body.alias,
        mode=body.mode or ("production" if body.alias else "training"),
        conditions=read_conditions(body.conditions) if body.conditions else (),
        after=body.after,
        before=body.before,
        at_or_before_step=body.at_or_before_step,
        watch=body.watch.to_watch() if body.watch else None,
        target_layout=body.target_layout.to_spec() if body.target_layout else None,
        rto_seconds=body.rto_seconds,
        limit=body.limit,
        capabilities=capability_resolver(session, {project_id}),
    )
    return RollbackOut.from_answer(found)


@router.post("/compare", response_model=ComparisonOut)
def compare(
    body: Annotated[CompareIn, json_body(CompareIn)], session: SessionDep, caller: CallerDep, settings: SettingsDep
) -> Response:
    """Two checkpoints side by side: which scores really changed, what else changed, and which change is suspect."""
    return answer(answer_compare(body, session, caller, settings))


def answer_compare(body: CompareIn, session: Session, caller: Caller, settings: Settings) -> ComparisonOut:
    for number in (body.baseline, body.candidate):
        caller.require_project(detail.project_of(session, number))
    found = compare_checkpoints(session, body.baseline, body.candidate, mirrors=settings.git_mirrors)
    return ComparisonOut.from_comparison(found)


@router.get("/checkpoints/{checkpoint_id}/profile", response_model=ProfileOut)
def get_profile(
    checkpoint_id: str, session: SessionDep, caller: CallerDep, population: PopulationName = "project"
) -> Response:
    """What a checkpoint is good at: a percentile and a composite per capability, with coverage and population.

    `population=reference:pythia` takes the percentiles among published figures instead of the project's checkpoints.
    """
    _, number = own_checkpoint(session, checkpoint_id, caller)
    identity = detail.read_identities(session, [number])[number]
    return answer(ProfileOut.from_profile(profile(session, number, population), CheckpointRef.from_row(identity)))
