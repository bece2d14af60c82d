"""A population: checkpoints with their scores as columns, each read when it is first asked for.

A value is a checkpoint's own or that of a lossless copy of it (converted, resharded), which `via` marks; a copy's
value never counts twice in the population. Nothing is changed in place: whoever keeps a population makes the next one
from it (`registry.evals.population.renewing`), so a question that is being answered sees one state throughout.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from threading import RLock
from weakref import ref

import numpy as np
from sqlalchemy.orm import Session

from registry.changes import mark_of
from registry.evals.capability import Ranking, rank_capability
from registry.evals.columns import Column, Whole, mean_of_parts, oriented, wholes_of
from registry.evals.percentiles import (
    Booleans,
    Distribution,
    Floats,
    Integers,
    count_runs,
    dense,
    distribution_of,
    is_population,
    midranks,
    shares_in,
)
from registry.evals.population.reading import Rows, read_column, read_rows
from registry.evals.project_table import ProjectTable, read_project_table
from registry.evals.score_table import MetricIds, read_columns

MAX_PARTS = 4  # narrowed populations that are kept beside the whole


@dataclass(frozen=True, eq=False)
class Loaded:
    """One column: its values, which of them are a copy's (None: none), and the percentile of each once asked for."""

    values: Floats
    via: Booleans | None


class Ranked(ABC):
    """What follows from columns and a reference: percentiles and rankings, each computed once."""

    checkpoints: Integers
    runs: Integers
    reference: Booleans
    columns: tuple[Column, ...]

    def __init__(self) -> None:
        self.known_ranks: dict[int, Floats] = {}
        self.known_distributions: dict[int, Distribution] = {}
        self.known_rankings: dict[str, Ranking] = {}

    @abstractmethod
    def values(self, place: int) -> Floats:
        """The column at a place: one value a checkpoint, NaN where it has none."""

    @abstractmethod
    def via(self, place: int) -> Booleans | None:
        """Which values of that column are a lossless copy's; None: none."""

    def counted(self, place: int) -> Booleans:
        via = self.via(place)
        return self.reference if via is None else self.reference & ~via

    def ranks(self, place: int) -> Floats:
        if place not in self.known_ranks:
            values = oriented(self.values(place), self.columns[place])
            self.known_ranks[place] = midranks(values, self.runs, self.counted(place))
        return self.known_ranks[place]

    def share_below(self, place: int, value: float) -> float:
        """The percentile that a value would have in a column."""
        column = self.columns[place]
        if place not in self.known_distributions:
            values = oriented(self.values(place), column)
            self.known_distributions[place] = distribution_of(values, self.runs, self.counted(place))
        one = oriented(np.array([value]), column)
        return float(shares_in(self.known_distributions[place], one)[0])

    def is_wide(self, place: int) -> bool:
        """Whether the population of a column is large enough for a percentile."""
        return is_population(oriented(self.values(place), self.columns[place]), self.runs, self.counted(place))

    def members_of(self, places: list[int]) -> tuple[Booleans, int, int]:
        """(who of the rows is of the population of any of these columns, how many checkpoints, of how many runs)."""
        members = np.zeros(len(self.checkpoints), dtype=bool)
        for place in places:
            members |= np.isfinite(self.values(place)) & self.counted(place)
        return members, int(members.sum()), count_runs(self.runs, members)

    def ranking(self, capability: str) -> Ranking:
        """Where each checkpoint stands in a capability whose columns are loaded."""
        if capability not in self.known_rankings:
            self.known_rankings[capability] = rank_capability(self, capability)
        return self.known_rankings[capability]

    def places_of(self, capabilities: Collection[str]) -> list[int]:
        """The columns of these capabilities; the parts of a benchmark that was evaluated in parts come with it."""
        return [place for place, column in enumerate(self.columns) if column.benchmark.capability in capabilities]

    def row_of(self, checkpoint_id: int) -> int | None:
        at = int(np.searchsorted(self.checkpoints, checkpoint_id))
        there = at < len(self.checkpoints) and int(self.checkpoints[at]) == checkpoint_id
        return at if there else None


