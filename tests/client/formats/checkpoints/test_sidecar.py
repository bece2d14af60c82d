"""`cairn.json` beside a checkpoint."""

import json
from typing import Any

import pytest
from cairn.formats.checkpoints import PositionEvidence, Resumability

from tests.client.formats.checkpoints.sources import files_of, inspect_files, reasons, states

WEIGHTS = files_of("safetensors_single")


def beside(files: dict[str, bytes], **said: Any) -> dict[str, bytes]:
    run = {"project": "llm", "run": {"id": "r", "name": "a"}, "attempt": 2, "kind": "archive"}
    document = {"cairn": 1, "id": "ck_1", **run, "step": 1, "saved_at": "2026-11-01T10:00:00Z", **said}
    return {**files, "cairn.json": json.dumps(document).encode()}


def test_identity_and_step_come_from_it_where_the_files_tell_none() -> None:
    found = inspect_files(beside(WEIGHTS, step=300))
    assert (found.step, found.step_source) == (300, "cairn.json")
    assert found.identity is not None
    assert found.identity["id"] == "ck_1"


def test_it_is_believed_before_a_name_and_after_the_content() -> None:
    found = inspect_files(beside(WEIGHTS, step=300), "/ckpt/step-5")
    assert (found.step, found.disagreements) == (300, ("cairn.json says step 300, name step-5 says 5",))
    found = inspect_files(beside(files_of("hf_trainer/checkpoint-4"), step=300))
    assert found.step == 4
    assert found.disagreements == ("trainer_state.json global_step says step 4, cairn.json says 300",)


def test_it_fills_in_what_the_files_cannot_tell_and_overrules_nothing() -> None:
    pieces = {
        "data_position": {"state": "present", "position_evidence": "counter"},
        "random_state": "absent",
        "weights": "present",
    }
    found = inspect_files(beside(files_of("accelerate_state"), pieces=pieces))
    assert states(found)["data_position"] == "present"
    assert found.pieces.data_position.position is PositionEvidence.COUNTER
    assert states(found)["random_state"] == "present"
    assert found.disagreements == (
        "the files say random_state is present (random_states_0.pkl), cairn.json says absent",
    )
    assert found.resumability is Resumability.EXACT


def test_files_that_were_there_at_the_commit_and_are_not_make_it_incomplete() -> None:
    size = len(WEIGHTS["model.safetensors"])
    manifest = [{"path": "model.safetensors", "bytes": size}, {"path": "optimizer.pt", "bytes": 5}]
    found = inspect_files(beside(WEIGHTS, manifest=manifest))
    assert (found.missing, found.complete) == (("optimizer.pt",), False)
    found = inspect_files(beside(WEIGHTS, manifest=[{"path": "model.safetensors", "bytes": size + 1}]))
    assert "at the commit" in reasons(found)
    assert found.resumability is Resumability.INCOMPLETE
    assert inspect_files(beside(WEIGHTS, manifest=manifest[:1])).complete is True


def test_its_own_bytes_are_not_the_checkpoints() -> None:
    found = inspect_files(beside(WEIGHTS, step=1))
    assert (found.files, found.bytes) == (len(WEIGHTS), sum(map(len, WEIGHTS.values())))


def test_what_is_none_of_ours_or_newer_is_left_aside_with_a_word() -> None:
    for content, told in (
        (b'{"name": "cairn the dog"}', "does not say which version"),
        (b'{"cairn": 9}', "Update the client"),
        (b'{"cairn": 1', "no JSON"),
        (b"[" * 100_000, "deep"),
    ):
        found = inspect_files({**WEIGHTS, "cairn.json": content})
        assert told in reasons(found)
        assert (found.identity, found.parameter_count) == (None, 1704)


@pytest.mark.parametrize(
    "said",
    [
        {"step": "many"},
        {"step": True},
        {"pieces": {"weights": 5}},
        {"pieces": {"optimizer": {"state": "perhaps"}}},
        {"manifest": [{"path": "../../etc/passwd"}]},
        {"manifest": [{"path": 2}]},
    ],
)
def test_nonsense_inside_leaves_the_whole_of_it_aside(said: dict[str, Any]) -> None:
    found = inspect_files(beside(WEIGHTS, **said))
    assert (found.identity, found.step, found.complete) == (None, None, True)
    assert f"cairn.json: {next(iter(said))}" in reasons(found)
