"""Readers of what trainings log: metrics by step, from a line of text, a `trainer_state.json`, a metric file of MLflow.

Names are as the log has them, save for those that a registration knows: `loss`, `lr`, `tokens_seen`.
"""

from collections.abc import Callable

from cairn.formats.logs import json_lines, megatron, torchtitan
from cairn.formats.logs.shapes import MAX_LINE, Point
from cairn.formats.logs.trainer_state import read_trainer_state

__all__ = ["MAX_LINE", "Point", "read_line", "read_trainer_state"]

# One line each, the most telling first.
_READERS: tuple[Callable[[str], Point | None], ...] = (megatron.read_line, torchtitan.read_line, json_lines.read_line)


def read_line(line: str) -> Point | None:
    """The metrics of one line of a training's log; None where it has none. Never raises."""
    if len(line) > MAX_LINE:
        return None
    for read in _READERS:
        found = read(line)
        if found is not None:
            return found
    return None
