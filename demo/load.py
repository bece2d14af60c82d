"""Register the published figures in a registry, through the same functions as any trainer's records."""

from dataclasses import replace
from itertools import groupby, islice

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.schemas.checkpoints import BatchItemIn
from api.schemas.runs import AttemptIn, RunIn
from demo import tables
from demo.reading import Body
from registry.aliases import AliasNotFound, get_alias, move_alias
from registry.attempts import amend_attempt, open_attempt
from registry.checkpoints.commands import register_batch
from registry.db import Database
from registry.evals.scores import record_scores
from registry.models import Checkpoint
from registry.projects import create_project, find_project
from registry.runs import find_run, start_run

ACTOR = "demo"
RUNS_AT_ONCE = 10  # in one transaction
# Names that a team would move about: (project, alias, run, step, reason).
ALIASES = (
    ("pythia", "production", "pythia-1.4b-deduped", 143_000, "the end of training"),
    ("pythia", "candidate", "pythia-1.4b-deduped-intervention", 143_000, "trained on with pronouns swapped"),
    ("dclm", "production", "wiseft_a80_mix3_long_47_mix3_34", 64_388, "the mix of the two decay runs"),
)


def load_demo(database: Database) -> int:
    """Register every published run and its checkpoints; gives how many checkpoints were new.

    A run that has checkpoints already is left as it is, and so is an alias that exists: what somebody changed
    since an earlier start stays. A run is written whole or not at all.
    """
    bodies = {(body["project"], body["name"]): body for body in tables.runs()}
    attempts = {(project, run): body for project, run, body in tables.attempts()}
    checkpoints = groupby(tables.checkpoints(), lambda body: (body["project"], body["run"]))
    registered = 0
    while lot := [(key, list(items)) for key, items in islice(checkpoints, RUNS_AT_ONCE)]:
        with database.write() as session:
            registered += sum(load_run(session, bodies[key], attempts[key], items) for key, items in lot)
    with database.write() as session:
        for alias in ALIASES:
            name_checkpoint(session, *alias)
    return registered


def load_run(session: Session, body: Body, attempt: Body, checkpoints: list[Body]) -> int:
    """One run with its attempt and all its checkpoints; gives how many were registered."""
    known = RunIn.model_validate(body)
    project, _ = create_project(session, known.project)
    run, _ = start_run(session, project.id, known.to_spec())
    of_run = (Checkpoint.project_id == project.id, Checkpoint.run_id == run.id)
    if session.scalar(select(Checkpoint.id).where(*of_run).limit(1)) is not None:
        return 0
    opened, _ = open_attempt(session, run.id, AttemptIn.model_validate(attempt).to_spec())
    amend_attempt(session, run.id, opened.number, {"state": "finished"})
    items = [BatchItemIn.model_validate(item).to_item() for item in checkpoints]
    # Checkpoint first, evaluation after it, as it was; scores would double the time that a registration's digest takes.
    bare = [replace(item, registration=replace(item.registration, scores=())) for item in items]
    done = register_batch(session, bare)
    scored = [
        (made.checkpoint_id, score)
        for made, item in zip(done, items, strict=True)
        for score in item.registration.scores
    ]
    record_scores(session, project.id, scored)
    return len(done)


def name_checkpoint(session: Session, project: str, alias: str, run: str, step: int, reason: str) -> None:
    """Point an alias at a checkpoint, unless it is there already."""
    project_id = find_project(session, project).id
    try:
        get_alias(session, project_id, alias)
    except AliasNotFound:
        run_id = find_run(session, project, run).id
        query = select(Checkpoint.id).where(Checkpoint.project_id == project_id, Checkpoint.run_id == run_id)
        target = session.scalars(query.where(Checkpoint.step == step)).one()
        move_alias(session, project_id, alias, target, actor=ACTOR, reason=reason)
