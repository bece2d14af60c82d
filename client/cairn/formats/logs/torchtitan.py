"""Lines of torchtitan, with or without colours.

[titan] 2026-03-01 10:00:00,000 - root - INFO - step: 10  loss:  4.2031  grad_norm:  1.1  memory: 11.2GiB(20%)
"""

import re

from cairn.formats.logs.shapes import MAX_STEP, Point, known_name, number

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HEAD = re.compile(r"(?:^|\s)step:\s*(\d{1,19})\s")
_FIELD = re.compile(r"([A-Za-z_][\w/]*):\s*([-+]?(?:[\d,]*\.?\d+(?:[eE][-+]?\d+)?|nan|inf))(?=$|[\s%(]|[KMGT]i?B)")
_TRAINS = ("loss", "grad_norm", "lr")


def read_line(line: str) -> Point | None:
    """A line that begins with `step: N` and says a loss, a norm or a learning rate."""
    plain = _COLOUR.sub("", line)
    head = _HEAD.search(plain)
    if head is None or int(head[1]) > MAX_STEP:
        return None
    found = {known_name(name): number(text) for name, text in _FIELD.findall(plain[head.end() :])}
    values = {name: value for name, value in found.items() if value is not None}
    return Point(int(head[1]), values) if any(name in values for name in _TRAINS) else None
