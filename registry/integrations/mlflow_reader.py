"""Reading an MLflow experiment: runs, their curves, and the models and artifacts that are checkpoints.

Many runs and models come with one call. A model's step is not part of the model: it stands with the outputs of its run.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from threading import Lock
from typing import Any, Final

from registry import strict_json
from registry.errors import Invalid
from registry.integrations.http import AT_ONCE
from registry.integrations.mlflow_api import Doc, MlflowSource
from registry.integrations.mlflow_artifacts import ArtifactFolders
from registry.integrations.mlflow_checkpoints import aliases_of, from_model
from registry.integrations.mlflow_curves import Points, curve_of, read_points, read_points_of_runs
from registry.integrations.mlflow_versions import ModelRegistry, Version
from registry.integrations.mlflow_words import OWN, OWN_METRIC, STATES, config_of, moment, number
from registry.integrations.open import Place
from registry.integrations.parallel import in_order
from registry.integrations.shapes import Batch, Skipped, TrackerCheckpoint, TrackerDataset, TrackerRun, TrackerSeries
from registry.trackers.links import clean_uri

MAX_CURVES: Final = 200  # of a run; those that say most of a training come first
SHORT: Final = 2_000  # steps; curves of so many runs are worth one call for all, longer ones a call each
POINTS_AHEAD: Final = 1_000_000  # that are kept: 24 MB
_FIRST: Final = ("loss", "lr", "learning_rate", "grad_norm", "tokens")
_KEPT: Final = ("mlflow.parentRunId", "mlflow.note.content", "mlflow.source.name")


class NoExperiment(Invalid):
    code = "tracker-experiment-missing"
    title = "Which experiment is meant is not said"


class MlflowReader:
    """A `TrackerReader`. The documents of the runs of one batch are kept until the next."""

    def __init__(self, api: MlflowSource, place: Place) -> None:
        self._api, self._place = api, place
        self._registry = ModelRegistry(api)
        self._folders = ArtifactFolders(api)
        self._lock = Lock()
        self._docs: dict[str, Doc] = {}
        self._names: dict[str, str] = {}
        self._histories: dict[tuple[str, str], Points] = {}  # for values of models
        self._ahead: dict[tuple[str, str], Points] = {}  # for curves that are asked for next

    def batches(self, position: str | None) -> Iterator[Batch]:
        if not self._place.project:
            raise NoExperiment("Name the experiment to import, by its name or id.")
        experiment = self._api.experiment(self._place.project)
        identity = str(experiment.get("experiment_id", ""))
        self._names[identity] = str(experiment.get("name", identity))
        while True:
            docs, following = self._api.search_runs(identity, position)
            self._forget()
            yield Batch([self._read(doc) for doc in docs], following)
            if following is None:
                return
            position = following

    def run(self, run_id: str) -> TrackerRun:
        self._forget()
        return self._read(self._api.run(run_id))

    def read_ahead(self, wanted: Sequence[tuple[TrackerRun, Mapping[str, str]]]) -> None:
        self._ahead.clear()
        runs_of: dict[str, list[str]] = {}
        for run, known in wanted:
            for key, _, last in self._due(run, known)[0]:
                if last < SHORT:
                    runs_of.setdefault(key, []).append(run.run_id)
        shared = [(key, run_ids) for key, run_ids in runs_of.items() if len(run_ids) > 1]
        many = in_order(lambda pair: (pair[0], dict(read_points_of_runs(self._api, pair[1], pair[0]))), shared)
        with closing(many):
            for key, found in many:
                self._ahead |= {(run_id, key): points for run_id, points in found.items()}
                if sum(map(len, self._ahead.values())) > POINTS_AHEAD:
                    break

    def series(self, run: TrackerRun, known: Mapping[str, str]) -> Iterator[tuple[TrackerSeries, str]]:
        due, left = self._due(run, known)
        for (key, mark, _), points in zip(due, in_order(lambda each: self._points(run, each[0]), due), strict=True):
            yield curve_of(key, points), mark
        if left and "" not in known:
            reason = f"curves of the machine, and more than {MAX_CURVES} curves, are left out"
            yield TrackerSeries("", (), (), (Skipped(f"{left} curves of {run.name}", reason),)), "left out"

    def _due(self, run: TrackerRun, known: Mapping[str, str]) -> tuple[list[tuple[str, str, int]], int]:
        """The curves that changed: name, text of their end, and last step; and how many are left out."""
        latest = {str(each.get("key")): each for each in _of(self._doc(run), "data", "metrics")}
        own = [key for key in sorted(latest, key=_importance) if not key.startswith(OWN_METRIC)]
        usable = [key for key in own if not key.startswith("system/")][:MAX_CURVES]
        due = []
        for key in usable:
            step, at, value = (latest[key].get(name, 0) for name in ("step", "timestamp", "value"))
            mark = f"{step}:{at}:{value}"
            if known.get(key) != mark:
                due.append((key, mark, int(step)))
        return due, len(own) - len(usable)

    def _points(self, run: TrackerRun, key: str) -> Points:
        ahead = self._ahead.pop((run.run_id, key), None)
        return read_points(self._api, run.run_id, key) if ahead is None else ahead

    def checkpoints(self, runs: Sequence[TrackerRun]) -> Iterator[tuple[str, TrackerCheckpoint]]:
        self._histories.clear()
        by_experiment: dict[str, list[TrackerRun]] = {}
        for run in runs:
            by_experiment.setdefault(run.project_id or "", []).append(run)
        versions = self._registry.versions([run.run_id for run in runs])
        for experiment, own in by_experiment.items():
            for run_id, found in self._models(experiment, {run.run_id: run for run in own}, versions):
                versions[run_id] = [v for v in versions.get(run_id, ()) if not v.is_of(found.external_id, found.uri)]
                yield run_id, found
        places = {run.run_id: str(_of(self._doc(run), "info").get("artifact_uri", "")) for run in runs}
        for run_id, of_run in self._folders.of_runs(places):
            for found in of_run:
                registered = [each for each in versions.get(run_id, ()) if each.is_of("", found.uri)]
                yield run_id, replace(found, aliases=(*found.aliases, *aliases_of(registered)))
                versions[run_id] = [each for each in versions.get(run_id, ()) if each not in registered]
        for run_id, rest in versions.items():
            for version in rest:
                yield run_id, version.as_checkpoint()

    def _models(
        self, experiment: str, runs: Mapping[str, TrackerRun], versions: Mapping[str, Sequence[Version]]
    ) -> Iterator[tuple[str, TrackerCheckpoint]]:
        steps = {run_id: self._steps(run) for run_id, run in runs.items()}

        def read(run_ids: Sequence[str]) -> list[tuple[str, TrackerCheckpoint]]:
            return [
                (run_id, from_model(model, steps[run_id], self._value_at, versions.get(run_id, ())))
                for model in self._api.models_of_runs(experiment, run_ids)
                if (run_id := str(_of(model, "info").get("source_run_id", ""))) in runs
            ]

        some = -(-len(runs) // AT_ONCE)
        for found in in_order(read, [list(runs)[at : at + some] for at in range(0, len(runs), some)]):
            yield from found

    def _steps(self, run: TrackerRun) -> dict[str, int]:
        """Model id to step, from the outputs of the run."""
        outputs = _of(self._doc(run), "outputs", "model_outputs")
        return {str(each.get("model_id")): int(each.get("step", 0)) for each in outputs}

    def _value_at(self, run_id: str, key: str, step: int, timestamp: int) -> float | None:
        """What a run's own metric says at a point; None where it has no such point."""
        doc = self._docs.get(run_id)
        for point in [] if doc is None else _of(doc, "data", "metrics"):
            if (point.get("key"), int(point.get("step", 0)), int(point.get("timestamp", 0))) == (key, step, timestamp):
                return number(point.get("value"))
        points = self._histories.get((run_id, key))
        if points is None:
            points = read_points(self._api, run_id, key)
            with self._lock:
                if sum(map(len, self._histories.values())) > POINTS_AHEAD:
                    self._histories.clear()
                self._histories[run_id, key] = points
        return points.value_at(step, timestamp)

    def _doc(self, run: TrackerRun) -> Doc:
        if run.run_id not in self._docs:
            self._docs[run.run_id] = self._api.run(run.run_id)
        return self._docs[run.run_id]

    def _forget(self) -> None:
        self._docs.clear()
        self._histories.clear()
        self._ahead.clear()

    def _read(self, doc: Doc) -> TrackerRun:
        info = _of(doc, "info")
        run_id = str(info.get("run_id") or info.get("run_uuid") or "")
        self._docs[run_id] = doc
        return read_run(doc, self._place.uri, self._experiment_name(str(info.get("experiment_id", ""))))

    def _experiment_name(self, identity: str) -> str:
        if identity not in self._names:
            self._names[identity] = str(self._api.experiment_by_id(identity).get("name", identity))
        return self._names[identity]


