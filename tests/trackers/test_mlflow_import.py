"""Imports from a real MLflow server, with everything that real servers hold."""

import math
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from registry.checkpoints.detail import read_config
from registry.db import Database
from registry.models import Checkpoint, CheckpointMetric, CheckpointTag, Replica
from registry.overview.scores import metrics_of_run, scores_of_run
from registry.runs import find_run
from registry.series import read_series
from tests.databases import fresh_database
from tests.trackers.registries import Registry
from tests.trackers.servers import HOME, MlflowServer, running_mlflow

pytestmark = pytest.mark.trackers

RUNS, MODELS = 50, 20


@pytest.fixture(scope="module")
def filled(server: MlflowServer) -> str:
    """An experiment of 50 runs with 20 models each; the first one has everything that is hard."""
    experiment = server.experiment("large")
    run_ids = []
    for number in range(RUNS):
        run_id = server.start_run(experiment, f"run-{number}", at=1_700_000_000_000 + number, phase="sft")
        points = [("loss", 3.0 / step, step) for step in range(1, 2 * MODELS + 1)]
        server.log(run_id, params={"optimizer.lr": "1e-4", "layers": "24"}, metrics=points)
        models = [(f"checkpoint-{step}", step, {"gsm8k": step / 100}) for step in range(1, MODELS + 1)]
        server.log_models(experiment, run_id, models)
        server.finish(run_id)
        run_ids.append(run_id)
    server.call("POST", "runs/delete", {"run_id": run_ids[-1]})
    return "large"


def test_fifty_runs_of_twenty_models_are_imported_and_again_without_a_change(
    server: MlflowServer, filled: str, registry: Registry
) -> None:
    report = registry.import_experiment(server.uri, filled)
    assert (report["runs_created"], report["checkpoints_created"]) == (RUNS - 1, (RUNS - 1) * MODELS)
    assert report["scores_recorded"] == (RUNS - 1) * MODELS
    assert report["skipped"]["the run is deleted in the tracker"]["count"] == 1
    before = registry.counts()
    again = registry.import_experiment(server.uri, filled)
    assert registry.counts() == before
    assert (again["runs_unchanged"], again["checkpoints_created"], again["points_recorded"]) == (RUNS - 1, 0, 0)
    with registry.database.read() as session:
        run = find_run(session, "p", "run-7")
        assert read_config(session, run.config_id) == {"optimizer": {"lr": 1e-4}, "layers": 24}
        losses = dict(
            session.execute(select(Checkpoint.step, Checkpoint.loss).where(Checkpoint.run_id == run.id)).all()
        )
    assert losses == {step: 3.0 / step for step in range(1, MODELS + 1)}


def test_a_deleted_run_that_is_restored_is_imported(server: MlflowServer, registry: Registry) -> None:
    experiment = server.experiment("bin")
    run_id = server.start_run(experiment, "back-again")
    server.log_model(experiment, run_id, "checkpoint-5", 5)
    server.call("POST", "runs/delete", {"run_id": run_id})
    assert registry.import_experiment(server.uri, "bin")["runs_created"] == 0
    server.call("POST", "runs/restore", {"run_id": run_id})
    report = registry.import_experiment(server.uri, "bin")
    assert (report["runs_created"], report["checkpoints_created"]) == (1, 1)


