"""What came of an import: counts, and what was left out and why, by reason; small enough to stand in a job's row."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from registry.integrations.shapes import Skipped

MAX_REASONS: Final = 100
EXAMPLES: Final = 5


@dataclass
class ImportReport:
    """`skipped`: reason to how often, and a few examples. `notes` such as runs joined to those that were here."""

    runs: int = 0
    runs_created: int = 0
    runs_unchanged: int = 0
    fields_changed: int = 0
    checkpoints_created: int = 0
    checkpoints_met: int = 0
    scores_recorded: int = 0
    points_recorded: int = 0
    skipped: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> "ImportReport":
        return cls(**(values or {}))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def skip(self, where: str, skipped: Iterable[Skipped]) -> None:
        for each in skipped:
            reason = each.reason if each.reason in self.skipped or len(self.skipped) < MAX_REASONS else "other reasons"
            entry = self.skipped.setdefault(reason[:300], {"count": 0, "examples": []})
            entry["count"] += 1
            if len(entry["examples"]) < EXAMPLES:
                entry["examples"].append(f"{where}: {each.item}"[:200] if where else each.item[:200])

    def note(self, text: str) -> None:
        if text and len(self.notes) < MAX_REASONS:
            self.notes.append(text[:300])
