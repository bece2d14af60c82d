"""Reading a W&B project: runs, their histories, and the artifacts that are checkpoints.

A run's history comes with one scan of all its rows, thinned on the way; later scans go on behind the last row.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, Final

from cairn.formats.wandb_offline.curves import Curves
from cairn.formats.wandb_offline.records import known_axis
from cairn.formats.wandb_offline.shapes import Row
from cairn.formats.wandb_offline.stream import AXIS_ROWS
from cairn.formats.wandb_offline.words import MODEL_TYPES, tags_of

from registry import strict_json
from registry.errors import Invalid
from registry.integrations.open import Place
from registry.integrations.shapes import Batch, Skipped, TrackerCheckpoint, TrackerDataset, TrackerRun, TrackerSeries
from registry.integrations.wandb_api import WandbApi
from registry.integrations.wandb_words import (
    OURS,
    STATES,
    check_names,
    checkpoint_of,
    config_of,
    mark_of,
    metrics_of,
    moment,
    read_mark,
    row_of,
)
from registry.trackers.links import clean_uri

RUNS_A_PAGE: Final = 25
MAX_DATASETS: Final = 100


class NoProject(Invalid):
    code = "tracker-project-missing"
    title = "Which project of W&B is meant is not said"


class WandbReader:
    """A `TrackerReader`. The library's runs of one batch are kept until the next."""

    def __init__(self, api: WandbApi, place: Place) -> None:
        self._api, self._place = api, place
        self._runs: dict[str, Any] = {}
        self._steps: dict[str, set[int]] = {}

    def batches(self, position: str | None) -> Iterator[Batch]:
        """In the order in which they were made; the position is the time of the last one."""
        path = self._path()
        filters = {} if position is None else {"created_at": {"$gte": position}}
        total = self._api.count(path)
        found = self._api.runs(path, filters, RUNS_A_PAGE)
        while True:
            some = list(islice(found, RUNS_A_PAGE))
            self._forget()
            runs = [self._read(run) for run in some]
            last = str(some[-1].created_at) if len(some) == RUNS_A_PAGE else None
            yield Batch(runs, last, total)
            if last is None:
                return

    def run(self, run_id: str) -> TrackerRun:
        self._forget()
        check_names(run_id)
        return self._read(self._api.run(f"{self._path()}/{run_id}"))

    def read_ahead(self, wanted: Sequence[tuple[TrackerRun, Mapping[str, str]]]) -> None:
        """Nothing: each history is a scan of its own."""

    def series(self, run: TrackerRun, known: Mapping[str, str]) -> Iterator[tuple[TrackerSeries, str]]:
        """Only rows behind those that were read before, whose place each curve's text says."""
        begins, axis = max((read_mark(mark) for mark in known.values()), default=(0, ""))
        rows = (row_of(each) for each in self._api.history(self._run(run), begins))
        usable = (row for row in rows if row is not None)
        first = list(islice(usable, AXIS_ROWS))
        axis = axis or known_axis(first)
        yield from _curves(chain(first, usable), axis, self._steps.get(run.run_id, set()), begins)

    def checkpoints(self, runs: Sequence[TrackerRun]) -> Iterator[tuple[str, TrackerCheckpoint]]:
        for run in runs:
            for artifact in self._api.logged(self._run(run)):
                if artifact.type in MODEL_TYPES:
                    found = checkpoint_of(artifact)
                    if found.step is not None:
                        self._steps.setdefault(run.run_id, set()).add(found.step)
                    yield run.run_id, found

    def _path(self) -> str:
        entity, project = self._place.entity or self._api.viewer.get("entity"), self._place.project
        if not entity or not project:
            raise NoProject("Name the project as entity/project, or link the run by its address.")
        check_names(entity, project)
        return f"{entity}/{project}"

    def _run(self, run: TrackerRun) -> Any:
        if run.run_id not in self._runs:
            self._runs[run.run_id] = self._api.run(f"{self._path()}/{run.run_id}")
        return self._runs[run.run_id]

    def _forget(self) -> None:
        self._runs.clear()
        self._steps.clear()

    def _read(self, run: Any) -> TrackerRun:
        self._runs[run.id] = run
        return read_run(run, self._api.uri, list(self._datasets(run)))

    def _datasets(self, run: Any) -> Iterator[TrackerDataset]:
        for artifact in islice(self._api.used(run), MAX_DATASETS):
            if artifact.type == "dataset":
                metadata = artifact.metadata if isinstance(artifact.metadata, Mapping) else {}
                uri = metadata.get("uri")
                shown = clean_uri(uri) if isinstance(uri, str) else None
                yield TrackerDataset(str(artifact.name), artifact.digest or None, shown)


