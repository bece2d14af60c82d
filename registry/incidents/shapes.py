"""What callers say of an incident and what the ledger answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from registry.errors import Conflict, FieldError, Invalid, NotFound

MAX_EXCERPT_BYTES: Final = 64 * 1024
SERVICE: Final = "cairn"  # who opened it, where the service noticed by itself


class IncidentNotFound(NotFound):
    code = "incident-not-found"
    title = "No such incident"


class IncidentStillOpen(Conflict):
    code = "incident-still-open"
    title = "The attempt has an open incident of this kind"


class BadIncident(Invalid):
    code = "bad-incident"
    title = "The incident cannot be recorded so"

    @classmethod
    def at(cls, pointer: str, message: str) -> "BadIncident":
        return cls(f"At {pointer}: {message}.", errors=[FieldError(pointer, message)])


@dataclass(frozen=True)
class NewIncident:
    """An incident as its reporter knows it. The attempt is named by its number or its key, or is the run's newest;
    else none is known.

    `evidence`: the lines that the cause was read from. `step`: the last step that the reporter knows of.
    `recovered_at`: when training went on, where that is past already.
    """

    kind: str = "reported"
    attempt: int | None = None
    attempt_key: str | None = None
    newest_attempt: bool = False
    cause: str | None = None
    evidence: Sequence[str] = ()
    occurred_at: datetime | None = None
    exit_code: int | None = None
    signal: str | None = None
    node: str | None = None
    hardware: str | None = None
    log_excerpt: str | None = None
    step: int | None = None
    steps_lost: int | None = None
    checkpoint_id: int | None = None
    replica_id: int | None = None
    signature: str | None = None
    note: str | None = None
    key: str | None = None
    recovered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident as it is recorded. `recovery_seconds` counts from when it struck until training went on.

    `cause_said_by`: who named the cause; None where it was guessed from the log or is unknown. `not_applied`: what the
    report that this answers said beside it and the ledger did not take over, since it has another word on it.
    """

    id: int
    project_id: int
    project: str
    run_id: int
    run: str
    attempt: int | None
    key: str | None
    kind: str
    cause: str
    cause_said_by: str | None
    evidence: tuple[str, ...]
    occurred_at: datetime
    exit_code: int | None
    signal: str | None
    node: str | None
    hardware: str | None
    log_excerpt: str | None
    last_step: int | None
    steps_lost: int | None
    steps_lost_said: bool
    checkpoint_id: int | None
    replica_id: int | None
    signature: str | None
    note: str | None
    opened_by: str
    created_at: datetime
    closed_at: datetime | None
    ending: str | None
    recovered_at: datetime | None
    not_applied: tuple[str, ...] = ()

    @property
    def recovery_seconds(self) -> float | None:
        """None while nothing went on, or where somebody closed it by hand."""
        if self.recovered_at is None:
            return None
        return max((self.recovered_at - self.occurred_at).total_seconds(), 0.0)
