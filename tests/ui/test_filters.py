"""What numbers look like to a person."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui import filters

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.6123, "0.6123"),
        (0.30000000000000004, "0.3"),
        (3e-05, "3e−5"),
        (6.7e8, "6.7e8"),
        (143_000, "143\u202f000"),
        (-4.25, "−4.25"),
        (0, "0"),
        (None, "–"),
    ],
)
def test_numbers_keep_four_significant_digits(value: float | None, text: str) -> None:
    assert filters.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("NaN", "NaN"), ("Infinity", "∞"), ("-Infinity", "−∞"), (float("nan"), "NaN"), (float("inf"), "∞")],
)
@pytest.mark.parametrize("show", [filters.number, filters.score, filters.percent, filters.duration, filters.in_points])
def test_non_finite_numbers_are_named_by_every_filter(show, value: float | str, text: str) -> None:  # type: ignore[no-untyped-def]
    assert show(value).removeprefix("+") == text


def test_a_score_is_rounded_by_its_error() -> None:
    assert filters.score(0.58043, 0.00687) == "0.5804 ± 0.0069"
    assert filters.score(0.612, 0.0134) == "0.612 ± 0.013"
    assert filters.score(0.612) == "0.612"
    assert filters.score("NaN", 0.01) == "NaN"


def test_missing_is_a_dash_and_never_zero() -> None:
    shown = [
        show(None)
        for show in (
            *(filters.number, filters.score, filters.size, filters.count, filters.duration),
            *(filters.percent, filters.grouped, filters.ordinal, filters.delta, filters.absolute),
        )
    ]
    assert set(shown) == {"–"}


def test_points_carry_sign_and_error() -> None:
    assert filters.in_points(-0.041, 0.012) == "−4.1 ± 1.2 points"
    assert filters.in_points(0.003) == "+0.3 points"
    assert filters.in_points(-0.041, 0.012, signed=False) == "4.1 ± 1.2 points"
    assert filters.in_points(-0.00001) == "0.0 points"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.45, "450 ms"),
        (12.34, "12.3 s"),
        (59.97, "1 min"),
        (1220.8, "20 min 21 s"),
        (3599.7, "1 h"),
        (3900, "1 h 5 min"),
        (86_399.9, "1 d"),
        (273_600, "3 d 4 h"),
        (0, "0 s"),
        (-90, "−1 min 30 s"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert filters.duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (14_300_000_000, "14.3 GB"), (5.67e12, "5.67 TB")]
)
def test_sizes_are_decimal(amount: int, text: str) -> None:
    assert filters.size(amount) == text


def test_counts_as_tokens_and_parameters_are_spoken_of() -> None:
    assert filters.count(1_439_795_200) == "1.44 B"
    assert filters.count(299_892_736_000) == "300 B"
    assert filters.count(70_426_624) == "70.4 M"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(minutes=12), "12 min ago"),
        (timedelta(days=3, hours=4), "3 d ago"),
        (timedelta(seconds=2), "just now"),
        (timedelta(minutes=-5), "in 5 min"),
    ],
)
def test_times_are_relative_in_one_unit(before: timedelta, text: str) -> None:
    assert filters.ago(NOW - before, NOW) == text


def test_absolute_times_are_utc_and_say_so() -> None:
    assert filters.absolute(NOW) == "2026-12-01 12:00:00 UTC"
    assert filters.machine_time(NOW) == "2026-12-01T12:00:00Z"


@pytest.mark.parametrize(
    ("value", "text"), [(0.93, "93rd"), (0.11, "11th"), (0.12, "12th"), (0.01, "1st"), (0.42, "42nd"), (1, "100th")]
)
def test_percentiles_are_ordinals(value: float, text: str) -> None:
    assert filters.ordinal(value) == text


@given(st.text(max_size=300), st.integers(min_value=4, max_value=80))
def test_a_shortened_name_keeps_both_ends_and_fits(name: str, length: int) -> None:
    short = filters.middle(name, length)
    assert len(short) <= max(length, len(name) if len(name) <= length else length)
    if len(name) > length:
        head, tail = short.split("…", 1) if "…" not in name else (short[:1], short[-1:])
        assert name.startswith(head)
        assert name.endswith(tail)


def test_names_that_would_be_cut_alike_are_cut_where_they_are_alike() -> None:
    start, end = "rw_original-open_lm_1b_swiglutorch-warm=5000", "cd=3e-05-bs=256-mult=1-seed=124-tokens=28795904000"
    runs = [f"{start}-lr={lr}-wd={wd}-{end}" for lr in ("0p003", "0p0003") for wd in ("0p033", "1")]
    assert len({filters.middle(name, 44) for name in runs}) == 1
    cut = filters.apart([*runs, "7b", "x" * 60], 44)
    assert [cut[name] for name in runs] == [
        "rw_original-open_lm_1b_sw…lr=0p003-wd=0p033…",
        "rw_original-open_lm_1b_swiglu…lr=0p003-wd=1…",
        "rw_original-open_lm_1b_s…lr=0p0003-wd=0p033…",
        "rw_original-open_lm_1b_swigl…lr=0p0003-wd=1…",
    ]
    assert (cut["7b"], cut["x" * 60]) == ("7b", filters.middle("x" * 60, 44))
    inside = [f"{'a' * 30}-{'b' * 60}{letter}{'c' * 60}" for letter in "xy"]
    assert filters.apart(inside, 44) == {name: name for name in inside}


@given(st.lists(st.text("ab-", max_size=30), unique=True, max_size=12), st.integers(3, 12))
def test_no_two_long_names_are_shown_alike(names: list[str], length: int) -> None:
    shown = filters.apart(names, length)
    cut = [shown[name] for name in names]
    assert len(set(cut)) == len(names)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_gives_back_every_digit(value: float) -> None:
    assert float(filters.exact(value)) == value


@given(st.floats())
def test_no_number_breaks_a_page(value: float) -> None:
    for show in (filters.number, filters.score, filters.delta, filters.percent, filters.count, filters.duration):
        assert show(value)


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "> 99.9%"), (0.9996, "> 99.9%"), (0.382, "38.2%"), (0.0, "< 0.1%"), (None, "–")]
)
def test_a_probability_is_never_shown_as_certain(value: float | None, shown: str) -> None:
    assert filters.chance(value) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(8.38e-8, "< 0.1 ms"), (1e-4, "0.1 ms"), (0.000126, "0.126 ms"), (0.0125, "12.5 ms"), (0, "0 s")],
)
def test_a_time_below_what_a_clock_tells_has_no_digits(seconds: float, text: str) -> None:
    assert filters.duration(seconds) == text


@pytest.mark.parametrize(
    ("step", "text"), [(143_000, "143\u202f000"), (10**12, "1e12"), (2**63 - 1, "9.22e18"), (None, "–"), (0, "0")]
)
def test_a_step_in_a_column_stays_short(step: int | None, text: str) -> None:
    assert filters.step(step) == text
