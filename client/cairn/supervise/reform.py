"""Elastic jobs: torchrun forms its workers anew when hosts come, go or fail, and says so in its log."""

import re
from dataclasses import dataclass, field
from typing import Final

_BEGINS: Final = re.compile(r"Rendezvous complete for workers")
_FACTS: Final = re.compile(r"\b(restart_count|group_world_size|global_world_sizes)=\[?(\d+)")


@dataclass(frozen=True)
class Formation:
    """The workers as they stand: how often they were restarted, on how many agents, how many in all. `turn` counts
    those that were formed before with the same count of restarts."""

    restart_count: int
    agents: int | None = None
    world_size: int | None = None
    turn: int = field(default=0, compare=False)


class Formations:
    """Reads the lines of a log one by one; each rendezvous is told in several lines."""

    def __init__(self) -> None:
        self.now: Formation | None = None
        self._reading: dict[str, int] | None = None

    def read(self, line: str) -> Formation | None:
        """The new formation, where this line completes one that differs from that before; never the first."""
        if _BEGINS.search(line):
            self._reading = {}
        if self._reading is None:
            return None
        for name, value in _FACTS.findall(line):
            self._reading[name] = int(value)
        if "global_world_sizes" not in self._reading:
            return None
        facts, self._reading = self._reading, None
        count, before = facts.get("restart_count", 0), self.now
        turn = before.turn + 1 if before is not None and before.restart_count == count else 0
        found = Formation(count, facts.get("group_world_size"), facts["global_world_sizes"], turn)
        if found == before:
            return None
        self.now = found
        return found if before is not None else None
