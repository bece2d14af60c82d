"""Lines of Megatron-LM, Megatron-DeepSpeed and GPT-NeoX.

iteration    12695/  115311 | consumed samples:      9841584 | learning rate: 5.969E-05 | lm loss: 2.463556E+00 |
"""

import re

from cairn.formats.logs.shapes import MAX_STEP, Point, known_name, number

_HEAD = re.compile(r"\biteration\s+(\d{1,19})\s*/\s*\d+\s*\|")


def read_line(line: str) -> Point | None:
    """The fields between bars, each `name: figure`; what is no figure is left out."""
    head = _HEAD.search(line)
    if head is None or int(head[1]) > MAX_STEP:
        return None
    values: dict[str, float] = {}
    for part in line[head.end() :].split("|"):
        name, colon, text = part.rpartition(":")
        value = number(text) if colon else None
        if value is not None and name.strip():
            values.setdefault(known_name(name), value)
    return Point(int(head[1]), values) if values else None
