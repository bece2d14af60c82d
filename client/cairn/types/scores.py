"""Results of evaluations, and what came of a result file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import MAPPING, MOMENT, NUMBER, TEXT, TEXTS, WHOLE, many
from cairn.types.base import Answer


@dataclass(frozen=True, kw_only=True)
class Score(Answer):
    """The result that counts now for a benchmark's metric. `comparability` is what else must be equal to compare."""

    benchmark: str = field(default="", metadata=TEXT)
    metric: str = field(default="", metadata=TEXT)
    filter: str = field(default="", metadata=TEXT)
    value: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    n_samples: int | None = field(default=None, metadata=WHOLE)
    n_shot: int | None = field(default=None, metadata=WHOLE)
    version: str | None = field(default=None, metadata=TEXT)
    harness: str | None = field(default=None, metadata=TEXT)
    harness_version: str | None = field(default=None, metadata=TEXT)
    evaluated_at: datetime | None = field(default=None, metadata=MOMENT)
    comparability: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class ScoreReport(Answer):
    """`recorded` counts the results that were new; an identical one adds nothing. `warnings`: what looks wrong."""

    received: int = field(default=0, metadata=WHOLE)
    recorded: int = field(default=0, metadata=WHOLE)
    warnings: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class SkippedItem(Answer):
    item: str = field(default="", metadata=TEXT)
    reason: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class ImportedFile(Answer):
    file: str = field(default="", metadata=TEXT)
    format: str | None = field(default=None, metadata=TEXT)
    imported: int = field(default=0, metadata=WHOLE)
    recorded: int = field(default=0, metadata=WHOLE)
    checkpoint_id: str | None = field(default=None, metadata=TEXT)
    notes: tuple[str, ...] = field(default=(), metadata=TEXTS)
    skipped: tuple[SkippedItem, ...] = field(default=(), metadata=many(SkippedItem))


@dataclass(frozen=True, kw_only=True)
class ImportReport(Answer):
    """`imported` counts scores, `recorded` those that were new; what was left out stands in `skipped`."""

    imported: int = field(metadata=WHOLE)
    recorded: int = field(default=0, metadata=WHOLE)
    format: str | None = field(default=None, metadata=TEXT)
    skipped: tuple[SkippedItem, ...] = field(default=(), metadata=many(SkippedItem))
    files: tuple[ImportedFile, ...] = field(default=(), metadata=many(ImportedFile))
