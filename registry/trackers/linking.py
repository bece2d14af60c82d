"""Links from runs to trackers: add one, remove one, ask for a fresh look, and how each stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from registry import audit, runs, strict_json
from registry.db import now
from registry.errors import NotFound
from registry.ids import to_text
from registry.jobs.queue import JobRow, Wanted, ask_for_one
from registry.models import Project, Run, TrackerField, TrackerLink, TrackerState
from registry.runs import TrackerSpec
from registry.trackers.links import TrackerPlace, clean_uri
from registry.upsert import chunks, insert_missing


class TrackerLinkNotFound(NotFound):
    code = "tracker-link-not-found"
    title = "No such link to a tracker"


@dataclass(frozen=True)
class LinkRow:
    """A link, and how things stand with it. `next_check_at` None: it is read on demand only."""

    id: int
    project_id: int
    project: str
    run_id: int
    run_name: str
    kind: str
    uri: str
    entity: str | None
    external_project: str | None
    external_run_id: str
    created_at: datetime
    state: str = "new"
    error: str | None = None
    checked_at: datetime | None = None
    synced_at: datetime | None = None
    next_check_at: datetime | None = None
    external_state: str | None = None
    external_name: str | None = None
    push_state: str = "off"
    push_error: str | None = None
    pushed_at: datetime | None = None


@dataclass(frozen=True)
class FieldValue:
    """What a tracker says of a field. `applied`: the registry's own value came from there."""

    link_id: int
    kind: str
    field: str
    value: Any
    applied: bool
    changed_at: datetime


def link_run(session: Session, run_id: int, place: TrackerPlace, *, actor: str) -> tuple[LinkRow, bool]:
    """Link a run, and ask for a first look; gives the link, and whether it was made just now. Raises RunNotFound."""
    run = runs.get_brief(session, run_id)
    spec = TrackerSpec(place.kind, place.run_id, place.uri, place.entity, place.project)
    found = [row for row in list_links(session, run.project_id, run_id) if _is(row, place)]
    made = not found
    if made:
        runs.link_trackers(session, run.project_id, run_id, [spec])
        found = [row for row in list_links(session, run.project_id, run_id) if _is(row, place)]
    link = found[0]
    if made:
        detail = {"kind": link.kind, "uri": link.uri, "run_id": link.external_run_id}
        audit.record(
            session, actor=actor, action="tracker.link", project_id=run.project_id, subject_id=run_id, detail=detail
        )
        ask_for_refresh(session, link, actor=actor)
        link = get_link(session, link.id)
    return link, made


def unlink_run(session: Session, link_id: int, *, actor: str) -> None:
    """Take a link away; what was read through it stays. Raises TrackerLinkNotFound."""
    link = get_link(session, link_id)
    session.execute(TrackerLink.__table__.delete().where(TrackerLink.id == link_id))  # type: ignore[attr-defined]
    detail = {"kind": link.kind, "uri": link.uri, "run_id": link.external_run_id}
    audit.record(
        session,
        actor=actor,
        action="tracker.unlink",
        project_id=link.project_id,
        subject_id=link.run_id,
        detail=detail,
    )
    session.flush()


def ask_for_refresh(session: Session, link: LinkRow, *, actor: str) -> JobRow:
    """The job that reads the link's run now."""
    keep_states(session, [link])
    return ask_for_one(session, link.project_id, refresh_of(link), asked_by=actor)


def refresh_of(link: LinkRow) -> Wanted:
    return Wanted("tracker.refresh", to_text(link.id), {"link": to_text(link.id)}, resource_of(link.kind, link.uri))


def push_of(link: LinkRow) -> Wanted:
    return Wanted("tracker.push", to_text(link.id), {"link": to_text(link.id)}, resource_of(link.kind, link.uri))


def resource_of(kind: str, uri: str) -> str:
    """What jobs of one tracker share: where it is down, they wait together."""
    return f"{kind} {uri}".strip()


