"""What the template of the list of runs may use."""

from dataclasses import dataclass

from ui.contexts.shared import Answer, CheckpointRef, Command, Link
from ui.filters import Number


@dataclass(frozen=True)
class RunRow:
    id: str
    name: str
    project: str
    colour: int
    state: str
    owner: str | None
    attempts: int
    checkpoints: int
    newest: CheckpointRef | None
    newest_step: int | None
    parameter_count: int | None
    loss: Number
    data_version: str | None


@dataclass(frozen=True)
class RunsContext:
    answer: Answer
    rows: tuple[RunRow, ...]
    projects: tuple[Link, ...]
    query: str
    project: str | None
    sorts: dict[str, Link]
    order: str
    newer: str | None
    older: str | None
    order_note: str = ""
    empty: tuple[Command, ...] = ()
    findings: tuple[Link, ...] = ()
    interruptions: tuple[Link, ...] = ()
