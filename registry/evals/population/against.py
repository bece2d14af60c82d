"""A population seen against published figures: its checkpoints are ranked among those of the reference instead."""

import numpy as np

from registry.evals.columns import oriented
from registry.evals.percentiles import Booleans, Floats, Integers, dense, distribution_of, is_population, shares_in
from registry.evals.population.table import Part, Population, Ranked
from registry.evals.references import Reference


class Against(Ranked):
    """The checkpoints, columns and values of a table; percentiles among the figures of a reference.

    A figure is ranked among those of the same benchmark and metric. What the reference has no figures of has no
    percentile: that is not known, and never weak.
    """

    def __init__(self, table: Population | Part, reference: Reference) -> None:
        super().__init__()
        self.table, self.published = table, reference
        self.checkpoints, self.runs, self.reference = table.checkpoints, table.runs, table.reference
        self.columns = table.columns
        head = (table.whole if isinstance(table, Part) else table).head
        self._columns = {
            place: found
            for place, column in enumerate(self.columns)
            if (found := _column_of(reference, head.table.identity(column.name), column.metric)) is not None
        }

    def values(self, place: int) -> Floats:
        return self.table.values(place)

    def via(self, place: int) -> Booleans | None:
        return self.table.via(place)

    def ranks(self, place: int) -> Floats:
        if place not in self.known_ranks:
            self.known_ranks[place] = self._ranks(place)
        return self.known_ranks[place]

    def is_wide(self, place: int) -> bool:
        if place not in self._columns:
            return False
        figures, runs = self._columns[place]
        return is_population(figures, runs, np.ones(len(figures), dtype=bool))

    def members_of(self, places: list[int]) -> tuple[Booleans, int, int]:
        """None of the project's own checkpoints: the size is that of the reference's figures."""
        known = [self._columns[place] for place in places if place in self._columns]
        size = max((len(figures) for figures, _ in known), default=0)
        runs = max((int(numbers.max(initial=-1)) + 1 for _, numbers in known), default=0)
        return np.zeros(len(self.checkpoints), dtype=bool), size, runs

    def share_below(self, place: int, value: float) -> float:
        return float(self._stands(place, np.array([value]))[0])

    def _ranks(self, place: int) -> Floats:
        return self._stands(place, self.values(place))

    def _stands(self, place: int, values: Floats) -> Floats:
        """The mid-rank of each value among the figures of a column, every run of which weighs the same."""
        if place not in self._columns:
            return np.full(values.shape, np.nan)
        column = self.columns[place]
        figures, runs = self._columns[place]
        everyone = np.ones(len(figures), dtype=bool)
        return shares_in(distribution_of(oriented(figures, column), runs, everyone), oriented(values, column))


def _column_of(reference: Reference, identity: str, metric: str) -> tuple[Floats, Integers] | None:
    from registry.evals.project_table import ProjectTable

    shipped = ProjectTable()
    for (benchmark, other), (runs, figures) in reference.columns.items():
        if other == metric and shipped.identity(benchmark) == identity:
            names = sorted(set(runs))
            return np.array(figures), dense(np.array([names.index(run) for run in runs], dtype=np.int64))
    return None
