"""Checkpoints, their pages and batches, and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import ANY, FLAG, ITEMS, MAPPING, MOMENT, NUMBER, NUMBERS, TEXT, TEXTS, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.runs import RunRef
from cairn.types.scores import Score


@dataclass(frozen=True, kw_only=True)
class CheckpointRef(Answer):
    """How every answer names a checkpoint. `str()` gives `run · attempt · step`."""

    id: str = field(metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    attempt: int | None = field(default=None, metadata=WHOLE)
    step: int | None = field(default=None, metadata=WHOLE)
    kind: str | None = field(default=None, metadata=TEXT)
    saved_at: datetime | None = field(default=None, metadata=MOMENT)

    def __str__(self) -> str:
        name = self.run.name or self.run.id if self.run else "?"
        return f"{name} · {_shown(self.attempt)} · {_shown(self.step)}"


@dataclass(frozen=True, kw_only=True)
class Checkpoint(CheckpointRef):
    """A checkpoint with what is known about it. `pieces` has the four names, each present, absent, unknown.

    In listings, `values` holds the fields that the question asked for or named, under those names.
    """

    state: str | None = field(default=None, metadata=TEXT)
    tokens_seen: int | None = field(default=None, metadata=WHOLE)
    epoch: float | None = field(default=None, metadata=NUMBER)
    loss: float | None = field(default=None, metadata=NUMBER)
    lr: float | None = field(default=None, metadata=NUMBER)
    metrics: Mapping[str, float] = field(default_factory=dict, metadata=NUMBERS)
    scores: tuple[Score, ...] = field(default=(), metadata=many(Score))
    pieces: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    resumability: str | None = field(default=None, metadata=TEXT)
    superseded: bool | None = field(default=None, metadata=FLAG)
    replicas: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    tags: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    data_version: Any = field(default=None, metadata=ANY)
    code: Any = field(default=None, metadata=ANY)
    config: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    environment: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    layout: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    format: str | None = field(default=None, metadata=TEXT)
    data_cursor: Any = field(default=None, metadata=ANY)
    save_seconds: float | None = field(default=None, metadata=NUMBER)
    stall_seconds: float | None = field(default=None, metadata=NUMBER)
    parents: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    aliases: tuple[str, ...] = field(default=(), metadata=TEXTS)
    notes: str | None = field(default=None, metadata=TEXT)
    milestone: bool | None = field(default=None, metadata=FLAG)
    values: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)

    @staticmethod
    def flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Listings hold the identity under `checkpoint`, beside the rest; here both are one."""
        identity = data.get("checkpoint")
        return {**data, **identity} if isinstance(identity, dict) else data


@dataclass(frozen=True, kw_only=True)
class CheckpointPage(Answer):
    """One page of a listing; `next_cursor` is None on the last. `resolved` says which metric a name meant.

    `left_out`: by such a name, the projects that have the benchmark as other `scores` only.
    """

    items: tuple[Checkpoint, ...] = field(metadata=many(Checkpoint))
    next_cursor: str | None = field(default=None, metadata=TEXT)
    resolved: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    left_out: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class BatchResult(Answer):
    """`status` is created, unchanged or committed."""

    index: int = field(metadata=WHOLE)
    id: str = field(metadata=TEXT)
    status: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class BatchReport(Answer):
    """`warnings`: what was recorded as it came, and looks wrong."""

    accepted: int = field(metadata=WHOLE)
    results: tuple[BatchResult, ...] = field(default=(), metadata=many(BatchResult))
    warnings: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class Edge(Answer):
    """The checkpoint `child` (an id) came from `parent`. Over a lossless edge the weights have the same values."""

    child: str = field(metadata=TEXT)
    parent: str = field(metadata=TEXT)
    relation: str = field(default="", metadata=TEXT)
    lossless: bool = field(default=False, metadata=FLAG)


@dataclass(frozen=True, kw_only=True)
class Lineage(Answer):
    """Where a checkpoint comes from and what came from it, nearest first; `checkpoints` describes every id."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    ancestors: tuple[Edge, ...] = field(default=(), metadata=many(Edge))
    descendants: tuple[Edge, ...] = field(default=(), metadata=many(Edge))
    checkpoints: tuple[CheckpointRef, ...] = field(default=(), metadata=many(CheckpointRef))


def _shown(value: int | None) -> str:
    return "?" if value is None else str(value)