def get_link(session: Session, link_id: int) -> LinkRow:
    """Raises TrackerLinkNotFound."""
    rows = read_links(session, links_select().where(TrackerLink.id == link_id))
    if not rows:
        raise TrackerLinkNotFound(f"There is no link {to_text(link_id)}. GET the run's trackers to see its links.")
    return rows[0]


def list_links(session: Session, project_id: int, run_id: int) -> list[LinkRow]:
    """The links of a run, the oldest first."""
    own = (TrackerLink.project_id == project_id, TrackerLink.run_id == run_id)
    return read_links(session, links_select().where(*own).order_by(TrackerLink.id))


def links_of_runs(session: Session, project_id: int, run_ids: Sequence[int]) -> list[LinkRow]:
    """The links of many runs of a project."""
    rows = []
    for chunk in chunks(run_ids):
        own = (TrackerLink.project_id == project_id, TrackerLink.run_id.in_(chunk))
        rows += read_links(session, links_select().where(*own).order_by(TrackerLink.id))
    return rows


def keep_states(session: Session, links: Sequence[LinkRow]) -> None:
    """The row of each link's state, made where it is missing."""
    insert_missing(
        session,
        TrackerState,
        [
            {"project_id": link.project_id, "link_id": link.id, "state": "new", "push_state": "off"}
            | {"next_check_at": now()}
            for link in links
        ],
    )


def set_state(session: Session, link: LinkRow, **values: Any) -> None:
    """Note how things stand with a link."""
    keep_states(session, [link])
    own = (TrackerState.project_id == link.project_id, TrackerState.link_id == link.id)
    session.execute(update(TrackerState).where(*own).values(**values))


def read_fields(session: Session, project_id: int, run_id: int) -> list[FieldValue]:
    """What each tracker of a run says of its fields, by field and link."""
    query = (
        select(TrackerField, TrackerLink.kind)
        .join(
            TrackerLink,
            (TrackerLink.project_id == TrackerField.project_id) & (TrackerLink.id == TrackerField.link_id),
        )
        .where(TrackerLink.project_id == project_id, TrackerLink.run_id == run_id)
        .order_by(TrackerField.field, TrackerField.link_id)
    )
    return [
        FieldValue(row.link_id, kind, row.field, strict_json.loads(row.value.encode()), row.applied, row.changed_at)
        for row, kind in session.execute(query)
    ]


def _is(row: LinkRow, place: TrackerPlace) -> bool:
    """The slash at an address's end, and the case of its host, make no other tracker."""
    there = (row.kind, clean_uri(row.uri), row.external_run_id)
    return there == (place.kind, clean_uri(place.uri), place.run_id)


def links_select() -> Any:
    """Links with their states, for `read_links`."""
    state_of = (TrackerState.project_id == TrackerLink.project_id) & (TrackerState.link_id == TrackerLink.id)
    run_of = (Run.project_id == TrackerLink.project_id) & (Run.id == TrackerLink.run_id)
    return (
        select(TrackerLink, TrackerState, Run.name, Project.name)
        .join(Run, run_of)
        .join(Project, Project.id == TrackerLink.project_id)
        .outerjoin(TrackerState, state_of)
    )


_OF_STATE = (
    *("state", "error", "checked_at", "synced_at", "next_check_at", "external_state", "external_name"),
    *("push_state", "push_error", "pushed_at"),
)


def read_links(session: Session, query: Any) -> list[LinkRow]:
    return [
        LinkRow(
            link.id,
            link.project_id,
            project,
            link.run_id,
            run_name,
            link.kind,
            link.uri,
            link.entity,
            link.external_project,
            link.external_run_id,
            link.created_at,
            **({} if state is None else {name: getattr(state, name) for name in _OF_STATE}),
        )
        for link, state, run_name, project in session.execute(query.execution_options(populate_existing=True))
    ]
