"""Rehearsed restores, as they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import FLAG, ITEMS, MAPPING, MOMENT, TEXT, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef


@dataclass(frozen=True, kw_only=True)
class Drill(Answer):
    """A rehearsed restore. `verdict` is passed or failed; `exact` None is unknown.

    `checks` has read, verify, files, run, continuation and cold_start, each passed, failed or not_tried. `seconds` by
    stage. `losses` are empty in listings.
    """

    id: str = field(metadata=TEXT)
    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    verdict: str = field(metadata=TEXT)
    exact: bool | None = field(default=None, metadata=FLAG)
    reason: str = field(default="", metadata=TEXT)
    comparison: str = field(default="", metadata=TEXT)
    checks: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    replica_id: str | None = field(default=None, metadata=TEXT)
    key: str = field(default="", metadata=TEXT)
    host: str = field(default="", metadata=TEXT)
    tier: str | None = field(default=None, metadata=TEXT)
    format: str | None = field(default=None, metadata=TEXT)
    layout: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    software: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    started_at: datetime | None = field(default=None, metadata=MOMENT)
    ended_at: datetime | None = field(default=None, metadata=MOMENT)
    seconds: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    bytes_read: int | None = field(default=None, metadata=WHOLE)
    steps_run: int = field(default=0, metadata=WHOLE)
    losses: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    created_at: datetime | None = field(default=None, metadata=MOMENT)


@dataclass(frozen=True, kw_only=True)
class DrillPage(Answer):
    items: tuple[Drill, ...] = field(metadata=many(Drill))
    next_cursor: str | None = field(default=None, metadata=TEXT)
