"""From a tracker to the registry and back, over a tracker in memory: imports, refreshes, pushes, who may set what."""

import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from registry.aliases import move_alias
from registry.attempts import list_attempts
from registry.checkpoints.detail import read_config
from registry.checkpoints.registration import ReplicaSpec
from registry.checkpoints.replicas import add_replicas
from registry.config import Settings
from registry.db import Base, Database, now
from registry.evals.scores import NewScore, record_scores
from registry.ids import to_text
from registry.incidents.suspicion import say_suspect
from registry.integrations import importing, pushing, refreshing
from registry.integrations.disagreements import read_views
from registry.integrations.shapes import (
    Skipped,
    TrackerCheckpoint,
    TrackerDataset,
    TrackerRefused,
    TrackerRun,
    TrackerScore,
    TrackerSeries,
    TrackerUnreachable,
)
from registry.jobs import claims
from registry.jobs.queue import JobRow, list_jobs
from registry.jobs.worker import JobWorker
from registry.models import Checkpoint, CheckpointTag, Job, Replica, Run, TrackerState
from registry.overview.scores import metrics_of_run, scores_of_run
from registry.runs import RunSpec, find_run, start_run
from registry.series import read_series
from registry.storage.removal import note_gone
from registry.trackers.imports import ask_for_import
from registry.trackers.linking import LinkRow, get_link, link_run, list_links
from registry.trackers.links import TrackerPlace
from registry.trackers.schedule import ask_for_due_refreshes, want_pushes_of_project
from registry.trackers.settings import change_tracking
from tests.factories import at, make_checkpoint, make_project, make_run
from tests.registry.integrations.fakes import MemoryTracker

RUN = TrackerRun(
    kind="mlflow",
    run_id="r1",
    name="llama-7b",
    uri="http://mlflow",
    project="pretraining",
    project_id="4",
    state="running",
    config={"lr": 0.1, "optimizer": {"name": "adamw"}},
    tags={"phase": "sft"},
    commit="abc123",
    owner="jane",
    started_at=at("2026-11-01T12:00"),
    datasets=[TrackerDataset("c4", "d1", "s3://data/c4")],
    version="v1",
)
LOSS = TrackerSeries("loss", list(range(5_000)), [1.0 / (1 + step) for step in range(5_000)])
MODEL = TrackerCheckpoint(
    "m1",
    "checkpoint-1000",
    1_000,
    "s3://models/m1",
    scores=[TrackerScore("gsm8k", 0.5), TrackerScore("odd", math.inf), TrackerScore("piqa/acc", math.nan)],
    saved_at=at("2026-11-02"),
)


class World:
    """A database, a worker without its own clock's waits, and the tracker in memory."""

    def __init__(self, database: Database, tracker: MemoryTracker, folder: Path) -> None:
        self.database, self.tracker = database, tracker
        self.worker = JobWorker(database, Settings(folder, "sqlite://", public_url="https://cairn.example"))
        with database.write() as session:
            self.project = make_project(session, "p")

    def work(self) -> list[JobRow]:
        """Do all that waits, also what would wait for a pause; gives the jobs, the newest first."""
        for _ in range(50):
            with self.database.write() as session:
                session.execute(update(Job).where(Job.state == "waiting").values(not_before=now()))
            if not self.worker.work_once():
                break
        return self.jobs()

    def jobs(self) -> list[JobRow]:
        with self.database.read() as session:
            return list_jobs(session)

    def import_all(self) -> JobRow:
        with self.database.write() as session:
            place = {"kind": "mlflow", "uri": "http://mlflow", "entity": None, "project": "pretraining"}
            job = ask_for_import(session, self.project.id, place, actor="jane")
        self.work()
        return next(row for row in self.jobs() if row.id == job.id)

    def refresh(self) -> LinkRow:
        """Everything is due; gives the first link as it stands afterwards."""
        with self.database.write() as session:
            session.execute(update(TrackerState).values(next_check_at=now()))
            ask_for_due_refreshes(session)
        self.work()
        return self.link()

    def link(self) -> LinkRow:
        with self.database.read() as session:
            return get_link(session, min(session.scalars(select(TrackerState.link_id))))

    def counts(self) -> dict[str, int]:
        """Rows of every table but those that say when somebody looked."""
        aside = {"job", "worker", "outbox", "tracker_state", "audit_entry"}
        with self.database.read() as session:
            tables = [table for name, table in Base.metadata.tables.items() if name not in aside]
            return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


