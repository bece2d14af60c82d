"""Messages that short trainings do not write: odd values, both ways of nesting, media, repeated and split records."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.wandb_offline import Entry, artifact_place, read_folder, step_of
from cairn.formats.wandb_offline.shapes import Artifact
from cairn.formats.wandb_offline.wire import Malformed, fields, signed

from tests.client.formats.wandb_offline.written import Writing

pb = pytest.importorskip("wandb.proto.wandb_internal_pb2", reason="the extra wandb is not installed")


def row_of(tmp_path: Path, fill: Callable[[Any], None]) -> dict[str, float]:
    writing = Writing()
    record = pb.Record()
    record.history.item.add(nested_key=["_step"], value_json="7")
    fill(record.history)
    writing.add(record)
    rows = read_folder(writing.save(tmp_path)).rows
    return dict(rows[0].values) if rows else {}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("1", 1.0), ("-2.5e-3", -0.0025), ("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)),
        *(("1e999", None), ("-1e999", None), ("true", None), ('"text"', None), ("null", None), ("[1, 2]", None)),
        *(("", None), ("nonsense", None), ("1_000", None), ("nan", None), ("{", None), ("9" * 400, None)),
    ],
)
def test_only_a_number_is_a_number(tmp_path: Path, written: str, value: float | None) -> None:
    found = row_of(tmp_path, lambda history: history.item.add(key="x", value_json=written))
    assert repr(found) == repr({} if value is None else {"x": value})


def test_both_ways_of_nesting_give_the_same_names(tmp_path: Path) -> None:
    def fill(history: Any) -> None:
        history.item.add(nested_key=["a", "b", "c"], value_json="1")
        history.item.add(key="d", value_json='{"e": {"f": 2, "g": NaN}, "h": "text"}')

    assert repr(row_of(tmp_path, fill)) == "{'a.b.c': 1.0, 'd.e.f': 2.0, 'd.e.g': nan}"


def test_what_belongs_to_a_medium_is_no_metric(tmp_path: Path) -> None:
    def fill(history: Any) -> None:
        history.item.add(nested_key=["image", "width"], value_json="640")
        history.item.add(nested_key=["image", "_type"], value_json='"image-file"')
        history.item.add(key="table", value_json='{"_type": "table-file", "nrows": 3}')
        history.item.add(nested_key=["images"], value_json="2")

    assert row_of(tmp_path, fill) == {"images": 2.0}


def test_items_that_carry_plain_values_are_read_too(tmp_path: Path) -> None:
    def fill(history: Any) -> None:
        history.item.add(key="integer", integer=-3)
        history.item.add(key="number", number=0.5)
        history.item.add(key="infinite", number=math.inf)
        history.item.add(key="flag", boolean=True)
        history.item.add(key="text", text="x")
        history.item.add(key="json", json='{"a": 1}')

    assert row_of(tmp_path, fill) == {"integer": -3.0, "number": 0.5, "infinite": math.inf, "json.a": 1.0}


def test_a_row_without_its_step_follows_the_row_before(tmp_path: Path) -> None:
    writing = Writing()
    writing.log(5, {"x": 1})
    record = pb.Record()
    record.history.item.add(key="x", value_json="2")
    writing.add(record)
    record.history.step.num = 9
    writing.add(record)
    assert [row.index for row in read_folder(writing.save(tmp_path)).rows] == [5, 6, 9]


def test_records_that_repeat_or_come_in_parts_add_to_each_other(tmp_path: Path) -> None:
    writing = Writing(tags=["one"], notes="first")
    again = pb.Record()
    again.run.CopyFrom(writing.run_record.run)
    again.run.notes = "second"
    again.run.git.commit, again.run.git.remote_url = "abc", "https://me:secret@host/x.git"
    writing.add(again)
    for number, name in ((1, "os"), (2, "gpu_type")):
        part = pb.Record()
        setattr(part.environment, name, f"value-{number}")
        part.environment.gpu_count = 8
        writing.add(part)
    facts = read_folder(writing.save(tmp_path)).facts
    assert (facts.tags, facts.notes, facts.commit, facts.remote) == (("one",), "second", "abc", "https://host/x.git")
    assert facts.environment == {"os": "value-1", "gpu": "value-2", "gpu_count": 8}


def test_a_config_is_the_sum_of_its_updates_and_removals(tmp_path: Path) -> None:
    writing = Writing()
    writing.config(a={"b": 1, "c": 2}, gone=1, bad=2, _wandb={"internal": 1})
    record = pb.Record()
    record.config.update.add(nested_key=["a", "c"], value_json="3")
    record.config.update.add(key="bad", value_json="{nonsense")
    record.config.remove.add(key="gone")
    record.config.remove.add(nested_key=["never", "there"])
    writing.add(record)
    assert read_folder(writing.save(tmp_path)).facts.config == {"a": {"b": 1, "c": 3}, "bad": 2}


def test_the_axis_is_the_one_that_metrics_are_defined_over(tmp_path: Path) -> None:
    writing = Writing()
    writing.metric("train/*", "train/global_step")
    writing.metric("other/*", "epoch")
    writing.log(0, {"train/global_step": 500, "loss": 1.0})
    run = read_folder(writing.save(tmp_path))
    assert run.facts.axis == "train/global_step"
    assert [row.step_on(run.facts.axis) for row in run.rows] == [500]


def test_the_axis_of_rows_that_nobody_defined_is_found_in_them(tmp_path: Path) -> None:
    writing = Writing()
    writing.log(0, {"loss": 1.0})
    for index in range(1, 40):
        writing.log(index, {"loss": 1.0, "trainer/global_step": index * 10.0})
    path = writing.save(tmp_path)
    run = read_folder(path, max_rows=20)
    assert run.facts.axis == "trainer/global_step"
    assert read_folder(path, run.offset).facts.axis == "trainer/global_step"
    assert [row.step_on("trainer/global_step") for row in run.rows[:3]] == [None, 10, 20]


@pytest.mark.parametrize("value", [0.5, -1, math.nan, math.inf, 2.0**70])
def test_a_step_is_a_whole_number(value: float) -> None:
    from cairn.formats.wandb_offline import Row

    assert Row(3, {"train/global_step": value}).step_on("train/global_step") is None


def artifact(**known: Any) -> Artifact:
    return Artifact("model-x", "model", "d", **known)


@pytest.mark.parametrize(
    ("known", "step"),
    [
        ({"aliases": ("latest", "checkpoint_global_step_500")}, 500),
        ({"aliases": ("checkpoint_global_step_500",), "metadata": {"train/global_step": 400}}, 500),
        ({"metadata": {"train/global_step": 400}}, 400),
        ({"metadata": {"iteration": 700.0}}, 700),
        ({"metadata": {"original_filename": "epoch=0-step=900.ckpt"}}, 900),
        ({"entries": (Entry("common.pt", 1, "file:///ckpt/iter_0000042/common.pt"),)}, 42),
        ({"entries": (Entry("step-8/.metadata", 1), Entry("step-8/__0_0.distcp", 1))}, 8),
        ({"aliases": ("best", "epoch_1.5", "v3")}, None),
        ({"metadata": {"step": True, "iteration": "7", "global_step": -1}}, None),
    ],
)
def test_the_step_of_an_artifact_is_what_its_framework_says(known: dict[str, Any], step: int | None) -> None:
    assert step_of(artifact(**known)).step == step


def test_two_steps_that_differ_are_said() -> None:
    found = step_of(artifact(aliases=("step_5",), metadata={"step": 7}))
    assert (found.step, found.disagreements) == (5, ("alias step_5 says step 5, metadata step says 7",))


@pytest.mark.parametrize(
    ("refs", "place"),
    [
        ({"a/w.bin": "file:///ckpt/s%205/a/w.bin", "b": "file:///ckpt/s%205/b"}, "/ckpt/s 5"),
        ({"w.bin": "s3://bucket/ckpt/w.bin", "o.bin": "s3://bucket/ckpt/o.bin"}, "s3://bucket/ckpt"),
        ({"one": "s3://bucket/x/1", "two": "s3://bucket/xy/2"}, "s3://bucket"),
        ({"epoch=0-step=5.ckpt": "file:///r/epoch=0-step=5.ckpt"}, "/r/epoch=0-step=5.ckpt"),
        ({"a": "s3://one/a", "b": "gs://two/b"}, None),
        ({"a": ""}, None),
    ],
)
def test_references_say_where_a_checkpoint_lies(refs: dict[str, str], place: str | None) -> None:
    entries = tuple(Entry(path, 1, ref or None) for path, ref in refs.items())
    assert artifact_place(artifact(entries=entries)) == place


@pytest.mark.parametrize("data", [b"\x80", b"\x0a\x05ab", b"\x0b", b"\xff" * 12, b"\x09\x01"])
def test_bytes_that_are_no_message_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        list(fields(data))


def test_negative_numbers_are_read_as_they_were_meant(tmp_path: Path) -> None:
    writing = Writing()
    writing.exit(-9)
    run = read_folder(writing.save(tmp_path))
    assert run.facts.exit is not None
    assert (run.facts.exit.code, run.state) == (-9, "failed")
    assert [signed(value) for _, value in fields(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")] == [-1]
