"""Reading and printing filters: every tree has one text, every mistake one place."""

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.filters import syntax
from registry.filters.errors import InvalidFilter
from registry.filters.parse import MAX_DEPTH, MAX_LENGTH, MAX_TERMS, MAX_VALUES, read_filter, read_order
from registry.filters.print import order_to_text, to_text
from registry.types import INT64_MAX

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
WORDS = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=12)
KEYWORDS = st.sampled_from(["and", "OR", "Not", "in", "is", "between", "like", "ilike", "null", "NaN", "true", "desc"])
NAMES = st.one_of(WORDS, KEYWORDS, st.text(LETTERS, min_size=1, max_size=12))
FIELDS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: syntax.Field(tuple(names)))
TEXTS = st.one_of(st.text(LETTERS, max_size=20), st.sampled_from(["it's", '"', "''", "\\", "%_", "\n"]))
NUMBERS = st.one_of(
    st.integers(-INT64_MAX, INT64_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
)
LITERALS = st.one_of(NUMBERS, TEXTS, st.booleans()).map(syntax.Literal)
TERMS = st.one_of(
    st.builds(syntax.Flag, FIELDS),
    st.builds(syntax.Comparison, FIELDS, st.sampled_from(syntax.Operator), LITERALS),
    st.builds(syntax.Membership, FIELDS, st.lists(LITERALS, min_size=1, max_size=4).map(tuple), st.booleans()),
    st.builds(syntax.Between, FIELDS, LITERALS, LITERALS, st.booleans()),
    st.builds(syntax.Like, FIELDS, TEXTS.map(syntax.Literal), st.booleans(), st.booleans()),
    st.builds(syntax.IsNull, FIELDS, st.booleans()),
    st.builds(syntax.IsNan, FIELDS, st.booleans()),
)
TREES = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        inner.map(syntax.Not),
        st.lists(inner, min_size=2, max_size=3).map(syntax.conjunction),
        st.lists(inner, min_size=2, max_size=3).map(syntax.disjunction),
    ),
    max_leaves=12,
)


@given(TREES)
def test_printed_trees_are_read_back_as_they_were(tree: syntax.Node) -> None:
    text = to_text(tree)
    read = read_filter(text)
    assert read == tree
    assert to_text(read) == text  # 1, 1.0 and true are equal in Python, but not in a text


@given(st.lists(st.builds(syntax.OrderKey, FIELDS, st.booleans()), min_size=1, max_size=5))
def test_printed_orders_are_read_back_as_they_were(keys: list[syntax.OrderKey]) -> None:
    assert read_order(order_to_text(keys)) == tuple(keys)


PARTS = st.sampled_from(["(", ")", "and ", "not ", "step", ".", " = ", "1", "'x'", "`", "'", ",", " in ", " is ", " "])


@given(st.one_of(st.text(st.characters(), max_size=60), st.lists(PARTS, max_size=20).map("".join)))
def test_any_text_is_read_or_refused_with_a_place_inside_it(text: str) -> None:
    error = None
    try:
        read_filter(text)
    except InvalidFilter as refusal:
        error = refusal
    if error is not None:
        assert 0 <= error.extras["position"] <= len(text)
        assert error.extras["expected"]
        assert error.message.encode()  # no lone surrogate reaches the answer


def test_the_filter_of_the_contract_is_read() -> None:
    text = (
        "scores.gsm8k > 0.6 and (run.name like 'llama%' or tags.phase = 'sft') and step between 1000 and 50000 "
        "and saved_at >= '2026-11-01' and pieces.optimizer = 'present' and not superseded"
    )
    tree = read_filter(text)
    assert isinstance(tree, syntax.And)
    assert to_text(tree) == text
    assert tree.terms[-1] == syntax.Not(syntax.Flag(syntax.Field(("superseded",))))


