"""What an experiment tracker tells of its runs, in our words, and what is told to it: the same for every tracker.

A reader turns the tracker's own answers into these; `registry.integrations.apply` brings them into the registry.
Numbers may be non-finite; times are aware UTC; None is unknown. A reader never guesses: what it leaves out, it says in
`skipped`, and what it cannot be sure of in `notes`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from registry.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable

KINDS: Final = ("mlflow", "wandb")


class TrackerUnreachable(Unavailable):
    """The tracker did not answer, or answered 429 or 5xx: trying again later may help."""

    code = "tracker-unreachable"
    title = "The experiment tracker does not answer"


class TrackerRefused(Forbidden):
    """401 or 403: other credentials are needed."""

    code = "tracker-refused"
    title = "The experiment tracker refuses us"


class TrackerRunNotFound(NotFound):
    code = "tracker-run-not-found"
    title = "The experiment tracker has no such run"


class TrackerRunDeleted(Conflict):
    code = "tracker-run-deleted"
    title = "The run is deleted in the experiment tracker"


class TrackerAnswerUnknown(Invalid):
    """It answered, but not as such a tracker does: a wrong address, a proxy's page, a version we do not know."""

    code = "tracker-answer-unknown"
    title = "This does not answer as an experiment tracker"


class TrackerCertificateUntrusted(Invalid):
    code = "tracker-certificate-untrusted"
    title = "The certificate of the experiment tracker is not trusted"


@dataclass(frozen=True)
class Skipped:
    """Something that is there and was left out, and why."""

    item: str
    reason: str


@dataclass(frozen=True)
class TrackerDataset:
    """A data set that a run read. `digest` is the tracker's own; `context` such as training or eval."""

    name: str
    digest: str | None = None
    uri: str | None = None
    context: str | None = None


@dataclass(frozen=True)
class TrackerRun:
    """One run as its tracker describes it.

    `uri` is the tracker's address without userinfo; `project` its own project (of MLflow: the experiment's name, with
    the experiment's id in `project_id`). `state` is that of an attempt here (running, finished, failed, stopped), or
    None where the tracker does not know. `deleted`: it is in the tracker's bin. `metrics` are the newest values.
    `version` is any text that changes when the run changes there: equal text lets a sync stop early.
    """

    kind: str
    run_id: str
    name: str
    uri: str = ""
    entity: str | None = None
    project: str | None = None
    project_id: str | None = None
    state: str | None = None
    deleted: bool = False
    config: Mapping[str, Any] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    remote: str | None = None
    owner: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    datasets: Sequence[TrackerDataset] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    version: str | None = None
    skipped: Sequence[Skipped] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class TrackerSeries:
    """One curve, whole as the tracker has it: steps strictly ascending (of a step given twice, the last one)."""

    name: str
    steps: Sequence[int]
    values: Sequence[float]
    skipped: Sequence[Skipped] = ()


@dataclass(frozen=True)
class TrackerScore:
    """A number that the tracker ties to a checkpoint, under the tracker's own name; benchmarks are told apart later."""

    name: str
    value: float
    at: datetime | None = None


@dataclass(frozen=True)
class TrackerCheckpoint:
    """A model or artifact that is a saved state. `external_id` is the tracker's own id; `step` None: nobody says.

    `cairn_id` is set where the tracker's record was made by this registry: it is met again, never imported.
    """

    external_id: str
    name: str
    step: int | None
    uri: str | None = None
    aliases: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None
    saved_at: datetime | None = None
    epoch: float | None = None
    bytes: int | None = None
    scores: Sequence[TrackerScore] = ()
    cairn_id: str | None = None
    skipped: Sequence[Skipped] = ()


@dataclass(frozen=True)
class Batch:
    """Some runs of an import, and the position from which the next batch starts (None: this was the last).

    `total` is the number of runs of the whole import, where the tracker says it.
    """

    runs: Sequence[TrackerRun]
    position: str | None
    total: int | None = None


class TrackerReader(Protocol):
    """Reads one place of a tracker (an experiment, a project). Raises the Tracker errors above, nothing else."""

    def batches(self, position: str | None) -> Iterator[Batch]:
        """Every run of the place from a position on, in an order that does not change; bounded batches."""
        ...

    def run(self, run_id: str) -> TrackerRun:
        """One run. Raises TrackerRunNotFound; a deleted run is given with `deleted`."""
        ...

    def read_ahead(self, wanted: Sequence[tuple[TrackerRun, Mapping[str, str]]]) -> None:
        """`series` is asked for of each of these next, with what is known: a tracker that tells of many runs with one
        call may read them now."""
        ...

    def series(self, run: TrackerRun, known: Mapping[str, str]) -> Iterator[tuple[TrackerSeries, str]]:
        """The run's curves, each with a text that changes when the curve does; those with the text known are left out.

        `known` holds those texts by name, as an earlier call gave them.
        """
        ...

    def checkpoints(self, runs: Sequence[TrackerRun]) -> Iterator[tuple[str, TrackerCheckpoint]]:
        """The checkpoints of these runs, each with the id of its run, in bulk where the tracker can."""
        ...


@dataclass(frozen=True)
class CheckpointPush:
    """A committed checkpoint as a tracker is told of it. `link` is our page; `external_id` what it has there by now.

    `verdict` is ok, deleted or suspect; `aliases` are those that point at it here. `scores` by
    'benchmark.metric.filter' without empty parts; they may be non-finite.
    """

    checkpoint_id: str
    name: str
    step: int
    attempt: int
    kind: str
    path: str | None
    resumability: str
    digest: str | None
    bytes: int | None
    saved_at: datetime
    loss: float | None
    scores: Mapping[str, float]
    aliases: Sequence[str]
    verdict: str
    link: str
    external_id: str | None = None

    def facts(self) -> dict[str, Any]:
        """What every tracker is told of it; aliases and numbers each in its own way."""
        named = ("link", "path", "step", "attempt", "kind")
        return {
            "checkpoint": self.checkpoint_id,
            **{name: getattr(self, name) for name in named},
            "completeness": self.resumability,
            "digest": self.digest,
            "bytes": self.bytes,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class RunPush:
    """What a tracker's run is told: 'newest', 'best', 'production' (each alias of ours) to a line of text each.

    Keys are plain words; the writer puts its own prefix (`cairn.` or `cairn/`) before them. A value of None takes the
    entry away.
    """

    values: Mapping[str, str | None]


class TrackerWriter(Protocol):
    """Writes to one run of a tracker. Every call may be repeated without harm. Raises the Tracker errors above."""

    def push_checkpoints(self, run_id: str, checkpoints: Sequence[CheckpointPush]) -> Iterator[tuple[str, str | None]]:
        """Tell of these; yields each checkpoint's id with the tracker's id for it, as soon as it is there whole."""
        ...

    def push_run(self, run_id: str, push: RunPush) -> None:
        """Set what the run itself says of its checkpoints, and nothing else of the run."""
        ...
