"""The real library of W&B against a small W&B of our own."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from registry.config import Settings, read_settings
from registry.errors import RegistryError
from registry.integrations import wandb_api
from registry.integrations.hosts import HostNotAllowed
from registry.integrations.open import Place, open_reader, open_writer
from registry.integrations.shapes import TrackerReader
from tests.registry.integrations.wandb_server import KEY, Wandb, running_wandb

pytest.importorskip("wandb", reason="the extra wandb is not installed")
pytest.importorskip("graphql", reason="graphql-core is not installed")


@pytest.fixture
def there() -> Iterator[Wandb]:
    with running_wandb() as state:
        yield state
        assert state.errors == []


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: Wandb) -> Settings:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", there.url)
    return read_settings({"CAIRN_HOME": str(tmp_path), "CAIRN_TRACKER_HOSTS": "127.0.0.1"})


@contextmanager
def impatience() -> Iterator[None]:
    """For what the library waits for in vain, and for nothing else: a busy machine takes its time to each answer."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wandb_api, "TIMEOUT_SECONDS", 4)
        yield


@pytest.fixture
def reader(there: Wandb, settings: Settings) -> TrackerReader:
    return open_reader(Place("wandb", there.url, "team", "llm"), settings)


def test_a_run_is_read_with_everything_that_it_says_of_itself(there: Wandb, reader: TrackerReader) -> None:
    there.add_run(
        "r1",
        displayName="tiny",
        tags=["sft", "phase:two", "cairn/newest:step-5"],
        group="sweep",
        notes="first",
        commit="abc123",
        config={"lr": 3e-4, "optim": {"name": "adamw"}, "limit": "Infinity"},
        summary={"loss": 0.5, "nan": "NaN", "deep": {"a": 1}, "_step": 9, "cairn/checkpoint-5": {"step": 5}},
    )
    there.add_artifact("r1", "corpus", type="dataset", used=True, metadata={"uri": "https://me:pw@host/corpus"})
    run = reader.run("r1")
    assert (run.name, run.run_id, run.state, run.owner, run.commit) == ("tiny", "r1", "finished", "ann", "abc123")
    assert (run.entity, run.project, run.uri) == ("team", "llm", there.url)
    assert run.config == {"lr": 3e-4, "optim": {"name": "adamw"}, "limit": math.inf}
    assert run.tags == {"sft": "true", "phase": "two", "wandb.group": "sweep", "wandb.notes": "first"}
    assert {name: repr(value) for name, value in run.metrics.items()} == {"loss": "0.5", "nan": "nan", "deep.a": "1.0"}
    assert [(each.name, each.uri) for each in run.datasets] == [("corpus:v0", "https://host/corpus")]
    assert run.started_at is not None
    assert run.started_at.isoformat() == "2026-11-01T01:00:00+00:00"
    assert run.ended_at is not None


def test_a_project_is_read_page_by_page_and_again_from_a_position(there: Wandb, reader: TrackerReader) -> None:
    for number in range(60):
        there.add_run(f"r{number:02d}")
    batches = list(reader.batches(None))
    assert [len(batch.runs) for batch in batches] == [25, 25, 10]
    assert [batch.total for batch in batches] == [60, 60, 60]
    assert batches[-1].position is None
    assert [variables["perPage"] for name, variables in there.asked if name == "Runs"] == [1, 25, 25, 25]
    ids = [run.run_id for batch in batches for run in batch.runs]
    assert ids == [f"r{number:02d}" for number in range(60)]
    rest = [run.run_id for batch in reader.batches(batches[0].position) for run in batch.runs]
    assert rest[-35:] == ids[25:]
    assert set(rest) <= set(ids[24:])  # what was made at the same moment is read once more


def test_a_history_is_scanned_whole_and_read_on(there: Wandb, reader: TrackerReader) -> None:
    there.add_run("r1", state="running")
    for step in range(2_500):
        loss = {7: "NaN", 8: "Infinity", 9: "-Infinity"}.get(step, 1.0 / (step + 1))
        there.log(
            "r1", step, {"loss": loss, "deep": {"a": step}, "word": "x", "hist": {"_type": "histogram", "bins": [1]}}
        )
    run = reader.run("r1")
    found = {curve.name: (curve, mark) for curve, mark in reader.series(run, {})}
    assert found.keys() == {"loss", "deep.a"}
    curve, mark = found["loss"]
    values = dict(zip(curve.steps, curve.values, strict=True))
    assert (curve.steps[0], curve.steps[-1]) == (0, 2_499)
    assert len(curve.steps) <= 2_000
    assert values[2_499] == 1.0 / 2_500
    assert all(not math.isfinite(values[step]) for step in values if step in (7, 8, 9))
    assert any(step in values for step in (7, 8, 9))
    assert list(reader.series(run, {"loss": mark})) == []
    there.log("r1", 2_500, {"loss": 5.0})
    ((later, _),) = reader.series(run, {name: mark for name, (_, mark) in found.items()})
    assert (later.name, later.steps, later.values) == ("loss", [2_500], [5.0])
    sampled = [name for name, _ in there.asked if "Sampled" in name]
    assert sampled == []


def test_the_training_step_is_the_axis_that_rows_name(there: Wandb, reader: TrackerReader) -> None:
    there.add_run("r1")
    for index, step in enumerate((100, 200, 200, 300)):
        there.log("r1", index, {"train/global_step": step, "eval/loss" if index == 2 else "train/loss": step / 100})
    there.log("r1", 4, {"stray": 1.0})
    found = {curve.name: curve for curve, _ in reader.series(reader.run("r1"), {})}
    assert (found["train/loss"].steps, found["eval/loss"].steps) == ([100, 200, 300], [200])
    assert [each.item for each in found[""].skipped] == ["1 rows of the history"]