def test_numbers_that_are_none_come_back_as_they_were_or_are_said_to_be_unknown(
    server: MlflowServer, registry: Registry
) -> None:
    experiment = server.experiment("odd numbers")
    run_id = server.start_run(experiment, "odd")
    odd = [("loss", "NaN", 10), ("loss", "Infinity", 20), ("loss", "-Infinity", 30), ("loss", 1.5, 40)]
    server.log(run_id, metrics=odd)
    # What the store makes of a bare NaN: value, time and step are 0.
    bare = b'{"run_id": "%s", "key": "bare", "value": NaN, "timestamp": 1700000000000, "step": 40}' % run_id.encode()
    status, _ = server.answer("POST", "runs/log-metric", bare)
    server.log_model(experiment, run_id, "checkpoint-40", 40, gsm8k="NaN", mmlu=0.0, piqa="Infinity")
    # Of a model's metric that no run says anything of, 0.0 stays unknown.
    report = registry.import_experiment(server.uri, "odd numbers")
    with registry.database.read() as session:
        run = find_run(session, "p", "odd")
        curves = {
            curve.name: dict(zip(curve.steps, curve.values, strict=True))
            for curve in read_series(session, registry.project.id, run.id)
        }
        names = {metric.id: metric.benchmark for metric in metrics_of_run(session, registry.project.id, run.id)}
        scores = {names[s.metric_id]: s.value for s in scores_of_run(session, registry.project.id, run.id)}
    loss = curves["loss"]
    assert math.isnan(loss[10])
    assert (loss[20], loss[30], loss[40]) == (math.inf, -math.inf, 1.5)
    assert math.isnan(scores["gsm8k"] or 0.0), scores
    assert (scores["mmlu"], scores["piqa"]) == (0.0, math.inf)
    if status == 200:
        assert "bare" not in curves
        assert any("NaN that it could not read" in reason for reason in report["skipped"])


def test_long_parameters_are_said_to_be_cut(server: MlflowServer, registry: Registry) -> None:
    run_id = server.start_run(server.experiment("long"), "long")
    server.log(run_id, params={"prompt": "p" * 7_000}, tags={"note": "n" * 9_000})
    report = registry.import_experiment(server.uri, "long")
    reasons = " ".join(report["skipped"])
    assert "6000 characters long, where MLflow cuts" in reasons
    assert "8,000 characters long, where MLflow cuts" in reasons
    with registry.database.read() as session:
        config = read_config(session, find_run(session, "p", "long").config_id)
    assert config == {"prompt": "p" * 6_000}


def test_folders_of_older_loggers_are_checkpoints_too(server: MlflowServer, registry: Registry) -> None:
    """HF Trainer's `checkpoint-N`, and Lightning's `{stem}` with aliases.txt and metadata.yaml."""
    experiment = server.experiment("folders")
    run_id = server.start_run(experiment, "folders")
    root = Path(server.folder, "artifacts", experiment, run_id, "artifacts")
    for name in ("checkpoint-500", "model/checkpoints/epoch=0-step=900", "images"):
        (root / name).mkdir(parents=True)
        (root / name / "weights.bin").write_bytes(b"x")
    (root / "checkpoint-600").mkdir()
    (root / "checkpoint-600" / "aliases.txt").write_text("['latest', 'best']")
    (root / "checkpoint-600" / "metadata.yaml").write_text("name: exp\nscore: 0.25\n")
    registry.import_experiment(server.uri, "folders")
    with registry.database.read() as session:
        steps = dict(session.execute(select(Checkpoint.step, Checkpoint.id)).all())
        assert {500, 600} <= set(steps)
        uris = set(session.scalars(select(Replica.uri)))
    assert f"mlflow-artifacts:/{experiment}/{run_id}/artifacts/checkpoint-500" in uris
    before = registry.counts()
    registry.import_experiment(server.uri, "folders")
    assert registry.counts() == before


def test_metrics_of_models_that_are_no_benchmarks_are_metrics(server: MlflowServer, registry: Registry) -> None:
    experiment = server.experiment("metrics")
    run_id = server.start_run(experiment, "metrics")
    server.log_model(experiment, run_id, "checkpoint-5", 5, grad_norm=2.5)
    assert registry.import_experiment(server.uri, "metrics")["scores_recorded"] == 0
    with registry.database.read() as session:
        assert session.scalars(select(CheckpointMetric.value)).all() == [2.5]


def test_an_experiment_that_is_missing_or_renamed_is_a_clear_state(server: MlflowServer, registry: Registry) -> None:
    job_id = registry.ask(server.uri, "never made")
    registry.work()
    job = registry.job(job_id)
    assert (job.state, job.error_code) == ("failed", "tracker-run-not-found")
    experiment = server.experiment("before")
    server.start_run(experiment, "r")
    registry.import_experiment(server.uri, "before")
    server.call("POST", "experiments/update", {"experiment_id": experiment, "new_name": "after"})
    assert registry.import_experiment(server.uri, "after")["runs_created"] == 0
    assert registry.import_experiment(server.uri, experiment)["runs"] == 1


