"""What one `.wandb` file holds that the registry keeps: read twice, in bounded memory, however long the history is.

First the run and its artifacts are read, which says at which steps checkpoints are; then the history, which is thinned
on the way but for these steps.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairn.formats.wandb_offline import (
    Artifact,
    Facts,
    Row,
    Stream,
    artifact_place,
    find_axis,
    problems_of,
    run_state,
    step_of,
)
from cairn.formats.wandb_offline.curves import Curves
from cairn.formats.wandb_offline.words import MODEL_TYPES
from cairn.wandb_import.report import Skipped

MAX_ARTIFACTS = 100_000
# What W&B itself logs beside a run; nobody misses it in a report.
_INNER_TYPES = ("job", "run_table", "code")


@dataclass(frozen=True)
class Saved:
    """A checkpoint as an artifact says it. `place` is where it lies, None for an uploaded copy.

    `values` is what the history says at its step, `at` when (seconds since 1970); `at_is_exact` is false where it is
    the time of the row before it, since its own step was not logged.
    """

    name: str
    step: int
    step_source: str
    aliases: tuple[str, ...]
    metadata: Mapping[str, Any]
    digest: str
    bytes: int
    file_count: int
    place: str | None
    values: Mapping[str, float] = field(default_factory=dict)
    at: float | None = None
    at_is_exact: bool = True


@dataclass(frozen=True)
class Gathered:
    """`rest_may_come`: the rows of the newest steps may not be written yet, so their checkpoints wait."""

    file: Path
    facts: Facts
    state: str
    state_reason: str
    saved: tuple[Saved, ...]
    curves: Curves
    first_step: int | None
    last_step: int | None
    first_at: float | None
    last_at: float | None
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]

    @property
    def rest_may_come(self) -> bool:
        return self.state == "running"


def gather(file: Path) -> Gathered:
    """Raises `Refused` for what is no file of W&B, OSError for what cannot be read."""
    skipped: list[Skipped] = []
    with Stream(file, rows=False, summary=False) as stream:
        artifacts = [each for item in stream if isinstance(item, Artifact) for each in _slim(item, skipped)]
        facts = stream.facts
        problems = list(problems_of(stream))
    facts.axis = find_axis(file)
    saved = {each.step: each for each in _one_a_step(artifacts, skipped)}
    history = _History(facts.axis, frozenset(saved))
    with Stream(file, summary=False) as stream:
        for item in stream:
            if isinstance(item, Row):
                history.add(item)
    state, reason = run_state(file, facts)
    notes = [*problems, *_axis_notes(facts.axis, history)]
    return Gathered(
        file=file,
        facts=facts,
        state=state,
        state_reason=reason,
        saved=tuple(history.fill(each) for _, each in sorted(saved.items())),
        curves=history.curves,
        first_step=history.first_step,
        last_step=history.last_step,
        first_at=history.first_at,
        last_at=history.last_at,
        skipped=(*skipped, *history.left_out()),
        notes=tuple(notes),
    )


def _slim(artifact: Artifact, skipped: list[Skipped]) -> Iterator[Saved]:
    """The artifact without its list of files, where it is a checkpoint of a known step."""
    if artifact.type not in MODEL_TYPES:
        if not artifact.type.startswith("wandb-") and artifact.type not in _INNER_TYPES:
            skipped.append(Skipped(f"artifact {artifact.name}", f"of type {artifact.type!r}, not a model"))
        return
    found = step_of(artifact)
    if found.step is None:
        reason = "nobody says its step: no alias, metadata or name does"
        skipped.append(Skipped(f"artifact {artifact.name}", reason))
    elif found.disagreements:
        skipped.append(Skipped(f"artifact {artifact.name}", f"its step is unclear: {'; '.join(found.disagreements)}"))
    else:
        yield Saved(
            name=artifact.name,
            step=found.step,
            step_source=found.source,
            aliases=artifact.aliases,
            metadata=artifact.metadata,
            digest=artifact.digest,
            bytes=artifact.bytes,
            file_count=artifact.entry_count,
            place=artifact_place(artifact),
        )


def _one_a_step(found: list[Saved], skipped: list[Skipped]) -> Iterator[Saved]:
    """An artifact that was logged again is the same one, with the names and the place of both."""
    by_step: dict[int, Saved] = {}
    for each in found:
        first = by_step.setdefault(each.step, each)
        if first is each:
            continue
        if each.digest and each.digest == first.digest:
            aliases = tuple(dict.fromkeys((*first.aliases, *each.aliases)))
            by_step[each.step] = Saved(**{**vars(first), "aliases": aliases, "place": first.place or each.place})
        else:
            skipped.append(Skipped(f"artifact {each.name}", f"{first.name} is of the same step {each.step}"))
    yield from by_step.values()


class _History:
    """Goes through the rows: thins curves, and keeps exactly what stands at the steps of checkpoints."""

    def __init__(self, axis: str, steps: frozenset[int]) -> None:
        self._axis, self._steps = axis, steps
        self._in_order = sorted(steps)
        self._before: dict[int, float] = {}
        self.curves = Curves(steps)
        self._values: dict[int, dict[str, float]] = {}
        self._at: dict[int, float] = {}
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.without_step = 0

    def add(self, row: Row) -> None:
        step = row.step_on(self._axis)
        self.first_at = row.at if self.first_at is None else self.first_at
        self.last_at = row.at or self.last_at
        if step is None:
            self.without_step += 1
            return
        self.first_step = step if self.first_step is None else min(self.first_step, step)
        self.last_step = step if self.last_step is None else max(self.last_step, step)
        values = {name: value for name, value in row.values.items() if name != self._axis}
        self.curves.add(step, values)
        place = bisect_left(self._in_order, step)
        if place < len(self._in_order) and row.at is not None:
            self._before[self._in_order[place]] = row.at
        if step in self._steps:
            self._values.setdefault(step, {}).update(values)
            if row.at is not None:
                self._at[step] = row.at

    def fill(self, saved: Saved) -> Saved:
        at = self._at.get(saved.step)
        earlier = [step for step in self._in_order if step <= saved.step and step in self._before]
        near = self._before[earlier[-1]] if earlier else None
        said = {"values": self._values.get(saved.step, {}), "at": at or near, "at_is_exact": at is not None}
        return Saved(**{**vars(saved), **said})

    def left_out(self) -> Iterator[Skipped]:
        if self.without_step:
            yield Skipped(f"{self.without_step:,} rows", f"they do not say {self._axis}, which counts the steps here")
        if self.curves.left_out:
            some = ", ".join(sorted(self.curves.left_out)[:5])
            yield Skipped(f"{len(self.curves.left_out):,} curves ({some})", "a run keeps 200 curves")
        for name, curve in self.curves.items():
            if curve.backwards:
                yield Skipped(f"{curve.backwards:,} points of {name}", "their steps go back within one folder")


def _axis_notes(axis: str, history: _History) -> Iterator[str]:
    if axis != "_step":
        yield f"steps are those of {axis}, not W&B's own counter"
    if history.last_step is None:
        yield "the history has no rows"


def folder_name(file: Path) -> str:
    """How a report names a file: by its folder, which says when the run began."""
    return os.path.join(file.parent.name, file.name)
