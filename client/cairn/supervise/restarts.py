"""What a start of the job goes on from, and how the job is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cairn.cli.hints import in_a_line
from cairn.client import Client
from cairn.errors import CairnError, NotFound
from cairn.resume import Choice, NothingToResume, choose
from cairn.transport import Retries

PLACE: Final = "{resume}"
TIMEOUT_SECONDS: Final = 5.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Origin:
    """What is loaded: a path for the job, and what the attempt says of it. `fresh`: the run has no checkpoint yet."""

    path: str | None = None
    said: str | Mapping[str, Any] | None = None
    checkpoint_id: str | None = None
    replica_id: str | None = None
    fresh: bool = False


class CannotGoOn(Exception):
    """The run has checkpoints and none can be loaded here: starting the job would start it over."""


def find_origin(run: str, say: Say, *, needed: bool, require: Sequence[str] = ()) -> Origin:
    """The newest checkpoint that this host can load, as `cairn resume` finds it; what jobs on this host have recorded
    of the run is sent first. `require`: the pieces that must be there, unless the usual ones.

    `needed`: the job is told what to load and cannot find it by itself. Raises CannotGoOn then; else the job goes on
    as it finds its own way.
    """
    try:
        with Client(timeout=TIMEOUT_SECONDS, retries=Retries(count=0)) as client:
            return _of(choose(client, run, require=require, say=say))
    except NothingToResume as nothing:
        if nothing.has_none:
            return Origin(fresh=True)
        if needed:
            raise CannotGoOn(nothing.detail) from None
        say(f"nothing to resume from was found: {nothing.detail}")
    except CairnError as fault:
        if isinstance(fault, NotFound) and (fault.status == 0 or fault.code in ("run-not-found", "project-not-found")):
            return Origin(fresh=True)  # the run itself is new
        if needed:
            raise CannotGoOn(in_a_line(fault)) from None
        say(f"what to resume from could not be found out: {in_a_line(fault)}")
    return Origin()


def told(command: Sequence[str], flags: Sequence[str], origin: Origin) -> list[str]:
    """The command with `{resume}` replaced by the path, and `flag path` at its end for each flag."""
    filled = [part.replace(PLACE, origin.path or "") for part in command]
    if origin.path is not None:
        for flag in flags:
            filled += [flag + origin.path] if flag.endswith("=") else [flag, origin.path]
    return filled


def wants_a_path(command: Sequence[str], flags: Sequence[str]) -> bool:
    return bool(flags) or any(PLACE in part for part in command)


def _of(choice: Choice) -> Origin:
    if choice.checkpoint is None:
        return Origin(choice.path, None if choice.step is None else {"step": choice.step})
    replica = choice.replica.replica_id if choice.replica is not None else None
    identity = choice.checkpoint.id
    return Origin(choice.path, identity, identity, replica)
