"""Which standard error is believed, and how the choice is labelled."""

import math

import pytest

from registry.evals.catalogue import Benchmark
from registry.evals.standard_error import choose_standard_error, per_sample_error, wilson
from registry.types import Direction


def benchmark(scale: str = "fraction", n: int | None = None, chance: float | None = 0.0) -> Benchmark:
    return Benchmark("task", "math", (("acc", ""),), chance, scale, Direction.HIGHER, n, "task")


def test_a_published_error_of_zero_is_replaced_by_the_formula() -> None:
    found = choose_standard_error(0.856678, 0.0, 307, benchmark(), "exact_match")
    assert found is not None
    assert found.value == pytest.approx(0.020031, abs=5e-7)
    assert found.source == "formula"
    assert "published error 0" in found.note


def test_a_published_group_error_28_times_too_large_is_replaced() -> None:
    found = choose_standard_error(0.5855, 0.1186, None, benchmark(n=14042), "acc")
    assert found is not None
    assert found.value == pytest.approx(0.00416, abs=5e-6)
    assert found.source == "formula"
    assert "28.5 times" in found.note


def test_a_possible_published_error_is_used_as_it_is() -> None:
    found = choose_standard_error(0.5855, 0.0041, None, benchmark(n=14042), "acc")
    assert found is not None
    assert (found.value, found.source, found.note) == (0.0041, "published", "")


def test_percent_scales_keep_their_own_unit() -> None:
    found = choose_standard_error(60.0, None, 1319, benchmark("percent"), "exact_match")
    assert found is not None
    assert found.value == pytest.approx(100 * math.sqrt(0.24 / 1318))


def test_the_number_of_samples_of_the_result_overrides_the_table() -> None:
    of_result = choose_standard_error(0.5, None, 101, benchmark(n=1319), "acc")
    of_table = choose_standard_error(0.5, None, None, benchmark(n=1319), "acc")
    assert of_result is not None
    assert of_table is not None
    assert of_result.value == pytest.approx(0.05)
    assert of_table.value == pytest.approx(math.sqrt(0.25 / 1318))


def test_unknown_size_is_assumed_and_says_so() -> None:
    found = choose_standard_error(0.5, None, None, benchmark(), "acc")
    assert found is not None
    assert found.is_assumed
    assert "assumes 100" in found.note


def test_no_error_is_made_up_for_other_metrics() -> None:
    assert choose_standard_error(0.5, None, 1000, benchmark(), "f1") is None
    assert choose_standard_error(7.2, None, 80, benchmark("ten"), "score") is None
    assert choose_standard_error(8.0, 0.0, 5153, benchmark("log"), "perplexity") is None


def test_an_impossible_error_of_a_graded_metric_leaves_no_test() -> None:
    assert choose_standard_error(0.5, 0.1186, 14042, benchmark(), "f1") is None
    small = choose_standard_error(0.5, 0.001, 14042, benchmark(), "f1")
    assert small is not None
    assert small.source == "published"


def test_none_of_thirty_has_a_width() -> None:
    low, high = wilson(0, 30)
    assert (low, high) == pytest.approx((0, 0.1135), abs=5e-5)
    found = choose_standard_error(0.0, 0.0, 30, benchmark(), "exact_match")
    assert found is not None
    assert found.value == pytest.approx(0.1135 / 2 / 1.96, abs=5e-5)
    assert "Wilson" in found.note
    assert wilson(30, 30) == pytest.approx((1 - 0.1135, 1), abs=5e-5)


def test_samples_come_before_anything_published() -> None:
    found = choose_standard_error(0.5, 0.4, 4, benchmark(), "acc", samples=[1, 0, 1, 0])
    assert found is not None
    assert found.source == "per-sample"
    assert found.value == pytest.approx(math.sqrt(1 / 3 / 4))


def test_samples_of_one_passage_count_together() -> None:
    values = [1.0, 1.0, 0.0, 0.0]
    assert per_sample_error(values, ["a", "a", "b", "b"]) == pytest.approx(math.sqrt(2) / 4)
    assert per_sample_error(values, ["a", "b", "c", "d"]) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="two samples"):
        per_sample_error([1.0])
