"""Whatever a training script hands over becomes plain JSON, or is named by its type; nothing raises."""

import argparse
import dataclasses
import enum
import json
import math
from collections import OrderedDict, namedtuple
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cairn.recorder.cursors import any_cursor, cursor_kind, quick_cursor
from cairn.recorder.fields import data_version, score_records, tag_texts
from cairn.recorder.plain import MAX_NODES, Plain, TooMuch, number, whole


class Phase(enum.Enum):
    SFT = "sft"


@dataclasses.dataclass
class Settings:
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)


class OwnSettings:
    def __init__(self) -> None:
        self.lr, self._hidden = 0.1, 1


class Tensor:
    """As torch's, for what is asked of it here."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value

    def tolist(self) -> Any:
        return self.value

    def numel(self) -> int:
        return 1


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("no")


Point = namedtuple("Point", "x y")
CASES: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (7, 7),
    (1.5, 1.5),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
    (np.float32(0.5), 0.5),
    (np.float64("nan"), "NaN"),
    (np.int64(3), 3),
    (np.bool_(True), True),
    (np.arange(3), [0, 1, 2]),
    (Tensor(2.5), 2.5),
    (Path("/ckpt"), "/ckpt"),
    (Phase.SFT, "sft"),
    (Settings(), {"lr": 1e-3, "betas": [0.9, 0.95]}),
    (argparse.Namespace(a=1, b=None), {"a": 1, "b": None}),
    (SimpleNamespace(a=SimpleNamespace(b=1)), {"a": {"b": 1}}),
    (OwnSettings(), {"lr": 0.1}),
    (OrderedDict(a={1: 2}), {"a": {"1": 2}}),
    (Point(1, 2), {"x": 1, "y": 2}),
    ({"b", "a"}, ["a", "b"]),
    (datetime(2026, 11, 1, tzinfo=UTC), "2026-11-01 00:00:00+00:00"),
    (int, "builtins.int"),
    (np.dtype("float32"), "float32"),
    ("a\0b\ud800", "a␀b\\ud800"),
    (10**400, str(10**400)),
    ({Phase.SFT: 1}, {"sft": 1}),
]


@pytest.mark.parametrize(("given", "wanted"), CASES)
def test_a_value_has_a_plain_form(given: Any, wanted: Any) -> None:
    plain = Plain()
    assert plain.of(given) == wanted
    assert plain.left_out == []
    json.dumps(plain.of(given), allow_nan=False)


@pytest.mark.parametrize(
    "make",
    [
        object,
        Hostile,
        lambda: b"bytes",
        lambda: np.zeros(100_000),
        lambda: {"a": {"b": lambda: 1, "c": object()}},
    ],
)
def test_what_has_none_is_named_and_told(make: Any) -> None:
    plain = Plain()
    json.dumps(plain.of(make(), "config"), allow_nan=False)
    assert plain.left_out


def test_what_holds_itself_or_too_much_ends() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    deep: list[Any] = []
    for _ in range(1_000):
        deep = [deep]
    for value in (
        endless,
        deep,
        list(range(10 * MAX_NODES)),
        {str(each): each for each in range(10 * MAX_NODES)},
    ):
        plain = Plain()
        json.dumps(plain.of(value), allow_nan=False)
        assert plain.left_out
        assert "the rest of the whole" in plain.left_out or value in (endless, deep)
    with pytest.raises(TooMuch):
        Plain(10, strict=True).of(list(range(100)))


def test_of_a_config_no_more_is_kept_than_the_service_takes() -> None:
    """It refuses one of more than 20,000 paths whole, however few of them say anything."""
    many = {"x": 1, "n": {str(each): each for each in range(3 * MAX_NODES)}, "after": {"lr": 1}}
    plain = Plain()
    kept = plain.of(many, "config")
    assert kept["x"] == kept["n"]["1"] == 1
    assert "after" not in kept
    assert len(kept["n"]) < MAX_NODES
    assert plain.left_out == ["the rest of config.n", "the rest of config"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(1, 1), (np.float32(2), 2.0), (Tensor(3.5), 3.5), (True, None), ("3", None), (None, None), (object(), None)],
)
def test_a_number_is_read_from_any_library(given: Any, wanted: Any) -> None:
    assert number(given) == wanted


@pytest.mark.parametrize("given", [-1, 1.5, math.nan, "7", None, 2**63])
def test_what_is_no_step_is_none(given: Any) -> None:
    assert whole(given) is whole(Hostile()) is None
    assert (whole(np.int32(5)), whole(5.0), whole(Tensor(5))) == (5, 5, 5)


def test_scores_in_any_form_are_a_list_of_results() -> None:
    left: list[str] = []
    said = score_records(
        {"gsm8k.exact_match": np.float32(0.5), "piqa": {"value": 0.25, "stderr": 0.01}, "odd": "no"}, left.extend
    )
    assert said == [
        {"benchmark": "gsm8k", "metric": "exact_match", "value": 0.5},
        {"benchmark": "piqa", "value": 0.25, "stderr": 0.01},
    ]
    assert left == ["the score odd"]
    assert score_records([{"benchmark": "b", "value": math.nan, "stderr": math.nan}], left.extend) == [
        {"benchmark": "b", "value": "NaN"}
    ]


def test_a_source_that_is_named_by_its_address_loses_the_password() -> None:
    address, masked = "s3://ana:hunter2@store/web", "s3://***@store/web"
    assert data_version({address: 0.6, "token": 4_000})["mix"] == {masked: 0.6, "token": 4_000}
    assert data_version(address) == masked
    assert data_version({"name": "v3", "uri": address, "mix": {address: {"tokens": 9}}}) == {
        "name": "v3",
        "uri": masked,
        "mix": {masked: {"tokens": 9}},
    }


def test_a_mix_is_named_by_its_content() -> None:
    one, other = data_version({"web": 0.6, "code": 0.4}), data_version({"code": 0.4, "web": 0.6})
    assert one["name"] == other["name"]
    assert one["mix"] == {"web": 0.6, "code": 0.4}
    assert data_version("v3") == "v3"
    assert data_version({"name": "v3", "mix": {"web": 1}}) == {"name": "v3", "mix": {"web": 1}}
    assert tag_texts({"a": 1, "b": True, "c": "x"}) == {"a": "1", "b": "true", "c": "x"}


def test_a_cursor_is_whole_digested_or_left_to_the_background() -> None:
    assert quick_cursor({"at": [1, 2]}) == {"data_cursor": {"at": [1, 2]}, "cursor_kind": "state"}
    assert quick_cursor(list(range(5_000))) is None
    assert quick_cursor({"file": object()}) is None
    whole_, why = any_cursor(list(range(5_000)))
    assert (len(whole_["data_cursor"]), why) == (5_000, "")
    large, why = any_cursor({"at": list(range(50_000))}, "/ckpt/loader.json")
    assert large["data_cursor"]["digest"] == any_cursor({"at": list(range(50_000))})[0]["data_cursor"]["digest"]
    assert "more than 65,536" in why
    token = {"state": "x" * 60_000}  # as an iterator's state may come: text, whole up to the limit and never cut
    assert quick_cursor(token) is None
    assert any_cursor(token) == ({"data_cursor": token, "cursor_kind": "state"}, "")
    assert "digest" in any_cursor({"state": ["x" * 10_000] * 7})[0]["data_cursor"]
    assert "is no JSON" in any_cursor({"state": "a\0b"})[1]
    assert "is no JSON" in any_cursor({1: "a", "1": "b"})[1]
    odd, why = any_cursor({"generator": (each for each in ())})
    assert odd["data_cursor"] == {"type": "builtins.dict"}
    assert "is no JSON" in why
    assert [cursor_kind(each) for each in (5, {"samples": 5}, {"a": [1]}, "x")] == [
        "counter",
        "counter",
        "state",
        "state",
    ]
