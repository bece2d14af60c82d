"""What a watcher has to tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """`kind`: recorded, pending, attempt, evals, curves, gone, elsewhere, problem, away. `facts` are for programs."""

    kind: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        return {"event": self.kind, "text": self.text, **self.facts}
