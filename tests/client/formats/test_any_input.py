"""Whatever is handed to a reader, it answers or refuses; it never fails in another way."""

import json
from typing import Any

from cairn.formats import EvalFile, Refused, read_evals
from hypothesis import given, settings
from hypothesis import strategies as st

KEYS = ("results", "versions", "config", "acc", "acc_stderr", "task_name", "prompt_name", "num_fewshot", "model_args")
VALUES_SEEN = ("pretrained=a/checkpoint-7,revision=step5", "iteration", "limit", "2022-07-13-11-18-33", "t-1-2", "N/A")
WORDS = st.sampled_from((*KEYS, *VALUES_SEEN, "", "\0"))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)
DOCUMENTS = st.fixed_dictionaries(
    {"results": VALUES, "versions": st.dictionaries(WORDS, VALUES, max_size=3)}, optional={"config": VALUES}
)


def answered(content: bytes, name: str) -> EvalFile | None:
    try:
        return read_evals(content, name=name)
    except Refused:
        return None


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_refused_in_words(content: bytes) -> None:
    assert answered(content, "any") is None


@given(VALUES | DOCUMENTS, st.text(max_size=12))
@settings(max_examples=500, deadline=None)
def test_any_document_gives_storable_scores_or_a_reason(document: Any, name: str) -> None:
    file = answered(json.dumps(document).encode(), name)
    if file is None:
        return
    assert file.scores
    for score in file.scores:
        json.dumps(score.to_wire(), allow_nan=False).encode()
        assert score.benchmark
        assert "\0" not in score.benchmark + score.metric
        assert score.stderr is None or score.stderr >= 0
    assert file.step is None or 0 <= file.step < 2**63
