"""A checkpoint as a W&B artifact by reference, logged from the training process itself. Off unless it is called.

    cairn.wandb_artifacts.log_reference(path, step=1000, loss=loss, aliases=["best"])

W&B then shows the checkpoint in the run's lineage, without a byte of it being uploaded; an import into the registry,
live or from the offline folder, finds the same step and path again.
"""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cairn.numbers import number_to_wire

_log = logging.getLogger("cairn")
_REFUSED = re.compile(r"[^A-Za-z0-9_.-]")
MAX_NAME = 128
MAX_FILES = 10_000
_warned: set[str] = set()


def log_reference(
    path: str | os.PathLike[str],
    *,
    step: int,
    loss: float | None = None,
    metrics: Mapping[str, float] | None = None,
    aliases: Sequence[str] = (),
    name: str | None = None,
    checksum: bool = False,
    link: str | None = None,
    run: Any = None,
) -> bool:
    """Logs the checkpoint at `path` (a folder, a file or a URL) as an artifact of type model of the active W&B run.

    Aliases are those that W&B users expect: `latest` and `step_N` always, and whatever `aliases` adds (`best`,
    `epoch_3`). The metadata holds step, loss, metrics, path and `link` (the checkpoint's page in Cairn); NaN and
    infinity stand there as words. With `checksum` W&B reads every byte to build its digest; without, it looks at no
    file, and the digest says nothing of the content.

    Answers whether it was handed to W&B. Never raises: without an active run, or where W&B refuses, it warns once and
    answers False. Only for the process that holds the W&B run, outside of what must not wait.
    """
    try:
        return _log_reference(path, step, loss, metrics or {}, aliases, name, checksum, link, run)
    except Exception as fault:  # a training goes on, whatever a tracker does
        _warn(f"the checkpoint of step {step} could not be logged to W&B: {type(fault).__name__}: {fault}")
        return False


def _log_reference(
    path: str | os.PathLike[str],
    step: int,
    loss: float | None,
    metrics: Mapping[str, float],
    aliases: Sequence[str],
    name: str | None,
    checksum: bool,
    link: str | None,
    run: Any,
) -> bool:
    wandb = sys.modules.get("wandb")
    run = run if run is not None else getattr(wandb, "run", None)
    if wandb is None or run is None:
        _warn("no W&B run is open in this process, so no artifact was logged; call wandb.init first")
        return False
    place = os.fspath(path)
    shown = place if "://" in place else os.path.abspath(place)
    artifact = wandb.Artifact(
        _REFUSED.sub("-", name or f"model-{run.id}")[:MAX_NAME],
        type="model",
        metadata=_metadata(step, shown, loss, metrics, link),
    )
    reference = shown if "://" in shown else f"file://{shown}"
    artifact.add_reference(reference, checksum=checksum, max_objects=MAX_FILES, **_named(shown))
    run.log_artifact(artifact, aliases=aliases_of(step, aliases))
    return True


def aliases_of(step: int, aliases: Sequence[str]) -> list[str]:
    """What the artifact is called by, each once; W&B refuses slashes and colons in them."""
    wanted = ("latest", f"step_{step}", *aliases)
    return list(dict.fromkeys(_REFUSED.sub("-", alias)[:MAX_NAME] for alias in wanted if alias))


def _named(place: str) -> dict[str, str]:
    """A folder of this machine is taken file by file; else the reference is one entry, under the place's last name."""
    return {} if os.path.isdir(place) else {"name": place.rstrip("/").rpartition("/")[2] or "checkpoint"}


def _metadata(
    step: int, place: str, loss: float | None, metrics: Mapping[str, float], link: str | None
) -> dict[str, Any]:
    """W&B turns a NaN in metadata into null, so such numbers go as words."""
    said = {"step": int(step), "cairn.path": place, "loss": loss, "cairn.link": link}
    said |= {str(key): value for key, value in metrics.items()}
    return {key: number_to_wire(value) for key, value in said.items() if value is not None}


def _warn(message: str) -> None:
    kind = re.sub(r"\d+", "", message)[:80]
    if kind not in _warned:
        _warned.add(kind)
        _log.warning("%s", message)