@pytest.fixture
def world(committed_database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    tracker = MemoryTracker([RUN], {"r1": [LOSS]}, {"r1": [MODEL]})
    monkeypatch.setattr(importing, "open_reader", lambda place, settings: tracker)
    monkeypatch.setattr(refreshing, "open_reader", lambda place, settings: tracker)
    monkeypatch.setattr(pushing, "open_writer", lambda place, settings: tracker)
    return World(committed_database, tracker, tmp_path)


def test_an_import_makes_a_run_with_all_that_the_tracker_knows(world: World) -> None:
    job = world.import_all()
    assert job.state == "done", job.error
    assert job.report is not None
    assert (job.report["runs_created"], job.report["checkpoints_created"], job.report["scores_recorded"]) == (1, 1, 2)
    with world.database.read() as session:
        run = find_run(session, "p", "llama-7b")
        assert (run.owner, run.started_at, dict(run.tags)) == ("jane", at("2026-11-01T12:00"), {"phase": "sft"})
        assert read_config(session, run.config_id) == {"lr": 0.1, "optimizer": {"name": "adamw"}}
        assert list_attempts(session, run.id)[0].state == "running"
        found = session.scalars(select(Checkpoint)).one()
        assert (found.step, found.state, found.loss, found.saved_at) == (
            1_000,
            "committed",
            1 / 1_001,
            at("2026-11-02"),
        )
        assert found.code_version_id is not None
        assert found.data_version_id is not None
        assert found.config_id == run.config_id
        names = {metric.id: metric.benchmark for metric in metrics_of_run(session, world.project.id, run.id)}
        scores = {names[score.metric_id]: score.value for score in scores_of_run(session, world.project.id, run.id)}
        assert scores["gsm8k"] == 0.5
        assert math.isnan(scores["piqa"] or 0.0)
        (curve,) = read_series(session, world.project.id, run.id)
        assert 500 < len(curve.steps) < 2_600
        assert curve.values[curve.steps.index(1_000)] == 1 / 1_001


def test_the_same_import_again_changes_nothing(world: World) -> None:
    world.import_all()
    before = world.counts()
    job = world.import_all()
    assert world.counts() == before
    assert job.report is not None
    assert {name: job.report[name] for name in ("runs_created", "checkpoints_created", "scores_recorded")} == {
        "runs_created": 0,
        "checkpoints_created": 0,
        "scores_recorded": 0,
    }
    assert (job.report["points_recorded"], job.report["fields_changed"], job.report["runs_unchanged"]) == (0, 0, 1)


def test_an_import_again_brings_only_what_is_new(world: World) -> None:
    world.import_all()
    longer = TrackerSeries("loss", list(range(6_000)), [1.0 / (1 + step) for step in range(6_000)])
    world.tracker.curves["r1"] = [longer]
    world.tracker.models["r1"].append(replace(MODEL, external_id="m2", name="checkpoint-5500", step=5_500))
    world.tracker.models["r1"][0] = replace(MODEL, scores=[*MODEL.scores, TrackerScore("mmlu", 0.3)])
    world.tracker.all_runs = [replace(RUN, version="v2", state="finished", ended_at=at("2026-11-03"))]
    job = world.import_all()
    assert job.report is not None
    assert (job.report["checkpoints_created"], job.report["scores_recorded"]) == (1, 3)
    with world.database.read() as session:
        run = find_run(session, "p", "llama-7b")
        attempt = list_attempts(session, run.id)[0]
        assert (attempt.state, attempt.ended_at) == ("finished", at("2026-11-03"))
        losses = dict(session.execute(select(Checkpoint.step, Checkpoint.loss)).all())
        assert losses == {1_000: 1 / 1_001, 5_500: 1 / 5_501}
    assert world.link().next_check_at is None


def test_aliases_that_move_there_are_followed(world: World) -> None:
    world.tracker.models["r1"] = [replace(MODEL, aliases=("llm@champion", "llm@next"))]
    world.import_all()

    def said() -> list[str]:
        with world.database.read() as session:
            return list(session.scalars(select(CheckpointTag.value).where(CheckpointTag.name == "mlflow.aliases")))

    assert said() == ["llm@champion, llm@next"]
    for aliases, expected in ((("llm@next",), ["llm@next"]), ((), []), (("llm@champion",), ["llm@champion"])):
        world.tracker.models["r1"] = [replace(MODEL, aliases=aliases)]
        world.import_all()
        assert said() == expected


def test_an_import_goes_on_where_a_worker_died(world: World) -> None:
    world.tracker.all_runs = [replace(RUN, run_id=f"r{n}", name=f"run-{n}", version=str(n)) for n in range(9)]
    with world.database.write() as session:
        place = {"kind": "mlflow", "uri": "http://mlflow", "entity": None, "project": "pretraining"}
        ask_for_import(session, world.project.id, place, actor="jane")
    seen = []

    class Killed(BaseException):
        pass

    original = world.tracker.checkpoints

    def die(runs: Any) -> Any:
        seen.extend(run.run_id for run in runs)
        if len(seen) == 6:
            raise Killed
        return original(runs)

    world.tracker.checkpoints = die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        world.worker.work_once()
    world.tracker.checkpoints = original  # type: ignore[method-assign]
    world.tracker.calls.clear()
    with world.database.write() as session:
        session.execute(update(Job).where(Job.state == "running").values(lease_until=now() - timedelta(seconds=1)))
    (job,) = world.work()
    assert job.state == "done"
    assert job.report is not None
    assert job.report["runs"] == 9
    assert world.tracker.calls.count("batch") == 3  # of five: the two that were done are not read again
    with world.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Run)) == 9


