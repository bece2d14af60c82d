"""A tracker in memory, behind the protocol that every reader and writer has: what we do not own, at its edge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from registry.errors import RegistryError
from registry.integrations.shapes import (
    Batch,
    CheckpointPush,
    RunPush,
    TrackerCheckpoint,
    TrackerRun,
    TrackerRunNotFound,
    TrackerSeries,
)


@dataclass
class MemoryTracker:
    """`fail` is raised by the next calls, as many as it holds."""

    all_runs: list[TrackerRun] = field(default_factory=list)
    curves: dict[str, list[TrackerSeries]] = field(default_factory=dict)
    models: dict[str, list[TrackerCheckpoint]] = field(default_factory=dict)
    fail: list[RegistryError] = field(default_factory=list)
    told: dict[str, CheckpointPush] = field(default_factory=dict)
    told_run: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    a_batch: int = 2

    def batches(self, position: str | None) -> Iterator[Batch]:
        at = int(position or 0)
        while True:
            self._call("batch")
            following = at + self.a_batch
            last = following >= len(self.all_runs)
            yield Batch(self.all_runs[at:following], None if last else str(following), len(self.all_runs))
            if last:
                return
            at = following

    def run(self, run_id: str) -> TrackerRun:
        self._call("run")
        for each in self.all_runs:
            if each.run_id == run_id:
                return each
        raise TrackerRunNotFound(f"no run {run_id}")

    def read_ahead(self, wanted: Sequence[tuple[TrackerRun, Mapping[str, str]]]) -> None:
        """Nothing."""

    def series(self, run: TrackerRun, known: Mapping[str, str]) -> Iterator[tuple[TrackerSeries, str]]:
        for curve in self.curves.get(run.run_id, ()):
            mark = str(len(curve.steps))
            if known.get(curve.name) != mark:
                self._call("series")
                yield curve, mark

    def checkpoints(self, runs: Sequence[TrackerRun]) -> Iterator[tuple[str, TrackerCheckpoint]]:
        self._call("checkpoints")
        for run in runs:
            for model in self.models.get(run.run_id, ()):
                yield run.run_id, model

    def push_checkpoints(self, run_id: str, checkpoints: Sequence[CheckpointPush]) -> Iterator[tuple[str, str | None]]:
        for push in checkpoints:
            self._call("push")
            self.told[push.checkpoint_id] = push
            yield push.checkpoint_id, push.external_id or f"m-{push.checkpoint_id}"

    def push_run(self, run_id: str, push: RunPush) -> None:
        self._call("push_run")
        for key, value in push.values.items():
            if value is None:
                self.told_run.pop(key, None)
            else:
                self.told_run[key] = value

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.fail:
            raise self.fail.pop(0)