def read_run(doc: Doc, uri: str, experiment: str) -> TrackerRun:
    """A run as MLflow's answer describes it."""
    info, data = _of(doc, "info"), _of(doc, "data")
    tags = {str(tag.get("key", "")): str(tag.get("value", "")) for tag in data.get("tags", ())}
    config, doubts = config_of(data.get("params", ()))
    started, ended = moment(info.get("start_time")), moment(info.get("end_time"))
    remote = tags.get("mlflow.source.git.repoURL")
    values = {str(each.get("key")): number(each.get("value")) for each in data.get("metrics", ())}
    return TrackerRun(
        kind="mlflow",
        run_id=str(info.get("run_id") or info.get("run_uuid") or ""),
        name=str(info.get("run_name") or tags.get("mlflow.runName") or info.get("run_id") or ""),
        uri=uri,
        project=experiment,
        project_id=str(info.get("experiment_id", "")),
        state=STATES.get(str(info.get("status", ""))),
        deleted=info.get("lifecycle_stage") == "deleted",
        config=config or None,
        tags={key: value for key, value in tags.items() if _is_kept(key)},
        commit=tags.get("mlflow.source.git.commit"),
        dirty={"true": True, "false": False}.get(tags.get("mlflow.git.dirty", "").lower()),
        remote=None if remote is None else clean_uri(remote),
        owner=tags.get("mlflow.user") or str(info.get("user_id") or "") or None,
        started_at=started,
        ended_at=ended,
        datasets=[_dataset(each) for each in _of(doc, "inputs").get("dataset_inputs", ())],
        metrics={key: value for key, value in values.items() if value is not None},
        version=blake2b(strict_json.canonical(doc).encode(), digest_size=12).hexdigest(),
        skipped=[*doubts, *(Skipped(f"tag {key}", "8,000 characters long, where MLflow cuts") for key in _cut(tags))],
    )


