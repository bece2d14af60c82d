"""A JSON object a line with a step among its keys, as many trainers and loggers write their metrics."""

import json
from typing import Any

from cairn.formats.logs.shapes import MAX_NAME, MAX_STEP, Point, known_name

STEPS = ("step", "global_step", "iteration", "iter", "_step", "train/global_step", "trainer/global_step")


def read_line(line: str) -> Point | None:
    text = line.strip()
    if not text.startswith("{") or not text.endswith("}"):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return point_of(document)


def point_of(document: Any) -> Point | None:
    """The step and every figure beside it; a boolean is none."""
    if not isinstance(document, dict):
        return None
    step = next((whole for name in STEPS if (whole := _whole(document.get(name))) is not None), None)
    values = {
        known_name(name): float(value)
        for name, value in document.items()
        if name not in STEPS and len(name) <= MAX_NAME and isinstance(value, (int, float)) and _fits(value)
    }
    return Point(step, values) if step is not None and values else None


def _fits(value: Any) -> bool:
    """Not a boolean, nor a whole number beyond what a float holds."""
    return not isinstance(value, bool) and (isinstance(value, float) or abs(value) < 2**1000)


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) > MAX_STEP:
        return None
    return int(value) if value == int(value) and value >= 0 else None
