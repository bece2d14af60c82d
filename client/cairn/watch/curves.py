"""Metrics from logs: read on from where the last look ended, sent as curves, given to checkpoints that lack them."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.formats.logs import Point, read_line, read_trainer_state
from cairn.formats.logs.shapes import known_name, number
from cairn.numbers import number_from_wire, number_to_wire
from cairn.watch.attempts import Attempts, Saved
from cairn.watch.events import Event
from cairn.watch.state import State
from cairn.watch.tails import Tail, load_tail, new_lines, save_tail
from cairn.watch.wandb_rows import is_wandb, new_rows

POINTS_A_CHUNK = 5_000
# What a checkpoint may lack and a log may know; of these the newest points are kept after they are sent.
OF_CHECKPOINTS = ("loss", "lr", "tokens_seen")
KEPT_POINTS = 20_000
MAX_STATE_BYTES = 256 * 1024 * 1024
_UNSENT = """
SELECT attempt, name, step, value FROM point WHERE sent = 0 AND run = ? ORDER BY attempt, name, step LIMIT ?
"""
_FORGET = """
DELETE FROM point WHERE sent = 1 AND run = ? AND (name NOT IN (?, ?, ?) OR step < coalesce((
    SELECT step FROM point AS newer
    WHERE newer.run = point.run AND newer.attempt = point.attempt AND newer.name = point.name
    ORDER BY step DESC LIMIT 1 OFFSET ?), 0))
