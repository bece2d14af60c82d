"""Every refused value is named by a pointer into what was sent, in words that need no library's manual."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from api.deps import validate
from api.field_errors import PATTERNS
from api.main import create_app
from api.problems import InvalidFields
from api.schemas.checkpoints import CheckpointIn
from api.schemas.runs import AttemptIn, ProjectIn
from registry.config import Settings
from registry.strict_json import walk

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
