"""Cursors: opaque, bound to their query, and refused in any other form."""

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.paging import MAX_LENGTH, decode_cursor, encode_cursor, id_after, part_after, text_after
from registry.errors import Malformed
from registry.keyset import InvalidCursor

VALUES = st.lists(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
    ),
    max_size=5,
)


@given(VALUES, st.text(st.characters(), max_size=20))
def test_values_come_back_exactly_from_plain_letters(values: list[object], query: str) -> None:
    cursor = encode_cursor(values, query, "step", 7)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", cursor)
    assert decode_cursor(cursor, query, "step", 7) == values


@pytest.mark.parametrize("query", [("step > 2", "step", 7), ("step > 1", "", 7), ("step > 1", "step", 8), ()])
def test_a_cursor_of_another_filter_order_or_caller_is_refused(query: tuple[str | int, ...]) -> None:
    cursor = encode_cursor([1], "step > 1", "step", 7)
    with pytest.raises(InvalidCursor, match="another filter, order or caller"):
        decode_cursor(cursor, *query)


@pytest.mark.parametrize("values", [[], [1, 2], ["1"], [1.5], [None], [-1], [2**63]])
def test_a_list_of_ids_goes_on_after_an_id_and_nothing_else(values: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="does not belong to this list"):
        id_after(encode_cursor(values, "runs"), "runs")
    assert id_after(encode_cursor([7], "runs"), "runs") == 7
    assert id_after(None, "runs") is None


@pytest.mark.parametrize("values", [["a"], [None], [[]]])
def test_a_list_that_changes_goes_on_after_a_place_of_its_own_kind_and_nothing_else(values: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="does not belong to this list"):
        part_after([1, 2], 1, encode_cursor(values, "links"), lambda row: [row], "links")
    assert part_after([2, 1], 1, None, lambda row: [row], "links") == ([1], encode_cursor([1], "links"))
    assert part_after([3, 2], None, encode_cursor([1], "links"), lambda row: [row], "links") == ([2, 3], None)


@pytest.mark.parametrize("values", [[], ["a", "b"], [1], [None]])
def test_a_list_of_names_goes_on_after_a_name_and_nothing_else(values: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="does not belong to this list"):
        text_after(encode_cursor(values, "projects"), "projects")
    assert text_after(encode_cursor(["a"], "projects"), "projects") == "a"
    assert text_after(None, "projects") is None


def _packed(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "a",
        "=",
        "not base64!",
        "ÿÿÿÿ",
        "٣٣٣٣",
        _packed(5),
        _packed([]),
        _packed(["digest"]),
        _packed(["digest", "values"]),
        _packed([["digest"], []]),
        base64.urlsafe_b64encode(b"\xff\xfe").decode().rstrip("="),
        base64.urlsafe_b64encode(b"[" * 20_000).decode().rstrip("="),
        base64.urlsafe_b64encode(b'["d",[' + b"9" * 5000 + b"]]").decode().rstrip("="),
        "A" * (MAX_LENGTH + 1),
    ],
)
def test_a_damaged_cursor_is_refused_and_never_a_crash(cursor: str) -> None:
    with pytest.raises(InvalidCursor, match="damaged"):
        decode_cursor(cursor, "")


def test_a_refused_cursor_is_a_syntax_error_with_a_stable_code() -> None:
    assert InvalidCursor.code == "invalid-cursor"
    assert issubclass(InvalidCursor, Malformed)
