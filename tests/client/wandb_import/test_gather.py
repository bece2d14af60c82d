"""What is kept of a history: all that a plot shows, exactly what a checkpoint needs, in bounded memory."""

import math
import tracemalloc
from pathlib import Path

import pytest
from cairn.formats.wandb_offline.curves import MAX_CURVES, MAX_STRETCHES, Curve, Curves
from cairn.wandb_import import gather

from tests.client.formats.wandb_offline.written import Writing


def test_a_long_curve_is_thinned_and_keeps_spikes_ends_and_checkpoints() -> None:
    curve = Curve(kept_steps={77_777})
    for step in range(200_000):
        curve.add(step, {50_001: 99.0, 60_001: math.nan, 70_001: -99.0}.get(step, 1.0 / (step + 1)))
    steps, values = curve.points()
    found = dict(zip(steps, values, strict=True))
    assert steps == sorted(set(steps))
    assert len(steps) <= 5 * MAX_STRETCHES + 1
    assert (found[50_001], found[70_001], found[77_777]) == (99.0, -99.0, 1.0 / 77_778)
    assert math.isnan(found[60_001])
    assert (steps[0], steps[-1]) == (0, 199_999)


def test_a_short_curve_is_whole() -> None:
    few = Curve()
    for step in range(MAX_STRETCHES):
        few.add(step, float(step))
    assert few.points() == (list(range(MAX_STRETCHES)), [float(step) for step in range(MAX_STRETCHES)])


def test_the_last_value_of_a_step_counts_and_steps_that_go_back_are_counted() -> None:
    curve = Curve()
    for step, value in ((1, 1.0), (2, 2.0), (2, 3.0), (1, 9.0), (3, 4.0)):
        curve.add(step, value)
    assert curve.points() == ([1, 2, 3], [1.0, 3.0, 4.0])
    assert curve.backwards == 1


def test_of_too_many_curves_those_of_the_training_stay() -> None:
    curves = Curves()
    curves.add(1, {f"layer.{number}": 1.0 for number in range(MAX_CURVES + 50)})
    curves.add(2, {"train/loss": 0.5})
    names = [name for name, _ in curves.items()]
    assert len(names) == MAX_CURVES
    assert "train/loss" in names
    assert len(curves.left_out) == 51


def test_memory_does_not_grow_with_the_history(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    peaks = []
    for rows in (2_000, 10_000):
        writing = Writing(f"rows{rows}")
        for step in range(rows):
            writing.log(step, {"loss": 1.0 / (step + 1)})
        path = writing.save(tmp_path)
        tracemalloc.start()
        found = gather(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.last_step == rows - 1
    assert peaks[1] < peaks[0] + 1_000_000


def test_a_checkpoint_between_two_rows_takes_the_time_of_the_row_before_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    writing = Writing("between1")
    for step in (10, 20, 30):
        writing.log(step, {"loss": float(step)}, at=1_000.0 + step)
    for step in (20, 25):
        writing.artifact("m", aliases=[f"step_{step}"], digest=str(step))
    writing.exit()
    at_row, between = gather(writing.save(tmp_path)).saved
    assert (at_row.at, at_row.at_is_exact, at_row.values) == (1_020.0, True, {"loss": 20.0})
    assert (between.at, between.at_is_exact, between.values) == (1_020.0, False, {})
