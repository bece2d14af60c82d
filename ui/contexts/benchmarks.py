"""What the templates of the benchmark table may use."""

from dataclasses import dataclass

from ui.contexts.shared import Answer, Command, Fact, Link


@dataclass(frozen=True)
class BenchmarkRow:
    """`proposal` says how it could be mapped and why; `accept` is the form that the proposal fills in."""

    name: str
    href: str
    capability: str
    reads: str  # direction, scale and chance in words
    metrics: str
    range: str
    own: str
    flags: tuple[str, ...] = ()
    proposal: str = ""
    accept: Link | None = None


@dataclass(frozen=True)
class BenchmarksContext:
    project: str
    projects: tuple[Link, ...]
    answer: Answer
    unmapped: tuple[BenchmarkRow, ...]
    flagged: tuple[BenchmarkRow, ...]
    rows: tuple[BenchmarkRow, ...]
    choices: tuple[Link, ...]
    older: str | None
    empty: tuple[Command, ...] = ()


@dataclass(frozen=True)
class BenchmarkField:
    """One field of the form. `options` makes it a choice; `shipped` is what holds where it is left empty."""

    name: str
    label: str
    value: str
    shipped: str
    options: tuple[str, ...] = ()
    wrong: str = ""


@dataclass(frozen=True)
class BenchmarkContext:
    project: str
    name: str
    answer: Answer
    facts: tuple[Fact, ...]
    flags: tuple[str, ...]
    fields: tuple[BenchmarkField, ...]
    may_edit: bool
    action: str
    back: Link
    notice: str
    problem: str