def test_what_cannot_be_imported_is_reported_with_its_reason(world: World) -> None:
    world.tracker.all_runs = [
        replace(RUN, skipped=[Skipped("param x", "cut")], tags={"ok": "1", "long": "x" * 5_000, "bad\0name": "1"}),
        replace(RUN, run_id="gone", name="gone", deleted=True),
    ]
    world.tracker.models["r1"] = [
        MODEL,
        replace(MODEL, external_id="m2", name="best"),
        replace(MODEL, external_id="m3", name="final", step=None),
        replace(MODEL, external_id="m4", name="pending", step=7, skipped=[Skipped("pending", "not ready")]),
        replace(MODEL, external_id="m5", name="odd", step=8, scores=(), skipped=[Skipped("metric a", "0.0 or NaN")]),
    ]
    job = world.import_all()
    assert job.report is not None
    reasons = {reason: entry["count"] for reason, entry in job.report["skipped"].items()}
    assert reasons.pop("longer than 4,096 characters, or of a name that cannot be kept") == 2
    assert reasons == {
        "cut": 1,
        "the run is deleted in the tracker": 1,
        "checkpoint-1000 is of the same step 1000": 1,
        "nobody says its step": 1,
        "not ready": 1,
        "0.0 or NaN": 1,
    }
    assert job.report["checkpoints_created"] == 2


def test_what_a_person_set_is_never_overwritten(world: World) -> None:
    with world.database.write() as session:
        start_run(
            session, world.project.id, RunSpec("llama-7b", owner="joe", config={"lr": 0.2}, tags={"phase": "pretrain"})
        )
    world.import_all()
    world.tracker.all_runs = [replace(RUN, version="v2", owner="jim", tags={"phase": "dpo", "new": "1"})]
    world.import_all()
    with world.database.read() as session:
        run = find_run(session, "p", "llama-7b")
        assert (run.owner, dict(run.tags)) == ("joe", {"phase": "pretrain", "new": "1"})
        assert read_config(session, run.config_id) == {"lr": 0.2}
        views = {view.field: view for view in read_views(session, world.project.id, run.id)}
    assert (views["owner"].here, views["owner"].said[0].value, views["owner"].agree) == ("joe", "jim", False)
    assert {(change.path, change.here, change.there) for change in views["config"].paths} == {
        ("lr", 0.2, 0.1),
        ("optimizer.name", None, "adamw"),
    }
    assert views["tags.new"].agree
    assert views["tags.new"].said[0].applied


