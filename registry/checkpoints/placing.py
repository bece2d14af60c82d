"""Where a registration belongs: its run, and which attempt of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from registry import attempts, strict_json
from registry.attempts import AttemptNotFound
from registry.checkpoints.errors import DataCursorTooLarge, SavedInTheFuture
from registry.checkpoints.registration import Registration, content_digest
from registry.db import Base, now
from registry.errors import FieldError, RegistryError
from registry.ids import to_text
from registry.models import Attempt, Run
from registry.snapshots import canonical_within_limits, refuse_too_many_paths
from registry.upsert import chunks

MAX_CURSOR_CHARACTERS: Final = 65_536
AHEAD: Final = timedelta(days=1)  # clocks of hosts may be wrong by minutes; a year ahead would be the newest for ever

Key = tuple[int, int, int, str]
Problems = list[tuple[int, RegistryError]]


# Built once, over plain tables: every registration runs it.
_attempts, _runs = (Base.metadata.tables[table.__tablename__] for table in (Attempt, Run))
_ATTEMPTS = (
    select(
        _attempts.c.run_id,
        _attempts.c.id,
        _attempts.c.number,
        func.coalesce(_attempts.c.config_id, _runs.c.config_id).label("config_id"),
        _attempts.c.environment_id,
        _attempts.c.layout_id,
        _attempts.c.live_through_step,
        _attempts.c.resumed_from_step,
        _attempts.c.restart,
    )
    .join(_runs, _runs.c.id == _attempts.c.run_id)
    .where(_attempts.c.project_id == bindparam("project"), _attempts.c.run_id.in_(bindparam("runs", expanding=True)))
)


@dataclass(frozen=True)
class AttemptFacts:
    """What a checkpoint has from its attempt. `start_unsaid`: nobody said what it loaded; its steps tell."""

    id: int
    number: int
    config_id: int | None
    environment_id: int | None
    layout_id: int | None
    live_through_step: int | None
    start_unsaid: bool


@dataclass(frozen=True)
class Item:
    """A registration at its place. `index` is its place in the batch."""

    index: int
    run_id: int
    attempt: AttemptFacts
    registration: Registration
    digest: bytes

    @property
    def key(self) -> Key:
        return self.run_id, self.attempt.number, self.registration.step, self.registration.kind


def place(
    session: Session, project_id: int, items: Sequence[tuple[int, int, Registration]], *, make_attempts: bool
) -> tuple[list[Item], Problems]:
    """Each (index, run id, registration) at its place; what has none, or holds what cannot be kept, apart.

    `make_attempts`: a backfill may name attempts that nobody opened, one after the other. Who names none means the
    newest that was there before. An attempt before the newest is made in any case: its own record may arrive late.
    """
    run_ids = {run_id for _, run_id, _ in items}
    known = attempts_of(session, project_id, run_ids)
    without = sorted(run_ids - known.keys())
    if without:
        attempts.first_attempts(session, project_id, without)
        known = attempts_of(session, project_id, run_ids)
    newest = {run_id: max(numbers) for run_id, numbers in known.items()}
    missing = _older(items, known) + (_following(items, newest) if make_attempts else [])
    if missing:
        attempts.plain_attempts(session, project_id, missing)
        known = attempts_of(session, project_id, run_ids)
    placed: list[Item] = []
    problems: Problems = []
    for index, run_id, registration in items:
        try:
            _check_values(registration)
            attempt = _attempt(known[run_id], run_id, registration.attempt or newest[run_id])
            placed.append(Item(index, run_id, attempt, registration, content_digest(registration)))
        except RegistryError as problem:
            problems.append((index, problem))
    return placed, problems


def _older(
    items: Sequence[tuple[int, int, Registration]], known: Mapping[int, Mapping[int, AttemptFacts]]
) -> list[tuple[int, int]]:
    """The (run id, attempt number) that items name and that are missing before a run's newest attempt."""
    named = sorted({(run_id, given.attempt) for _, run_id, given in items if given.attempt is not None})
    return [(run_id, number) for run_id, number in named if number < max(known[run_id]) and number not in known[run_id]]


def _following(items: Sequence[tuple[int, int, Registration]], newest: Mapping[int, int]) -> list[tuple[int, int]]:
    """The (run id, attempt number) that items name and that follow a run's newest attempt without a gap."""
    named = sorted({(run_id, given.attempt) for _, run_id, given in items if given.attempt is not None})
    following: list[tuple[int, int]] = []
    last = dict(newest)
    for run_id, number in named:
        if number == last[run_id] + 1:
            last[run_id] = number
            following.append((run_id, number))
    return following


def attempts_of(session: Session, project_id: int, run_ids: Iterable[int]) -> dict[int, dict[int, AttemptFacts]]:
    """Run id to attempt number to what it hands down: its config (else the run's), environment, layout."""
    known: dict[int, dict[int, AttemptFacts]] = {}
    for chunk in chunks(sorted(run_ids)):
        for row in session.connection().execute(_ATTEMPTS, {"project": project_id, "runs": chunk}):
            unsaid = row.number > 1 and row.resumed_from_step is None and not row.restart
            facts = AttemptFacts(
                row.id,
                row.number,
                row.config_id,
                row.environment_id,
                row.layout_id,
                row.live_through_step,
                unsaid,
            )
            known.setdefault(row.run_id, {})[row.number] = facts
    return known


def _attempt(known: Mapping[int, AttemptFacts], run_id: int, number: int) -> AttemptFacts:
    if number not in known:
        message = f"run {to_text(run_id)} has no attempt {number}; its newest is {max(known)}"
        raise AttemptNotFound(f"Cannot record: {message}.", errors=[FieldError("/attempt", message)])
    return known[number]


def _text_of(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _check_values(registration: Registration) -> None:
    """Raises Invalid for a time far ahead, for a config or data cursor that is too large or too deep."""
    if registration.saved_at is not None and registration.saved_at > (here := now()) + AHEAD:
        message = (
            f"{_text_of(registration.saved_at)} is more than a day ahead of this service, whose time is "
            f"{_text_of(here)}; set the clock of that host right, or leave the time out"
        )
        raise SavedInTheFuture(
            f"The checkpoint cannot be recorded: saved_at {message}.", errors=[FieldError("/saved_at", message)]
        )
    if registration.config is not None:
        refuse_too_many_paths(registration.config)
    if registration.data_cursor is None:
        return
    canonical_within_limits({"": registration.data_cursor}, "/data_cursor")
    length = len(strict_json.canonical(registration.data_cursor))
    if length > MAX_CURSOR_CHARACTERS:
        message = f"{length} characters; at most {MAX_CURSOR_CHARACTERS} are kept: send a digest instead"
        raise DataCursorTooLarge(f"The data cursor has {message}.", errors=[FieldError("/data_cursor", message)])
