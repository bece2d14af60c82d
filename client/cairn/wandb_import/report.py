"""What came of importing one file."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Skipped:
    """Something that was left out, and why."""

    item: str
    reason: str


@dataclass
class FileReport:
    """`unchanged`: the file had ended and was imported whole before. `known` counts checkpoints that were recorded."""

    file: str
    run: str = ""
    run_id: str = ""
    attempt: int | None = None
    state: str = ""
    state_reason: str = ""
    unchanged: bool = False
    checkpoints: int = 0
    known: int = 0
    scores: int = 0
    points: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def skip(self, item: str, reason: str) -> None:
        self.skipped.append(Skipped(item, reason))

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "skipped": [vars(each) for each in self.skipped]}