def _curves(rows: Iterator[Row], axis: str, steps: set[int], begins: int) -> Iterator[tuple[TrackerSeries, str]]:
    curves, without, last = Curves(steps), 0, begins - 1
    for row in rows:
        last = max(last, row.index)
        step = row.step_on(axis)
        if step is None:
            without += 1
        else:
            curves.add(step, {name: value for name, value in row.values.items() if name != axis})
    mark = mark_of(last + 1, axis)
    for name, curve in curves.items():
        points = curve.points()
        backwards = "their steps go back; what was logged first stays"
        skipped = [Skipped(f"{curve.backwards} points of {name}", backwards)] if curve.backwards else []
        yield TrackerSeries(name, *points, skipped), mark
    skipped = []
    if without:
        skipped.append(
            Skipped(f"{without} rows of the history", f"they do not say {axis}, which counts the steps here")
        )
    if curves.left_out:
        skipped.append(Skipped(f"{len(curves.left_out)} curves", "a run keeps 200 curves"))
    if skipped:
        yield TrackerSeries("", (), (), skipped), mark


def read_run(run: Any, uri: str, datasets: Sequence[TrackerDataset] = ()) -> TrackerRun:
    """A run as the library describes it."""
    tags = [tag for tag in run.tags or () if not tag.startswith(OURS)]
    config, skipped = config_of(run.config)
    metrics = metrics_of(run.summary_metrics)
    known = {name: getattr(run, name, None) for name in ("group", "job_type", "notes")}
    said = {name: str(value) if value else "" for name, value in known.items()}
    commit = getattr(run, "commit", None)
    ended = run.state in ("finished", "failed", "crashed", "killed", "preempted")
    found = TrackerRun(
        kind="wandb",
        run_id=str(run.id),
        name=str(run.name or run.id),
        uri=uri,
        entity=str(run.entity),
        project=str(run.project),
        state=STATES.get(str(run.state)),
        config=config or None,
        tags=tags_of(tags, group=said["group"], job_type=said["job_type"], notes=said["notes"]),
        commit=str(commit) if commit else None,
        owner=_owner(run),
        started_at=moment(getattr(run, "created_at", None)),
        ended_at=moment(getattr(run, "heartbeatAt", None)) if ended else None,
        datasets=datasets,
        metrics=metrics,
        skipped=skipped,
        notes=["W&B calls it crashed: it fell silent"] if run.state == "crashed" else [],
    )
    return _with_version(found, str(getattr(run, "heartbeatAt", "")))


def _owner(run: Any) -> str | None:
    user = getattr(run, "user", None)
    name = getattr(user, "username", None) or getattr(user, "name", None)
    return str(name) if name else None


def _with_version(run: TrackerRun, heartbeat: str) -> TrackerRun:
    """A text that changes with the run, but not with what we wrote there ourselves."""
    said: list[Any] = [
        run.name,
        run.state,
        dict(run.config or {}),
        dict(run.tags),
        run.commit,
        dict(run.metrics),
        heartbeat,
    ]
    said.append([[each.name, each.digest] for each in run.datasets])
    text = strict_json.canonical({"said": said}).encode()
    return TrackerRun(**{**vars(run), "version": blake2b(text, digest_size=12).hexdigest()})
