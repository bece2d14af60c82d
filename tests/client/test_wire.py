"""Values on their way out and back."""

import copy
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import cairn
import numpy
import pytest
from cairn import wire
from cairn.numbers import Written, number_from_wire


def test_non_finite_numbers_travel_as_strings_at_any_depth() -> None:
    sent = wire.encode({"loss": math.nan, "tags": [{"deep": (math.inf, -math.inf, 1.5)}]})
    assert sent == b'{"loss":"NaN","tags":[{"deep":["Infinity","-Infinity",1.5]}]}'


def test_numbers_of_numpy_become_plain_ones() -> None:
    sent = wire.encode({"a": numpy.float32(0.5), "b": numpy.int64(3), "c": numpy.array([1.0, numpy.nan])})
    assert sent == b'{"a":0.5,"b":3,"c":[1.0,"NaN"]}'


def test_a_time_travels_in_utc_and_one_without_zone_does_not() -> None:
    berlin = timezone(timedelta(hours=1))
    assert wire.encode(datetime(2026, 11, 1, 1, 0, tzinfo=berlin)) == b'"2026-11-01T00:00:00Z"'
    with pytest.raises(cairn.Invalid, match=r"has no zone.*at /saved_at"):
        wire.encode({"saved_at": datetime(2026, 11, 1)})  # noqa: DTZ001


def test_what_cannot_be_sent_is_refused_with_its_place() -> None:
    @dataclass
    class Strange:
        pass

    with pytest.raises(cairn.Invalid, match=r"a Strange cannot be sent as JSON \(at /config/a~1b/0\)"):
        wire.encode({"config": {"a/b": [Strange()]}})
    with pytest.raises(cairn.Invalid, match="is no text"):
        wire.encode({1: 2})
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(cairn.Invalid, match="deep"):
        wire.encode(circle)


def test_paths_are_text() -> None:
    assert wire.encode({"uri": Path("/ckpt/1")}) == b'{"uri":"/ckpt/1"}'


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [("2026-11-01T00:00:00Z", 0), ("2026-11-01T00:00:00.5Z", 500_000), ("2026-11-01T00:00:00.123456789Z", 123_456)],
)
def test_times_are_read_back_aware(text: str, microsecond: int) -> None:
    assert wire.moment(text) == datetime(2026, 11, 1, 0, 0, 0, microsecond, tzinfo=UTC)


@pytest.mark.parametrize("value", ["2026-11-01T00:00:00", "yesterday", 5, None])
def test_what_is_no_time_with_zone_is_no_time(value: object) -> None:
    assert wire.moment(value) is None


def test_numbers_are_read_back_whatever_their_form() -> None:
    assert math.isnan(number_from_wire("NaN") or 0)
    assert number_from_wire("-Infinity") == -math.inf
    assert number_from_wire(0.1) == 0.1
    assert [number_from_wire(each) for each in ("0.1", True, None, [])] == [None] * 4


def test_numbers_of_a_file_travel_as_they_were_written() -> None:
    text = '{"lr":1.50,"wd":1e2,"eps":1E-08,"big":123456789012345678901234567890,"x":[-0.0,0.1]}'
    read = json.loads(text, parse_float=Written)
    assert wire.encode(read).decode() == text
    assert wire.encode(copy.deepcopy(read)).decode() == text
    assert read["lr"] == 1.5
    for wrong in ("NaN", "1.", "01", "1.5 ", "", "1,2", "0x1", "1_0.0", "٣.٠"):
        with pytest.raises(ValueError, match="is no number of JSON"):
            Written(wrong)


def test_what_is_written_is_what_pythons_own_encoder_writes() -> None:
    value = {'k"\n': [True, None, -3, 0.1, 1e300, "é\u2028\ud83d", {}, [], {"a": ()}], "": 10**40}
    assert wire.encode(value).decode() == json.dumps(value, separators=(",", ":"))
