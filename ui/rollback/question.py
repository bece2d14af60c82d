"""The question of a rollback as its address has it: read, and asked of the registry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from registry.aliases.named import find_named_run
from registry.db import now
from registry.evals.catalogue import catalogue
from registry.ids import to_text
from registry.projects import find_project
from registry.recovery.answers import RollbackAnswer
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import NothingToWatch, Watch
from registry.runs import get_run
from registry.search.conditions import Condition, to_json
from registry.search.draft import UnreadableQuery
from registry.search.names import Names
from registry.search.parser import read_query
from registry.search.query import capability_resolver
from registry.tokens import Caller
from ui import filters
from ui.durations import EXPECTED, read_seconds

MODES = ("training", "production")
# The fields as the form calls them.
NAMES = {
    "mode": "The use",
    "watch": "The watched score",
    "step": "The step",
    "rto": "The time to restore within",
    "where": "The condition",
    "after": "The day from",
    "before": "The day before",
}
FIELD_NAMES = ("run", "alias", "mode", "watch", "step", "rto", "where", "after", "before")
FEW, MORE = 5, 50  # candidates shown unasked, and with `more`
MOST_STEP = 2**63 - 1


@dataclass(frozen=True)
class Asked:
    """The question as the URL has it, read; what could not be read is in `errors`, by field."""

    run_id: int | None
    alias: str | None
    project_id: int
    mode: str
    watch: Watch | None
    step: int | None
    rto_seconds: float | None
    conditions: tuple[Condition, ...]
    after: datetime | None
    before: datetime | None
    errors: dict[str, str]
    more: bool = False


def read_fields(
    run: str = "",
    alias: str = "",
    mode: str = "",
    watch: str = "",
    step: str = "",
    rto: str = "",
    where: str = "",
    after: str = "",
    before: str = "",
    more: str = "",
) -> dict[str, str]:
    """The question as the address has it."""
    return {name: text.strip()[:1000] for name, text in locals().items()}


def question(session: Session, caller: Caller, form: Mapping[str, str]) -> dict[str, Any]:
    """The question of the page's fields in the words of the API; what could not be read is left out, as on the page."""
    asked = read_question(session, caller, read_fields(**{name: form.get(name, "") for name in FIELD_NAMES}))
    watch = asked.watch and {"benchmark": asked.watch.benchmark, "capability": asked.watch.capability}
    said = {
        "run_id": None if asked.run_id is None else to_text(asked.run_id),
        "alias": asked.alias,
        "mode": asked.mode,
        "watch": watch and {name: text for name, text in watch.items() if text is not None},
        "at_or_before_step": asked.step,
        "rto_seconds": asked.rto_seconds,
        "conditions": [to_json(each) for each in asked.conditions] or None,
        "after": asked.after and asked.after.isoformat(),
        "before": asked.before and asked.before.isoformat(),
    }
    return {name: value for name, value in said.items() if value is not None}


def left_out_of(fields: dict[str, str], errors: dict[str, str]) -> list[str]:
    """What of the question was not understood: the answer is to the rest of it."""
    return [
        f"{NAMES[name]} ‘{filters.middle(fields[name], 60)}’ was left out: {errors[name].rstrip('.')}."
        for name in errors
    ]


def read_question(session: Session, caller: Caller, fields: dict[str, str]) -> Asked:
    """The run by its id or as project/run. Raises RunNotFound, ProjectNotFound, ProjectForbidden."""
    errors: dict[str, str] = {}
    run_id, alias = None, fields["alias"] or None
    if alias is None:
        run_id = find_named_run(session, caller, fields["run"])
    project_id = _project_of(session, caller, run_id, alias)
    mode = fields["mode"] if fields["mode"] in MODES else ("production" if alias else "training")
    if fields["mode"] not in ("", *MODES):
        errors["mode"] = "expected training or production"
    conditions: tuple[Condition, ...] = ()
    if fields["where"]:
        try:
            known = Names(session, [project_id], fields["where"])
            conditions = read_query(fields["where"], now=now(), known=known).conditions
        except UnreadableQuery as error:
            errors["where"] = error.message.partition(" Examples: ")[0]
    return Asked(
        run_id=run_id,
        alias=alias,
        project_id=project_id,
        mode=mode,
        watch=_watch(fields["watch"]),
        step=_whole(fields, "step", errors),
        rto_seconds=_seconds(fields, "rto", errors),
        conditions=conditions,
        after=_day(fields, "after", errors),
        before=_day(fields, "before", errors),
        errors=errors,
        more=bool(fields["more"]),
    )


def _project_of(session: Session, caller: Caller, run_id: int | None, alias: str | None) -> int:
    if alias is not None:
        project = find_project(session, alias.partition("/")[0]).id
    else:
        project = get_run(session, run_id or 0).project_id
    caller.require_project(project)
    return project


def _watch(text: str) -> Watch | None:
    """A capability by its name, in English or Chinese, else a benchmark."""
    if not text:
        return None
    capability = catalogue().capability(text)
    return Watch(capability=capability.name) if capability else Watch(benchmark=text)


def _whole(fields: dict[str, str], name: str, errors: dict[str, str]) -> int | None:
    digits = re.sub(r"[\s\u202f,_]", "", fields[name])
    if not digits:
        return None
    if not digits.isascii() or not digits.isdigit() or int(digits) > MOST_STEP:
        errors[name] = "expected a whole number"
        return None
    return int(digits)


def _seconds(fields: dict[str, str], name: str, errors: dict[str, str]) -> float | None:
    seconds = read_seconds(fields[name])
    if seconds is None and fields[name]:
        errors[name] = f"expected {EXPECTED}"
    return seconds


def _day(fields: dict[str, str], name: str, errors: dict[str, str]) -> datetime | None:
    if not fields[name]:
        return None
    try:
        moment = datetime.fromisoformat(fields[name])
    except ValueError:
        errors[name] = "expected a date such as 2026-11-01"
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown_day(moment: datetime | None) -> str:
    return moment.astimezone(UTC).date().isoformat() if moment is not None else ""


def ask(
    session: Session, caller: Caller, asked: Asked, *, every_point: bool = False
) -> tuple[RollbackAnswer, dict[str, str]]:
    """The answer; where nothing can be watched, the one without watching, and the field's error."""

    def find(watch: Watch | None) -> RollbackAnswer:
        return find_rollback_candidates(
            session,
            run_id=asked.run_id,
            alias=asked.alias,
            mode=asked.mode,
            conditions=asked.conditions,
            after=asked.after,
            before=asked.before,
            at_or_before_step=asked.step,
            watch=watch,
            rto_seconds=asked.rto_seconds,
            limit=MORE if asked.more else FEW,
            capabilities=capability_resolver(session, [asked.project_id]),
            every_point=every_point,
        )

    try:
        return find(asked.watch), {}
    except NothingToWatch as error:
        return find(None), {"watch": error.message}
