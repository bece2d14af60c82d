"""The arithmetic of the search, and how many evaluations it takes."""

import numpy as np
import pytest

from registry.provenance.bisect.posterior import (
    Seen,
    bad_probabilities,
    credible_set,
    gap_probabilities,
    items_for,
    next_ask,
)


@pytest.mark.parametrize(("drop", "items"), [(0.05, 960), (0.03, 2667)])
def test_items_are_sized_for_four_standard_errors(drop: float, items: int) -> None:
    assert items_for(drop, 0.15) == items


def test_before_anything_is_seen_the_middle_is_asked() -> None:
    gaps = gap_probabilities(64, 0.05, {})
    asked = next_ask(gaps, {}, range(65), 960, None)
    assert asked is not None
    assert (asked.point, asked.items, asked.probability_bad) == (32, 960, pytest.approx(0.5))


def test_only_what_can_be_restored_is_asked() -> None:
    asked = next_ask(gap_probabilities(64, 0.05, {}), {}, [3, 30, 50], 960, None)
    assert asked is not None
    assert asked.point == 30
    assert next_ask(gap_probabilities(64, 0.05, {}), {}, [], 960, None) is None


def test_an_undecided_point_is_asked_again_with_more_items_and_never_with_the_same() -> None:
    seen = {1: Seen(-0.025, 0.0125, 960)}
    gaps = gap_probabilities(2, 0.05, seen)
    asked = next_ask(gaps, seen, [1], 960, None)
    assert asked is not None
    assert (asked.point, asked.items) == (1, 1920)
    capped = next_ask(gaps, seen, [1], 960, 1319)
    assert capped is not None
    assert capped.items == 1319
    assert next_ask(gaps, seen, [1], 960, 960) is None  # the benchmark has no more
    stuck = {1: Seen(-0.025, 0.0125, 960, repeated=True)}
    assert next_ask(gaps, stuck, [1], 960, None) is None


def test_an_error_of_zero_does_not_break_the_search() -> None:
    gaps = gap_probabilities(4, 0.05, {2: Seen(0.0, 0.0, 10)})
    assert np.isfinite(gaps).all()
    assert bad_probabilities(gaps)[2] == pytest.approx(0.0, abs=1e-9)


def test_the_credible_set_is_the_shortest_stretch_that_holds_95_percent() -> None:
    assert credible_set(np.array([0.5, 0.02, 0.44, 0.04])) == [0, 1, 2]
    assert credible_set(np.array([0.97, 0.03])) == [0]
    assert credible_set(np.array([0.01, 0.02, 0.48, 0.48, 0.01])) == [2, 3]
    assert credible_set(np.array([0.5, 0.5])) == [0, 1]


def searched(separation: float, rounds: int = 400) -> tuple[float, float]:
    """(mean evaluations, share right) over random gaps of 64; an evaluation of n items is n/base times as exact."""
    random = np.random.default_rng(7)
    drop, base = 0.05, 960
    counts, right = [], 0
    for _ in range(rounds):
        true, seen, count = int(random.integers(64)), dict[int, Seen](), 0
        while True:
            gaps = gap_probabilities(64, drop, seen)
            asked = next_ask(gaps, seen, range(65), base, base * 8)
            if asked is None:
                break
            stderr = drop / separation / np.sqrt(asked.items / base)
            level = -drop if asked.point > true else 0.0
            seen[asked.point] = Seen(level + stderr * random.standard_normal(), stderr, asked.items)
            count += 1
        counts.append(count)
        right += int(np.argmax(gaps)) == true
    return float(np.mean(counts)), right / rounds


def test_64_gaps_take_no_more_than_the_published_13_evaluations_and_are_found_more_often() -> None:
    evaluations, right = searched(4.0)
    assert evaluations <= 13 + 2
    assert right >= 0.958
    assert searched(6.0)[0] <= 6.4 + 0.5


def test_evaluations_too_coarse_for_one_gap_leave_a_stretch_that_holds_it() -> None:
    """d' = 2, every point once and no more items to ask: published 64.5 % right, so the 95 % stretch is shown."""
    random = np.random.default_rng(11)
    held, named, sizes = 0, 0, []
    for _ in range(400):
        true, seen = int(random.integers(64)), dict[int, Seen]()
        while (asked := next_ask(gaps := gap_probabilities(64, 0.05, seen), seen, range(65), 960, 960)) is not None:
            level = -0.05 if asked.point > true else 0.0
            seen[asked.point] = Seen(level + 0.025 * random.standard_normal(), 0.025, 960)
        held += true in credible_set(gaps)
        named += int(np.argmax(gaps)) == true
        sizes.append(len(credible_set(gaps)))
    assert held / 400 >= 0.93
    assert 0.5 <= named / 400 <= 0.75
    assert np.median(sizes) <= 8
