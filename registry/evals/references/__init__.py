"""Published figures that a project without a population of its own can be held against.

One large run has nobody to be ranked among: its own checkpoints are one run. A reference is a table of figures that
somebody published, and says which. Figures of another harness or prompt are near, never the same: the answer says so.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from registry.errors import Invalid

FOLDER: Final = Path(__file__).parent
PROJECT: Final = "project"  # the name of the population that is no reference
PREFIX: Final = "reference:"


class UnknownPopulation(Invalid):
    code = "unknown-population"
    title = "There is no such population"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the figures come from, and what they were evaluated with."""

    name: str
    title: str
    source: str
    harness: str


SOURCES: Final = (
    Source(
        "pythia",
        "published Pythia checkpoints",
        "github.com/EleutherAI/pythia, evals/pythia-v1, zero-shot",
        "lm-evaluation-harness 0.3",
    ),
)


@dataclass(frozen=True)
class Reference:
    """`columns`: (benchmark, metric) to the run and the value of every published checkpoint that has it."""

    source: Source
    size: int
    runs: int
    columns: Mapping[tuple[str, str], tuple[tuple[str, ...], tuple[float, ...]]]

    @property
    def words(self) -> str:
        source = self.source
        return f"{self.size} {source.title} of {self.runs} runs ({source.source}; {source.harness})"


def population_names() -> tuple[str, ...]:
    """What a question may name as its population."""
    return (PROJECT, *(PREFIX + source.name for source in SOURCES))


def find_reference(population: str) -> Reference | None:
    """The reference that a population names; None for the project itself. Raises UnknownPopulation."""
    if population == PROJECT:
        return None
    if population not in population_names():
        raise UnknownPopulation(f"population is one of {', '.join(population_names())}, not {population[:60]!r}.")
    return read_reference(population.removeprefix(PREFIX))


@cache
def read_reference(name: str) -> Reference:
    """The shipped figures of one source, read when first asked for."""
    source = next(each for each in SOURCES if each.name == name)
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {}
    for header in rows[0]:
        benchmark, _, metric = header.rpartition(".")
        having = [row for row in rows if row[header]]
        if benchmark:
            figures = tuple(float(row[header]) for row in having)
            columns[benchmark, metric] = (tuple(row["run"] for row in having), figures)
    return Reference(source, len(rows), len({row["run"] for row in rows}), columns)