"""


class Curves:
    """The logs of one run within one look."""

    def __init__(self, state: State, run: str, attempts: Attempts, saved: Iterable[Saved]) -> None:
        self._state, self._run, self._attempts, self._saved = state, run, attempts, list(saved)

    def read_log(self, path: str) -> Iterator[Event]:
        """A text log, a run's folder of W&B, or one of MLflow's file store (`mlruns/0/<run>`, a file a metric)."""
        if is_wandb(path):
            tail = load_tail(self._state, path)
            yield from self._take(tail, new_rows(tail))
        elif os.path.isdir(path):
            for metric in _metric_files(Path(path)):
                name = metric.relative_to(Path(path) / "metrics").as_posix()
                yield from self._read(str(metric), lambda line, name=name: _mlflow_point(name, line))  # type: ignore[misc]
        else:
            yield from self._read(path, read_line)

    def read_trainer_state(self, path: str, source: str) -> None:
        """The history of the newest save; what was read from an older one is not read again."""
        tail = load_tail(self._state, source)
        points = list(_history(path))
        if not points:
            return
        last = points[-1].step
        if tail.attempt and last < tail.step:
            begin = max((each.step for each in self._saved if each.step < last), default=-1)
            tail.attempt, tail.step = self._next(tail, last), begin
        tail.attempt = tail.attempt or max(self._attempts.newest(), 1)
        for point in points:
            if point.step > tail.step:
                self._keep(tail.attempt, point)
        tail.step = max(tail.step, last)
        save_tail(self._state, tail)

    def _read(self, path: str, read: Callable[[str], Point | None]) -> Iterator[Event]:
        tail = load_tail(self._state, path)
        yield from self._take(tail, (point for line in new_lines(tail) if (point := read(line)) is not None))

    def _take(self, tail: Tail, points: Iterable[Point]) -> Iterator[Event]:
        try:
            if tail.attempt:
                self._read_on(tail, points)
            else:
                yield from self._read_first(tail, points)
        except OSError as fault:
            text = f"{tail.path} cannot be read: {fault.strerror or fault}."
            if self._state.is_news(text):
                yield Event("problem", text, {"path": tail.path})
        save_tail(self._state, tail)

    def _read_on(self, tail: Tail, points: Iterable[Point]) -> None:
        for point in points:
            if point.step < tail.step:
                tail.attempt = self._next(tail, point.step)
            tail.step = point.step
            self._keep(tail.attempt, point)

    def _read_first(self, tail: Tail, points: Iterable[Point]) -> Iterator[Event]:
        """A log that holds several stretches: the last belongs to the newest attempt, the one before to that before."""
        stretches: list[list[Point]] = []
        for point in points:
            if point.step < tail.step or not stretches:
                stretches.append([])
            tail.step = point.step
            stretches[-1].append(point)
        if not stretches:
            return
        newest = max(self._attempts.newest(), 1)
        for back, stretch in enumerate(reversed(stretches)):
            if newest - back < 1:
                text = (
                    f"{tail.path}: of {len(stretches)} starts, only the last {newest} have an attempt; others left out."
                )
                yield Event("problem", text, {"path": tail.path})
                break
            for point in stretch:
                self._keep(newest - back, point)
        tail.attempt = newest

    def _next(self, tail: Tail, step: int) -> int:
        """The attempt of a log whose steps have gone back: a newer one that is open already, else a new one."""
        if self._attempts.newest() > tail.attempt:
            return self._attempts.newest()
        return self._attempts.open(step, self._saved, f"its log went back from step {tail.step} to {step}")

    def _keep(self, attempt: int, point: Point) -> None:
        values = [(name, json.dumps(number_to_wire(value))) for name, value in point.values.items()]
        rows = [(self._run, attempt, name, point.step, value) for name, value in values]
        insert = "INSERT OR REPLACE INTO point (run, attempt, name, step, value) VALUES (?, ?, ?, ?, ?)"
        self._state.change_many(insert, rows)


def known_values(state: State, run: str, attempt: int, step: int) -> dict[str, Any]:
    """Loss, lr and tokens of a step, as a registration names them, where a log said them."""
    names = ", ".join("?" * len(OF_CHECKPOINTS))
    where = f"run = ? AND attempt = ? AND step = ? AND name IN ({names})"
    rows = state.rows(f"SELECT name, value FROM point WHERE {where}", (run, attempt, step, *OF_CHECKPOINTS))  # noqa: S608
    found = {row["name"]: json.loads(row["value"]) for row in rows}
    tokens = number_from_wire(found.pop("tokens_seen", None))
    if tokens is not None and tokens >= 0 and tokens == int(tokens):
        found["tokens_seen"] = int(tokens)
    return found


def send_curves(state: State, client: Client, project: str, run: str) -> int:
    """Sends what was read; answers the number of points. Raises `CairnError`."""
    count, target = 0, None
    while rows := list(state.rows(_UNSENT, (run, POINTS_A_CHUNK))):
        stretches: dict[tuple[int, str], tuple[list[int], list[Any]]] = {}
        for row in rows:
            steps, values = stretches.setdefault((row["attempt"], row["name"]), ([], []))
            steps.append(row["step"])
            values.append(json.loads(row["value"]))
        target = target or client.find_run(project, run)
        client.record_series(
            target,
            [
                {"attempt": attempt, "name": name, "steps": steps, "values": values}
                for (attempt, name), (steps, values) in stretches.items()
            ],
        )
        state.change_many(
            "UPDATE point SET sent = 1 WHERE run = ? AND attempt = ? AND name = ? AND step = ?",
            [(run, row["attempt"], row["name"], row["step"]) for row in rows],
        )
        count += len(rows)
    if count:
        state.change(_FORGET, (run, *OF_CHECKPOINTS, KEPT_POINTS))
    return count


def _metric_files(folder: Path) -> list[Path]:
    metrics = folder / "metrics"
    return sorted(each for each in metrics.rglob("*") if each.is_file() and not each.is_symlink())


def _mlflow_point(name: str, line: str) -> Point | None:
    """`timestamp value step`, as MLflow's file store writes a metric."""
    parts = line.split()
    if len(parts) != 3 or not parts[2].isdigit() or len(parts[2]) > 18:
        return None
    value = number(parts[1])
    return None if value is None else Point(int(parts[2]), {known_name(name): value})


def _history(path: str) -> Iterator[Point]:
    try:
        if os.path.getsize(path) > MAX_STATE_BYTES:
            return
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        return  # it is being written; the next look reads it
    yield from read_trainer_state(document)
