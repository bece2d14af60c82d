"""The experiment trackers that this process writes to, where their libraries are loaded and a run is open."""

import os
import sys
from typing import Any

from cairn.capture.secrets import mask_text

# W&B's own service has two names, of which newer versions of its library use the second; a link needs one.
WANDB_NAMES = {"https://api.forge.coreweave.com": "https://api.wandb.ai"}


def active_trackers() -> list[dict[str, str]]:
    """`[{kind, uri, entity, project, run_id}]`. A few attribute look-ups, for the thread that trains.

    MLflow keeps its open run per thread, so this is asked where training calls. Nothing is sent anywhere.
    """
    return [each for each in (_safely(_wandb), _safely(_mlflow)) if each]


def _safely(find: Any) -> dict[str, str] | None:
    try:
        found = find()
    except Exception:  # whatever the library does while it starts or ends
        return None
    return {name: text for name, text in found.items() if text} if found and found.get("run_id") else None


def _wandb() -> dict[str, str] | None:
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None:
        return None
    base = getattr(getattr(run, "settings", None), "base_url", None)
    return {
        "kind": "wandb",
        "run_id": _text(run.id),
        "entity": _text(getattr(run, "entity", None)),
        "project": _text(getattr(run, "project", None)),
        "uri": WANDB_NAMES.get(_text(base).rstrip("/"), mask_text(_text(base))),
    }


def _mlflow() -> dict[str, str] | None:
    mlflow = sys.modules.get("mlflow")
    active = getattr(mlflow, "active_run", None)
    run = active() if callable(active) else None
    if mlflow is None or run is None:
        return None
    uri = _text(mlflow.get_tracking_uri())
    if uri and "://" not in uri and not uri.startswith(("file:", "databricks")):
        uri = os.path.abspath(uri)  # relative to the working folder of this process alone
    return {
        "kind": "mlflow",
        "run_id": _text(run.info.run_id),
        "uri": mask_text(uri),
        "project": _text(run.info.experiment_id),
    }


def _text(value: Any) -> str:
    return str(value)[:4_096] if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
