"""A model of MLflow as a checkpoint: at which step, and with which scores."""

from collections.abc import Callable, Mapping, Sequence

from cairn.formats.checkpoints.steps import step_from_name

from registry.integrations.mlflow_api import Doc
from registry.integrations.mlflow_versions import Version
from registry.integrations.mlflow_words import OWN, OWN_METRIC, moment, number
from registry.integrations.shapes import Skipped, TrackerCheckpoint, TrackerScore
from registry.trackers.links import clean_uri

# (run id, metric, step, milliseconds) to what the run's own metric says there, or None.
ValueAt = Callable[[str, str, int, int], float | None]


def from_model(
    model: Doc, steps: Mapping[str, int], value_at: ValueAt, versions: Sequence[Version] = ()
) -> TrackerCheckpoint:
    """A logged model. Its step: of the run's outputs, else of its name, else of its alias in the model registry, else
    the one that all its metrics have. `versions`: those of its run."""
    info, data = _member(model, "info"), _member(model, "data")
    identity, name = str(info.get("model_id", "")), str(info.get("name", ""))
    tags = {str(tag.get("key", "")): str(tag.get("value", "")) for tag in info.get("tags", ())}
    metrics = [each for each in data.get("metrics", ()) if not str(each.get("key", "")).startswith(OWN_METRIC)]
    params = {str(each.get("key", "")): str(each.get("value", "")) for each in data.get("params", ())}
    uri = str(info.get("artifact_uri") or "")
    registered = [each for each in versions if each.is_of(identity, uri)]
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
        step=_step(steps.get(identity), name, tags, metrics, registered),
        uri=clean_uri(tags.get("cairn.path") or uri) or None,
        aliases=aliases_of(registered),
        metadata={**params, **{key: value for key, value in tags.items() if not key.startswith(("mlflow.", OWN))}},
        digest=tags.get("digest"),
        saved_at=moment(info.get("creation_timestamp_ms")),
        scores=scores,
        cairn_id=tags.get("cairn.checkpoint"),
        skipped=skipped,
    )


def aliases_of(registered: Sequence[Version]) -> tuple[str, ...]:
    return tuple(alias for each in registered for alias in each.aliases)


def _step(
    of_outputs: int | None,
    name: str,
    tags: Mapping[str, str],
    metrics: list[Doc],
    registered: Sequence[Version],
) -> int | None:
    """A step of 0 in the outputs is also what stands there where nobody gave one: the name is asked then."""
    if of_outputs:
        return of_outputs
    said = tags.get("step", "")
    if said.isdigit() and len(said) < 19:
        return int(said)
    for named in (step_from_name(name), *(each.step for each in registered)):
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


def _member(doc: Doc, name: str) -> Doc:
    found = doc.get(name)
    return found if isinstance(found, dict) else {}
