"""Rows for the tests of filters and listings, written straight into the tables: the least that is valid."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from registry.db import split_number
from registry.ids import new_id
from registry.models import (
    Attempt,
    Benchmark,
    Checkpoint,
    CheckpointMetric,
    CheckpointTag,
    CodeVersion,
    Config,
    ConfigEntry,
    CurrentScore,
    DataVersion,
    Layout,
    Piece,
    Project,
    Replica,
    Run,
    RunTag,
    ScoreMetric,
    ScoreSeries,
)

START = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass
class World:
    """One project, and a run in it to which checkpoints go unless they name another."""

    session: Session
    name: str = "lab"
    project_id: int = field(default_factory=new_id)
    runs: dict[str, tuple[int, dict[int, int]]] = field(default_factory=dict)
    metrics: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    benchmarks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._add(Project, id=self.project_id, name=self.name, created_at=START)

    def _add(self, table: Any, **values: Any) -> None:
        self.session.execute(insert(table), [values])

    def run(self, name: str = "base", *, tags: Mapping[str, str] | None = None, **values: Any) -> int:
        if name not in self.runs:
            identity = new_id()
            self._add(Run, id=identity, project_id=self.project_id, name=name, created_at=START, **values)
            self.runs[name] = (identity, {})
            for tag, value in (tags or {}).items():
                self._add(RunTag, project_id=self.project_id, run_id=identity, name=tag, value=value)
        return self.runs[name][0]

    def attempt(self, run: str = "base", number: int = 1, *, live_through_step: int | None = None) -> int:
        run_id = self.run(run)
        attempts = self.runs[run][1]
        if number not in attempts:
            attempts[number] = new_id()
            self._add(
                Attempt,
                id=attempts[number],
                project_id=self.project_id,
                run_id=run_id,
                number=number,
                state="running",
                restart=False,
                live_through_step=live_through_step,
                created_at=START,
            )
        return attempts[number]

    def checkpoint(
        self,
        step: int,
        *,
        run: str = "base",
        attempt: int = 1,
        minutes: int | None = None,
        scores: Mapping[str | tuple[str, str, str], float] | None = None,
        metrics: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        pieces: Mapping[str, str] | None = None,
        config: Mapping[str, tuple[float | None, str]] | None = None,
        replicas: list[dict[str, Any]] | None = None,
        code: Mapping[str, Any] | None = None,
        layout: Mapping[str, Any] | None = None,
        data_version: str | None = None,
        **values: Any,
    ) -> int:
        identity = new_id()
        own = {"id": identity, "project_id": self.project_id, "run_id": self.run(run), "step": step}
        own |= {"attempt_id": self.attempt(run, attempt), "attempt_number": attempt, "kind": "archive"}
        own |= {"state": "committed", "saved_at": START + timedelta(minutes=step if minutes is None else minutes)}
        own |= {"saved_at_assumed": False, "milestone": False, "registration": b"", "created_at": START}
        own |= {"committed_at": START}
        for name in ("loss", "lr"):
            own[name], own[f"{name}_special"] = split_number(values.pop(name, None))
        own["config_id"] = self._config(config)
        own["code_version_id"] = self._snapshot(CodeVersion, code)
        own["layout_id"] = self._snapshot(Layout, layout)
        own["data_version_id"] = self._data_version(data_version)
        self._add(Checkpoint, **own | values)
        here = {"project_id": self.project_id, "checkpoint_id": identity}
        for benchmark, score in (scores or {}).items():
            self.score(identity, benchmark, score)
        for name, number in (metrics or {}).items():
            value, special = split_number(number)
            self._add(CheckpointMetric, **here, name=name, value=value, special=special)
        for name, text in (tags or {}).items():
            self._add(CheckpointTag, **here, name=name, value=text)
        for name, presence in (pieces or {}).items():
            self._add(Piece, **here, name=name, presence=presence)
        for replica in replicas or []:
            base = {"id": new_id(), "uri": f"/ckpt/{new_id()}", "tier": "shared", "state": "present"}
            base |= {"verification": "unverified", "managed": False, "recorded_at": START}
            self._add(Replica, **here, **base | replica)
        return identity

    def score(self, checkpoint_id: int, benchmark: str | tuple[str, str, str], score: float) -> None:
        key = benchmark if isinstance(benchmark, tuple) else (benchmark, "acc", "")
        metric_id, series_id = self._metric(key)
        value, special = split_number(score)
        self._add(
            CurrentScore,
            project_id=self.project_id,
            checkpoint_id=checkpoint_id,
            score_metric_id=metric_id,
            series_id=series_id,
            value=value,
            special=special,
            evaluated_micros=0,
            arrival=new_id(),
        )

    def _metric(self, key: tuple[str, str, str]) -> tuple[int, int]:
        if key not in self.metrics:
            name, metric, filter = key
            if name not in self.benchmarks:
                self.benchmarks[name] = new_id()
                self._add(Benchmark, id=self.benchmarks[name], project_id=self.project_id, name=name, created_at=START)
            metric_id, series_id = new_id(), new_id()
            self._add(
                ScoreMetric,
                id=metric_id,
                project_id=self.project_id,
                benchmark_id=self.benchmarks[name],
                metric=metric,
                filter=filter,
            )
            self._add(
                ScoreSeries,
                id=series_id,
                project_id=self.project_id,
                score_metric_id=metric_id,
                digest=repr(key).encode(),
                comparability="{}",
            )
            self.metrics[key] = (metric_id, series_id)
        return self.metrics[key]

    def _config(self, entries: Mapping[str, tuple[float | None, str]] | None) -> int | None:
        if entries is None:
            return None
        identity = new_id()
        digest = str(identity).encode()
        self._add(Config, id=identity, project_id=self.project_id, digest=digest, body=b"", created_at=START)
        for path, (number, text) in entries.items():
            self._add(ConfigEntry, project_id=self.project_id, config_id=identity, path=path, number=number, text=text)
        return identity

    def _snapshot(self, table: Any, values: Mapping[str, Any] | None) -> int | None:
        if values is None:
            return None
        identity = new_id()
        digest = str(identity).encode()
        self._add(table, id=identity, project_id=self.project_id, digest=digest, created_at=START, **values)
        return identity

    def _data_version(self, name: str | None) -> int | None:
        if name is None:
            return None
        identity = new_id()
        digest = str(identity).encode()
        self._add(DataVersion, id=identity, project_id=self.project_id, name=name, mix_digest=digest, created_at=START)
        return identity
