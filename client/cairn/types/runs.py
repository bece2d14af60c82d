"""Projects, runs, their attempts and curves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import ITEMS, MAPPING, MOMENT, NUMBER_LIST, TEXT, TEXTS, WHOLE, many
from cairn.types.base import Answer


@dataclass(frozen=True, kw_only=True)
class Project(Answer):
    id: str = field(metadata=TEXT)
    name: str = field(metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class ProjectPage(Answer):
    items: tuple[Project, ...] = field(metadata=many(Project))
    next_cursor: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Run(Answer):
    """One training job, across restarts. `project` is a name.

    `not_applied`: what `create_run` gave and the run says otherwise, since an earlier start said so first.
    """

    id: str = field(metadata=TEXT)
    name: str = field(default="", metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    kind: str | None = field(default=None, metadata=TEXT)
    owner: str | None = field(default=None, metadata=TEXT)
    team: str | None = field(default=None, metadata=TEXT)
    model_family: str | None = field(default=None, metadata=TEXT)
    parameter_count: int | None = field(default=None, metadata=WHOLE)
    tags: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    trackers: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    started_at: datetime | None = field(default=None, metadata=MOMENT)
    not_applied: tuple[str, ...] = field(default=(), metadata=TEXTS)

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class RunPage(Answer):
    items: tuple[Run, ...] = field(metadata=many(Run))
    next_cursor: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class RunRef(Answer):
    id: str = field(metadata=TEXT)
    name: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Attempt(Answer):
    """One execution of a run between two starts.

    In lists, `saved_step` is the last step of which a checkpoint is recorded, `reached_step` the last that is known.
    `not_applied`: what a second `start_attempt` of the same key gave and the first said otherwise.
    """

    id: str = field(metadata=TEXT)
    number: int = field(metadata=WHOLE)
    state: str | None = field(default=None, metadata=TEXT)
    key: str | None = field(default=None, metadata=TEXT)
    started_at: datetime | None = field(default=None, metadata=MOMENT)
    ended_at: datetime | None = field(default=None, metadata=MOMENT)
    heartbeat_at: datetime | None = field(default=None, metadata=MOMENT)
    saved_step: int | None = field(default=None, metadata=WHOLE)
    reached_step: int | None = field(default=None, metadata=WHOLE)
    not_applied: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class SeriesReport(Answer):
    points: int = field(metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class Curve(Answer):
    """One curve of one attempt; values may be NaN."""

    name: str = field(metadata=TEXT)
    attempt: int | None = field(default=None, metadata=WHOLE)
    steps: tuple[int, ...] = field(default=(), metadata=ITEMS)
    values: tuple[float, ...] = field(default=(), metadata=NUMBER_LIST)
