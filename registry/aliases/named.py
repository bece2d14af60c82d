"""What a person writes for a checkpoint or a run: an id, project/run@step, project/run@attempt.step, project/alias.

The command line reads the same forms (`cairn.cli.targets`), which has its own code since it asks over the API.
"""

import re
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.aliases.errors import AliasNotFound
from registry.aliases.reading import get_alias
from registry.checkpoints.errors import CheckpointNotFound
from registry.ids import from_text
from registry.models import Checkpoint, Run
from registry.projects import find_project
from registry.runs import RunNotFound, find_run
from registry.tokens import Caller
from registry.types import INT64_MAX

FORMS: Final = (
    "A checkpoint is named by its id, by project/run@step or project/run@attempt.step, or by an alias as project/alias."
)
_NAME: Final = r"[A-Za-z0-9._-]{1,128}"
_RUN: Final = rf"(?P<project>{_NAME})/(?P<run>.{{1,512}})"  # a run's name may hold anything, even / and @
_AT: Final = re.compile(rf"{_RUN}@(?:(?P<attempt>\d{{1,9}})\.)?(?P<step>\d{{1,19}})", re.ASCII)
_ALIAS: Final = re.compile(rf"(?P<project>{_NAME})/(?P<name>{_NAME})")


def find_named_checkpoint(session: Session, caller: Caller, text: str) -> int:
    """The id of the checkpoint. Of several at one step that of the newest attempt; of its two kinds the archive.

    Raises CheckpointNotFound, ProjectNotFound, AliasNotFound, RunNotFound, ProjectForbidden.
    """
    number = from_text(text)
    if number is not None:
        if not _is_own(session, caller, Checkpoint, number):
            raise CheckpointNotFound(f"There is no checkpoint {text[:40]!r}.")
        return number
    if alias := _ALIAS.fullmatch(text):
        return _aliased(session, caller, alias["project"], alias["name"])
    at = _AT.fullmatch(text)
    if at is None:
        raise CheckpointNotFound(f"{text[:200]!r} does not name a checkpoint. {FORMS}")
    return _at_step(session, caller, at)


def find_named_run(session: Session, caller: Caller, text: str) -> int:
    """The id of the run named by its id or as project/run. Raises RunNotFound, ProjectNotFound, ProjectForbidden."""
    number = from_text(text)
    if number is not None:
        if not _is_own(session, caller, Run, number):
            raise RunNotFound(f"There is no run {text[:40]!r}.")
        return number
    project, slash, name = text.partition("/")
    if not slash:
        raise RunNotFound(f"There is no run {text[:40]!r}. A run is named by its id or as project/run.")
    caller.require_project(find_project(session, project).id)
    return find_run(session, project, name).id


def _is_own(session: Session, caller: Caller, table: type[Checkpoint] | type[Run], number: int) -> bool:
    """Whether there is one of that id. Raises ProjectForbidden where it is another's."""
    project_id = session.scalar(select(table.project_id).where(table.id == number))
    if project_id is not None:
        caller.require_project(project_id)
    return project_id is not None


def _aliased(session: Session, caller: Caller, project: str, name: str) -> int:
    """Raises AliasNotFound with all that the text could have meant."""
    row = find_project(session, project)
    caller.require_project(row.id)
    try:
        return get_alias(session, row.id, name).checkpoint_id
    except AliasNotFound:
        raise AliasNotFound(f"There is no alias {name!r} in {project!r}. {FORMS}") from None


def _at_step(session: Session, caller: Caller, at: re.Match[str]) -> int:
    row = find_project(session, at["project"])
    caller.require_project(row.id)
    run = find_run(session, at["project"], at["run"])
    step, attempt = int(at["step"]), at["attempt"]
    query = select(Checkpoint.id).where(Checkpoint.project_id == row.id, Checkpoint.run_id == run.id)
    if attempt is not None:
        query = query.where(Checkpoint.attempt_number == int(attempt))
    query = query.where(Checkpoint.step == min(step, INT64_MAX))
    found = session.scalar(query.order_by(Checkpoint.attempt_number.desc(), Checkpoint.kind).limit(1))
    if found is None:
        raise CheckpointNotFound(f"The run {run.project}/{run.name} has no checkpoint at {at[0].rpartition('@')[2]}.")
    return found
