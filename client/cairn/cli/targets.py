"""How a person names a run or a checkpoint on the command line."""

import re

from cairn.calls.base import literal
from cairn.client import Client
from cairn.errors import Invalid, NotFound
from cairn.types import Checkpoint, Run

NAME = r"[A-Za-z0-9._-]{1,128}"
RUN = re.compile(rf"(?P<project>{NAME})/(?P<run>.{{1,512}})")  # a run's name may hold anything, even / and @
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
    """The id behind an id, project/run@step or project/run@attempt.step."""
    return text if ID.fullmatch(text) else find_checkpoint(client, text).id


def find_checkpoint(client: Client, text: str) -> Checkpoint:
    """Of several at one step, the one of the newest attempt; of its two kinds, the archive."""
    if ID.fullmatch(text):
        return client.get_checkpoint(text)
    named = CHECKPOINT.fullmatch(text)
    if not named:
        raise Invalid(
            f"{text[:200]!r} does not name a checkpoint; expected an id, project/run@step or project/run@attempt.step."
        )
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
