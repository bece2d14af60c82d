"""The benchmark table of a project: the shipped one, with what the project says instead.

What a project says of `gsm8k` holds for every name that the shipped table knows it by. A benchmark may be declared to
be another name for one of the table (`same_as`); then it is read by that row. A perplexity, a loss or an error rate
keeps its own direction and scale, whatever is said of the accuracy beside it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from registry.evals.catalogue import LOWER_METRICS, Benchmark, as_counted, catalogue, key_of
from registry.models import Benchmark as BenchmarkRow
from registry.types import Direction

_SAID = ("capability", "direction", "scale", "chance", "sample_count", "preferred_metrics", "same_as", "note")


@dataclass(frozen=True, slots=True)
class OwnEntry:
    """What a project says of one benchmark; None where it says nothing. A capability of '' is none."""

    name: str
    capability: str | None = None
    direction: str | None = None
    scale: str | None = None
    chance: float | None = None
    sample_count: int | None = None
    metrics: tuple[tuple[str, str], ...] | None = None
    same_as: str | None = None
    note: str | None = None

    @classmethod
    def from_row(cls, row: Any) -> "OwnEntry":
        preferred = row.preferred_metrics
        metrics = None if preferred is None else tuple((each[0], each[1]) for each in json.loads(preferred))
        plain = {name: getattr(row, name) for name in _SAID if name != "preferred_metrics"}
        return cls(row.name, metrics=metrics, **plain)

    def applied_to(self, entry: Benchmark, metric: str) -> Benchmark:
        """The entry of the shipped table, or of another name, with what is said here instead."""
        given: dict[str, Any] = {"sample_count": self.sample_count, "note": self.note}
        if self.capability is not None and (metric not in LOWER_METRICS or entry.capability is not None):
            given["capability"] = self.capability or None
            entry = replace(entry, capability=None) if not self.capability else entry
        if metric not in LOWER_METRICS:
            given |= {"scale": self.scale, "chance": self.chance, "metrics": self.metrics}
            given["direction"] = None if self.direction is None else Direction(self.direction)
            if self.scale is not None and self.scale != entry.scale and self.chance is None:
                entry = replace(entry, chance=None if self.scale == "log" else 0.0)  # chance was in the other scale
        return replace(entry, **{name: value for name, value in given.items() if value is not None})


class ProjectTable:
    """How figures read in a project, or in several: where two projects say different things, the first one's counts."""

    def __init__(self, own: Iterable[OwnEntry] = ()) -> None:
        self._own: dict[str, OwnEntry] = {}
        for entry in own:
            self._own.setdefault(entry.name, entry)
        self._by_key = {key_of(name): entry for name, entry in reversed(self._own.items())}

    @property
    def own(self) -> Mapping[str, OwnEntry]:
        return self._own

    def for_metric(self, name: str, metric: str, filter: str = "") -> Benchmark:
        """How figures of this benchmark and metric read. Never fails, as `Catalogue.for_metric`."""
        return as_counted(self._entry(name, metric, filter), filter)

    __call__ = for_metric

    def _entry(self, name: str, metric: str, filter: str) -> Benchmark:
        own = self._of(name)
        if own is not None and own.same_as is not None and own.same_as != name:
            return own.applied_to(self._entry(own.same_as, metric, filter), metric)
        entry = catalogue().row_for(name, metric, filter)
        if entry.name != name and (leading := self._own.get(entry.name)) is not None and leading is not own:
            entry = leading.applied_to(entry, metric)
        return entry if own is None else own.applied_to(entry, metric)

    def get(self, name: str) -> Benchmark | None:
        """The benchmark of this name or alias; None where neither the project nor the shipped table knows it."""
        known = catalogue().get(name)
        if known is None and self._of(name) is None:
            return None
        return self._entry(name, known.metrics[0][0] if known is not None and known.metrics else "", "")

    def _of(self, name: str) -> OwnEntry | None:
        return self._own.get(name) or self._by_key.get(key_of(name))

    def identity(self, name: str) -> str:
        """The same text for two names of one benchmark."""
        own = self._of(name)
        if own is not None and own.same_as is not None:
            name = own.same_as
        known = catalogue().get(name)
        return key_of(known.name if known is not None else name)

    def preferred_metric(self, name: str, available: Mapping[tuple[str, str], int]) -> tuple[str, str] | None:
        """As `Catalogue.preferred_metric`, with the project's own order before the table's."""
        own = self._of(name)
        said = own.metrics if own is not None and own.metrics is not None else ()
        chosen = next((pair for pair in said if pair in available), None)
        if chosen is not None:
            return chosen
        return catalogue().preferred_metric(own.same_as if own is not None and own.same_as else name, available)

    def decides(self, name: str, available: Collection[tuple[str, str]]) -> bool:
        """Whether the table says which of these metrics is read, so that nothing needs counting."""
        entry, known = self.get(name), catalogue().get(name)
        listed = {*(entry.metrics if entry is not None else ()), *(known.metrics if known is not None else ())}
        return bool(listed & set(available))


def read_project_table(session: Session, project_ids: Collection[int] | None) -> ProjectTable:
    """The table of these projects (None: all), by one statement: rows of which nothing is said are not read."""
    query = select(BenchmarkRow.name, *(getattr(BenchmarkRow, name) for name in _SAID)).where(
        or_(*(getattr(BenchmarkRow, name).is_not(None) for name in _SAID))
    )
    if project_ids is not None:
        query = query.where(BenchmarkRow.project_id.in_(sorted(project_ids)))
    return ProjectTable(map(OwnEntry.from_row, session.execute(query.order_by(BenchmarkRow.project_id))))
