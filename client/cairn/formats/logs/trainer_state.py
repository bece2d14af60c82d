"""The `log_history` of transformers' Trainer: what was logged at each step, evaluations apart."""

from collections.abc import Iterator
from typing import Any

from cairn.formats.logs.json_lines import point_of
from cairn.formats.logs.shapes import Point

_EVALUATIONS = ("eval_", "predict_", "train_")


def read_trainer_state(document: Any) -> Iterator[Point]:
    """Points in the order of the file. An evaluation is a score, and no curve of training."""
    history = document.get("log_history") if isinstance(document, dict) else None
    for entry in history if isinstance(history, list) else ():
        if not isinstance(entry, dict):
            continue
        kept = {name: value for name, value in entry.items() if not str(name).startswith(_EVALUATIONS)}
        point = point_of(kept)
        if point is not None and set(point.values) - {"epoch"}:
            yield point
