"""How a person names a run or a checkpoint on the command line."""

import re

from cairn.calls.base import literal
from cairn.cli.hints import CHECKPOINT_NAMES
from cairn.client import Client
from cairn.errors import Invalid, NotFound
from cairn.types import Checkpoint, CheckpointRef, Run

NAME = r"[A-Za-z0-9._-]{1,128}"
RUN = re.compile(rf"(?P<project>{NAME})/(?P<run>.{{1,512}})")  # a run's name may hold anything, even / and @
ALIAS = re.compile(rf"(?P<project>{NAME})/(?P<name>{NAME})")
CHECKPOINT = re.compile(rf"{RUN.pattern}@(?:(?P<attempt>\d{{1,9}})\.)?(?P<step>\d{{1,19}})")
ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def split_run(text: str) -> tuple[str, str]:
    """'project/run' as two names. Raises `Invalid`."""
    found = RUN.fullmatch(text)
    if not found:
        raise Invalid(f"{text[:200]!r} does not name a run; expected project/run.")
    return found["project"], found["run"]


def find_run(client: Client, text: str) -> Run:
    """The run named by its id or as project/run."""
    return client.get_run(text) if ID.fullmatch(text) else client.find_run(*split_run(text))


def find_checkpoint_id(client: Client, text: str) -> str:
    """The id behind an id, project/run@step, project/run@attempt.step or project/alias."""
    if ID.fullmatch(text):
        return text
    if ALIAS.fullmatch(text):
        return _aliased(client, text).id
    return _at_step(client, text).id


def find_checkpoint(client: Client, text: str) -> Checkpoint:
    """As find_checkpoint_id, with everything that is known about the checkpoint."""
    if ID.fullmatch(text) or ALIAS.fullmatch(text):
        return client.get_checkpoint(find_checkpoint_id(client, text))
    return _at_step(client, text)


def _aliased(client: Client, text: str) -> CheckpointRef:
    """Raises `NotFound` with all that the text could have meant."""
    project, _, name = text.partition("/")
    try:
        return client.get_alias(project, name).checkpoint
    except NotFound as error:
        if error.code != "alias-not-found":
            raise
        raise NotFound(
            f"There is no alias {name!r} in {project!r}. {CHECKPOINT_NAMES} `cairn run show {text}` lists a run's."
        ) from None


def _at_step(client: Client, text: str) -> Checkpoint:
    """Of several at one step, the one of the newest attempt; of its two kinds, the archive."""
    named = CHECKPOINT.fullmatch(text)
    if not named:
        raise Invalid(f"{text[:200]!r} does not name a checkpoint. {CHECKPOINT_NAMES}")
    where = [
        f"project = {literal(named['project'])}",
        f"run.name = {literal(named['run'])}",
        f"step = {int(named['step'])}",
    ]
    if named["attempt"]:
        where.append(f"attempt = {int(named['attempt'])}")
    found = list(client.iter_checkpoints(filter=" and ".join(where), order_by="attempt desc", limit=100))
    if not found:
        run = literal(named["run"])
        raise NotFound(f'No checkpoint {text}. `cairn find --filter "run.name = {run}"` lists those of the run.')
    return max(found, key=lambda each: (each.attempt or 0, each.kind == "archive"))
