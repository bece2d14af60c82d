"""Telling MLflow of checkpoints: each an external model, tied to its run at its step, with tags and scores.

What is there already is read first, in one call for many models, so that a repeat sends nothing twice and what a kill
left half-made is completed. Numbers that are not finite go as tags, since MLflow would store a NaN of a model as 0.0.
Everything of ours begins with `cairn.` or `cairn/`: nothing else in the run is touched.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from registry.integrations.mlflow_api import Doc, MlflowApi
from registry.integrations.mlflow_words import OWN, OWN_METRIC, TAG_LIMIT, metric_keys, model_name, number
from registry.integrations.shapes import (
    CheckpointPush,
    RunPush,
    TrackerAnswerUnknown,
    TrackerRunDeleted,
)
from registry.strict_json import special_name

BY_CHECKPOINT: Final = "cairn.checkpoint"


class MlflowWriter:
    """A `TrackerWriter`."""

    def __init__(self, api: MlflowApi) -> None:
        self._api = api

    def push_checkpoints(self, run_id: str, checkpoints: Sequence[CheckpointPush]) -> Iterator[tuple[str, str | None]]:
        run = self._active_run(run_id)
        experiment = str(run["info"].get("experiment_id", ""))
        tied = {str(each.get("model_id")) for each in (run.get("outputs") or {}).get("model_outputs", ())}
        there = {str(model["info"]["model_id"]): model for model in self._api.models_of_runs(experiment, [run_id])}
        ours = {tag["value"]: model for model in there.values() for tag in _tags(model) if tag["key"] == BY_CHECKPOINT}
        for push in checkpoints:
            model = there.get(push.external_id or "") or ours.get(push.checkpoint_id)
            yield push.checkpoint_id, self._push(run_id, experiment, push, model, tied)

    def push_run(self, run_id: str, push: RunPush) -> None:
        self._active_run(run_id)
        tags = {f"{OWN}{key}": value for key, value in push.values.items() if value is not None}
        if tags:
            self._api.tag_run(run_id, {key: value[:TAG_LIMIT] for key, value in tags.items()})
        for key, value in push.values.items():
            if value is None:
                self._api.untag_run(run_id, f"{OWN}{key}")

    def _active_run(self, run_id: str) -> Doc:
        """Raises TrackerRunDeleted: MLflow refuses to write to a run in its bin."""
        run = self._api.run(run_id)
        if run.get("info", {}).get("lifecycle_stage") == "deleted":
            raise TrackerRunDeleted(f"Run {run_id} is deleted in MLflow; restore it there, or unlink it here.")
        return run

    def _push(self, run_id: str, experiment: str, push: CheckpointPush, model: Doc | None, tied: set[str]) -> str:
        tags = tags_of(push)
        if model is None:
            identity = self._api.create_model(experiment, run_id, model_name(push.name), tags)
        else:
            identity = str(model["info"]["model_id"])
            known = {tag["key"]: tag["value"] for tag in _tags(model)}
            if any(known.get(key) != value for key, value in tags.items()):
                self._api.tag_model(identity, tags)
            for key in known:
                if key.startswith(OWN) and key not in tags:
                    self._api.untag_model(identity, key)
        if identity not in tied:
            self._tie(run_id, identity, push.step)
        if model is None or model["info"].get("status") != "LOGGED_MODEL_READY":
            self._api.finish_model(identity)
        new = new_metrics(push, identity, model)
        if new:
            self._api.log_metrics(run_id, new)
        return identity

    def _tie(self, run_id: str, identity: str, step: int) -> None:
        """Tied by another worker just now is tied too: MLflow then answers with the words of its database."""
        try:
            self._api.tie_model(run_id, identity, step)
        except TrackerAnswerUnknown:
            outputs = (self._api.run(run_id).get("outputs") or {}).get("model_outputs", ())
            if identity not in {str(each.get("model_id")) for each in outputs}:
                raise


def tags_of(push: CheckpointPush) -> dict[str, str]:
    """Everything that is said of a checkpoint in words; what is unknown is left out."""
    said: dict[str, Any] = {
        **push.facts(),
        "aliases": ", ".join(sorted(push.aliases)) or "none",
    }
    tags = {f"{OWN}{name}": str(value)[:TAG_LIMIT] for name, value in said.items() if value is not None}
    keys = metric_keys(list(_numbers(push)))
    for name, value in _numbers(push).items():
        if not math.isfinite(value):
            tags[f"{OWN}score.{keys[name]}"[:250]] = special_name(value)
        elif keys[name] != name:
            tags[f"{OWN}name.{keys[name]}"[:250]] = name[:TAG_LIMIT]
    return tags


def new_metrics(push: CheckpointPush, model_id: str, model: Doc | None) -> list[dict[str, Any]]:
    """The finite scores that the model does not have yet. One that changed gets a later time, so that it is newest."""
    known: dict[str, tuple[int, float | None]] = {}
    for each in (model or {}).get("data", {}).get("metrics", ()):
        at = int(each.get("timestamp", 0))
        if each.get("key") not in known or at >= known[each["key"]][0]:
            known[each["key"]] = (at, number(each.get("value")))
    keys = metric_keys(list(_numbers(push)))
    points = []
    for name, value in _numbers(push).items():
        key, at = f"{OWN_METRIC}{keys[name]}"[:250], _millis(push.saved_at)
        before = known.get(key)
        if math.isfinite(value) and (before is None or before[1] != value):
            at = at if before is None else max(at, before[0] + 1)
            points.append({"key": key, "value": value, "timestamp": at, "step": push.step, "model_id": model_id})
    return points


def _numbers(push: CheckpointPush) -> Mapping[str, float]:
    return dict(push.scores) if push.loss is None else {"loss": push.loss, **push.scores}


def _tags(model: Doc) -> list[Doc]:
    return list(model.get("info", {}).get("tags", ()))


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