def _cut(tags: Mapping[str, str]) -> list[str]:
    return [key for key, value in tags.items() if len(value) == 8_000 and _is_kept(key)]


def _is_kept(key: str) -> bool:
    return key in _KEPT or not key.startswith(("mlflow.", OWN))


def _dataset(doc: Doc) -> TrackerDataset:
    dataset = _of(doc, "dataset")
    context = {str(tag.get("key")): str(tag.get("value", "")) for tag in doc.get("tags", ())}
    return TrackerDataset(
        str(dataset.get("name", "")),
        str(dataset.get("digest") or "") or None,
        _source(str(dataset.get("source") or "")),
        context.get("mlflow.data.context"),
    )


def _source(text: str) -> str | None:
    """The address inside a data set's source, which is JSON where a library wrote it."""
    try:
        found = strict_json.loads(text.encode())
    except Invalid:
        found = text
    if isinstance(found, dict):
        found = next((found[key] for key in ("uri", "url", "path") if isinstance(found.get(key), str)), "")
    return clean_uri(found)[:4_096] if isinstance(found, str) and found else None


def _importance(key: str) -> tuple[bool, str]:
    words = key.rpartition("/")[2]
    return not any(word in words for word in _FIRST), key


def _of(doc: Doc, *names: str) -> Any:
    """A member of a member; an empty one where it is missing."""
    found: Any = doc
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return [] if names[-1] in ("metrics", "model_outputs", "tags") else {}
    return found
