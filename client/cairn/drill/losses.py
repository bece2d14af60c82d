"""The losses that a command writes: JSON lines {"step": 41001, "loss": 1.75}, in a file or among its output.

A line may also hold `software` (name to version) or `layout` of what really ran.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairn.numbers import number_from_wire

MOST = 10_000


@dataclass
class Told:
    """What a command said of itself; of a step that it told twice, the last loss."""

    by_step: dict[int, float] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    layout: dict[str, int] = field(default_factory=dict)

    @property
    def losses(self) -> list[dict[str, Any]]:
        """In the order of steps, as they are sent."""
        return [{"step": step, "loss": self.by_step[step]} for step in sorted(self.by_step)[:MOST]]

    def take(self, line: str) -> bool:
        """Whether the line held a loss. Any other line is the command's own affair."""
        said = _object(line)
        for name, kind, kept in (("software", str, self.software), ("layout", int, self.layout)):
            if isinstance(said.get(name), dict):
                kept.update({key: value for key, value in said[name].items() if type(value) is kind})
        step, loss = said.get("step"), number_from_wire(said.get("loss"))
        if type(step) is not int or step < 0 or loss is None:
            return False
        self.by_step[step] = loss
        return True

    def take_file(self, path: Path) -> None:
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                self.take_all(file)
        except FileNotFoundError:
            pass  # losses may come on standard output alone

    def take_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.take(line)


def _object(line: str) -> dict[str, Any]:
    text = line.strip()
    if not text.startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
