"""Import, refresh and push of W&B as the worker does them: the real library, real databases, a small W&B."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import func, select, update

from registry import aliases
from registry.config import Settings
from registry.db import Database, now
from registry.ids import to_text
from registry.jobs.queue import JobRow, list_jobs
from registry.jobs.worker import JobWorker
from registry.models import Checkpoint, Job, Run, Score, SeriesChunk, TrackerCheckpoint
from registry.projects import ProjectRow
from registry.runs import RunRow, list_runs
from registry.series import read_series
from registry.trackers.imports import ask_for_import
from registry.trackers.linking import LinkRow, ask_for_refresh, list_links
from registry.trackers.settings import change_tracking
from tests.factories import make_project
from tests.registry.integrations.test_wandb import impatience, settings, there  # noqa: F401 - fixtures
from tests.registry.integrations.wandb_server import KEY, Wandb

# pytest hands these over by name.
# ruff: noqa: F811


@pytest.fixture
def project(committed_database: Database) -> ProjectRow:
    with committed_database.write() as session:
        return make_project(session)


@pytest.fixture
def worker(committed_database: Database, settings: Settings) -> JobWorker:
    return JobWorker(committed_database, settings)


@pytest.fixture
def filled(there: Wandb) -> Wandb:
    """Two runs: one that ended with three checkpoints, one that is alive."""
    there.add_run("ended", displayName="big", config={"lr": 0.1}, commit="abc", tags=["sft"])
    for step in range(0, 3_000, 10):
        there.log("ended", step, {"train/loss": "NaN" if step == 1_000 else 1.0 / (step + 1), "lr": 0.1})
    there.log("ended", 3_000, {"eval/gsm8k": 0.5, "train/loss": 0.25, "other": 7.0})
    there.add_artifact("ended", "m", aliases=("step_1000",))
    there.add_artifact("ended", "m", aliases=("step_2000",), version=1)
    there.add_artifact("ended", "m", aliases=("step_3000", "best"), version=2)
    there.add_artifact("ended", "m", metadata={"score": 1}, version=3)
    there.add_run("alive", displayName="small", state="running")
    there.log("alive", 1, {"loss": 2.0})
    return there


def import_all(database: Database, worker: JobWorker, project: ProjectRow, there: Wandb) -> JobRow:
    arguments = {"kind": "wandb", "uri": there.url, "entity": "team", "project": "llm"}
    with database.write() as session:
        ask_for_import(session, project.id, arguments, actor="ann")
    return work(database, worker, project, "tracker.import")


def work(database: Database, worker: JobWorker, project: ProjectRow, kind: str) -> JobRow:
    """Everything that waits now, whenever it was meant for; gives the newest job of the kind."""
    for _ in range(30):
        with database.write() as session:
            session.execute(update(Job).where(Job.state == "waiting", Job.kind == kind).values(not_before=now()))
        if not worker.work_once():
            break
        if _latest(database, project, kind).state not in ("waiting", "running"):
            break
    return _latest(database, project, kind)


def _latest(database: Database, project: ProjectRow, kind: str) -> JobRow:
    with database.read() as session:
        jobs = [each for each in list_jobs(session, project_ids=[project.id]) if each.kind == kind]
    return jobs[0]


def report_of(job: JobRow) -> Mapping[str, Any]:
    assert job.state == "done", job.error
    assert job.report is not None
    return job.report


def counts(database: Database) -> list[int]:
    with database.read() as session:
        tables = (Run, Checkpoint, Score, SeriesChunk, TrackerCheckpoint)
        return [session.scalar(select(func.count()).select_from(table)) or 0 for table in tables]


def runs_by_name(database: Database, project: ProjectRow) -> dict[str, RunRow]:
    with database.read() as session:
        return {run.name: run for run in list_runs(session, project_ids=[project.id])}


def link_of(database: Database, project: ProjectRow, name: str) -> LinkRow:
    run = runs_by_name(database, project)[name]
    with database.read() as session:
        (link,) = list_links(session, project.id, run.id)
    return link


def test_a_project_becomes_runs_curves_checkpoints_and_scores(
    committed_database: Database, worker: JobWorker, project: ProjectRow, filled: Wandb
) -> None:
    report = report_of(import_all(committed_database, worker, project, filled))
    assert (report["runs_created"], report["checkpoints_created"], report["scores_recorded"]) == (2, 3, 1)
    assert list(report["skipped"]) == ["nobody says its step: no alias, metadata or name does"]
    run = runs_by_name(committed_database, project)["big"]
    assert (run.tags, run.owner) == ({"sft": "true"}, "ann")
    with committed_database.read() as session:
        rows = list(session.scalars(select(Checkpoint).where(Checkpoint.run_id == run.id).order_by(Checkpoint.step)))
        curves = {curve.name: curve for curve in read_series(session, project.id, run.id)}
    assert [row.step for row in rows] == [1_000, 2_000, 3_000]
    losses = dict(zip(curves["train/loss"].steps, curves["train/loss"].values, strict=True))
    assert math.isnan(losses[1_000])  # exact where a checkpoint is
    assert losses[3_000] == 0.25


def test_the_same_import_again_changes_nothing(
    committed_database: Database, worker: JobWorker, project: ProjectRow, filled: Wandb
) -> None:
    report_of(import_all(committed_database, worker, project, filled))
    before = counts(committed_database)
    report = report_of(import_all(committed_database, worker, project, filled))
    assert counts(committed_database) == before
    assert (report["runs_unchanged"], report["checkpoints_created"], report["points_recorded"]) == (2, 0, 0)
    assert report["fields_changed"] == 0


def test_a_live_run_is_followed(
    committed_database: Database, worker: JobWorker, project: ProjectRow, filled: Wandb
) -> None:
    report_of(import_all(committed_database, worker, project, filled))
    link = link_of(committed_database, project, "small")
    filled.log("alive", 2, {"loss": 1.5})
    filled.add_artifact("alive", "m", aliases=("step_2",))
    filled.runs["alive"] |= {"heartbeatAt": "2026-11-28T02:00:00", "state": "finished"}
    with committed_database.write() as session:
        ask_for_refresh(session, link, actor="ann")
    report = report_of(work(committed_database, worker, project, "tracker.refresh"))
    assert (report["checkpoints_created"], report["points_recorded"]) == (1, 1)
    after = link_of(committed_database, project, "small")
    assert (after.state, after.external_state, after.next_check_at) == ("ok", "finished", None)


def test_an_outage_in_the_middle_delays_and_loses_nothing(
    committed_database: Database, worker: JobWorker, project: ProjectRow, filled: Wandb
) -> None:
    filled.fault, filled.fails_after = 500, 8
    with impatience():
        job = import_all(committed_database, worker, project, filled)
    assert (job.state, job.error_code) == ("waiting", "tracker-unreachable")
    assert KEY not in (job.error or "")
    filled.fault = 0
    report_of(work(committed_database, worker, project, "tracker.import"))
    assert counts(committed_database)[:3] == [2, 3, 1]


def test_checkpoints_aliases_and_their_moves_are_told(
    committed_database: Database, worker: JobWorker, project: ProjectRow, filled: Wandb
) -> None:
    report_of(import_all(committed_database, worker, project, filled))
    config = filled.runs["ended"]["config"]
    run = runs_by_name(committed_database, project)["big"]
    with committed_database.write() as session:
        change_tracking(session, project.id, {"push_wandb": True, "best_by": "gsm8k"}, actor="ann")
        found = session.scalars(select(Checkpoint.id).where(Checkpoint.run_id == run.id).order_by(Checkpoint.step))
        broken, first, second = found
        aliases.move_alias(session, project.id, "production", first, actor="ann")
    push(committed_database, worker, project)
    assert sorted(filled.runs["ended"]["tags"]) == [
        *("cairn/best:step-3000", "cairn/newest:step-3000", "cairn/production:step-2000"),
        *("cairn/suspect:checkpoint-1000", "sft"),
    ]
    summary = json.loads(filled.runs["ended"]["summaryMetrics"])
    entry = summary["cairn/checkpoint-1000"]
    assert (entry["checkpoint"], entry["step"], entry["completeness"], entry["loss"]) == (
        *(to_text(broken), 1_000, "unknown", "NaN"),
    )
    with committed_database.write() as session:
        aliases.move_alias(session, project.id, "production", second, actor="ann")
    push(committed_database, worker, project)
    assert "cairn/production:step-3000" in filled.runs["ended"]["tags"]
    assert "cairn/production:step-2000" not in filled.runs["ended"]["tags"]
    assert filled.runs["ended"]["config"] == config
    asked = len(filled.asked)
    push(committed_database, worker, project)
    assert [name for name, _ in filled.asked[asked:] if name == "UpsertBucket"] == []
    link = link_of(committed_database, project, "big")
    assert (link.push_state, link.push_error) == ("ok", None)


def test_a_push_into_an_outage_says_so_and_is_made_up_for(
    committed_database: Database, worker: JobWorker, project: ProjectRow, filled: Wandb
) -> None:
    report_of(import_all(committed_database, worker, project, filled))
    with committed_database.write() as session:
        change_tracking(session, project.id, {"push_wandb": True}, actor="ann")
    filled.fault = 429
    with impatience():
        push(committed_database, worker, project)
    failed = link_of(committed_database, project, "big")
    assert failed.push_state == "failed"
    assert failed.push_error is not None
    assert "429" in failed.push_error
    assert KEY not in failed.push_error
    filled.fault = 0
    work_all(committed_database, worker)
    assert link_of(committed_database, project, "big").push_state == "ok"
    assert "cairn/newest:step-3000" in filled.runs["ended"]["tags"]


def push(database: Database, worker: JobWorker, project: ProjectRow) -> None:
    from registry.trackers.schedule import want_pushes_of_project

    with database.write() as session:
        want_pushes_of_project(session, project.id)
    work_all(database, worker)


def work_all(database: Database, worker: JobWorker) -> None:
    for _ in range(50):
        with database.write() as session:
            session.execute(update(Job).where(Job.state == "waiting").values(not_before=now()))
        if not worker.work_once():
            return
