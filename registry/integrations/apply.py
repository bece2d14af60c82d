"""Bringing a tracker's run into the registry: the run itself, its link, and what the tracker says of its fields.

The same for every tracker, and for a run that is met for the first time or the thousandth: what did not change there
changes nothing here. What somebody else set here is never overwritten (registry.integrations.fields).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.attempts import first_attempts
from registry.db import now
from registry.ids import to_text
from registry.integrations.fields import apply_fields
from registry.integrations.shapes import TrackerRun
from registry.models import Attempt, Run, TrackerLink, TrackerState
from registry.names import run_name
from registry.runs import RunSpec, TrackerSpec, start_run
from registry.trackers.linking import LinkRow, get_link, keep_states, links_of_runs, set_state
from registry.trackers.links import clean_uri
from registry.trackers.settings import REFRESH_SECONDS

ENDED: Final = ("finished", "failed", "stopped")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
MAX_NAME: Final = 512


@dataclass(frozen=True)
class Applied:
    """A tracker's run as it stands here now. `curves`: the text that each curve had when it was last read."""

    run_id: int
    run_name: str
    link: LinkRow
    attempt: int
    created: bool
    changed: int  # fields that were set here
    unchanged: bool  # the tracker says the very same as the last time
    curves: Mapping[str, str]
    note: str = ""


def apply_run(
    session: Session,
    project_id: int,
    run: TrackerRun,
    *,
    link: LinkRow | None = None,
    refresh_seconds: int = REFRESH_SECONDS,
    ended_seconds: int | None = None,
) -> Applied:
    """The run of the registry that this is, made where there is none, with what changed of its fields.

    It is looked at again after `refresh_seconds` while it lives there, after `ended_seconds` (None: no more) then.
    """
    created, note = False, ""
    link = link or _known_link(session, project_id, run)
    if link is None:
        link, created, note = _start(session, project_id, run)
    keep_states(session, [link])
    first_attempts(session, project_id, [link.run_id]) if _newest(session, link) is None else None
    attempt = _newest(session, link)
    assert attempt is not None
    state = session.get_one(TrackerState, (project_id, link.id), populate_existing=True)
    unchanged = run.version is not None and state.version == run.version and state.state == "ok"
    changed = 0 if unchanged else apply_fields(session, link, attempt, run)
    again = ended_seconds if run.state in ENDED or run.deleted else refresh_seconds
    set_state(
        session,
        link,
        state="deleted" if run.deleted else "ok",
        error=None,
        checked_at=now(),
        synced_at=now(),
        next_check_at=None if again is None else now() + timedelta(seconds=again),
        external_state="deleted" if run.deleted else run.state,
        external_name=run.name[:MAX_NAME],
        version=run.version,
    )
    curves = {} if state.curves is None else strict_json.loads(state.curves.encode())
    return Applied(link.run_id, link.run_name, link, attempt.number, created, changed, unchanged, curves, note)


def clean_name(text: str) -> str:
    """A tracker's name as a run can have it here."""
    return run_name(_CONTROL.sub(" ", text))[:MAX_NAME].strip() or "unnamed"


def _known_link(session: Session, project_id: int, run: TrackerRun) -> LinkRow | None:
    found = session.scalars(
        select(TrackerLink)
        .where(
            TrackerLink.project_id == project_id,
            TrackerLink.kind == run.kind,
            TrackerLink.external_run_id == run.run_id,
        )
        .order_by(TrackerLink.id)
    )
    same = next((row.id for row in found if clean_uri(row.uri) == clean_uri(run.uri)), None)
    return None if same is None else get_link(session, same)


def _start(session: Session, project_id: int, run: TrackerRun) -> tuple[LinkRow, bool, str]:
    """A run here for one there. Of the same name as one that is here already it is that one: a run that is on both
    trackers, or that its training recorded here, is one run. Names repeat within a tracker, so where that one is linked
    to another run of the same tracker kind, the id is part of the name."""
    name, note = clean_name(run.name), ""
    there = session.scalars(select(Run.id).where(Run.project_id == project_id, Run.name == name)).one_or_none()
    if there is not None:
        if any(each.kind == run.kind for each in links_of_runs(session, project_id, [there])):
            name = f"{name[: MAX_NAME - 40]}-{run.run_id[:32]}"
        else:
            note = f"joined to the run {name!r} ({to_text(there)}), which was here already"
    spec = TrackerSpec(run.kind, run.run_id, run.uri, run.entity, run.project_id or run.project)
    row, made = start_run(session, project_id, RunSpec(name, trackers=[spec]))
    link = next(
        each
        for each in links_of_runs(session, project_id, [row.id])
        if (each.kind, each.uri, each.external_run_id) == (run.kind, run.uri, run.run_id)
    )
    return link, made, note


def _newest(session: Session, link: LinkRow) -> Attempt | None:
    own = (Attempt.project_id == link.project_id, Attempt.run_id == link.run_id)
    query = select(Attempt).where(*own).order_by(Attempt.number.desc()).limit(1)
    return session.scalars(query.execution_options(populate_existing=True)).one_or_none()
