"""What the template of the search may use."""

from dataclasses import dataclass

from ui.contexts.shared import Answer, CheckpointRef, Chip, Command, Link


@dataclass(frozen=True)
class EvidenceRow:
    text: str
    percentile: float | None = None
    coverage: str = ""
    title: str = ""


@dataclass(frozen=True)
class FoundRow:
    ref: CheckpointRef
    colour: int
    score: float | None
    evidence: tuple[EvidenceRow, ...]
    compare_href: str | None = None
    like_href: str | None = None
    child: str = ""  # the command that starts a run from it


@dataclass(frozen=True)
class StrongestRow:
    capability: Link
    ref: CheckpointRef
    evidence: EvidenceRow


@dataclass(frozen=True)
class FilterColumn:
    name: str
    sort: Link | None
    numeric: bool = True
    order: str = "descending"


@dataclass(frozen=True)
class FilterCell:
    text: str
    numeric: bool = True
    title: str = ""
    via: str | None = None  # the lossless copy that the score was measured on


@dataclass(frozen=True)
class FilterRow:
    ref: CheckpointRef
    cells: tuple[FilterCell, ...]


@dataclass(frozen=True)
class PlaceOfMistake:
    """A mistake in a filter: the text before the place, the letter there, the rest, and what was expected."""

    before: str
    at: str
    after: str
    message: str


@dataclass(frozen=True)
class FindContext:
    mode: str
    modes: tuple[Link, ...]
    answer: Answer
    query: str
    filter: str
    order_by: str
    columns: str
    project: str | None
    projects: tuple[str, ...]
    chips: tuple[Chip, ...] = ()
    unparsed: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    population: str = ""
    results: tuple[FoundRow, ...] = ()
    incomplete: tuple[FoundRow, ...] = ()
    incomplete_words: str = ""
    loosen: str = ""
    loosen_links: tuple[Link, ...] = ()
    mistake: PlaceOfMistake | None = None
    filter_columns: tuple[FilterColumn, ...] = ()
    filter_rows: tuple[FilterRow, ...] = ()
    older: str | None = None
    examples: tuple[Link, ...] = ()
    csv_href: str | None = None
    as_filter: Link | None = None
    keep_links: tuple[Link, ...] = ()  # where the answer is over several projects: the question in one of them
    empty: tuple[Command, ...] = ()  # how to fill a registry without checkpoints
    populations: tuple[Link, ...] = ()  # whom percentiles may be among
    strongest: tuple[StrongestRow, ...] = ()  # at each capability, where nothing was asked
