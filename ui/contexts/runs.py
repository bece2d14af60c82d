"""What the template of the list of runs may use."""

from dataclasses import dataclass
from datetime import datetime

from ui.contexts.shared import Answer, CheckpointRef, Command, Link
from ui.filters import Number


@dataclass(frozen=True)
class Column:
    """The head of a column: where its order leads, and the direction in force; '' where it is not ordered by."""

    text: str
    href: str
    order: str

    @property
    def chosen(self) -> bool:
        return bool(self.order)


@dataclass(frozen=True)
class RunRow:
    """`incident`: the page of the interruption that is open; `loss_step`: where the last recorded loss was."""

    id: str
    name: str
    project: str
    colour: int
    state: str
    incident: str | None
    heartbeat_at: datetime | None
    owner: str | None
    attempts: int
    checkpoints: int
    newest: CheckpointRef | None
    last_step: int | None
    parameter_count: int | None
    loss: Number
    loss_step: int | None
    data_version: str | None


@dataclass(frozen=True)
class RunsContext:
    answer: Answer
    rows: tuple[RunRow, ...]
    projects: tuple[Link, ...]
    query: str
    project: str | None
    columns: dict[str, Column]
    order: str
    newer: str | None
    older: str | None
    order_note: str = ""
    empty: tuple[Command, ...] = ()
    findings: tuple[Link, ...] = ()
    interruptions: tuple[Link, ...] = ()
    down_href: str = ""  # the order in which those that are down come first, where there are any in another order

    @property
    def narrow_sorts(self) -> tuple[Link, ...]:
        """The orders whose columns a narrow screen has no room for."""
        wanted = ("saved", "state", "loss", "heartbeat")
        return tuple(Link(each.text, each.href, each.chosen) for each in (self.columns[name] for name in wanted))
