"""What an offline folder says, as plain values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INDEX = "_step"  # W&B's own counter of log calls
# What frameworks call the training's step, where it is not W&B's own counter.
KNOWN_AXES = ("train/global_step", "trainer/global_step")


@dataclass(frozen=True)
class Row:
    """One line of the history: numbers by name, those of nested values as `a.b`; NaN and infinities are kept.

    `index` is W&B's own counter. The training's step is what `step_on` says; `at` is in seconds since 1970.
    """

    index: int
    values: Mapping[str, float]
    at: float | None = None

    def step_on(self, axis: str) -> int | None:
        """The step on an axis such as `train/global_step`; None where this row does not say it as a whole number."""
        if axis == INDEX:
            return self.index
        found = self.values.get(axis, math.nan)
        return int(found) if math.isfinite(found) and found == int(found) and 0 <= found < 2**63 else None


@dataclass(frozen=True)
class Entry:
    """A file of an artifact. `ref` is where it lies; None for one that was uploaded."""

    path: str
    bytes: int
    ref: str | None = None


@dataclass(frozen=True)
class Artifact:
    """An artifact as it was logged. `entries` holds the first of `entry_count` files, `bytes` is that of all.

    `after_index`: W&B's counter of the last row that stands before it in the file. The row of the step at which it
    was logged may still follow, since a row is written when the next step begins.
    """

    name: str
    type: str
    digest: str
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    entry_count: int = 0
    bytes: int = 0
    manifest_file: str | None = None
    after_index: int | None = None


@dataclass(frozen=True)
class Exit:
    code: int
    runtime_seconds: int | None = None


@dataclass
class Facts:
    """What is known of a run so far. `axis`: the name of the numbers that are the training's step.

    `started_at` is in seconds since 1970. `remote` is without a password.
    """

    run_id: str = ""
    entity: str = ""
    project: str = ""
    name: str = ""
    group: str = ""
    job_type: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    host: str = ""
    user: str = ""
    started_at: float | None = None
    resumed: bool = False
    version: str = ""  # of the wandb library that wrote it
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    remote: str = ""
    axis: str = INDEX
    exit: Exit | None = None


@dataclass(frozen=True)
class OfflineRun:
    """What one `.wandb` file holds from a place on, as `read_folder` gives it.

    `facts.config` and `facts.summary` hold what the beginning of the file and the newly read part say. `state` is
    finished, failed, running or crashed, and `state_reason` says what shows it. `offset` is where to read on;
    `more` says that there is more to read now. `problems`: what was damaged or left out.
    """

    file: Path
    facts: Facts
    rows: tuple[Row, ...]
    artifacts: tuple[Artifact, ...]
    state: str
    state_reason: str
    offset: int
    more: bool
    problems: tuple[str, ...] = ()
