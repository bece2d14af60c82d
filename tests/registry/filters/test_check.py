"""Fields that do not exist and values that do not fit are refused at their character."""

import pytest

from registry.errors import Malformed, every_leaf
from registry.filters.check import parse_fields, parse_filter, parse_order_by
from registry.filters.errors import InvalidFilter


def refusal(text: str) -> InvalidFilter:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(text)
    return caught.value


def test_a_mistake_is_a_syntax_error_with_a_stable_code() -> None:
    assert InvalidFilter in every_leaf()
    assert issubclass(InvalidFilter, Malformed)
    error = refusal("stpe > 5")
    assert error.code == "invalid-filter"
    assert error.extras == {"position": 0, "expected": error.extras["expected"]}


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("stpe > 5", 0, "Did you mean step"),
        ("step = 1 and Saved_At > '2026-01-01'", 13, "saved_at"),
        ("scors.gsm8k > 1", 0, "scores"),
        ("owner = 'x'", 0, "run.owner"),
        ("gsm8k > 0.5", 0, "scores.<benchmark>"),
        ("run.nmae = 'x'", 4, "Did you mean name"),
        ("run = 'x'", 0, "run is a group"),
        ("tags = 'x'", 0, "tags.<name>"),
        ("scores > 1", 0, "scores.<benchmark>"),
        ("step.x = 5", 5, "one name too many"),
        ("metrics.grad.norm > 1", 13, "backticks"),
        ("scores.a.b.c.d > 1", 13, "one name too many"),
        ("layout.word_size = 8", 7, "world_size"),
    ],
)
def test_an_unknown_field_is_named_with_what_was_near(text: str, position: int, hint: str) -> None:
    error = refusal(text)
    assert error.extras["position"] == position
    assert hint in error.message


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("step = '5'", 7, "a whole number, not text"),
        ("loss > 'NaN'", 7, "is nan"),
        ("step = true", 7, "not true or false"),
        ("scores.gsm8k in (0.5, 'high')", 22, "a number, not text"),
        ("run.name = 5", 11, "text, not a number"),
        ("superseded = 1", 13, "true or false, not a number"),
        ("tags.phase > 1", 13, "text, not a number"),
        ("step between 1 and 'x'", 19, "a whole number, not text"),
        ("step like '1%'", 5, "'like' compares text"),
        ("kind ilike 'a%'", 5, "'like' compares text"),
        ("step is nan", 5, "never NaN"),
        ("step", 0, "no condition by itself"),
        ("not run.name", 8, "no condition by itself"),
        ("kind = 'lite'", 7, "Did you mean light"),
        ("pieces.optimizer = 'presnt'", 19, "Did you mean present"),
        ("resumability in ('exact', 'full')", 26, "'weights-only'"),
        ("kind > 'light'", 5, "has no order"),
        ("superseded < true", 11, "has no order"),
        ("replicas.host between 'a' and 'b'", 14, "any number of replicas.host"),
        ("id > '0000000000000'", 3, "has no order"),
        ("id = 'nope'", 5, "is no id"),
        ("saved_at >= 5", 12, "a time, not a number"),
        ("saved_at > '2026-11-01T10:00'", 11, "has no zone"),
        ("saved_at > 'yesterday'", 11, "is no ISO 8601 time"),
        ("saved_at > '2026-02-30'", 11, "no moment of the calendar"),
        ("saved_at > '2026-W01-1'", 11, "is no ISO 8601 time"),
        ("saved_at > '0001-01-01T00:00+23:00'", 11, "no moment of the calendar"),
        ("run.name like 'a\\'", 14, "a backslash that escapes nothing"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_at_its_place(text: str, position: int, said: str) -> None:
    error = refusal(text)
    assert error.extras["position"] == position
    assert said in error.message
    assert error.extras["expected"]


@pytest.mark.parametrize(
    "text",
    [
        "config.optimizer.lr = 1e-4 and config.optimizer.name = 'adamw' and config.flash = true",
        "saved_at >= '2026-11-01' and saved_at < '2026-11-01T10:00:00.5+08:00'",
        "scores.gsm8k.exact_match.`strict-match` > 0.5 or scores.arc-easy is nan",
        "run.tags.phase ilike '%SFT' and run.parameter_count > 1e9",
        "replicas.tier in ('shared', 'object') and replicas.host is null and replicas.uri not like 's3:%'",
        "superseded = false or milestone and not code.dirty",
        "name_with = 1".replace("name_with", "layout.tp"),
    ],
)
def test_fields_of_every_kind_are_accepted(text: str) -> None:
    assert parse_filter(text) is not None


def test_an_order_and_a_list_of_fields_name_fields_with_one_value() -> None:
    assert len(parse_order_by("scores.gsm8k desc, step")) == 2
    assert len(parse_fields("loss, tags.phase")) == 2
    for read in (parse_order_by, parse_fields):
        with pytest.raises(InvalidFilter, match=r"any number of replicas\.tier"):
            read("step, replicas.tier")
        with pytest.raises(InvalidFilter, match="unknown field"):
            read("step, stpe")
    with pytest.raises(InvalidFilter, match="no direction"):
        parse_fields("loss desc")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("loss = NaN", "NaN is asked for with 'is nan'."),
        ("step > 1 and loss != nan", "NaN is asked for with 'is nan'."),
        ("scores.gsm8k in (nan)", "NaN is asked for with 'is nan'."),
        ("loss = null", "What is missing is asked for with 'is null'."),
        ("capabilities.math > 80", "Did you mean 0.8?"),
    ],
)
def test_a_value_that_no_checkpoint_has_is_refused_with_how_to_ask(text: str, hint: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(text)
    assert hint in caught.value.message


@pytest.mark.parametrize("condition", ["> 1.5", "between 20 and 0.8", "= -1", "in (0.5, 90)", "< 101"])
def test_a_percentile_lies_between_0_and_1(condition: str) -> None:
    with pytest.raises(InvalidFilter, match=r"capabilities\.math is a percentile from 0 to 1, and never"):
        parse_filter(f"step > 5 and capabilities.math {condition}")
    for inside in ("> 0", "<= 1", "between 0.2 and 0.8", "= 0.5"):
        assert parse_filter(f"capabilities.math {inside}") is not None