def test_what_came_from_a_tracker_follows_it_until_somebody_changes_it_here(world: World) -> None:
    world.import_all()
    world.tracker.all_runs = [replace(RUN, version="v2", owner="jim", tags={"phase": "dpo"}, config={"lr": 0.3})]
    world.import_all()
    with world.database.write() as session:
        run = find_run(session, "p", "llama-7b")
        assert (run.owner, dict(run.tags)) == ("jim", {"phase": "dpo"})
        assert read_config(session, run.config_id) == {"lr": 0.3}
        session.execute(update(Run).where(Run.id == run.id).values(owner="a person"))
    world.tracker.all_runs = [replace(RUN, version="v3", owner="jake", tags={})]
    world.import_all()
    with world.database.read() as session:
        run = find_run(session, "p", "llama-7b")
        assert (run.owner, dict(run.tags)) == ("a person", {})


def test_two_trackers_of_one_run_are_one_run_and_both_are_shown_where_they_differ(world: World) -> None:
    world.import_all()
    on_wandb = replace(
        RUN, kind="wandb", uri="https://api.wandb.ai", entity="team", run_id="w1", owner="JANE", config={"lr": 0.1}
    )
    world.tracker.all_runs = [on_wandb]
    job = world.import_all()
    assert job.report is not None
    assert any("joined to the run 'llama-7b'" in note for note in job.report["notes"])
    with world.database.read() as session:
        run = find_run(session, "p", "llama-7b")
        assert run.owner == "jane"
        assert [link.kind for link in list_links(session, world.project.id, run.id)] == ["mlflow", "wandb"]
        owner = next(view for view in read_views(session, world.project.id, run.id) if view.field == "owner")
        assert [(said.kind, said.value, said.applied) for said in owner.said] == [
            ("mlflow", "jane", True),
            ("wandb", "JANE", False),
        ]
        assert session.scalar(select(func.count()).select_from(Run)) == 1


def test_two_runs_of_one_name_in_one_tracker_are_two_runs(world: World) -> None:
    world.tracker.all_runs = [RUN, replace(RUN, run_id="r2")]
    world.import_all()
    with world.database.read() as session:
        assert set(session.scalars(select(Run.name))) == {"llama-7b", "llama-7b-r2"}


def test_a_checkpoint_that_its_training_recorded_is_met_not_doubled(world: World) -> None:
    with world.database.write() as session:
        run = make_run(session, world.project, "llama-7b")
        mine = make_checkpoint(session, run, 1_000, loss=2.5, tags={"mine": "1"})
    job = world.import_all()
    assert job.report is not None
    assert (job.report["checkpoints_created"], job.report["checkpoints_met"], job.report["scores_recorded"]) == (
        0,
        1,
        2,
    )
    with world.database.read() as session:
        found = session.scalars(select(Checkpoint)).one()
        assert (found.id, found.loss) == (mine, 2.5)


def linked(world: World) -> None:
    with world.database.write() as session:
        run = make_run(session, world.project, "llama-7b")
        place = TrackerPlace("mlflow", "r1", "http://mlflow", None, "4")
        link, made = link_run(session, run.id, place, actor="jane")
        assert made
        assert link_run(session, run.id, replace(place, uri="http://MLFLOW/"), actor="jane") == (link, False)


def test_a_link_is_read_soon_and_again_while_its_run_lives(world: World) -> None:
    linked(world)
    world.work()
    link = world.link()
    assert (link.state, link.external_state, link.external_name) == ("ok", "running", "llama-7b")
    assert link.next_check_at is not None
    world.tracker.all_runs = [replace(RUN, version="v2", state="finished")]
    link = world.refresh()
    assert (link.external_state, link.next_check_at) == ("finished", None)


def test_a_run_that_was_deleted_there_keeps_everything_here_and_comes_back(world: World) -> None:
    linked(world)
    world.work()
    before = world.counts()
    world.tracker.all_runs = [replace(RUN, version="v2", deleted=True)]
    assert world.refresh().state == "deleted"
    assert world.counts() == before
    world.tracker.all_runs = [replace(RUN, version="v3")]
    assert world.refresh().state == "ok"


def test_a_problem_is_a_state_of_the_link_and_heals(world: World) -> None:
    linked(world)
    world.tracker.fail = [TrackerRefused("it asks for credentials (401)")]
    jobs = world.work()
    assert (jobs[0].state, jobs[0].error_code) == ("failed", "tracker-refused")
    link = world.link()
    assert (link.state, link.error) == ("refused", "it asks for credentials (401)")
    link = world.refresh()
    assert (link.state, link.error) == ("ok", None)


