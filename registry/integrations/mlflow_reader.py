"""Reading an MLflow experiment: runs, their curves, and the models and artifacts that are checkpoints.

Many runs and models come with one call. A model's step is not part of the model: it stands with the outputs of its run.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from registry import strict_json
from registry.errors import Invalid
from registry.integrations.mlflow_api import Doc, MlflowApi
from registry.integrations.mlflow_checkpoints import from_artifacts, from_model
from registry.integrations.mlflow_words import OWN, OWN_METRIC, STATES, config_of, moment, number
from registry.integrations.open import Place
from registry.integrations.shapes import Batch, Skipped, TrackerCheckpoint, TrackerDataset, TrackerRun, TrackerSeries
from registry.trackers.links import clean_uri

MAX_CURVES: Final = 200  # of a run; those that say most of a training come first
_FIRST: Final = ("loss", "lr", "learning_rate", "grad_norm", "tokens")
_KEPT: Final = ("mlflow.parentRunId", "mlflow.note.content", "mlflow.source.name")


class NoExperiment(Invalid):
    code = "tracker-experiment-missing"
    title = "Which experiment is meant is not said"


class MlflowReader:
    """A `TrackerReader`. The documents of the runs of one batch are kept until the next."""

    def __init__(self, api: MlflowApi, place: Place) -> None:
        self._api, self._place = api, place
        self._docs: dict[str, Doc] = {}
        self._names: dict[str, str] = {}
        self._histories: dict[tuple[str, str], list[Doc]] = {}

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

    def series(self, run: TrackerRun, known: Mapping[str, str]) -> Iterator[tuple[TrackerSeries, str]]:
        latest = {str(each.get("key")): each for each in _of(self._doc(run), "data", "metrics")}
        wanted: list[str] = []
        left: list[str] = []
        for key in sorted(latest, key=_importance):
            if not key.startswith(OWN_METRIC):
                (left if key.startswith("system/") or len(wanted) >= MAX_CURVES else wanted).append(key)
        for key in wanted:
            mark = "{step}:{timestamp}:{value}".format(**{"step": 0, "timestamp": 0, "value": ""} | dict(latest[key]))
            if known.get(key) != mark:
                yield _curve(key, self._history(run.run_id, key)), mark
        if left and "" not in known:
            reason = f"curves of the machine, and more than {MAX_CURVES} curves, are left out"
            yield TrackerSeries("", (), (), (Skipped(f"{len(left)} curves of {run.name}", reason),)), "left out"

    def checkpoints(self, runs: Sequence[TrackerRun]) -> Iterator[tuple[str, TrackerCheckpoint]]:
        by_experiment: dict[str, list[TrackerRun]] = {}
        for run in runs:
            by_experiment.setdefault(run.project_id or "", []).append(run)
        for experiment, own in by_experiment.items():
            yield from self._models(experiment, {run.run_id: run for run in own})
        for run in runs:
            self._histories.clear()
            for found in from_artifacts(
                self._api, run.run_id, str(_of(self._doc(run), "info").get("artifact_uri", ""))
            ):
                yield run.run_id, found

    def _models(self, experiment: str, runs: Mapping[str, TrackerRun]) -> Iterator[tuple[str, TrackerCheckpoint]]:
        for model in self._api.models_of_runs(experiment, list(runs)):
            run_id = str(_of(model, "info").get("source_run_id", ""))
            if run_id in runs:
                yield run_id, from_model(model, self._steps(runs[run_id]), lambda *point: self._value_at(*point))

    def _steps(self, run: TrackerRun) -> dict[str, int]:
        """Model id to step, from the outputs of the run."""
        outputs = _of(self._doc(run), "outputs", "model_outputs")
        return {str(each.get("model_id")): int(each.get("step", 0)) for each in outputs}

    def _value_at(self, run_id: str, key: str, step: int, timestamp: int) -> float | None:
        """What a run's own metric says at a point; None where it has no such point."""
        doc = self._docs.get(run_id)
        points = [] if doc is None else [each for each in _of(doc, "data", "metrics") if each.get("key") == key]
        for point in [*points, *self._history(run_id, key)]:
            if (int(point.get("step", 0)), int(point.get("timestamp", 0))) == (step, timestamp):
                return number(point.get("value"))
        return None

    def _history(self, run_id: str, key: str) -> list[Doc]:
        """The points of a metric; kept while one run is looked at."""
        if (run_id, key) not in self._histories:
            if len(self._histories) > 50:
                self._histories.clear()
            self._histories[run_id, key] = list(self._api.history(run_id, key))
        return self._histories[run_id, key]

    def _doc(self, run: TrackerRun) -> Doc:
        if run.run_id not in self._docs:
            self._docs[run.run_id] = self._api.run(run.run_id)
        return self._docs[run.run_id]

    def _forget(self) -> None:
        self._docs.clear()
        self._histories.clear()

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


def _curve(key: str, points: Sequence[Doc]) -> TrackerSeries:
    """One value a step: the one logged last. A bare NaN, which MLflow stores as three zeros, is no point."""
    found: dict[int, tuple[int, float]] = {}
    bare, negative, repeated = 0, 0, 0
    for point in points:
        step, at, value = int(point.get("step", 0)), int(point.get("timestamp", 0)), number(point.get("value"))
        if value is None or (step, at, value) == (0, 0, 0.0):
            bare += 1
        elif step < 0:
            negative += 1
        else:
            repeated += step in found
            if step not in found or at >= found[step][0]:
                found[step] = (at, value)
    reasons = (
        (bare, "value, time and step are 0: what MLflow stores for a NaN that it could not read"),
        (negative, "steps below 0"),
        (repeated, "steps logged before; the last value of each counts"),
    )
    skipped = [Skipped(f"{count} points of {key}", reason) for count, reason in reasons if count]
    steps = sorted(found)
    return TrackerSeries(key, steps, [found[step][1] for step in steps], skipped)


def _of(doc: Doc, *names: str) -> Any:
    """A member of a member; an empty one where it is missing."""
    found: Any = doc
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return [] if names[-1] in ("metrics", "model_outputs", "tags") else {}
    return found
