"""JSON read strictly: what cannot be kept faithfully is refused with its place; the rest comes back as it was sent."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import strict_json
from registry.strict_json import MAX_DEPTH, Decimal, MalformedJson, canonical, depth_of, loads, pack, unpack, walk

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
TREES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)


@given(TREES)
def test_what_json_can_say_is_read_as_the_standard_reader_reads_it(value: Any) -> None:
    raw = json.dumps(value, ensure_ascii=False).encode()
    assert loads(raw) == json.loads(raw)
    assert loads(json.dumps(value).encode()) == json.loads(raw)  # with everything escaped


@given(TREES)
def test_the_canonical_text_is_json_of_the_same_value_and_does_not_change_when_read_again(value: Any) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(loads(text.encode())) == text
    assert canonical(unpack(pack(text))) == text


@given(st.dictionaries(TEXT, PLAIN, max_size=6))
def test_the_order_of_keys_does_not_count(value: dict[str, Any]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@pytest.mark.parametrize(
    "text", ["1.50", "1e2", "1E+2", "0.10", "1e-7", "-0.0", "3.0", "1.7976931348623157e308", "1e400"]
)
def test_a_number_keeps_the_text_it_was_sent_as(text: str) -> None:
    if text == "1e400":
        with pytest.raises(MalformedJson):
            loads(text.encode())
        return
    number = loads(text.encode())
    assert isinstance(number, float)
    assert number == float(text)
    assert canonical({"a": [number]}) == f'{{"a":[{text}]}}'


def test_a_number_written_otherwise_is_a_float_like_any_other() -> None:
    number = loads(b"1.50")
    assert isinstance(number, Decimal)
    assert (number + 1, number == 1.5, hash(number) == hash(1.5)) == (2.5, True, True)


def test_whole_numbers_of_any_size_are_exact_up_to_a_limit() -> None:
    assert loads(b"1" * 400) == int("1" * 400)
    with pytest.raises(MalformedJson, match="401 digits"):
        loads(b"1" * 401)


@pytest.mark.parametrize(
    ("raw", "pointer", "said"),
    [
        (b'{"a": NaN}', "/a", '"NaN"'),
        (b'{"a": [0, Infinity]}', "/a/1", '"Infinity"'),
        (b'{"a": -Infinity}', "/a", '"-Infinity"'),
        (b"NaN", "", '"NaN"'),
        (b'{"a": 1e999}', "/a", "64-bit float"),
        (b'{"a": -1e999}', "/a", "64-bit float"),
        (b'{"a": 1, "b": 2, "a": 3}', "/a", "occurs twice"),
        (b'{"x": {"a": 1, "a": 1}}', "/x/a", "occurs twice"),
        (b'{"a": {"b": 1, "b": NaN}}', "/a/b", "occurs twice"),
        (b'{"a": "\\ud800"}', "/a", "surrogate"),
        (b'{"a": ["x\\udfffy"]}', "/a/0", "surrogate"),
        (b'{"a": "\\ud83d x \\ude00"}', "/a", "surrogate"),
        (b'{"\\ud800": 1}', "", "\\ud800"),
        (b'{"a/b~c": NaN}', "/a~1b~0c", '"NaN"'),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_place(raw: bytes, pointer: str, said: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        loads(raw)
    assert refused.value.errors[0].pointer == pointer
    assert said in refused.value.errors[0].message


def test_every_refused_value_is_named() -> None:
    with pytest.raises(MalformedJson) as refused:
        loads(b'{"a": NaN, "b": [1e999], "c": "\\ud800"}')
    assert [error.pointer for error in refused.value.errors] == ["/a", "/b/0", "/c"]


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert loads(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"
    assert loads(b'"a\\u0000b"') == "a\0b"
    assert canonical("a\0b") == '"a\\u0000b"'


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "line 1, column 1"),
        (b"{", "line 1, column 2"),
        (b'{"a": 1,}', "line 1, column"),
        (b'{\n"a": tru}', "line 2, column 6"),
        (b"{'a': 1}", "line 1, column 2"),
        (b"1 2", "line 1, column 3"),
        (b'"\x01"', "line 1, column 2"),
        (b"\xff", "byte 0"),
        (b'"\xc3"', "byte 1"),
        (b"\xef\xbb\xbf{}", "byte order mark (BOM); send it without."),
        (b'{"a": "b\nc"}', "a control character stands in a text; escape it"),
        (b'"\\x"', "line 1, column 2: a backslash begins no escape here"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
    ],
)
def test_a_syntax_error_says_where_it_is(raw: bytes, said: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        loads(raw)
    assert said.lower() in refused.value.message.lower()
    assert len(refused.value.message) < 300


DEEP = b'{"a": ' * 5_000 + b"1" + b"}" * 5_000


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"step": 1, "config": DEEP}', "/config"),
        (b'{"tags": {"x": [1, 2]}, "no\\"te{": "}[,:", "a/b": [[], DEEP]}', "/a~1b"),
        (b'[{"run": "r"}, {"run": "r", "config": {"x": [DEEP]}}]', "/1/config"),
        (b"[" * 5_000, ""),
        (DEEP, "/a"),
    ],
    ids=["config", "odd keys", "batch", "lists alone", "root"],
)
def test_what_is_nested_without_end_is_named_by_its_field(raw: bytes, pointer: str) -> None:
    raw = raw.replace(b"DEEP", DEEP)
    with pytest.raises(MalformedJson) as refused:
        loads(raw)
    (error,) = refused.value.errors
    assert (error.pointer, error.message) == (pointer, f"nested deeper than the {MAX_DEPTH} levels that are accepted")
    position = refused.value.extras["position"]
    opened = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", raw[: position + 1])
    assert sum(opened.count(each) for each in (b"{", b"[")) - sum(opened.count(each) for each in (b"}", b"]")) == 65


@pytest.mark.parametrize("depth", [1, MAX_DEPTH, MAX_DEPTH + 1, 500])
def test_depth_is_counted_without_recursion(depth: int) -> None:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    assert depth_of(value) == depth
    assert len(list(walk(value))) == depth + 1


@pytest.mark.parametrize(("number", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_non_finite_numbers_are_written_as_their_names(number: float, name: str) -> None:
    assert canonical([number]) == f'["{name}"]'
    assert strict_json.special_name(number) == name


@given(TREES, TREES)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    same = canonical(one) == canonical(other)
    assert (strict_json.digest(canonical(one)) == strict_json.digest(canonical(other))) == same
    if one != other:
        assert not same
