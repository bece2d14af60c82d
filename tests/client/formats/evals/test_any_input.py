"""Whatever is handed to a reader, it answers or refuses; it never fails in another way."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cairn.formats import EvalFile, Refused, read_evals
from cairn.formats.evals import read_eval_folder
from cairn.formats.evals.shapes import text_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.formats.evals import samples

KEYS = ("results", "versions", "config", "acc", "acc_stderr", "task_name", "prompt_name", "num_fewshot", "model_args")
VALUES_SEEN = ("pretrained=a/checkpoint-7,revision=step5", "iteration", "limit", "2022-07-13-11-18-33", "t-1-2", "N/A")
WORDS = st.sampled_from((*KEYS, *VALUES_SEEN, "", "\0", "\ud800", "acc,none", "suite|task|3"))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)
DOCUMENTS = st.fixed_dictionaries(
    {"results": VALUES, "versions": st.dictionaries(WORDS, VALUES, max_size=3)}, optional={"config": VALUES}
)
SHAPES: dict[str, Any] = {
    "lm-eval-v04": samples.lm_eval_v04(),
    "lighteval": samples.LIGHTEVAL,
    "inspect-ai": samples.inspect_log(),
    "trainer-state": samples.TRAINER_STATE,
    "every-eval-ever": samples.EVERY_EVAL_EVER,
    "dclm": samples.DCLM,
    "lm-eval-samples": samples.sample(1, 1.0),
    "plain-table": [{"benchmark": "piqa", "value": 0.5, "checkpoint": "a@5", "stderr": 0.1, "version": 1}],
    "helm": {"spec": samples.HELM_SPEC, "stats": samples.HELM_STATS},
}


def answered(content: bytes, name: str) -> EvalFile | None:
    try:
        return read_evals(content, name=name)
    except Refused:
        return None


def check(file: EvalFile | None) -> None:
    """What was read can be sent, and stored, as it is."""
    if file is None:
        return
    assert file.scores
    for score in file.scores:
        json.dumps(score.to_wire(), allow_nan=False).encode()
        assert not text_fault(score.benchmark)
        texts = [score.metric, score.filter, score.version, score.harness, score.harness_version, score.evaluated_at]
        assert not any(text_fault(text) for text in texts if text)
        assert score.stderr is None or score.stderr >= 0
        assert not any(text_fault(text) for text in score.comparability.values() if isinstance(text, str))
        json.dumps(score.comparability, ensure_ascii=False).encode()
        assert score.place.step is None or 0 <= score.place.step < 2**63
        assert (score.n_samples or 0) >= 0
    assert not any(text_fault(item.item) for item in file.skipped)
    assert file.step is None or 0 <= file.step < 2**63


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_refused_in_words(content: bytes) -> None:
    assert answered(content, "any") is None


@given(st.sampled_from((b"PK\x03\x04", b"PK\x05\x06", b"PK\x01\x02", b"")), st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_archive_is_refused_in_words(sign: bytes, content: bytes) -> None:
    for data in (sign + content, samples.inspect_archive()[: len(content) * 5] + content):
        assert answered(data, "a.eval") is None


@given(VALUES | DOCUMENTS, st.text(max_size=12))
@settings(max_examples=250, deadline=None)
def test_any_document_gives_storable_scores_or_a_reason(document: Any, name: str) -> None:
    check(answered(json.dumps(document).encode(), name))


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from paths(child, (*path, key))


@pytest.mark.parametrize("shape", SHAPES)
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_known_shape_with_anything_in_one_place_is_read_or_refused(shape: str, data: st.DataObject) -> None:
    document = copy.deepcopy(SHAPES[shape])
    path = data.draw(st.sampled_from(list(paths(document))))
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    value = data.draw(VALUES)
    if isinstance(parent, dict) and data.draw(st.booleans()):
        parent[data.draw(WORDS | st.text(max_size=3))] = parent.pop(path[-1])
    else:
        parent[path[-1]] = value
    if shape == "helm":
        files = {name: json.dumps(document.get(name)).encode() for name in ("spec", "stats")}
        try:
            check(read_eval_folder(files, folder="a=b"))
        except Refused:
            return
    else:
        check(answered(json.dumps(document).encode(), "samples_task.jsonl"))


TABLES = (samples.OPENCOMPASS, samples.MARKDOWN, samples.PLAIN.decode())


@given(st.sampled_from(TABLES), st.integers(0, 900), st.integers(0, 30), st.text(max_size=8) | WORDS)
@settings(max_examples=300, deadline=None)
def test_a_table_with_anything_in_one_place_is_read_or_refused(table: str, at: int, cut: int, put: str) -> None:
    check(answered((table[:at] + put + table[at + cut :]).encode("utf-8", "replace"), "table"))
