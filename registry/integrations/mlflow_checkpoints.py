"""Which of MLflow's models and artifacts are checkpoints, at which step, and with which scores."""

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cairn.formats.checkpoints.steps import step_from_name

from registry.integrations.mlflow_api import Doc, MlflowApi
from registry.integrations.mlflow_words import OWN, OWN_METRIC, moment, number
from registry.integrations.shapes import Skipped, TrackerCheckpoint, TrackerScore
from registry.trackers.links import clean_uri

MAX_FOLDERS: Final = 30  # of a run that are looked into for checkpoints
_OF_OTHERS: Final = ("images", "plots", "tables", "media", "traces", "system", "code")
# (run id, metric, step, milliseconds) to what the run's own metric says there, or None.
ValueAt = Callable[[str, str, int, int], float | None]


def from_model(model: Doc, steps: Mapping[str, int], value_at: ValueAt) -> TrackerCheckpoint:
    """A logged model. Its step: of the run's outputs, else of its name, else the one that all its metrics have."""
    info, data = _member(model, "info"), _member(model, "data")
    identity, name = str(info.get("model_id", "")), str(info.get("name", ""))
    tags = {str(tag.get("key", "")): str(tag.get("value", "")) for tag in info.get("tags", ())}
    metrics = [each for each in data.get("metrics", ()) if not str(each.get("key", "")).startswith(OWN_METRIC)]
    params = {str(each.get("key", "")): str(each.get("value", "")) for each in data.get("params", ())}
    skipped: list[Skipped] = []
    scores: list[TrackerScore] = []
    if info.get("status") not in ("LOGGED_MODEL_READY", "READY", None):
        skipped.append(Skipped(name, f"the model is {str(info.get('status')).lower()}, not ready"))
    for metric in metrics:
        score = _score(metric, str(info.get("source_run_id", "")), value_at)
        if isinstance(score, Skipped):
            skipped.append(score)
        else:
            scores.append(score)
    return TrackerCheckpoint(
        external_id=identity,
        name=name,
        step=_step(steps.get(identity), name, tags, metrics),
        uri=clean_uri(str(tags.get("cairn.path") or info.get("artifact_uri") or "")) or None,
        metadata={**params, **{key: value for key, value in tags.items() if not key.startswith(("mlflow.", OWN))}},
        digest=tags.get("digest"),
        saved_at=moment(info.get("creation_timestamp_ms")),
        scores=scores,
        cairn_id=tags.get("cairn.checkpoint"),
        skipped=skipped,
    )


def _step(of_outputs: int | None, name: str, tags: Mapping[str, str], metrics: list[Doc]) -> int | None:
    """A step of 0 in the outputs is also what stands there where nobody gave one: the name is asked then."""
    if of_outputs:
        return of_outputs
    said = tags.get("step", "")
    if said.isdigit() and len(said) < 19:
        return int(said)
    named = step_from_name(name)
    if named is not None:
        return named
    measured = {int(metric.get("step", 0)) for metric in metrics if int(metric.get("step", 0)) > 0}
    return measured.pop() if len(measured) == 1 else of_outputs


def _score(metric: Doc, own_run: str, value_at: ValueAt) -> TrackerScore | Skipped:
    """MLflow stores a NaN of a model as 0.0, but that of the run's own metric as it is: so a 0.0 is looked up there."""
    key, value = str(metric.get("key", "")), number(metric.get("value"))
    step, at = int(metric.get("step", 0)), int(metric.get("timestamp", 0))
    if value == 0.0 and not step and not at:
        return Skipped(
            f"metric {key}", "value, time and step are 0: what MLflow stores for a NaN that it could not read"
        )
    if value == 0.0:
        value = value_at(str(metric.get("run_id") or own_run), key, step, at)
        if value is None:
            return Skipped(f"metric {key}", "0.0, which MLflow also stores for NaN; the run does not say which it was")
    if value is None:
        return Skipped(f"metric {key}", "no number")
    return TrackerScore(key, value, moment(at))


def from_artifacts(api: MlflowApi, run_id: str, artifact_uri: str) -> Iterator[TrackerCheckpoint]:
    """Folders that name a step, as HF Trainer and Lightning upload them; two levels deep."""
    looked = 0
    folders = [each for each in api.artifacts(run_id) if each.get("is_dir")]
    while folders:
        path = str(folders.pop(0).get("path", ""))
        stem = path.rpartition("/")[2]
        step = step_from_name(stem)
        inside: list[Doc] = []
        if stem in _OF_OTHERS or looked >= MAX_FOLDERS:
            continue
        if step is None or "=" in stem:
            looked += 1
            inside = api.artifacts(run_id, path)
        if step is not None:
            aliases, metadata = _lightning(api, run_id, path, inside)
            uri = f"{artifact_uri.rstrip('/')}/{path}" if artifact_uri else None
            yield TrackerCheckpoint(f"{run_id}/{path}", stem, step, uri, aliases, metadata)
        elif "/" not in path:
            folders += [each for each in inside if each.get("is_dir")]


def _lightning(api: MlflowApi, run_id: str, path: str, inside: list[Doc]) -> tuple[list[str], dict[str, Any]]:
    """What Lightning's logger writes beside: aliases.txt, a list in Python's notation, and metadata.yaml."""
    names = {str(each.get("path", "")).rpartition("/")[2] for each in inside}
    if "aliases.txt" not in names:
        return [], {}
    try:
        found = ast.literal_eval(api.artifact_text(run_id, f"{path}/aliases.txt").strip() or "[]")
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        found = []
    aliases = [str(each) for each in found if isinstance(each, str)] if isinstance(found, list) else []
    lines = api.artifact_text(run_id, f"{path}/metadata.yaml").splitlines() if "metadata.yaml" in names else []
    pairs = (line.partition(": ") for line in lines if ": " in line)
    return aliases, {key.strip(): value.strip()[:500] for key, _, value in pairs}


def _member(doc: Doc, name: str) -> Doc:
    found = doc.get(name)
    return found if isinstance(found, dict) else {}
