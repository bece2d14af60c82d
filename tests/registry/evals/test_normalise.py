"""One scale for all: larger is better, chance is 0."""

import math

import pytest

from registry.evals.catalogue import Benchmark
from registry.evals.normalise import bounds, orient, units_of
from registry.types import Direction


def benchmark(chance: float | None, scale: str = "fraction", direction: str = "higher") -> Benchmark:
    return Benchmark("task", "math", (("acc", ""),), chance, scale, Direction(direction), None, "task")


@pytest.mark.parametrize(
    ("value", "chance", "expected"), [(0.55, 0.25, 0.40), (0.20, 0.25, -0.0667), (0.43, 0.10, 0.3667)]
)
def test_chance_is_taken_out_and_nothing_is_clipped(value: float, chance: float, expected: float) -> None:
    assert orient(value, None, benchmark(chance), "acc").value == pytest.approx(expected, abs=5e-5)


def test_the_error_is_stretched_as_the_score_is() -> None:
    assert orient(0.55, 0.03, benchmark(0.25), "acc").stderr == pytest.approx(0.04)


def test_the_scale_comes_from_the_table_not_from_the_value() -> None:
    assert orient(0.9, None, benchmark(0.0, "percent"), "f1").value == pytest.approx(0.009)
    assert orient(62.0, 1.0, benchmark(0.0, "percent"), "f1").value == pytest.approx(0.62)
    assert orient(5.5, 0.9, benchmark(1.0, "ten"), "score").value == pytest.approx(0.5)
    assert orient(5.5, 0.9, benchmark(1.0, "ten"), "score").stderr == pytest.approx(0.1)


def test_lower_is_better_is_negated() -> None:
    asr = benchmark(0.0, direction="lower")
    assert orient(0.10, None, asr, "asr").value > orient(0.30, None, asr, "asr").value


@pytest.mark.parametrize(("value", "expected"), [(0.5, 1.0), (0.6, 0.8), (0.4, 0.8), (1.0, 0.0)])
def test_a_target_is_best_hit_from_either_side(value: float, expected: float) -> None:
    target = benchmark(0.5, direction="target")
    assert orient(value, 0.01, target, "pct_stereotype").value == pytest.approx(expected)
    assert orient(value, 0.01, target, "pct_stereotype").stderr == pytest.approx(0.02)


def test_perplexity_compares_as_minus_its_logarithm() -> None:
    table = benchmark(None, "log", "lower")
    old, new = orient(8.00, 0.08, table, "perplexity"), orient(8.30, None, table, "perplexity")
    assert new.value - old.value == pytest.approx(-0.0368, abs=5e-5)
    assert old.stderr == pytest.approx(0.01)
    with pytest.raises(ValueError, match="no logarithm"):
        orient(0.0, None, table, "perplexity")


def test_bits_per_byte_are_a_logarithm_already() -> None:
    table = benchmark(None, "log", "lower")
    assert orient(0.75, 0.01, table, "bits_per_byte").value == -0.75
    assert math.isclose(orient(0.75, 0.01, table, "bits_per_byte").stderr or 0, 0.01)


def test_how_far_a_score_can_go_on_the_common_scale() -> None:
    assert bounds(benchmark(0.25)) == pytest.approx((-1 / 3, 1.0))
    assert bounds(benchmark(0.25, direction="lower")) == pytest.approx((-1.0, 1 / 3))
    assert bounds(benchmark(0.5, direction="target")) == (0.0, 1.0)
    assert bounds(benchmark(1.0, "ten")) == pytest.approx((-1 / 9, 1.0))
    assert bounds(benchmark(None, "log", "lower")) is None


def test_one_unit_of_the_common_scale_in_a_benchmarks_own() -> None:
    assert units_of(benchmark(0.25)) == 0.75
    assert units_of(benchmark(0.0, "percent")) == 100.0
    assert units_of(benchmark(0.5, direction="target")) == 0.5
    assert units_of(benchmark(None, "raw")) is None