def test_a_run_that_is_not_there_is_said_to_be_missing(world: World) -> None:
    linked(world)
    world.tracker.all_runs = []
    world.work()
    assert world.link().state == "not-found"


def pushing_on(world: World, **more: Any) -> None:
    with world.database.write() as session:
        change_tracking(session, world.project.id, {"push_mlflow": True, **more}, actor="jane")
        want_pushes_of_project(session, world.project.id)
    world.work()


def test_nothing_is_pushed_unless_the_project_wants_it(world: World) -> None:
    linked(world)
    with world.database.write() as session:
        make_checkpoint(session, find_run(session, "p", "llama-7b"), 2_000)
    world.work()
    assert "push" not in world.tracker.calls
    assert world.link().push_state == "off"


def test_committing_scoring_and_aliasing_a_checkpoint_tells_the_tracker_once_each(world: World) -> None:
    linked(world)
    pushing_on(world, best_by="gsm8k")
    world.tracker.calls.clear()
    with world.database.write() as session:
        run = find_run(session, "p", "llama-7b")
        early = make_checkpoint(session, run, 2_000, scores={"gsm8k": 0.9}, loss=1.0, replica="/ckpt/2000")
        late = make_checkpoint(session, run, 3_000, scores={"gsm8k": math.nan})
    world.work()
    assert world.tracker.calls.count("push") == 2
    push = world.tracker.told[to_text(early)]
    assert (push.step, push.path, push.loss, push.scores, push.verdict) == (
        2_000,
        "/ckpt/2000",
        1.0,
        {"gsm8k": 0.9},
        "ok",
    )
    assert push.link == f"https://cairn.example/checkpoints/{to_text(early)}"
    assert set(world.tracker.told_run) == {"newest", "best"}
    assert "step 3000" in world.tracker.told_run["newest"]
    assert "step 2000" in world.tracker.told_run["best"]  # NaN is never best
    world.tracker.calls.clear()
    with world.database.write() as session:
        record_scores(session, world.project.id, [(late, NewScore("gsm8k", 0.95))])
        move_alias(session, world.project.id, "production", late, actor="jane")
    world.work()
    assert world.tracker.calls.count("push") == 1
    assert world.tracker.told[to_text(late)].aliases == ("production",)
    assert "step 3000" in world.tracker.told_run["best"]
    assert "step 3000" in world.tracker.told_run["production"]
    world.tracker.calls.clear()
    with world.database.write() as session:
        move_alias(session, world.project.id, "production", early, actor="jane")
    world.work()
    assert world.tracker.calls.count("push") == 2
    assert world.tracker.told[to_text(late)].aliases == ()


def test_a_deleted_checkpoint_is_told_as_deleted_and_a_loss_that_is_no_number_as_suspect(world: World) -> None:
    linked(world)
    pushing_on(world)
    with world.database.write() as session:
        run = find_run(session, "p", "llama-7b")
        kept, gone = make_checkpoint(session, run, 2_000, loss=math.nan), make_checkpoint(session, run, 3_000)
    world.work()
    assert world.tracker.told[to_text(kept)].verdict == "suspect"
    with world.database.write() as session:
        session.execute(update(Checkpoint).where(Checkpoint.id == gone).values(state="deleted"))
    world.refresh()
    assert world.tracker.told[to_text(gone)].verdict == "deleted"
    assert "step 2000" in world.tracker.told_run["newest"]


def test_a_checkpoint_whose_copies_are_all_gone_is_told_as_deleted_at_once_and_is_newest_no_longer(
    world: World,
) -> None:
    linked(world)
    pushing_on(world)
    with world.database.write() as session:
        run = find_run(session, "p", "llama-7b")
        kept = make_checkpoint(session, run, 2_000, replica="/ckpt/2000")
        gone = make_checkpoint(session, run, 3_000, replica="/ckpt/3000")
    world.work()
    assert "step 3000" in world.tracker.told_run["newest"]
    with world.database.write() as session:
        copy = session.scalars(select(Replica.id).where(Replica.checkpoint_id == gone)).one()
        note_gone(session, copy, actor="jane")
        note_gone(session, copy, actor="jane")
    world.tracker.calls.clear()
    world.work()
    assert world.tracker.calls == ["push", "push_run"]
    told = world.tracker.told[to_text(gone)]
    assert (told.verdict, told.path) == ("deleted", None)
    assert world.tracker.told[to_text(kept)].verdict == "ok"
    assert "step 2000" in world.tracker.told_run["newest"]
    with world.database.write() as session:
        add_replicas(session, gone, [ReplicaSpec("/ckpt/3000", "shared")], (), actor="jane")
    world.work()
    assert world.tracker.told[to_text(gone)].verdict == "ok"


