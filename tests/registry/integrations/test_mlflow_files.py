"""A store of files (`mlruns`) as MLflow lays it out, read without a server."""

import math
from pathlib import Path

import pytest

from registry.config import Settings
from registry.integrations import mlflow
from registry.integrations.hosts import HostNotAllowed, HostNotListed, require_listed
from registry.integrations.mlflow_reader import MlflowReader
from registry.integrations.open import Place
from registry.integrations.shapes import TrackerAnswerUnknown, TrackerRunNotFound

RUN, DELETED = "a" * 32, "b" * 32


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def mlruns(tmp_path: Path) -> Path:
    folder = tmp_path / "mlruns"
    put(
        folder,
        {
            "7/meta.yaml": "experiment_id: '7'\nname: pre training\nlifecycle_stage: active\n",
            f"7/{RUN}/meta.yaml": f"artifact_uri: file://{folder}/7/{RUN}/artifacts\nend_time: 1700000900000\n"
            'run_name: "caf\\xE9"\nstart_time: 1700000000000\nstatus: 3\nlifecycle_stage: active\nuser_id: jane\n',
            f"7/{RUN}/params/optimizer.lr": "1e-4",
            f"7/{RUN}/params/group/depth": "24",
            f"7/{RUN}/tags/phase": "sft",
            f"7/{RUN}/metrics/loss": "1700000001000 nan 1\n1700000002000 2.5 2\n1700000003000 1.5 2\n17000",
            f"7/{RUN}/metrics/eval/acc": "1700000001000 0.5 2\n",
            f"7/{RUN}/outputs/m-1/meta.yaml": "destination_id: x\ndestination_type: MODEL_OUTPUT\nstep: 2\n",
            f"7/{RUN}/artifacts/checkpoint-500/weights.bin": "x",
            "7/models/m-1/meta.yaml": "artifact_location: s3://m/1\ncreation_timestamp: 1700000002000\nmodel_id: m-1\n"
            f"name: last\nsource_run_id: {RUN}\nstatus: 2\n",
            "7/models/m-1/metrics/gsm8k": f"1700000002000 0.25 2 {RUN}\n",
            "models/llm/meta.yaml": "name: llm\n",
            "models/llm/aliases/champion": "1",
            "models/llm/version-1/meta.yaml": f"name: llm\nrun_id: {RUN}\nsource: models:/m-1\nversion: 1\n",
            f"7/{DELETED}/meta.yaml": "run_name: old\nstart_time: 1\nstatus: 1\nlifecycle_stage: deleted\n",
            f"7/{DELETED}/metrics/loss": "1 1.0 1\n",
        },
    )
    return folder


def reader(folder: Path | str, listed: Path) -> MlflowReader:
    place = Place("mlflow", str(folder), None, "pre training")
    return mlflow.open_reader(place, Settings(listed, "sqlite://", tracker_hosts=("mlflow.example.org", str(listed))))


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_runs_curves_models_and_aliases_are_read_from_the_files(mlruns: Path, scheme: str) -> None:
    source = reader(f"{scheme}{mlruns}", mlruns.parent)
    (batch,) = source.batches(None)
    old, run = batch.runs
    assert (old.name, old.deleted, run.name, run.state) == ("old", True, "café", "finished")
    assert (run.uri, run.project, run.owner) == (f"file://{mlruns}", "pre training", "jane")
    assert (run.config, run.tags) == ({"optimizer": {"lr": 1e-4}, "group/depth": 24}, {"phase": "sft"})
    curves = {curve.name: curve for curve, _ in source.series(run, {})}
    assert (curves["loss"].steps, curves["eval/acc"].values) == ([1, 2], [0.5])
    assert math.isnan(curves["loss"].values[0])
    assert curves["loss"].values[1] == 1.5, "of a step logged twice the last; what is half-written is no point"
    model, folder = (found for _, found in source.checkpoints([run]))
    assert (model.name, model.step, model.uri, model.aliases) == ("last", 2, "s3://m/1", ("llm@champion",))
    assert [(score.name, score.value) for score in model.scores] == [("gsm8k", 0.25)]
    assert (folder.step, folder.uri) == (500, f"file://{mlruns}/7/{RUN}/artifacts/checkpoint-500")


def test_what_did_not_change_is_the_same_version_and_a_longer_curve_another(mlruns: Path) -> None:
    def version() -> str | None:
        return reader(mlruns, mlruns).run(RUN).version

    before = version()
    assert version() == before
    with (mlruns / "7" / RUN / "metrics" / "loss").open("a") as file:
        file.write("\n1700000004000 1.0 3\n")
    assert version() != before


def test_a_folder_is_read_only_where_it_is_listed_and_links_out_of_it_are_not_followed(mlruns: Path) -> None:
    secret = mlruns.parent / "secret"
    secret.write_text("s3cret")
    (mlruns / "7" / RUN / "params" / "stolen").symlink_to(secret)
    run = reader(mlruns, mlruns).run(RUN)
    assert "s3cret" not in str(run)
    for refused in (mlruns.parent, Path("/etc"), mlruns / "none"):
        with pytest.raises(HostNotAllowed, match="CAIRN_TRACKER_HOSTS"):
            reader(refused, mlruns)
    with pytest.raises(HostNotListed, match=str(mlruns.parent)):
        require_listed(f"file://{mlruns.parent}", [str(mlruns)], "/uri")
    require_listed(str(mlruns), [str(mlruns)], "/uri")


@pytest.mark.parametrize("run_id", ["c" * 32, "../7/" + RUN, "", "models"])
def test_a_run_that_is_not_there_is_not_found(mlruns: Path, run_id: str) -> None:
    with pytest.raises(TrackerRunNotFound):
        reader(mlruns, mlruns).run(run_id)


def test_nothing_is_written_into_a_folder(mlruns: Path) -> None:
    with pytest.raises(TrackerAnswerUnknown, match="only read"):
        mlflow.open_writer(Place("mlflow", str(mlruns)), Settings(mlruns, "sqlite://", tracker_hosts=(str(mlruns),)))
