"""What the reader says of runs that the real library wrote, offline."""

import math
import os
import time
from pathlib import Path

import pytest
from cairn.formats import Refused
from cairn.formats.wandb_offline import OfflineRun, artifact_place, find_files, read_folder, step_of

from tests.client.formats.wandb_offline.conftest import FIXTURE, STEPS, Train

CONFIG = {"lr": 3e-4, "optim": {"name": "adamw", "betas": [0.9, 0.95]}, "gone": 1, "late": 1}


def test_the_committed_file_says_what_was_logged() -> None:
    run = read_folder(FIXTURE)
    assert (run.state, run.state_reason) == ("finished", "its exit record says code 0")
    assert run.facts.config == CONFIG
    assert (run.facts.version, run.facts.host, run.facts.axis) == ("0.31.0", "node-0", "_step")
    assert [row.index for row in run.rows] == list(range(1, 87))
    (artifact,) = run.artifacts
    assert (step_of(artifact).step, artifact_place(artifact)) == (40, "oss://bucket/tiny/step-40")
    assert run.problems == ()


def test_who_the_run_is_and_how_it_was_set_up(trained: Train) -> None:
    facts = read_folder(trained("well")).facts
    assert (facts.entity, facts.project, facts.name, facts.group) == ("team", "llm", "tiny", "sweep-1")
    assert (facts.tags, facts.notes) == (("sft", "small"), "first try, é")
    assert facts.config == CONFIG
    assert len(facts.run_id) == 8
    assert facts.started_at is not None
    assert abs(facts.started_at - time.time()) < 86_400


def test_an_environment_in_two_records_is_one(trained: Train) -> None:
    environment = read_folder(trained("well")).facts.environment
    assert environment["python"].startswith("CPython 3.")
    assert environment["cpu_count"] >= 1


def test_every_step_is_read_with_nan_and_infinities(trained: Train) -> None:
    rows = read_folder(trained("well")).rows
    assert [row.index for row in rows] == list(range(1, STEPS + 1))
    by_step = {row.index: row.values for row in rows}
    assert math.isnan(by_step[10]["train/loss"])
    assert (by_step[11]["train/loss"], by_step[12]["train/loss"]) == (math.inf, -math.inf)
    assert by_step[200] == {"train/loss": 0.01, "nested.a.b": 200.0, "eval/gsm8k": 0.5}


def test_histograms_texts_and_flags_are_no_numbers(trained: Train) -> None:
    names = {name for row in read_folder(trained("well")).rows for name in row.values}
    assert names == {"train/loss", "nested.a.b", "eval/gsm8k"}


def test_the_summary_is_that_of_the_end_without_what_was_removed(trained: Train) -> None:
    summary = read_folder(trained("well")).facts.summary
    assert (summary["best"], summary["train/loss"], summary["_step"]) == (0.5, 0.01, STEPS)
    assert "dropped" not in summary


def test_an_artifact_by_reference_says_where_it_lies_and_one_by_copy_does_not(trained: Train) -> None:
    folder = trained("well")
    by_reference, by_copy = read_folder(folder).artifacts
    assert artifact_place(by_reference) == str(folder.parents[1].resolve() / "checkpoint-40")
    assert (step_of(by_reference).step, step_of(by_reference).source) == (40, "alias checkpoint_global_step_40")
    assert artifact_place(by_copy) is None
    assert (step_of(by_copy).step, step_of(by_copy).source) == (60, "metadata iteration")
    assert by_reference.digest == by_copy.digest  # the same bytes: a digest cannot tell reference from copy
    assert by_copy.bytes == 700


def test_a_run_that_ended_with_an_error_says_its_code(trained: Train) -> None:
    run = read_folder(trained("badly"))
    assert run.facts.exit is not None
    assert (run.state, run.facts.exit.code) == ("failed", 3)


def test_without_exit_only_the_age_tells_running_from_crashed(tmp_path: Path) -> None:
    path = tmp_path / "run-killed.wandb"
    path.write_bytes(FIXTURE.read_bytes()[:30_000])
    run = read_folder(path)
    assert run.facts.exit is None
    assert run.state == "running"
    assert run.state_reason.startswith("no exit record; last written ")
    old = time.time() - 7_200
    os.utime(path, (old, old))
    crashed = read_folder(path)
    assert crashed.state == "crashed"
    assert crashed.state_reason == (
        "no exit record; last written 2 hours ago, and a run is taken for crashed after 15 minutes of silence"
    )


@pytest.mark.trackers
def test_a_killed_run_leaves_its_config_and_every_row_but_the_last(trained: Train) -> None:
    """The library holds rows back for up to 15 seconds, so the training waits before it is killed."""
    run = read_folder(trained("killed"))
    assert run.facts.exit is None
    assert run.facts.config == CONFIG
    assert [row.index for row in run.rows] == list(range(1, STEPS))
    assert len(run.artifacts) == 2


def test_our_messages_are_those_of_the_library(trained: Train) -> None:
    """The library's own messages over the same frames say the same rows, config and artifacts."""
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    from cairn.formats.wandb_offline.frames import Frames
    from cairn.formats.wandb_offline.values import number

    run = read_folder(trained("well"))
    rows, artifacts, config = [], [], set()
    with run.file.open("rb") as file:
        for frame in Frames(file):
            record = pb.Record.FromString(frame.data)
            if record.WhichOneof("record_type") == "history":
                said = {".".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
                rows.append({name: repr(number(text)) for name, text in said.items() if number(text) is not None})
            elif record.WhichOneof("record_type") == "artifact":
                artifacts.append((record.artifact.name, record.artifact.digest, len(record.artifact.manifest.contents)))
            config |= {item.key for item in (*record.config.update, *record.run.config.update)} - {"_wandb"}
    ours = [{name: repr(value) for name, value in row.values.items()} for row in run.rows]
    inner = ("_step", "_timestamp", "_runtime")
    theirs = [
        {name: text for name, text in row.items() if name not in inner and not name.startswith("weights")}
        for row in rows
    ]
    assert ours == theirs
    assert artifacts == [(each.name, each.digest, each.entry_count) for each in run.artifacts]
    assert config == run.facts.config.keys()


def test_every_run_below_a_folder_is_found_once(trained: Train) -> None:
    folder = trained("well").parent
    assert (folder / "latest-run").is_symlink()
    assert find_files(folder) == [read_folder(folder / "latest-run").file.resolve()]


@pytest.mark.parametrize("content", [b"hello, this is no run at all", b":W&C" + bytes(60_000)])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.wandb"
    path.write_bytes(content)
    with pytest.raises(Refused, match="no file of W&B"):
        read_folder(path)


def test_a_folder_without_a_run_and_one_with_two_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"holds no \.wandb file"):
        read_folder(tmp_path)
    for name in ("a.wandb", "b.wandb"):
        (tmp_path / name).write_bytes(FIXTURE.read_bytes())
    with pytest.raises(Refused, match=r"2 \.wandb files"):
        read_folder(tmp_path)


def rows_of(run: OfflineRun) -> list[int]:
    return [row.index for row in run.rows]


def test_reading_in_portions_gives_every_row_once() -> None:
    offset, seen, more = 0, [], True
    while more:
        run = read_folder(FIXTURE, offset, max_rows=7)
        seen += rows_of(run)
        offset, more = run.offset, run.more
        assert run.facts.config["lr"] == 3e-4  # the head is known wherever reading goes on
    assert seen == list(range(1, 87))
    assert offset == FIXTURE.stat().st_size
