"""Telling a real MLflow server of checkpoints: each once, at its step, with its scores, and never a NaN as 0."""

import math
import threading
from pathlib import Path

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from registry.aliases import move_alias
from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.registration import Registration, ReplicaSpec
from registry.evals.scores import NewScore, record_scores
from registry.ids import to_text
from registry.models import Checkpoint
from registry.runs import RunSpec, start_run
from tests.client.until import until
from tests.databases import fresh_database
from tests.factories import ALL_PIECES
from tests.trackers.registries import Registry
from tests.trackers.servers import MlflowServer

pytestmark = pytest.mark.trackers


def checkpoint(session: Session, run: int, step: int, **known: object) -> int:
    known.setdefault("pieces", ALL_PIECES)
    known.setdefault("replicas", (ReplicaSpec(f"/ckpt/step-{step}", "shared", digest_algorithm="sha256", digest="ab"),))
    return register_checkpoint(session, run, Registration(step, **known)).checkpoint_id  # type: ignore[arg-type]


def linked(server: MlflowServer, registry: Registry, name: str) -> tuple[str, str, int, int]:
    """(experiment, run there, run here, link)."""
    experiment = server.experiment(name)
    there = server.start_run(experiment, name, phase="mine")
    with registry.database.write() as session:
        here = start_run(session, registry.project.id, RunSpec(name))[0].id
    link = registry.link(here, f"{server.uri}/#/experiments/{experiment}/runs/{there}")
    return experiment, there, here, link.id


def tags_of(model: dict[str, dict[str, list[dict[str, str]]]]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in model["info"].get("tags", ())}


def metrics_of(model: dict[str, dict[str, list[dict[str, float]]]]) -> dict[str, float]:
    newest: dict[str, dict[str, float]] = {}
    for metric in model.get("data", {}).get("metrics", ()):
        key = str(metric["key"])
        if key not in newest or metric["timestamp"] >= newest[key]["timestamp"]:
            newest[key] = metric
    return {key: metric["value"] for key, metric in newest.items()}


def test_each_checkpoint_is_a_model_of_its_run_at_its_step(server: MlflowServer, registry: Registry) -> None:
    experiment, there, here, link = linked(server, registry, "told")
    scores = (
        NewScore("gsm8k", 0.5, "exact_match", "strict-match"),
        NewScore("mmlu", math.nan),
        NewScore("piqa", math.inf),
        NewScore("odd|name,中文", 0.25),
    )
    with registry.database.write() as session:
        ids = [checkpoint(session, here, 100, scores=scores, loss=1.5), checkpoint(session, here, 200, loss=math.nan)]
        move_alias(session, registry.project.id, "production", ids[0], actor="jane")
    registry.push(best_by="gsm8k.exact_match.strict-match")
    models = {tags_of(model)["cairn.step"]: model for model in server.models(experiment, there)}
    assert set(models) == {"100", "200"}
    outputs = {each["model_id"]: each["step"] for each in server.run(there)["outputs"]["model_outputs"]}
    for step, model in models.items():
        assert outputs[model["info"]["model_id"]] == int(step)
        assert model["info"]["status"] == "LOGGED_MODEL_READY"
    tags, metrics = tags_of(models["100"]), metrics_of(models["100"])
    assert tags["cairn.path"] == "/ckpt/step-100"
    assert tags["cairn.completeness"] in ("exact", "resumable")
    assert tags["cairn.digest"] == "sha256:ab"
    assert tags["cairn.link"] == f"https://cairn.example/checkpoints/{to_text(ids[0])}"
    assert tags["cairn.aliases"] == "production"
    assert (tags["cairn.score.mmlu"], tags["cairn.score.piqa"]) == ("NaN", "Infinity")
    assert tags["cairn.name.odd_name___"] == "odd|name,中文"
    assert metrics == {"cairn/loss": 1.5, "cairn/gsm8k.exact_match.strict-match": 0.5, "cairn/odd_name___": 0.25}
    assert (tags_of(models["200"])["cairn.score.loss"], tags_of(models["200"])["cairn.verdict"]) == ("NaN", "suspect")
    run_tags = {tag["key"]: tag["value"] for tag in server.run(there)["data"]["tags"]}
    assert run_tags["phase"] == "mine"
    assert "step 200" in run_tags["cairn.newest"]
    assert "step 100" in run_tags["cairn.best"]
    assert "step 100" in run_tags["cairn.production"]
    # Again: the same in every word. And read back, nothing is doubled.
    before = server.models(experiment, there)
    registry.push()
    assert server.models(experiment, there) == before
    counts = registry.counts()
    registry.refresh(link)
    registry.import_experiment(server.uri, "told")
    assert registry.counts() | {"tracker_field": 0} == counts | {"tracker_field": 0}


