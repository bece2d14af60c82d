"""Several conditions at once: the least of them decides."""

import numpy as np

from registry.search.contrast import on_front, order_by_contrast

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
MET = np.column_stack([PERCENTILES[:, 0] >= 0.8, PERCENTILES[:, 1] <= 0.2])
IDS = np.arange(1, 10, dtype=np.int64)


def test_where_nothing_is_strict_the_nearest_by_the_least_condition_lead() -> None:
    order = order_by_contrast(SCORES, MET, IDS)
    assert not order.strict
    assert NAMES[order.places[0]] == "E"
    assert order.score[NAMES.index("E")] == 0.75
    assert order.score[NAMES.index("A")] == 0.65
    assert SCORES[NAMES.index("A")].mean() > SCORES[NAMES.index("E")].mean()


def test_the_front_is_a_label() -> None:
    labels = on_front(SCORES, range(9))
    assert [name for name, label in zip(NAMES, labels, strict=True) if label] == ["A", "C", "E", "I"]


def test_strict_rows_are_the_whole_answer() -> None:
    scores = np.array([[0.9, 0.9], [0.85, 0.5], [0.81, 0.95]])
    met = np.array([[True, True], [True, False], [True, True]])
    order = order_by_contrast(scores, met, np.array([1, 2, 3]))
    assert order.strict
    assert order.places.tolist() == [0, 2]


def test_ties_fall_to_the_mean_then_to_the_id() -> None:
    scores = np.array([[0.8, 0.8], [0.8, 0.9], [0.8, 0.8]])
    order = order_by_contrast(scores, np.ones_like(scores, dtype=bool), np.array([9, 8, 7]))
    assert order.places.tolist() == [1, 2, 0]


def test_a_missing_score_is_no_result() -> None:
    scores = np.array([[0.9, np.nan], [0.3, 0.3]])
    order = order_by_contrast(scores, np.zeros_like(scores, dtype=bool), np.array([1, 2]))
    assert order.places.tolist() == [1]
    assert not order.strict
