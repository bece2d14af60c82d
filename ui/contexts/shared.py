"""What several pages show: the frame, a checkpoint's identity, links, facts, plots, the sentence that answers."""

from dataclasses import dataclass
from datetime import datetime

from ui.charts import LineChart


@dataclass(frozen=True)
class Shell:
    """What the frame around every page shows. `csrf` is empty where nobody has signed in.

    `notices` say what of the address was not understood and left out.
    """

    title: str
    section: str
    signed_in_as: str | None
    csrf: str
    stylesheet: str
    script: str
    icon: str
    now: datetime
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckpointRef:
    """A checkpoint's identity, shown as `run · attempt · step` everywhere."""

    id: str
    project: str
    run_id: str
    run_name: str
    attempt: int
    step: int
    kind: str
    saved_at: datetime | None
    path: str | None = None
    pieces: dict[str, str] | None = None
    superseded: bool = False
    state: str = "committed"
    recorded_at: datetime | None = None  # where nobody said when it was saved
    suspect: bool = False  # loading it made attempts fail


@dataclass(frozen=True)
class Link:
    """A choice that is a link: a sort order, a tab, a page of a list."""

    text: str
    href: str
    chosen: bool = False


@dataclass(frozen=True)
class Command:
    """What to run to fill what is empty."""

    why: str
    text: str
    kind: str = "command"


@dataclass(frozen=True)
class Fact:
    """A name and a value as words; `title` gives every digit or the source."""

    name: str
    value: str
    title: str = ""
    href: str | None = None
    mono: bool = False


@dataclass(frozen=True)
class Plot:
    """A chart, its caption, and where its numbers are."""

    chart: LineChart
    caption: str = ""
    csv_href: str | None = None
    table_href: str | None = None
    mark_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The sentence a page opens with; `tone` is good, warn, bad, unknown or plain."""

    text: str
    tone: str = "plain"
    detail: str = ""


@dataclass(frozen=True)
class Chip:
    """One understood condition, or one alias."""

    text: str
    href: str | None = None
    title: str = ""
    tone: str = ""