def test_what_changes_here_changes_there(server: MlflowServer, registry: Registry) -> None:
    experiment, there, here, link = linked(server, registry, "changing")
    with registry.database.write() as session:
        one, two = checkpoint(session, here, 1), checkpoint(session, here, 2, scores=(NewScore("gsm8k", math.nan),))
        move_alias(session, registry.project.id, "production", one, actor="jane")
    registry.push()
    with registry.database.write() as session:
        record_scores(session, registry.project.id, [(two, NewScore("gsm8k", 0.75))])
        move_alias(session, registry.project.id, "production", two, actor="jane")
        session.execute(update(Checkpoint).where(Checkpoint.id == one).values(state="deleted"))
    registry.work()
    models = {tags_of(model)["cairn.step"]: model for model in server.models(experiment, there)}
    assert tags_of(models["1"])["cairn.verdict"] == "deleted"
    assert tags_of(models["1"])["cairn.aliases"] == "none"
    assert tags_of(models["2"])["cairn.aliases"] == "production"
    assert "cairn.score.gsm8k" not in tags_of(models["2"])
    assert metrics_of(models["2"])["cairn/gsm8k"] == 0.75
    with registry.database.write() as session:
        record_scores(session, registry.project.id, [(two, NewScore("gsm8k", 0.5))])
    registry.work()
    models = {tags_of(model)["cairn.step"]: model for model in server.models(experiment, there)}
    assert metrics_of(models["2"])["cairn/gsm8k"] == 0.5
    assert registry.link_now(link).push_state == "ok"


def test_a_run_in_mlflows_bin_is_said_to_be_deleted_and_told_after_it_comes_back(
    server: MlflowServer, registry: Registry
) -> None:
    experiment, there, here, link = linked(server, registry, "binned")
    server.call("POST", "runs/delete", {"run_id": there})
    with registry.database.write() as session:
        checkpoint(session, here, 1)
    registry.push()
    row = registry.link_now(link)
    assert row.push_state == "failed"
    assert "deleted in MLflow" in str(row.push_error)
    server.call("POST", "runs/restore", {"run_id": there})
    registry.refresh(link)
    assert registry.link_now(link).push_state == "ok"
    assert len(server.models(experiment, there)) == 1


def test_finished_runs_are_told_too(server: MlflowServer, registry: Registry) -> None:
    experiment, there, here, _ = linked(server, registry, "finished")
    server.finish(there)
    with registry.database.write() as session:
        checkpoint(session, here, 1, scores=(NewScore("gsm8k", 0.5),))
    registry.push()
    assert metrics_of(server.models(experiment, there)[0]) == {"cairn/gsm8k": 0.5}


def test_fifty_runs_of_twenty_checkpoints_are_told_through_a_kill_by_two_workers_each_once(
    server: MlflowServer, tmp_path: Path
) -> None:
    with fresh_database("sqlite", tmp_path) as database:
        one, other = Registry(database, tmp_path), Registry(database, tmp_path)
        experiment = server.experiment("fifty")
        runs = [server.start_run(experiment, f"t{number}", at=1_700_000_000_000 + number) for number in range(50)]
        one.import_experiment(server.uri, "fifty")
        with database.write() as session:
            for number in range(50):
                here = start_run(session, one.project.id, RunSpec(f"t{number}"))[0].id
                for step in range(1, 21):
                    checkpoint(session, here, step, scores=(NewScore("gsm8k", step / 100),))
        threads = [threading.Thread(target=one.push), threading.Thread(target=other.work)]
        threads[0].start()
        until(lambda: one.counts()["tracker_checkpoint"] > 0, seconds=600)
        threads[1].start()
        until(lambda: one.counts()["tracker_checkpoint"] >= 60, seconds=600)
        server.kill()
        for thread in threads:
            thread.join()
        assert one.counts()["tracker_checkpoint"] < 1_000
        server.start()
        one.work(tries=2_000)
        assert one.counts()["tracker_checkpoint"] == 1_000
        for run in runs[:3] + runs[-3:]:
            models = server.models(experiment, run)
            assert sorted(int(tags_of(model)["cairn.step"]) for model in models) == list(range(1, 21))
            assert len(server.run(run)["outputs"]["model_outputs"]) == 20
        before = one.counts()
        assert one.import_experiment(server.uri, "fifty")["checkpoints_created"] == 0
        assert one.counts()["checkpoint"] == before["checkpoint"]