class Part(Ranked):
    """Those rows of a population that a question narrows it to; percentiles are among them alone."""

    def __init__(self, whole: "Population", rows: Booleans) -> None:
        super().__init__()
        self._whole = ref(whole)  # which keeps this part; whoever asks a part holds both
        self.mask, self.rows = rows, np.flatnonzero(rows)
        self.checkpoints = whole.checkpoints[self.rows]
        self.runs = dense(whole.runs[self.rows])
        self.reference = whole.reference[self.rows]
        self.columns = whole.columns
        self._values: dict[int, Floats] = {}

    @property
    def whole(self) -> "Population":
        whole = self._whole()
        assert whole is not None
        return whole

    def values(self, place: int) -> Floats:
        if place not in self._values:
            self._values[place] = self.whole.values(place)[self.rows]
        return self._values[place]

    def via(self, place: int) -> Booleans | None:
        via = self.whole.via(place)
        return None if via is None else via[self.rows]


@dataclass(frozen=True)
class Head:
    """What is known of columns before one is read."""

    table: ProjectTable
    columns: tuple[Column, ...]  # recorded ones, then wholes
    metric_ids: MetricIds
    wholes: dict[int, Whole] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, project_ids: Collection[int]) -> "Head":
        table = read_project_table(session, project_ids)
        recorded, metric_ids = read_columns(session, project_ids, table)
        wholes = wholes_of(recorded, table.get)
        columns = (*recorded, *(whole.column for whole in wholes))
        return cls(table, columns, metric_ids, {len(recorded) + at: whole for at, whole in enumerate(wholes)})


def oldest_mark(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


class Population(Ranked):
    """Every checkpoint of some projects."""

    def __init__(self, project_ids: Collection[int], head: Head, rows: Rows) -> None:
        super().__init__()
        self.project_ids = frozenset(project_ids)
        self.head, self.rows = head, rows
        self.checkpoints, self.runs, self.reference = rows.checkpoints, rows.runs, rows.reference
        self.columns = head.columns
        self.loaded: dict[int, Loaded] = {}
        self.columns_since: int | None = None  # the mark of the oldest state that a column was read in
        self._lock = RLock()
        self._parts: dict[object, Part] = {}

    @classmethod
    def read(cls, session: Session, project_ids: Collection[int]) -> "Population":
        """The population without a column yet."""
        return cls(project_ids, Head.read(session, project_ids), read_rows(session, project_ids))

    def load(self, session: Session, places: Iterable[int]) -> None:
        """Read these columns, as far as they are not read yet."""
        with self._lock:
            wanted = [place for place in dict.fromkeys(places) if place not in self.loaded]
            parts = [part for place in wanted if place in self.head.wholes for part in self.head.wholes[place].places]
            recorded = {place for place in (*wanted, *parts) if place not in self.head.wholes} - self.loaded.keys()
            if recorded:
                # A question that began before the latest change may be the first to ask for a column.
                self.columns_since = oldest_mark(self.columns_since, mark_of(session))
                self.loaded |= self._read(session, recorded)
            for place in wanted:
                if place in self.head.wholes:
                    self.loaded[place] = self.whole_of(place)

    def _read(self, session: Session, places: Collection[int]) -> dict[int, Loaded]:
        """The columns at these places; a benchmark of two projects has a metric of each."""
        found: dict[int, tuple[Floats, Booleans]] = {}
        for metric, place in self.head.metric_ids.items():
            if place in places:
                values, via = read_column(session, self.project_ids, metric, self.rows)
                if place in found:
                    values, via = np.where(np.isfinite(values), values, found[place][0]), via | found[place][1]
                found[place] = values, via
        return {place: Loaded(values, via if via.any() else None) for place, (values, via) in found.items()}

    def whole_of(self, place: int) -> Loaded:
        """The column of a benchmark from its parts, which are loaded."""
        whole = self.head.wholes[place]
        parts = [self.loaded[part] for part in whole.places]
        values = mean_of_parts(whole, [part.values for part in parts])
        copied = [part.via for part in parts if part.via is not None]
        via = np.logical_or.reduce(copied) & np.isfinite(values) if copied else None
        return Loaded(values, via)

    def values(self, place: int) -> Floats:
        return self.loaded[place].values

    def via(self, place: int) -> Booleans | None:
        return self.loaded[place].via

    def narrowed(self, key: object, rows: Booleans) -> Part:
        """The part of these rows; kept under the key for the next question like this one."""
        with self._lock:
            part = self._parts.pop(key, None)
            if part is None or not np.array_equal(part.mask, rows):
                part = Part(self, rows)
            self._parts[key] = part
            while len(self._parts) > MAX_PARTS:
                self._parts.pop(next(iter(self._parts)))
            return part

    @property
    def cells(self) -> int:
        """How much is kept: rows times columns. A ranking comes with three of bytes: members, ranked, hundredths."""
        return len(self.rows) * (6 + len(self.loaded) + len(self.known_ranks) + 3 * len(self.known_rankings) // 2)
