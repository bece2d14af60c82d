"""Every refused value is named by a pointer into what was sent, in words that need no library's manual."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from api.deps import validate
from api.field_errors import PATTERNS
from api.main import create_app
from api.problems import InvalidFields
from api.schemas.checkpoints import BatchItemIn, CheckpointIn, CheckpointPatch
from api.schemas.common import Patch
from api.schemas.incidents import IncidentPatch
from api.schemas.runs import AttemptIn, AttemptPatch, ProjectIn
from api.schemas.watches import WatchPatch
from registry.config import Settings
from registry.ids import to_text
from registry.strict_json import walk
from tests.factories import make_checkpoint

CHECKPOINT: TypeAdapter[Any] = TypeAdapter(CheckpointIn)
SCORE = {"benchmark": "b", "value": 1}


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ({"step": 1, "scores": [{"benchmark": 5, "value": 1}]}, "/scores/0/benchmark", "expected text"),
        ({"step": 1, "pieces": {"weights": "maybe"}}, "/pieces/weights", "expected one of"),
        ({"step": 1, "data_version": 7}, "/data_version", "expected text, or an object"),
        ({"step": 1, "metrics": {"": 1}}, "/metrics/", "at least 1 character"),
        ({"step": 1, "metrics": {"a": "x"}}, "/metrics/a", "expected a number"),
        ({"step": 1, "data_version": {"mix": {}}}, "/data_version/name", "required"),
        ({"step": True}, "/step", "expected a whole number"),
        ({"step": -1}, "/step", "expected 0 or more"),
        ({"step": 2**63}, "/step", "9223372036854775807"),
        ({"step": 1, "tags": []}, "/tags", "expected an object"),
        ({"step": 1, "colour": 1}, "/colour", "unknown field"),
        ({"step": 1, "a/b~c": 1}, "/a~1b~0c", "unknown field"),
        ({"step": 1, "scores": [SCORE, {**SCORE, "extra": 1}]}, "/scores/1/extra", "unknown field"),
    ],
)
def test_a_pointer_leads_through_what_was_sent(body: dict[str, Any], pointer: str, message: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        validate(CHECKPOINT, body)
    found = {error.pointer: error.message for error in refused.value.errors}
    assert message in found[pointer], found
    assert not any(mark in str(found) for mark in ("list[", "function-", "literal[", "Model", "instance of"))


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ({"pieces": {"weight": "present"}}, "/pieces/weight", "unknown field; the nearest: weights"),
        ({"pieces": {"weights": {"state": "present", "evidenc": "x"}}}, "/pieces/weights/evidenc", "nearest: evidence"),
        ({"scores": [SCORE, {**SCORE, "n_sample": 1}]}, "/scores/1/n_sample", "nearest: n_samples"),
        ({"scores": [{**SCORE, "Metric": "acc"}]}, "/scores/0/Metric", "nearest: metric"),
        ({"replicas": [{"uri": "/x", "parts": [{"hosts": "a"}]}]}, "/replicas/0/parts/0/hosts", "nearest: host"),
        ({"code": {"branch": "main"}}, "/code/branch", "unknown field; expected commit, diff_digest, dirty, remote"),
        ({"colour": 1}, "/colour", "unknown field; the API's description names those that exist"),
        ({"Step": 1}, "/Step", "nearest: step"),
    ],
)
def test_an_unknown_field_is_told_what_was_probably_meant(body: dict[str, Any], pointer: str, message: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        validate(CHECKPOINT, {"step": 1, **body})
    found = {error.pointer: error.message for error in refused.value.errors}
    assert message in found[pointer], found


def test_a_pointer_into_a_batch_finds_its_fields_too() -> None:
    with pytest.raises(InvalidFields) as refused:
        validate(TypeAdapter(list[BatchItemIn]), [{"project": "p", "run": "r", "step": 1, "los": 2}])
    assert [(each.pointer, each.message) for each in refused.value.errors] == [
        ("/0/los", "unknown field; the nearest: loss")
    ]


def test_what_cannot_be_changed_is_not_called_unknown(client: TestClient, session: Session) -> None:
    checkpoint = to_text(make_checkpoint(session))
    answer = client.patch(f"/api/v1/checkpoints/{checkpoint}", json={"step": 5, "los": 1, "tags": {"phase": "sft"}})
    assert answer.status_code == 422
    assert {each["pointer"]: each["detail"] for each in answer.json()["errors"]} == {
        "/step": "cannot be changed once it is recorded; these can: loss, milestone, notes, tags",
        "/los": "unknown field; the nearest: loss",
    }


@pytest.mark.parametrize("patch", [AttemptPatch, CheckpointPatch, IncidentPatch, WatchPatch])
def test_every_patch_knows_what_it_leaves_alone(patch: type[Patch]) -> None:
    assert patch.fixed()
    assert not patch.fixed() & set(patch.model_fields)


@pytest.mark.parametrize(
    ("scores", "pointers"),
    [
        ([{"benchmark": "b", "value": 1, "stderr": -1}], ["/scores/0/stderr"]),
        ([SCORE, {"benchmark": "b"}], ["/scores/1/value"]),
        ({"b": "x"}, ["/scores/b"]),
        (7, ["/scores"]),
    ],
)
def test_of_several_shapes_only_the_one_that_was_meant_is_spoken_of(scores: Any, pointers: list[str]) -> None:
    with pytest.raises(InvalidFields) as refused:
        validate(CHECKPOINT, {"step": 1, "scores": scores})
    assert [error.pointer for error in refused.value.errors] == pointers


def test_a_key_of_any_length_is_named_and_not_repeated_without_end() -> None:
    with pytest.raises(InvalidFields) as refused:
        validate(CHECKPOINT, {"step": 1, "tags": {"k" * 100_000: "a"}})
    assert refused.value.errors[0].pointer.startswith("/tags/kkk")
    assert len(refused.value.message) < 400


def test_other_bodies_too() -> None:
    with pytest.raises(InvalidFields) as refused:
        validate(TypeAdapter(AttemptIn), {"resumed_from": {"step": "x"}})
    assert {error.pointer for error in refused.value.errors} <= {"/resumed_from", "/resumed_from/step"}
    with pytest.raises(InvalidFields) as refused:
        validate(TypeAdapter(ProjectIn), 5)
    assert [(error.pointer, error.message) for error in refused.value.errors] == [("", "expected an object")]


def test_every_pattern_of_the_description_has_words() -> None:
    described = create_app(Settings(Path(), "sqlite:///never-opened.db")).openapi()["components"]["schemas"]
    asked = {node["pattern"] for _, node in walk(described) if isinstance(node, dict) and _is_text(node)}
    ids = {pattern for pattern in asked if pattern.startswith("^[0-7]")}  # read by a reader of its own
    assert len(asked) > 5
    assert asked - ids <= PATTERNS.keys()


def _is_text(node: dict[str, Any]) -> bool:
    return node.get("type") == "string" and isinstance(node.get("pattern"), str)
