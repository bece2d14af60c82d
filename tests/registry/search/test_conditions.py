"""The JSON form of conditions, and what it refuses with the place."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.filters.print import to_text
from registry.search.conditions import (
    COMPARISONS,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    InvalidConditions,
    read_conditions,
    to_json,
)

fractions = st.floats(0, 1)
finite = st.floats(allow_nan=False, allow_infinity=False, width=32).map(float)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
conditions = st.one_of(
    st.builds(CapabilityCondition, st.sampled_from(["math", "chat"]), st.sampled_from(["strong", "weak"]), fractions),
    st.builds(BenchmarkCondition, words, st.sampled_from(COMPARISONS), finite, st.none() | words, st.none() | words),
    st.builds(FieldCondition, st.just("step"), st.sampled_from(COMPARISONS), st.integers(0, 2**53)),
    st.builds(
        FieldCondition, st.just("run.name"), st.sampled_from(["=", "!="]), st.from_regex(r"[ -~]{0,20}", fullmatch=True)
    ),
)


@settings(deadline=None)  # the grammar is built on first use
@given(st.lists(conditions, min_size=1, max_size=10))
def test_conditions_survive_json(given_conditions: list[Condition]) -> None:
    sent = json.loads(json.dumps([to_json(condition) for condition in given_conditions]))
    assert list(read_conditions(sent)) == given_conditions


def test_a_threshold_that_is_left_out_is_the_usual_one() -> None:
    strong, weak = read_conditions(
        [{"capability": "math", "relation": "strong"}, {"capability": "对话", "relation": "weak"}]
    )
    assert strong == CapabilityCondition("math", "strong", 0.8)
    assert weak == CapabilityCondition("chat", "weak", 0.2)


def test_a_field_condition_is_a_term_of_the_filter_language() -> None:
    condition = FieldCondition("tags.phase", "=", "it's sft")
    assert to_text(condition.node()) == "tags.phase = 'it''s sft'"


@pytest.mark.parametrize(
    ("item", "pointer"),
    [
        ("strong math", "/conditions/0"),
        ({"relation": "strong"}, "/conditions/0"),
        ({"capability": "math", "benchmark": "gsm8k", "relation": "strong"}, "/conditions/0"),
        ({"capability": "maths-olympics", "relation": "strong"}, "/conditions/0/capability"),
        ({"capability": "math", "relation": ">="}, "/conditions/0/relation"),
        ({"capability": "math", "relation": "strong", "threshold": 80}, "/conditions/0/threshold"),
        ({"capability": "math", "relation": "strong", "threshold": True}, "/conditions/0/threshold"),
        ({"capability": "math", "relation": "strong", "treshold": 0.8}, "/conditions/0/treshold"),
        ({"benchmark": "gsm8k", "relation": "strong", "threshold": 0.8}, "/conditions/0/relation"),
        ({"benchmark": "gsm8k", "relation": ">"}, "/conditions/0/threshold"),
        ({"benchmark": "gsm8k", "relation": ">", "threshold": float("nan")}, "/conditions/0/threshold"),
        ({"benchmark": "gsm8k", "relation": ">", "threshold": "0.5"}, "/conditions/0/threshold"),
        ({"benchmark": 5, "relation": ">", "threshold": 0.5}, "/conditions/0/benchmark"),
        ({"benchmark": "x" * 300, "relation": ">", "threshold": 0.5}, "/conditions/0/benchmark"),
        ({"field": "stepp", "relation": "<", "threshold": 5}, "/conditions/0/field"),
        ({"field": "step", "relation": "<", "threshold": "many"}, "/conditions/0/threshold"),
        ({"benchmark": "a\0b", "relation": ">", "threshold": 0.5}, "/conditions/0/benchmark"),
        ({"benchmark": "a", "metric": "\ud800", "relation": ">", "threshold": 0.5}, "/conditions/0/metric"),
        ({"field": "run.name", "relation": "=", "threshold": "a\0b"}, "/conditions/0/threshold"),
        ({"field": "step", "relation": "<", "threshold": None}, "/conditions/0/threshold"),
        ({"field": "step < 5 or step", "relation": ">", "threshold": 5}, "/conditions/0/field"),
        ({"field": "not superseded and step", "relation": ">", "threshold": 5}, "/conditions/0/field"),
        ({"field": "scores.gsm8k", "relation": ">", "threshold": 0.5}, "/conditions/0/field"),
        ({"field": "run.name", "relation": "like", "threshold": "a%"}, "/conditions/0/relation"),
    ],
)
def test_a_condition_with_a_mistake_is_refused_with_its_place(item: Any, pointer: str) -> None:
    with pytest.raises(InvalidConditions) as refused:
        read_conditions([item])
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_every_wrong_condition_is_named() -> None:
    items = [{"capability": "math", "relation": "strong"}, {"capability": "x", "relation": "weak"}, 5]
    with pytest.raises(InvalidConditions) as refused:
        read_conditions(items)
    assert [error.pointer for error in refused.value.errors] == ["/conditions/1/capability", "/conditions/2"]


def test_no_condition_is_no_search() -> None:
    with pytest.raises(InvalidConditions, match="1 to 50 conditions"):
        read_conditions([])
