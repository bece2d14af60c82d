"""The points of a run's metrics as MLflow gives them, kept in 24 bytes each: a curve may have any number of them."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from registry.integrations.mlflow_api import Doc, MlflowSource
from registry.integrations.mlflow_words import number
from registry.integrations.shapes import Skipped, TrackerSeries

MOST_POINTS: Final = 500_000  # of one curve that are read one by one; of a longer one MLflow chooses


@dataclass
class Points:
    """Points in the order in which they were logged, and how many were none."""

    steps: "array[int]" = field(default_factory=lambda: array("q"))
    times: "array[int]" = field(default_factory=lambda: array("q"))  # milliseconds since 1970
    values: "array[float]" = field(default_factory=lambda: array("d"))
    bare: int = 0
    negative: int = 0
    chosen: bool = False  # MLflow chose them, evenly, of more than MOST_POINTS

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, docs: Iterable[Doc]) -> None:
        """A bare NaN, which MLflow stores as three zeros, is no point."""
        for doc in docs:
            step, at, value = int(doc.get("step", 0)), int(doc.get("timestamp", 0)), number(doc.get("value"))
            if value is None or (step, at, value) == (0, 0, 0.0):
                self.bare += 1
            elif step < 0:
                self.negative += 1
            else:
                self.steps.append(step)
                self.times.append(at)
                self.values.append(value)

    def value_at(self, step: int, at: int) -> float | None:
        """The value that was logged for a step at a time."""
        there = (np.frombuffer(self.steps, np.int64) == step) & (np.frombuffer(self.times, np.int64) == at)
        found = np.flatnonzero(there)
        return self.values[found[0]] if len(found) else None


def read_points(api: MlflowSource, run_id: str, key: str) -> Points:
    """A metric's whole history; of one beyond all bounds what MLflow chooses of it, or else its begin."""
    points = Points()
    for page in api.history(run_id, key):
        points.add(page)
        if len(points) > MOST_POINTS:
            even = Points(chosen=True)
            even.add(api.sampled_history(run_id, key))
            return even if len(even) else points
    return points


def read_points_of_runs(api: MlflowSource, run_ids: Iterable[str], key: str) -> Iterator[tuple[str, Points]]:
    """The same metric of many runs with one call; runs whose history does not fit into one are left out."""
    for run_id, docs in api.histories(list(run_ids), key).items():
        points = Points()
        points.add(docs)
        yield run_id, points


def curve_of(key: str, points: Points) -> TrackerSeries:
    """One value a step: the one logged last."""
    steps, times = np.frombuffer(points.steps, np.int64), np.frombuffer(points.times, np.int64)
    values = np.frombuffer(points.values, np.float64)
    order = np.lexsort((times, steps)) if len(points) else np.empty(0, np.int64)
    last = order[np.append(np.diff(steps[order]) != 0, True)] if len(points) else order
    reasons = (
        (points.bare, "value, time and step are 0: what MLflow stores for a NaN that it could not read"),
        (points.negative, "steps below 0"),
        (len(points) - len(last), "steps logged before; the last value of each counts"),
    )
    skipped = [Skipped(f"{count} points of {key}", reason) for count, reason in reasons if count]
    if points.chosen or len(points) > MOST_POINTS:
        taken = "some were taken, evenly" if points.chosen else "only the first were taken"
        skipped.append(Skipped(f"most of {key}", f"more than {MOST_POINTS:,} points: {taken}"))
    return TrackerSeries(key, steps[last].tolist(), values[last].tolist(), skipped)
