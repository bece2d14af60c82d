"""Standing watches, and what they found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import MAPPING, MOMENT, TEXT, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef
from cairn.types.runs import RunRef


@dataclass(frozen=True, kw_only=True)
class Watch(Answer):
    """Each score that arrives for a run or an alias is tested, or each stretch of a run's loss; `state` standing or
    ended. `warning`: why nothing can be found yet, such as a benchmark that nobody knows."""

    id: str = field(metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    alias: str | None = field(default=None, metadata=TEXT)
    kind: str = field(default="", metadata=TEXT)
    watched: str = field(default="", metadata=TEXT)
    note: str | None = field(default=None, metadata=TEXT)
    state: str = field(default="", metadata=TEXT)
    created_at: datetime | None = field(default=None, metadata=MOMENT)
    created_by: str = field(default="", metadata=TEXT)
    ended_at: datetime | None = field(default=None, metadata=MOMENT)
    warning: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Finding(Answer):
    """What a watch found; `sentence` says it. `rollback` holds the question it opens: `page`, and `body`."""

    id: str = field(metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    watch_id: str = field(default="", metadata=TEXT)
    kind: str = field(default="", metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    alias: str | None = field(default=None, metadata=TEXT)
    checkpoint: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    state: str = field(default="", metadata=TEXT)
    from_step: int | None = field(default=None, metadata=WHOLE)
    to_step: int | None = field(default=None, metadata=WHOLE)
    sentence: str = field(default="", metadata=TEXT)
    detail: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    opened_at: datetime | None = field(default=None, metadata=MOMENT)
    acknowledged_at: datetime | None = field(default=None, metadata=MOMENT)
    acknowledged_by: str | None = field(default=None, metadata=TEXT)
    note: str | None = field(default=None, metadata=TEXT)
    rollback: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class FindingPage(Answer):
    items: tuple[Finding, ...] = field(metadata=many(Finding))
    next_cursor: str | None = field(default=None, metadata=TEXT)