def test_and_binds_closer_than_or_and_not_closest() -> None:
    assert read_filter("a or b and not c") == read_filter("(a) or (b and (not c))")
    assert read_filter("a or b and c") != read_filter("(a or b) and c")


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("A <> 1 AnD b IS NoT nUlL", "A != 1 and b is not null"),
        ('a = "it\'s ""so"""', "a = 'it''s \"so\"'"),
        ("tags.`two words` = 'x'", "tags.`two words` = 'x'"),
        ("tags.`a``b`.in is nan", "tags.`a``b`.in is nan"),
        ("`not` = 1", "`not` = 1"),
        ("`step` = 1", "step = 1"),
        ("a in (+1, .5, 5., 1E2, TRUE)", "a in (1, 0.5, 5.0, 100.0, true)"),
        ("((a)) and (b and (c))", "a and b and c"),
        ("a\n=\t007", "a = 7"),
        ("a = -0.0", "a = -0.0"),
    ],
)
def test_every_spelling_has_one_canonical_text(spelling: str, canonical: str) -> None:
    tree = read_filter(spelling)
    assert tree is not None
    assert to_text(tree) == canonical


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_filter_asks_nothing(text: str) -> None:
    assert read_filter(text) is None
    assert read_order(text) == ()


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("step >", 6, "a number"),
        ("step > ", 7, "a number"),
        ("step > and", 7, "a number"),
        ("and step = 1", 0, "a field name"),
        ("step = 1 step = 2", 9, "'and'"),
        ("(step = 1", 9, "')'"),
        ("step = 1)", 8, "the end"),
        ("step in (1, ", 12, "a number"),
        ("step in 1", 8, "'('"),
        ("step is 5", 8, "'null'"),
        ("step between 1 or 2", 15, "'and'"),
        ("name like 5", 10, "text in quotes"),
        ("scores. > 1", 8, "a name"),
        ("step = 1e", 7, "a number"),
        ("step = 0x10", 7, "a number"),
        ("step == 1", 6, "a number"),
        ("step # 1", 5, "a comparison (= != < <= > >=)"),
        ("a = 'open", 4, "a closing '"),
        ("a = `x`", 4, "text in quotes"),
        ("kind = archive", 7, "text in quotes"),
    ],
)
def test_a_mistake_is_shown_at_its_character(text: str, position: int, expected: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        read_filter(text)
    assert caught.value.extras["position"] == position
    listed = caught.value.extras["expected"]
    assert expected in listed
    assert not any(word.isupper() and len(word) > 1 for each in listed for word in each.split())  # no parser's terms


def test_the_message_shows_the_line_and_points_at_the_place() -> None:
    with pytest.raises(InvalidFilter) as caught:
        read_filter("step > 1 and\n  名字 = = 2")
    *_, line, caret = caught.value.message.split("\n")
    assert line == "    名字 = = 2"
    assert caret.index("^") == 4 + 2 * 2 + len(" = ")  # a Chinese character is two columns wide


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a = 1e999", 4),
        ("a = -1e999", 4),
        (f"a in (1, {2**63})", 9),
        ("a = " + "9" * 5000, 4),
        ("a = 'x\0'", 6),
        ("a = '\ud800'", 5),
        ("tags.`\udfff` = 'x'", 6),
    ],
)
def test_values_that_no_database_holds_are_refused(text: str, position: int) -> None:
    with pytest.raises(InvalidFilter) as caught:
        read_filter(text)
    assert caught.value.extras["position"] == position


@pytest.mark.parametrize(("text", "value"), [(str(2**63 - 1), 2**63 - 1), ("0" * 5000, 0), ("1e308", 1e308)])
def test_numbers_are_read_exactly(text: str, value: float) -> None:
    tree = read_filter(f"a = {text}")
    assert isinstance(tree, syntax.Comparison)
    assert tree.value.value == value
    assert type(tree.value.value) is type(value)


def test_a_text_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidFilter) as caught:
        read_filter("(" * (MAX_LENGTH + 1))
    assert caught.value.extras["position"] == MAX_LENGTH
    with pytest.raises(InvalidFilter):
        read_order("x" * (MAX_LENGTH + 1))


@pytest.mark.parametrize(
    "text",
    [
        "not " * (MAX_DEPTH + 1) + "a",
        "not " * 2400 + "a",
        "(a and (b or " * 60 + "c" + "))" * 60,
    ],
)
def test_nesting_beyond_the_limit_is_refused_and_never_a_crash(text: str) -> None:
    with pytest.raises(InvalidFilter, match="nested too deep"):
        read_filter(text)


def test_nesting_up_to_the_limit_and_idle_parentheses_are_read() -> None:
    assert read_filter("not " * MAX_DEPTH + "a") is not None
    assert read_filter("(" * 4000 + "a" + ")" * 4000) == read_filter("a")


def test_terms_and_lists_have_limits() -> None:
    assert read_filter(" or ".join(["a"] * MAX_TERMS)) is not None
    with pytest.raises(InvalidFilter, match="too many terms"):
        read_filter(" or ".join(["a"] * (MAX_TERMS + 1)))
    assert read_filter(f"a in ({', '.join(['1'] * MAX_VALUES)})") is not None
    with pytest.raises(InvalidFilter, match="too long") as caught:
        read_filter(f"a in ({','.join(['1'] * (MAX_VALUES + 1))})")
    assert caught.value.extras["position"] == len("a in (") + 2 * MAX_VALUES


def test_an_order_has_directions_and_a_limit() -> None:
    keys = read_order("scores.gsm8k desc, step ASC, desc")
    assert [(key.field.segments, key.descending) for key in keys] == [
        (("scores", "gsm8k"), True),
        (("step",), False),
        (("desc",), False),
    ]
    with pytest.raises(InvalidFilter):
        read_order(", ".join(["step"] * 9))


@pytest.mark.parametrize(("text", "position"), [("step,", 5), ("step desc asc", 10), ("step foo", 5), ("step > 1", 5)])
def test_a_mistake_in_an_order_is_shown_at_its_character(text: str, position: int) -> None:
    with pytest.raises(InvalidFilter) as caught:
        read_order(text)
    assert caught.value.extras["position"] == position
    assert "'and'" not in caught.value.extras["expected"]


def test_no_literal_is_ever_non_finite() -> None:
    for text in ("1.7976931348623157e308", "1e-400", "0.1"):
        tree = read_filter(f"a = {text}")
        assert isinstance(tree, syntax.Comparison)
        assert math.isfinite(float(tree.value.value))
