"""MLflow's words in ours: typed parameters, nested configs, infinities, names that it refuses."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import strict_json
from registry.integrations.mlflow_words import (
    KEY_LIMIT,
    PARAM_LIMIT,
    config_of,
    metric_keys,
    model_name,
    moment,
    nested,
    number,
    typed,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1", 1), ("-7", -7), ("0.5", 0.5), ("true", True), ("False", False), ("None", None), ("null", None)),
        *(("[0.9, 0.95]", [0.9, 0.95]), ("(1, 2)", [1, 2]), ("{'a': 1}", {"a": 1}), ('{"a": [true]}', {"a": [True]})),
        *(("adamw", "adamw"), ("007", "007"), ("1_000", "1_000"), ("", ""), ("[1, ", "[1, "), ("0x1f", "0x1f")),
        *(("{1, 2}", "{1, 2}"), ("[b'x']", "[b'x']"), ("[__import__('os')]", "[__import__('os')]")),
        *(("1e999", "1e999"), ("9" * 70, "9" * 70), ("[" * 100 + "]" * 100, "[" * 100 + "]" * 100)),
    ],
)
def test_a_parameter_is_read_as_the_value_that_was_meant(text: str, value: object) -> None:
    assert typed(text) == value
    assert type(typed(text)) is type(value)


def test_a_number_keeps_how_it_was_written() -> None:
    assert strict_json.canonical({"lr": typed("1e-4"), "decay": typed("0.10")}) == '{"decay":0.10,"lr":1e-4}'
    assert math.isnan(typed("nan"))
    assert typed("inf") == math.inf


@given(st.text(max_size=80))
def test_any_parameter_becomes_something_that_can_be_kept(text: str) -> None:
    assert strict_json.canonical({"value": typed(text)})


def test_dotted_parameters_are_nested_where_no_part_is_a_value_of_its_own() -> None:
    flat = {"optimizer.lr": 1, "optimizer.betas": [1], "a": 1, "a.b": 2, "x..y": 3, ".z": 4, "plain": 5}
    assert nested(flat) == {"optimizer": {"lr": 1, "betas": [1]}, "a": 1, "a.b": 2, "x..y": 3, ".z": 4, "plain": 5}


def test_a_parameter_as_long_as_mlflow_keeps_stays_text_and_is_said_to_be_cut() -> None:
    config, doubts = config_of([{"key": "long", "value": "7" * PARAM_LIMIT}, {"key": "lr", "value": "0.1"}])
    assert config == {"long": "7" * PARAM_LIMIT, "lr": 0.1}
    assert [(each.item, "MLflow cuts" in each.reason) for each in doubts] == [("param long", True)]


def test_the_largest_float_is_read_as_infinity() -> None:
    assert number(1.7976931348623157e308) == math.inf
    assert number(-1.7976931348623157e308) == -math.inf
    assert number("NaN") != number("NaN")
    assert number(1.797e308) == 1.797e308
    assert (number(True), number("x"), number(None)) == (None, None, None)


def test_a_time_of_zero_is_none() -> None:
    assert moment(0) is None
    assert moment("x") is None
    assert moment(10**20) is None
    assert str(moment(1_700_000_000_000)) == "2023-11-14 22:13:20+00:00"


def test_names_that_mlflow_refuses_are_changed_and_never_meet() -> None:
    assert re.fullmatch(r"[^/:.%\"']+", model_name("7b/a:step=1.5%\"'"))
    names = ["acc,none", "acc_none", "acc|none", "fine/name", "/lead", "../up", "x" * 400, "x" * 401, "中文"]
    keys = metric_keys(names)
    assert keys["fine/name"] == "fine/name"
    assert keys["acc_none"] == "acc_none"
    assert len(set(keys.values())) == len(names)
    for key in keys.values():
        assert re.fullmatch(r"[A-Za-z0-9_\-. :/]+", key)
        assert len(key) <= KEY_LIMIT
        assert not key.startswith(("/", ".."))
