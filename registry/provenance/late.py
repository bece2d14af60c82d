"""A config or an environment that an attempt or a run was given only after a checkpoint of it had been registered.

What is there at registration becomes the checkpoint's own. What comes later describes it all the same, and is no part
of its record: whoever uses it says whose it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from registry.checkpoints.detail import CheckpointDetail, read_config, read_environment
from registry.models import Attempt, Checkpoint, Run


@dataclass(frozen=True, slots=True)
class Known:
    """`id` of the object, None where nobody recorded one; `whose`: attempt or run, '' where it is its own."""

    id: int | None
    whose: str = ""


def config_of(own: int | None, attempt: Attempt, run: Run) -> Known:
    if own is not None or (attempt.config_id is None and run.config_id is None):
        return Known(own)
    return Known(run.config_id, "run") if attempt.config_id is None else Known(attempt.config_id, "attempt")


def environment_of(own: int | None, attempt: Attempt) -> Known:
    return Known(own) if own is not None or attempt.environment_id is None else Known(attempt.environment_id, "attempt")


def told(what: str, whose: tuple[str, str]) -> str:
    """Of the two sides of a comparison, in words; '' where each has its own."""
    sides = zip(("baseline", "candidate"), whose, strict=True)
    return "; ".join(f"for the {side} {_taken(what, each)}" for side, each in sides if each)


def _taken(what: str, whose: str) -> str:
    return f"the {what} of its {whose} is taken, which was recorded after it"


@dataclass(frozen=True, slots=True)
class Bodies:
    """The config and the environment that describe a checkpoint; `notes`: whose they are where not its own."""

    config: Mapping[str, Any] | None
    environment: Mapping[str, Any] | None
    notes: tuple[str, ...] = ()


def bodies_of(session: Session, detail: CheckpointDetail) -> Bodies:
    if detail.config is not None and detail.environment is not None:
        return Bodies(detail.config, detail.environment)
    row = session.get_one(Checkpoint, detail.checkpoint.id)
    attempt, run = session.get_one(Attempt, row.attempt_id), session.get_one(Run, row.run_id)
    config, environment = config_of(row.config_id, attempt, run), environment_of(row.environment_id, attempt)
    known = (("config", config), ("environment", environment))
    return Bodies(
        read_config(session, config.id),
        read_environment(session, environment.id),
        tuple(_taken(what, each.whose) for what, each in known if each.whose),
    )
