"""What the clock and the outbox ask of trackers: fresh looks at links that live, and pushes of what changed here."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from registry.db import now
from registry.ids import from_text
from registry.jobs.delivery import Event
from registry.jobs.queue import ask_for
from registry.models import Checkpoint, TrackerLink, TrackerSetting, TrackerState
from registry.trackers.linking import (
    LinkRow,
    keep_states,
    links_of_runs,
    links_select,
    push_of,
    read_links,
    refresh_of,
    set_state,
)
from registry.trackers.settings import Tracking, read_tracking
from registry.upsert import chunks

AT_ONCE: Final = 200  # links a turn: the rest are due still
TOPICS: Final = ("checkpoint.", "alias.", "score.")
WORKER: Final = "worker"


def ask_for_due_refreshes(session: Session) -> None:
    """Jobs for the links whose next look is due; one that nobody has looked at yet is due at once."""
    fresh = read_links(session, _unseen_select())
    keep_states(session, fresh)
    due = read_links(session, links_select().where(TrackerState.next_check_at <= now()).limit(AT_ONCE))
    tracking: dict[int, Tracking] = {}
    for link in due:
        if link.project_id not in tracking:
            tracking[link.project_id] = read_tracking(session, link.project_id)
        own = (TrackerState.project_id == link.project_id, TrackerState.link_id == link.id)
        later = now() + timedelta(seconds=tracking[link.project_id].refresh_seconds)
        session.execute(update(TrackerState).where(*own).values(next_check_at=later))
        ask_for(session, link.project_id, [refresh_of(link)], asked_by=WORKER)


def ask_for_pushes(session: Session, events: Sequence[Event]) -> None:
    """Jobs for the links of the runs that events tell of, in projects that push. Many events of a run are one job."""
    by_project: dict[int, set[int]] = {}
    for event in events:
        if event.topic.startswith(TOPICS):
            by_project.setdefault(event.project_id, set()).update(_checkpoints_of(event))
    pushing = {
        row.project_id: Tracking(row.push_mlflow, row.push_wandb, row.best_by, row.refresh_seconds)
        for chunk in chunks(sorted(by_project))
        for row in session.scalars(select(TrackerSetting).where(TrackerSetting.project_id.in_(chunk)))
    }
    for project_id, tracking in pushing.items():
        if tracking.push_mlflow or tracking.push_wandb:
            run_ids = _runs_of(session, project_id, sorted(by_project[project_id]))
            want_pushes(session, links_of_runs(session, project_id, run_ids), tracking)


def want_pushes(session: Session, links: Sequence[LinkRow], tracking: Tracking) -> None:
    """Ask for the pushes of these links, as far as their project wants them."""
    for link in links:
        if tracking.pushes(link.kind):
            ask_for(session, link.project_id, [push_of(link)], asked_by=WORKER)
            if link.push_state not in ("waiting", "failed"):  # what failed is said until it succeeds
                set_state(session, link, push_state="waiting")


def want_pushes_of_project(session: Session, project_id: int) -> None:
    """All links of a project, as when pushing was switched on just now."""
    links = read_links(session, links_select().where(TrackerLink.project_id == project_id).order_by(TrackerLink.id))
    want_pushes(session, links, read_tracking(session, project_id))


def _checkpoints_of(event: Event) -> set[int]:
    """Of an alias also the checkpoint that it left: that may be of another run."""
    left = from_text(str(event.detail.get("from") or ""))
    return {event.subject_id} if left is None else {event.subject_id, left}


def _unseen_select() -> Any:
    return links_select().where(TrackerState.link_id.is_(None)).limit(AT_ONCE)


def _runs_of(session: Session, project_id: int, checkpoint_ids: Sequence[int]) -> list[int]:
    found: set[int] = set()
    for chunk in chunks(checkpoint_ids):
        own = (Checkpoint.project_id == project_id, Checkpoint.id.in_(chunk))
        found.update(session.scalars(select(Checkpoint.run_id).where(*own).distinct()))
    return sorted(found)
