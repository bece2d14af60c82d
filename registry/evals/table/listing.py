"""The benchmarks of a project: what the shipped table and the project say, what occurs, and what looks wrong."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.errors import NotFound
from registry.evals.catalogue import LOWER_METRICS, Benchmark, catalogue
from registry.evals.project_table import OwnEntry, ProjectTable, read_project_table
from registry.evals.table.flags import MetricRange, flags_of, read_ranges
from registry.evals.table.proposals import Proposal, propose
from registry.models import Benchmark as BenchmarkRow
from registry.models import ScoreMetric


class BenchmarkNotFound(NotFound):
    code = "benchmark-not-found"
    title = "There is no such benchmark"


@dataclass(frozen=True, slots=True)
class BenchmarkEntry:
    """`own`: which fields the project says itself. `metrics`: (metric, filter), the preferred one first.

    `occurring`: the metrics that results of this project have. `aliases`: other names that mean it; `same_as`: what it
    is another name for. `needs_mapping`: it occurs, and no capability claims it; `proposal` is how it could be mapped.
    """

    name: str
    capability: str | None
    direction: str
    scale: str
    chance: float | None
    sample_count: int | None
    metrics: tuple[tuple[str, str], ...]
    family: str
    part_of: str | None
    note: str
    aliases: tuple[str, ...]
    same_as: str | None
    shipped: bool
    own: tuple[str, ...]
    occurring: tuple[MetricRange, ...]
    flags: tuple[str, ...]
    needs_mapping: bool
    proposal: Proposal | None


def list_benchmarks(
    session: Session,
    project_id: int,
    *,
    after: str | None = None,
    limit: int = 50,
    only: str = "all",
) -> list[BenchmarkEntry]:
    """By name, from after a name on. `only`: `all`, those that `occurring` results have, or those that are `unmapped`.

    The subtasks of a benchmark are listed where they occur.
    """
    world = _World.read(session, project_id)
    names = [name for name in world.names(only) if after is None or name > after][:limit]
    ranges = read_ranges(session, project_id, {name: world.occurring[name] for name in names})
    return [world.entry(name, ranges.get(name, ())) for name in names]


def get_benchmark(session: Session, project_id: int, name: str) -> BenchmarkEntry:
    """One benchmark, by its name in the table or as results wrote it. Raises BenchmarkNotFound."""
    world = _World.read(session, project_id)
    if name not in world.known:
        entry = catalogue().get(name)
        if entry is None or entry.name not in world.known:
            raise BenchmarkNotFound(f"Nobody knows a benchmark {name[:80]!r}: PUT it, or record a score of it.")
        name = entry.name
    ranges = read_ranges(session, project_id, {name: world.occurring[name]})
    return world.entry(name, ranges.get(name, ()))


@dataclass(frozen=True)
class _World:
    table: ProjectTable
    occurring: Mapping[str, Sequence[tuple[int, str, str]]]  # name -> (metric id, metric, filter)
    known: frozenset[str]

    @classmethod
    def read(cls, session: Session, project_id: int) -> "_World":
        table = read_project_table(session, [project_id])
        query = (
            select(BenchmarkRow.name, ScoreMetric.id, ScoreMetric.metric, ScoreMetric.filter)
            .join(ScoreMetric, ScoreMetric.benchmark_id == BenchmarkRow.id)
            .where(BenchmarkRow.project_id == project_id, ScoreMetric.project_id == project_id)
            .order_by(ScoreMetric.id)
        )
        occurring: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for name, number, metric, filter in session.execute(query):
            occurring[name].append((number, metric, filter))
        shipped = {row.name for row in catalogue().benchmarks if row.part_of is None}
        return cls(table, occurring, frozenset(shipped | occurring.keys() | table.own.keys()))

    def names(self, only: str) -> list[str]:
        match only:
            case "occurring":
                return sorted(self.occurring)
            case "unmapped":
                return sorted(name for name in self.occurring if self.needs_mapping(name))
            case _:
                return sorted(self.known)

    def needs_mapping(self, name: str) -> bool:
        """Whether results have figures of it that no capability claims, beside perplexities, losses and error rates.

        One that the project put in no capability was decided on.
        """
        own = self.table.own.get(name)
        if own is not None and own.capability == "":
            return False
        read = [(metric, self.table.for_metric(name, metric, filter)) for _, metric, filter in self.occurring[name]]
        left = [row for metric, row in read if metric not in LOWER_METRICS and row.capability is None]
        return bool(left) and catalogue().get(name) is None

    def entry(self, name: str, ranges: Sequence[MetricRange]) -> BenchmarkEntry:
        row = self._leading(name)
        own = self.table.own.get(name)
        known = catalogue().get(name)
        unmapped = name in self.occurring and self.needs_mapping(name)
        return BenchmarkEntry(
            name=name,
            capability=row.capability,
            direction=row.direction.value,
            scale=row.scale,
            chance=row.chance,
            sample_count=row.sample_count,
            metrics=row.metrics,
            family=row.family,
            part_of=row.part_of,
            note=row.note,
            aliases=self._aliases(name, known),
            same_as=self._same_as(name, own, known),
            shipped=known is not None,
            own=_said(own),
            occurring=tuple(ranges),
            flags=tuple(flags_of(name, ranges, self.table)),
            needs_mapping=unmapped,
            proposal=propose(name, ranges, self.table) if unmapped else None,
        )

    def _leading(self, name: str) -> Benchmark:
        """How its first figure reads: that of the table, else the first that results have."""
        entry = self.table.get(name)
        metrics = self.occurring.get(name, ())
        if entry is not None and (catalogue().get(name) is not None or not metrics):
            return entry
        return self.table.for_metric(name, *(metrics[0][1:] if metrics else ("",)))

    def _aliases(self, name: str, known: Benchmark | None) -> tuple[str, ...]:
        shipped = known.aliases if known is not None and known.name == name else ()
        said = sorted(other for other, entry in self.table.own.items() if entry.same_as == name)
        return tuple(dict.fromkeys([*shipped, *said]))

    def _same_as(self, name: str, own: OwnEntry | None, known: Benchmark | None) -> str | None:
        if own is not None and own.same_as is not None:
            return own.same_as
        return known.name if known is not None and known.name != name and known.part_of is None else None


def _said(own: OwnEntry | None) -> tuple[str, ...]:
    if own is None:
        return ()
    fields: dict[str, Any] = {
        "capability": own.capability,
        "direction": own.direction,
        "scale": own.scale,
        "chance": own.chance,
        "sample_count": own.sample_count,
        "preferred_metrics": own.metrics,
        "same_as": own.same_as,
        "note": own.note,
    }
    return tuple(name for name, value in fields.items() if value is not None)
