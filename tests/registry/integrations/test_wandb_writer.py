"""What a W&B run is told of its checkpoints: narrow changes, whose stored state is looked at."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from registry.config import Settings
from registry.errors import RegistryError
from registry.integrations.open import Place, open_writer
from registry.integrations.shapes import CheckpointPush, RunPush, TrackerWriter
from registry.integrations.wandb_writer import MAX_TOLD
from tests.registry.integrations.test_wandb import settings, there  # noqa: F401 - fixtures
from tests.registry.integrations.wandb_server import Wandb

PUSH = CheckpointPush(
    checkpoint_id="c1",
    name="checkpoint-100",
    step=100,
    attempt=1,
    kind="archive",
    path="/ckpt/100",
    resumability="exact",
    digest="sha256:ab",
    bytes=10,
    saved_at=datetime(2026, 11, 1, tzinfo=UTC),
    loss=math.nan,
    scores={"gsm8k": 0.5, "mmlu": math.inf},
    aliases=("production",),
    verdict="ok",
    link="http://cairn/checkpoints/c1",
)


@pytest.fixture
def writer(there: Wandb, settings: Settings) -> TrackerWriter:  # noqa: F811
    there.add_run("r1", tags=["sft"], config={"lr": 0.1}, summary={"loss": 0.5, "bad": "NaN"})
    return open_writer(Place("wandb", there.url, "team", "llm"), settings)


def stored(there: Wandb) -> dict[str, Any]:  # noqa: F811
    found = json.loads(there.runs["r1"]["summaryMetrics"])
    assert isinstance(found, dict)
    return found


def changes(there: Wandb) -> list[dict[str, Any]]:  # noqa: F811
    return [variables for name, variables in there.asked if name == "UpsertBucket"]


def test_details_go_to_the_summary_beside_what_the_run_said(writer: TrackerWriter, there: Wandb) -> None:  # noqa: F811
    assert list(writer.push_checkpoints("r1", [PUSH])) == [("c1", "r1/checkpoint-100")]
    summary = stored(there)
    assert (summary["loss"], summary["bad"]) == (0.5, "NaN")
    assert summary["cairn/checkpoint-100"] == {
        "checkpoint": "c1",
        "link": "http://cairn/checkpoints/c1",
        "path": "/ckpt/100",
        "step": 100,
        "attempt": 1,
        "kind": "archive",
        "completeness": "exact",
        "digest": "sha256:ab",
        "bytes": 10,
        "verdict": "ok",
        "aliases": ["production"],
        "loss": "NaN",
        "scores": {"gsm8k": 0.5, "mmlu": "Infinity"},
    }
    assert there.runs["r1"]["tags"] == ["sft"]


def test_only_the_fields_that_are_meant_are_sent(writer: TrackerWriter, there: Wandb) -> None:  # noqa: F811
    before = there.runs["r1"]["config"]
    list(writer.push_checkpoints("r1", [PUSH]))
    writer.push_run("r1", RunPush({"newest": "step 100, attempt 1, /ckpt/100, http://cairn/checkpoints/c1"}))
    inner = {"entity", "project", "name", "id"}
    assert [set(each) - inner for each in changes(there)] == [{"summaryMetrics"}, {"tags"}]
    assert there.runs["r1"]["config"] == before


def test_the_same_again_sends_nothing(writer: TrackerWriter, there: Wandb) -> None:  # noqa: F811
    for _ in range(2):
        assert len(list(writer.push_checkpoints("r1", [PUSH]))) == 1
        writer.push_run("r1", RunPush({"newest": "step 100, attempt 1"}))
    assert len(changes(there)) == 2


def test_tags_name_newest_best_and_aliases_and_follow_their_moves(
    writer: TrackerWriter,
    there: Wandb,  # noqa: F811
) -> None:
    writer.push_run("r1", RunPush({"newest": "step 300, attempt 2, /c", "production": "step 100, attempt 1"}))
    assert there.runs["r1"]["tags"] == ["sft", "cairn/newest:step-300@2", "cairn/production:step-100"]
    there.runs["r1"]["tags"].append("added-there")
    writer.push_run("r1", RunPush({"production": "step 200, attempt 1", "newest": None}))
    assert there.runs["r1"]["tags"] == ["sft", "added-there", "cairn/production:step-200"]


def test_a_live_run_gets_tags_at_once_and_details_when_it_has_ended(
    writer: TrackerWriter,
    there: Wandb,  # noqa: F811
) -> None:
    """Its own process sends the whole summary again and again, without what others wrote there."""
    there.runs["r1"]["state"] = "running"
    suspect = replace(PUSH, verdict="suspect")
    assert list(writer.push_checkpoints("r1", [suspect])) == []
    assert "cairn/checkpoint-100" not in stored(there)
    assert there.runs["r1"]["tags"] == ["sft", "cairn/suspect:checkpoint-100"]
    there.runs["r1"]["state"] = "finished"
    assert list(writer.push_checkpoints("r1", [suspect])) == [("c1", "r1/checkpoint-100")]
    assert stored(there)["cairn/checkpoint-100"]["verdict"] == "suspect"


def test_verdicts_follow(writer: TrackerWriter, there: Wandb) -> None:  # noqa: F811
    list(writer.push_checkpoints("r1", [replace(PUSH, verdict="suspect")]))
    assert there.runs["r1"]["tags"] == ["sft", "cairn/suspect:checkpoint-100"]
    list(writer.push_checkpoints("r1", [replace(PUSH, verdict="deleted", aliases=())]))
    assert there.runs["r1"]["tags"] == ["sft", "cairn/deleted:checkpoint-100"]
    assert stored(there)["cairn/checkpoint-100"]["verdict"] == "deleted"
    list(writer.push_checkpoints("r1", [replace(PUSH, verdict="ok")]))
    assert there.runs["r1"]["tags"] == ["sft"]


def test_a_summary_stays_bounded_and_keeps_what_is_aliased(writer: TrackerWriter, there: Wandb) -> None:  # noqa: F811
    many = [
        replace(PUSH, checkpoint_id=f"c{step}", name=f"checkpoint-{step}", step=step, aliases=("old",) * (step == 1))
        for step in range(1, MAX_TOLD + 51)
    ]
    assert len(list(writer.push_checkpoints("r1", many))) == MAX_TOLD + 50
    steps = sorted(each["step"] for name, each in stored(there).items() if name.startswith("cairn/"))
    assert steps == [1, *range(52, MAX_TOLD + 51)]


def test_what_is_not_kept_there_is_tried_again(writer: TrackerWriter, there: Wandb) -> None:  # noqa: F811
    there.forgets_writes = True
    for push in (
        lambda: list(writer.push_checkpoints("r1", [PUSH])),
        lambda: writer.push_run("r1", RunPush({"newest": "step 1, attempt 1"})),
    ):
        with pytest.raises(RegistryError, match="did not keep") as caught:
            push()
        assert caught.value.code == "tracker-unreachable"


@pytest.mark.parametrize("name", ["..", "a/b", "", "x\n"])
def test_names_that_lead_elsewhere_are_refused(writer: TrackerWriter, tmp_path: Path, name: str) -> None:
    with pytest.raises(RegistryError) as caught:
        writer.push_run(name, RunPush({"newest": "step 1, attempt 1"}))
    assert caught.value.code == "bad-wandb-name"
