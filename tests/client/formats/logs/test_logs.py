"""Metrics of training logs, line by line."""

import json
import math
from pathlib import Path

import pytest
from cairn.formats.logs import MAX_LINE, Point, read_line, read_trainer_state

MEGATRON = (
    "[default7]: iteration    12695/  115311 | consumed samples:      9841584 | consumed tokens:  20155564032 | "
    "elapsed time per iteration (s): 105.22 | learning rate: 5.969E-05 | lm loss: 2.463556E+00 | grad norm: 0.174 |"
)
SHARED = Path(__file__).parents[5] / "shared" / "data" / "logs" / "tr11_megatron_log_lines.txt"


def test_a_line_of_megatron() -> None:
    point = read_line(MEGATRON)
    assert point is not None
    assert point.step == 12695
    assert point.values["loss"] == 2.463556
    assert point.values["lr"] == 5.969e-05
    assert point.values["tokens_seen"] == 20155564032
    assert point.values["grad_norm"] == 0.174
    assert point.values["elapsed_time_per_iteration"] == 105.22


def test_a_loss_of_nan_is_a_value() -> None:
    point = read_line(" iteration 5/ 10 | lm loss: NaN | grad norm: inf |")
    assert point is not None
    assert math.isnan(point.values["loss"])
    assert point.values["grad_norm"] == math.inf


def test_a_line_of_torchtitan_with_colours() -> None:
    line = (
        "[titan] 2026-03-01 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  4.2031  "
        "\x1b[38;2;180;60;0mgrad_norm:  1.10  \x1b[33mmemory: 11.20GiB(20.15%)  \x1b[34mtps: 1,200  mfu: 31.50%\x1b[39m"
    )
    assert read_line(line) == Point(10, {"loss": 4.2031, "grad_norm": 1.1, "memory": 11.2, "tps": 1200.0, "mfu": 31.5})


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('{"step": 3, "train/loss": 2.5, "note": "x", "done": true}', Point(3, {"loss": 2.5})),
        ('{"_step": 7, "lr": 1e-4}', Point(7, {"lr": 1e-4})),
        ('{"global_step": 8.0, "loss": 1}', Point(8, {"loss": 1.0})),
    ],
)
def test_a_json_object_a_line(line: str, wanted: Point) -> None:
    assert read_line(line) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Epoch 3 begins",
        "iteration 5 of 10, loss 2.3",
        '{"loss": 2.5}',
        '{"step": -1, "loss": 2.5}',
        '{"step": true, "loss": 2.5}',
        '{"step": 1.5, "loss": 2.5}',
        '{"step": 1e400, "loss": 2.5}',
        '{"step": 99999999999999999999, "loss": 2.5}',
        '{"step": 1, "loss": "2.5"}',
        "iteration 99999999999999999999/ 1 | lm loss: 1 |",
        "[" * 60_000,
        '{"a":' * 10_000,
        "iteration 5/ 10 | lm loss: 1 |" + " " * MAX_LINE,
    ],
)
def test_what_is_no_line_of_metrics_is_passed_over(line: str) -> None:
    assert read_line(line) is None


def test_the_history_of_a_trainer_without_its_evaluations() -> None:
    history = [
        {"step": 10, "loss": 2.0, "learning_rate": 1e-4, "epoch": 0.1},
        {"step": 10, "eval_loss": 1.9, "eval_runtime": 3.0, "epoch": 0.1},
        "no entry",
        {"step": 20, "loss": float("nan")},
    ]
    points = list(read_trainer_state(json.loads(json.dumps({"log_history": history}))))
    assert [each.step for each in points] == [10, 20]
    assert points[0].values["lr"] == 1e-4
    assert math.isnan(points[1].values["loss"])


@pytest.mark.parametrize("document", [None, [], {}, {"log_history": 3}, {"log_history": [[]]}])
def test_what_is_no_state_of_a_trainer_has_no_points(document: object) -> None:
    assert list(read_trainer_state(document)) == []


@pytest.mark.skipif(not SHARED.exists(), reason="the published log lines are not there")
def test_published_lines_of_a_loss_spike_are_read() -> None:
    points = [point for line in SHARED.read_text().splitlines() if (point := read_line(line)) is not None]
    by_step = {each.step: each.values["loss"] for each in points}
    assert by_step[31219] == 5.098124
    assert by_step[31214] == 2.198845