def test_a_persons_suspicion_is_told_and_taken_back(world: World) -> None:
    linked(world)
    pushing_on(world)
    with world.database.write() as session:
        number = make_checkpoint(session, find_run(session, "p", "llama-7b"), 2_000)
    for suspect, verdict in ((True, "suspect"), (False, "ok")):
        with world.database.write() as session:
            checkpoint = session.get_one(Checkpoint, number)
            say_suspect(session, checkpoint, suspect=suspect, reason="spikes", actor="jane")
        world.work()
        assert world.tracker.told[to_text(number)].verdict == verdict


def test_an_alias_that_moves_to_another_run_is_taken_from_the_one_that_it_left(world: World) -> None:
    linked(world)
    pushing_on(world)
    with world.database.write() as session:
        number = make_checkpoint(session, find_run(session, "p", "llama-7b"), 2_000)
        other = make_checkpoint(session, make_run(session, world.project, "not linked"), 2_000)
        move_alias(session, world.project.id, "production", number, actor="jane")
    world.work()
    assert world.tracker.told[to_text(number)].aliases == ("production",)
    with world.database.write() as session:
        move_alias(session, world.project.id, "production", other, actor="jane")
    world.work()
    assert world.tracker.told[to_text(number)].aliases == ()
    assert "production" not in world.tracker.told_run


def test_a_tracker_that_is_down_for_a_day_delays_and_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "FIRST_PAUSE", timedelta(minutes=2))  # not over before the test looks
    linked(world)
    pushing_on(world)
    world.tracker.calls.clear()
    world.tracker.fail = [TrackerUnreachable("down")] * 30
    ids = []
    for step in range(10):  # a training that goes on saving meanwhile
        with world.database.write() as session:
            ids.append(make_checkpoint(session, find_run(session, "p", "llama-7b"), 4_000 + step))
        world.worker.work_once()
    waiting = [job for job in world.jobs() if job.kind == "tracker.push" and job.state == "waiting"]
    assert len(waiting) == 1
    assert waiting[0].not_before > now()
    assert world.tracker.calls.count("push") <= 2  # one try, and then the pause, however many checkpoints came
    assert (world.link().push_state, waiting[0].error) == ("failed", "down")
    world.tracker.fail = []
    world.work()
    assert {to_text(each) for each in ids} <= set(world.tracker.told)
    assert world.link().push_state == "ok"


def test_a_push_that_was_killed_tells_the_rest_and_nothing_twice(world: World) -> None:
    linked(world)
    pushing_on(world)
    with world.database.write() as session:
        run = find_run(session, "p", "llama-7b")
        for step in range(35):
            make_checkpoint(session, run, 4_000 + step)
    world.tracker.calls.clear()
    world.tracker.fail = []
    original, told = world.tracker.push_checkpoints, []

    class Killed(BaseException):
        pass

    def die(run_id: str, checkpoints: Any) -> Any:
        for pair in original(run_id, checkpoints):
            told.append(pair[0])
            yield pair
            if len(told) == 25:
                raise Killed

    world.tracker.push_checkpoints = die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        world.worker.work_once()
    world.tracker.push_checkpoints = original  # type: ignore[method-assign]
    with world.database.write() as session:
        session.execute(update(Job).where(Job.state == "running").values(lease_until=now() - timedelta(seconds=1)))
    world.tracker.calls.clear()
    world.work()
    assert world.tracker.calls.count("push") == 15  # 20 were noted, 5 were told but not noted: told again
    assert len(world.tracker.told) >= 35


def test_switching_pushing_off_stops_it(world: World) -> None:
    linked(world)
    pushing_on(world)
    with world.database.write() as session:
        change_tracking(session, world.project.id, {"push_mlflow": False}, actor="jane")
        make_checkpoint(session, find_run(session, "p", "llama-7b"), 9_000)
    world.tracker.calls.clear()
    world.work()
    assert "push" not in world.tracker.calls
