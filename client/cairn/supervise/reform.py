"""Elastic jobs: torchrun forms its workers anew when hosts come, go or fail, and says so in its log."""

import re
from dataclasses import dataclass
from typing import Final

_BEGINS: Final = re.compile(r"Rendezvous complete for workers")
_FACTS: Final = re.compile(r"\b(restart_count|group_world_size|global_world_sizes)=\[?(\d+)")


@dataclass(frozen=True)
class Formation:
    """The workers as they stand: how often they were restarted, on how many agents, how many in all."""

    restart_count: int
    agents: int | None = None
    world_size: int | None = None


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
        found = Formation(facts.get("restart_count", 0), facts.get("group_world_size"), facts["global_world_sizes"])
        before, self.now = self.now, found
        return found if before is not None and found != before else None
