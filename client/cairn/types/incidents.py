"""The fault ledger: incidents, and what a resume restored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import FLAG, ITEMS, MAPPING, MOMENT, NUMBER, TEXT, TEXTS, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef
from cairn.types.runs import RunRef


@dataclass(frozen=True, kw_only=True)
class Incident(Answer):
    """An event that cost training time. `state` is open, recovered or closed; None where something is not known.

    `checkpoint` is what the attempt had loaded; `suspect` says what to load instead where that is suspect.
    `not_applied`: what a report said beside an incident that was known, and was not taken over.
    """

    id: str = field(metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    attempt: int | None = field(default=None, metadata=WHOLE)
    key: str | None = field(default=None, metadata=TEXT)
    kind: str = field(default="reported", metadata=TEXT)
    state: str = field(default="open", metadata=TEXT)
    cause: str = field(default="unknown", metadata=TEXT)
    cause_title: str = field(default="", metadata=TEXT)
    cause_family: str = field(default="", metadata=TEXT)
    planned: bool | None = field(default=None, metadata=FLAG)
    cause_said_by: str | None = field(default=None, metadata=TEXT)
    evidence: tuple[str, ...] = field(default=(), metadata=TEXTS)
    occurred_at: datetime | None = field(default=None, metadata=MOMENT)
    exit_code: int | None = field(default=None, metadata=WHOLE)
    signal: str | None = field(default=None, metadata=TEXT)
    node: str | None = field(default=None, metadata=TEXT)
    hardware: str | None = field(default=None, metadata=TEXT)
    log_excerpt: str | None = field(default=None, metadata=TEXT)
    last_step: int | None = field(default=None, metadata=WHOLE)
    steps_lost: int | None = field(default=None, metadata=WHOLE)
    checkpoint: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    replica_id: str | None = field(default=None, metadata=TEXT)
    signature: str | None = field(default=None, metadata=TEXT)
    note: str | None = field(default=None, metadata=TEXT)
    opened_by: str | None = field(default=None, metadata=TEXT)
    closed_at: datetime | None = field(default=None, metadata=MOMENT)
    recovered_at: datetime | None = field(default=None, metadata=MOMENT)
    recovery_seconds: float | None = field(default=None, metadata=NUMBER)
    suspect: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    not_applied: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class IncidentPage(Answer):
    items: tuple[Incident, ...] = field(metadata=many(Incident))
    next_cursor: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Suspicion(Answer):
    """`suspect`: as a whole, so that nobody is advised to load it. `copies`: single copies of it that are suspect."""

    suspect: bool = field(default=False, metadata=FLAG)
    suspicion: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    copies: tuple[Any, ...] = field(default=(), metadata=ITEMS)


@dataclass(frozen=True, kw_only=True)
class ResumeReceipt(Answer):
    """What an attempt says that it restored; each piece is restored, fresh, absent or unknown."""

    id: str = field(metadata=TEXT)
    attempt: int | None = field(default=None, metadata=WHOLE)
    loaded: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    pieces: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    restore_seconds: float | None = field(default=None, metadata=NUMBER)
    note: str | None = field(default=None, metadata=TEXT)
