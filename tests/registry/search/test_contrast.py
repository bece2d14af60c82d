"""Several conditions at once: the least of them decides."""

import numpy as np

from registry.evals.percentiles import Floats, Integers
from registry.search.contrast import best_first, greatest, on_front

# (percentile in math, percentile in chat) of nine checkpoints, asked: strong math, weak chat at .80 and .20.
POINTS = {
    "A": (0.95, 0.35),
    "B": (0.60, 0.40),
    "C": (0.90, 0.30),
    "D": (0.70, 0.45),
    "E": (0.75, 0.25),
    "F": (0.30, 0.60),
    "G": (0.50, 0.28),
    "H": (0.20, 0.90),
    "I": (0.40, 0.10),
}
NAMES = list(POINTS)
PERCENTILES = np.array(list(POINTS.values()))
SCORES = np.column_stack([PERCENTILES[:, 0], 1 - PERCENTILES[:, 1]])


def by_contrast(scores: Floats, ids: Integers, most: int) -> list[int]:
    keys = [lambda rows: scores[rows].min(axis=1), lambda rows: scores[rows].mean(axis=1)]
    return best_first(np.arange(len(ids)), keys, ids, most).tolist()


def test_the_nearest_by_the_least_condition_lead() -> None:
    best, second = by_contrast(SCORES, np.arange(9), 2)
    assert (NAMES[best], NAMES[second]) == ("E", "C")
    assert SCORES[NAMES.index("E")].mean() < SCORES[NAMES.index("C")].mean()


def test_the_front_is_a_label() -> None:
    labels = on_front(SCORES, range(9))
    assert [name for name, label in zip(NAMES, labels, strict=True) if label] == ["A", "C", "E", "I"]


def test_equals_are_all_on_the_front() -> None:
    assert on_front(np.array([[0.9, 0.5], [0.9, 0.5], [0.9, 0.4]]), range(3)) == [True, True, False]


def test_ties_fall_to_the_mean_then_to_the_id() -> None:
    scores = np.array([[0.8, 0.8], [0.8, 0.9], [0.8, 0.8]])
    assert by_contrast(scores, np.array([9, 8, 7]), 3) == [1, 2, 0]
    assert by_contrast(scores, np.array([9, 8, 7]), 2) == [1, 2]


def test_a_key_is_asked_only_where_those_before_it_leave_a_choice() -> None:
    asked: list[list[int]] = []

    def first(rows: Integers) -> Floats:
        return np.array([3.0, 2.0, 2.0, 1.0])[rows]

    def second(rows: Integers) -> Floats:
        asked.append(rows.tolist())
        return np.array([0.0, 1.0, 5.0, 9.0])[rows]

    assert best_first(np.arange(4), [first, second], np.arange(4), 2).tolist() == [0, 2]
    assert asked[0] == [1, 2]


def test_the_greatest_of_many_is_that_of_all_of_them() -> None:
    chance = np.random.default_rng(1)
    for values in (chance.random(120_000), chance.integers(0, 3, 120_000), np.zeros(120_000), np.arange(120_000)):
        for number in (1, 20, 1_000, 60_000, 120_000):
            assert greatest(values, number) == np.sort(values)[-number]