@pytest.mark.parametrize(("path", "code"), [("", "tracker-unreachable"), ("/nothing/here", "tracker-answer-unknown")])
def test_a_wrong_address_is_a_clear_state(server: MlflowServer, registry: Registry, path: str, code: str) -> None:
    uri = f"{server.uri}{path}" if path else "http://127.0.0.1:9"
    job_id = registry.ask(uri, "large")
    registry.worker.work_once()
    job = registry.job(job_id)
    assert job.error_code in (code, "tracker-run-not-found")
    assert job.state == ("waiting" if code == "tracker-unreachable" else "failed")


def test_a_store_of_files_is_the_same_through_its_server_and_by_its_path(tmp_path: Path, sqlite: Database) -> None:
    if not (HOME / "mlflow").exists():
        pytest.skip("no MLflow server is installed; `make test-trackers` installs one")
    store = tmp_path / "mlruns"
    store.mkdir()
    environment = {"MLFLOW_ALLOW_FILE_STORE": "true"}
    with running_mlflow(tmp_path, store=f"file://{store}", environment=environment) as server:
        experiment = server.experiment("files")
        run_id = server.start_run(experiment, "of-files")
        server.log(run_id, params={"lr": "0.1"}, metrics=[("loss", "NaN", 1), ("loss", 2.0, 2)])
        model_id = server.log_model(experiment, run_id, "checkpoint-2", 2, gsm8k=0.25)
        server.call("POST", "registered-models/create", {"name": "llm"})
        version = {"name": "llm", "source": f"models:/{model_id}", "model_id": model_id, "run_id": run_id}
        server.call("POST", "model-versions/create", version)
        server.call("POST", "registered-models/alias", {"name": "llm", "alias": "champion", "version": "1"})
        registry = Registry(sqlite, tmp_path, allowed=("127.0.0.1", str(store)))
        report = registry.import_experiment(server.uri, "files")
        assert (report["runs_created"], report["checkpoints_created"], report["scores_recorded"]) == (1, 1, 1)
        before = registry.counts()
        registry.import_experiment(server.uri, "files")
        assert registry.counts() == before
    (tmp_path / "other").mkdir()
    with fresh_database("sqlite", tmp_path / "other") as database:
        by_path = Registry(database, tmp_path, allowed=(str(store),))
        assert by_path.import_experiment(str(store), "files")["checkpoints_created"] == 1
        assert by_path.counts() == before
        for each in (registry, by_path):
            with each.database.read() as session:
                aliases = select(CheckpointTag.value).where(CheckpointTag.name == "mlflow.aliases")
                assert session.scalars(aliases).all() == ["llm@champion"]


def test_a_server_that_is_killed_in_the_middle_and_started_again_costs_nothing(
    server: MlflowServer, filled: str, tmp_path: Path
) -> None:
    with fresh_database("sqlite", tmp_path) as database:
        registry = Registry(database, tmp_path)
        job_id = registry.ask(server.uri, filled)
        thread = threading.Thread(target=registry.work, kwargs={"tries": 1})
        thread.start()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not registry.counts()["checkpoint"]:
            time.sleep(0.01)
        server.kill()
        thread.join()
        job = registry.job(job_id)
        assert job.state in ("waiting", "done")
        server.start()
        registry.work()
        assert registry.job(job_id).state == "done"
        counts = registry.counts()
        assert (counts["run"], counts["checkpoint"]) == (RUNS - 1, (RUNS - 1) * MODELS)


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_two_workers_at_once_import_everything_once(
    server: MlflowServer, filled: str, tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgresql_url") if backend == "postgresql" else None
    with fresh_database(backend, tmp_path, url) as database:
        one, other = Registry(database, tmp_path), Registry(database, tmp_path)
        jobs = [one.ask(server.uri, filled), one.ask(server.uri, "large ")]
        threads = [threading.Thread(target=each.work) for each in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert one.job(jobs[0]).state == "done"
        counts = one.counts()
        assert (counts["run"], counts["checkpoint"]) == (RUNS - 1, (RUNS - 1) * MODELS)
