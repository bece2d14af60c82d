"""The orders that a list of runs can have, and what of a run they go by."""

import math
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from registry.attempts import amend_attempt
from registry.db import now
from registry.incidents.ledger import open_incident
from registry.incidents.shapes import NewIncident
from registry.overview.run_order import count_interrupted
from registry.overview.runs import list_run_overviews
from registry.projects import ProjectRow
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from tests.factories import make_attempt, make_checkpoint, make_project, make_run


def started(session: Session, project: ProjectRow, name: str, **known: object) -> RunRow:
    run = make_run(session, project, name)
    make_attempt(session, run, key="one")
    if known:
        amend_attempt(session, run.id, 1, known)
    return run


@pytest.fixture
def fleet(session: Session) -> ProjectRow:
    """A run of each state, with steps, losses and heartbeats in other orders."""
    project = make_project(session)
    make_checkpoint(session, make_run(session, project, "backfill"), 70, loss=0.7)
    beat = {"heartbeat_at": now() - timedelta(minutes=5)}
    make_checkpoint(session, started(session, project, "done", state="finished", **beat, step=30), 30, loss=0.1)
    failed = started(session, project, "failed", state="failed", heartbeat_at=now() - timedelta(hours=2), step=45)
    make_checkpoint(session, failed, 40, loss=math.nan)
    running = started(session, project, "running", heartbeat_at=now() - timedelta(minutes=1), step=55)
    make_checkpoint(session, running, 50, loss=0.5)
    make_checkpoint(session, running, 52, state="pending")
    hit = started(session, project, "hit", heartbeat_at=now() - timedelta(minutes=3), step=20)
    open_incident(session, hit.id, NewIncident(occurred_at=now(), attempt=1, cause="network"), actor="exec")
    return project


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("state", "hit failed running done backfill"),
        ("-state", "done running hit failed backfill"),
        ("step", "backfill running failed done hit"),
        ("loss", "done running backfill hit failed"),
        ("-loss", "backfill running done hit failed"),
        ("heartbeat", "running hit done failed backfill"),
        ("-heartbeat", "failed done hit running backfill"),
    ],
)
def test_what_is_missing_or_not_finite_comes_last_in_both_directions(
    session: Session, fleet: ProjectRow, sort: str, order: str
) -> None:
    rows = list_run_overviews(session, project_ids=[fleet.id], sort=sort).rows
    assert " ".join(row.name for row in rows) == order


def test_a_new_attempt_is_at_its_own_step_as_soon_as_it_says_one(session: Session, fleet: ProjectRow) -> None:
    other = started(session, fleet, "back", step=90)
    make_checkpoint(session, other, 80)
    make_attempt(session, other, resumed_from=ResumePoint(step=80, attempt=1), key="two")

    def steps() -> list[str]:
        return [row.name for row in list_run_overviews(session, project_ids=[fleet.id], sort="step").rows][:3]

    assert steps() == ["back", "backfill", "running"]  # nothing of its own yet: the last save
    amend_attempt(session, other.id, 2, {"step": 65, "heartbeat_at": now()})
    assert steps() == ["backfill", "back", "running"]


def test_a_run_is_down_while_its_interruption_is_open_and_it_has_not_ended_well(
    session: Session, fleet: ProjectRow
) -> None:
    hit = next(row for row in list_run_overviews(session, project_ids=[fleet.id], sort="state").rows)
    down = count_interrupted(session, [fleet.id])
    assert hit.open_incident_id is not None
    amend_attempt(session, hit.id, 1, {"state": "finished"})
    assert count_interrupted(session, [fleet.id]) == down - 1
    after = {row.name: row for row in list_run_overviews(session, project_ids=[fleet.id]).rows}
    assert after["hit"].open_incident_id is None
    assert count_interrupted(session, []) == 0
