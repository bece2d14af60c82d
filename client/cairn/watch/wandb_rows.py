"""Rows of a W&B run's folder while it grows: read on from where the last look ended."""

import os
from collections.abc import Iterator

from cairn.formats.logs import Point
from cairn.formats.logs.shapes import MAX_NAME, known_name
from cairn.formats.refusals import Refused
from cairn.formats.wandb_offline import find_file, read_folder
from cairn.watch.tails import Tail

ROWS_A_LOOK = 50_000  # what is left comes with the next look


def is_wandb(path: str) -> bool:
    """Whether a place is a `.wandb` file, or a folder that holds one."""
    if os.path.isdir(path):
        return any(name.endswith(".wandb") for name in os.listdir(path))
    return path.endswith(".wandb")


def new_rows(tail: Tail) -> Iterator[Point]:
    """The rows since the last look, at the training's own steps; moves the tail on. Raises OSError."""
    try:
        file = find_file(tail.path)
        found = file.stat()
        identity = f"{found.st_dev}:{found.st_ino}"
        if identity != tail.file or found.st_size < tail.offset:
            tail.file, tail.offset = identity, 0
        run = read_folder(file, tail.offset, max_rows=ROWS_A_LOOK)
    except Refused as fault:
        raise OSError(str(fault)) from None
    axis = run.facts.axis
    for row in run.rows:
        step = row.step_on(axis)
        if step is not None:
            named = {known_name(name): value for name, value in row.values.items() if name != axis}
            yield Point(step, {name: value for name, value in named.items() if 0 < len(name) <= MAX_NAME})
    tail.offset = run.offset