def test_artifacts_are_checkpoints_where_their_step_is_said(there: Wandb, reader: TrackerReader) -> None:
    there.add_run("r1")
    trainer = {"train/global_step": 400}
    there.add_artifact("r1", "model-r1", aliases=("checkpoint_global_step_500", "epoch_1.5"), metadata=trainer)
    there.add_artifact("r1", "megatron", metadata={"iteration": 700}, version=3)
    there.add_artifact(
        "r1", "model-l", metadata={"original_filename": "epoch=0-step=900.ckpt", "score": 0.1}, version=1
    )
    there.add_artifact("r1", "model-l", metadata={"score": 0.2}, version=2, history_step=1_000)
    there.add_artifact("r1", "ours", aliases=("step_5",), metadata={"cairn.path": "/ckpt/step-5"})
    there.add_artifact("r1", "data", type="dataset")
    run = reader.run("r1")
    found = [each for _, each in reader.checkpoints([run])]
    assert [(each.name, each.step) for each in found] == [
        *(("model-r1", 500), ("megatron", 700), ("model-l", 900), ("model-l", None), ("ours", 5)),
    ]
    assert found[1].uri == "wandb-artifact://team/llm/megatron:v3"
    assert found[4].uri == "/ckpt/step-5"
    assert (found[0].aliases, found[0].digest, found[0].bytes) == (
        *(("checkpoint_global_step_500", "epoch_1.5", "v0"), "digest-model-r1-0", 1234),
    )
    assert found[3].skipped[0].reason == (
        "nobody says its step: no alias, metadata or name does; it was logged near W&B's step 1000"
    )


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ({"fault": 500}, "tracker-unreachable"),
        ({"fault": 429}, "tracker-unreachable"),
        ({"fault": 403}, "tracker-refused"),
        ({"slow_seconds": 600.0}, "tracker-unreachable"),
        ({"body": b"<html>welcome</html>"}, "tracker-answer-unknown"),
        ({"body": b'{"ok": true}'}, "tracker-answer-unknown"),
        ({"body": b'{"data": {"viewer": null}}'}, "tracker-refused"),
        ({"redirect": "http://203.0.113.7/graphql"}, "tracker-host-not-allowed"),
    ],
)
def test_what_is_wrong_is_said_before_the_library_starts(
    there: Wandb, settings: Settings, monkeypatch: pytest.MonkeyPatch, broken: dict[str, object], code: str
) -> None:
    if "slow_seconds" in broken:
        monkeypatch.setattr("registry.integrations.http.READ_SECONDS", 1.0)
    for name, value in broken.items():
        setattr(there, name, value)
    with pytest.raises(RegistryError) as caught:
        open_reader(Place("wandb", there.url, "team", "llm"), settings)
    assert caught.value.code == code
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "code"), [(500, "tracker-unreachable"), (429, "tracker-unreachable"), (403, "tracker-refused")]
)
def test_what_goes_wrong_later_is_a_clear_state_too(
    there: Wandb, settings: Settings, reader: TrackerReader, fault: int, code: str
) -> None:
    there.add_run("r1")
    run = reader.run("r1")
    with impatience():
        hasty = open_reader(Place("wandb", there.url, "team", "llm"), settings)
    there.fault = fault
    with pytest.raises(RegistryError) as caught:
        list(hasty.series(run, {}))
    assert caught.value.code == code
    assert KEY not in str(caught.value)


def test_a_run_and_a_project_that_are_not_there(there: Wandb, settings: Settings, reader: TrackerReader) -> None:
    with pytest.raises(RegistryError) as caught:
        reader.run("gone")
    assert caught.value.code == "tracker-run-not-found"
    other = open_reader(Place("wandb", there.url, "team", "nothing"), settings)
    with pytest.raises(RegistryError) as caught:
        list(other.batches(None))
    assert caught.value.code == "tracker-run-not-found"


def test_nobody_answers(settings: Settings, there: Wandb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(RegistryError) as caught:
        open_reader(Place("wandb", "http://127.0.0.1:9", "team", "llm"), settings)
    assert caught.value.code == "tracker-unreachable"


def test_a_host_that_is_not_listed_is_never_called(there: Wandb, tmp_path: Path, settings: Settings) -> None:
    closed = read_settings({"CAIRN_HOME": str(tmp_path), "CAIRN_TRACKER_HOSTS": "wandb.example.org"})
    with pytest.raises(HostNotAllowed):
        open_reader(Place("wandb", there.url, "team", "llm"), closed)
    assert there.asked == []


@pytest.mark.parametrize("key", ["", "short"])
def test_a_key_that_is_missing_or_too_short_is_said(
    there: Wandb, settings: Settings, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", key)
    with pytest.raises(RegistryError, match="API key") as caught:
        open_writer(Place("wandb", there.url, "team", "llm"), settings)
    assert caught.value.code == "tracker-refused"
    assert there.asked == []


def test_the_key_of_another_host_is_not_sent(there: Wandb, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_BASE_URL")
    with pytest.raises(RegistryError, match="is missing"):
        open_reader(Place("wandb", there.url, "team", "llm"), settings)


def test_the_key_is_in_no_file_that_the_library_leaves(
    there: Wandb, reader: TrackerReader, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there.add_run("r1")
    reader.run("r1")
    written = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert written == []
    assert KEY not in "".join(capfd.readouterr())
