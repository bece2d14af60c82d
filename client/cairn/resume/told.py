"""Saves that only this host's spool names: for a time without the registry, or before it has heard of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cairn.resume.reach import unreadable
from cairn.spool.census import Held, held_here
from cairn.wire import moment

Record = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """A save as it was recorded. `attempt` None: the service has not numbered it yet; then `started_at` orders it."""

    attempt: int | None
    started_at: str
    record: Record

    @property
    def step(self) -> int:
        step: int = self.record["step"]
        return step

    @property
    def paths(self) -> tuple[str, ...]:
        paths = self.record.get("paths")
        several = paths if isinstance(paths, list) else ()
        return tuple(path for path in several if isinstance(path, str) and "://" not in path)

    @cached_property
    def item(self) -> Record:
        """What would be sent for it, its folder read now; without a digest, for which a launch would have to wait."""
        from cairn.recorder.prepare import Prepared

        return Prepared(lambda text: None, own=False).saved({**self.record, "digest": False}, {})

    def whereabouts(self) -> tuple[str, str]:
        """The path that can be read here, and why none can: one of both is ''."""
        try:
            return self._whereabouts()
        except Exception as fault:  # a record that nobody can read: another one may be sound
            return "", f"what the spool says of it cannot be read ({type(fault).__name__}: {fault})"

    def _whereabouts(self) -> tuple[str, str]:
        _ = self.item
        faults = [(path, unreadable(path)) for path in self.paths]
        path = next((path for path, fault in faults if not fault), "")
        return path, "" if path else (faults[0][1] if faults else "no folder of it is recorded")

    def is_newer_than(self, attempt: int, step: int, saved_at: str) -> bool:
        """Than a checkpoint that a scan has found. An attempt without a number follows all that was saved before it
        began; where that is not known, the step decides."""
        if self.attempt is not None:
            return (self.attempt, self.step) > (attempt, step)
        began, saved = moment(self.started_at), moment(saved_at)
        if began and saved:
            return began >= saved
        return self.step >= step


def told_saves(run: str) -> Iterator[Told]:
    """Every save of a run (project/run, or its id) in the spools of this host, the newest first."""
    attempts: list[Held] = [each for each in held_here(run) if each.saves]
    attempts.sort(key=lambda each: (each.number is None, each.number or 0, each.started_at), reverse=True)
    for each in attempts:
        for record in sorted(each.saves, key=lambda one: one["step"], reverse=True):
            yield Told(each.number, each.started_at, record)
