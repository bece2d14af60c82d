"""`trainer_state.json` of Hugging Face's Trainer: step, epoch, losses, evaluations, what it calls best."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cairn.formats.checkpoints.documents import read_json
from cairn.formats.checkpoints.shapes import Problem, Unreadable
from cairn.formats.checkpoints.source import Listing

NAME = "trainer_state.json"
# What a streamed data set without a length leaves there.
_NO_COUNT = 2**63 - 1
_TIMES = ("_runtime", "_per_second", "_time", "_flos")


@dataclass(frozen=True)
class TrainerState:
    """`evaluations` are the last numbers of each evaluated name, at `evaluated_step`. `best` is as claimed by the
    file: whether lower is better it does not say, and the folder it names may be of another machine."""

    global_step: int
    epoch: float | None = None
    max_steps: int | None = None
    loss: float | None = None
    loss_step: int | None = None
    learning_rate: float | None = None
    tokens_seen: int | None = None
    evaluations: Mapping[str, float] | None = None
    evaluated_step: int | None = None
    best: Mapping[str, Any] | None = None
    last_logged_step: int | None = None
    train_batch_size: int | None = None

    def facts(self) -> dict[str, Any]:
        """What is known, by name; the step stands elsewhere."""
        said = {name: value for name, value in vars(self).items() if value not in (None, {}) and name != "global_step"}
        if said.get("last_logged_step") == self.global_step:
            del said["last_logged_step"]
        return said


def is_trainer_state(document: Any) -> bool:
    """By what Trainer has always written; other programs use the same file name for states of their own."""
    return (
        isinstance(document, dict)
        and _count(document.get("global_step")) is not None
        and isinstance(document.get("log_history"), list)
        and "is_world_process_zero" in document
    )


def read_trainer_state(listing: Listing, path: str = NAME) -> TrainerState:
    """Raises `Unreadable` for a file that is cut short, or another program's."""
    document = read_json(listing, path)
    if not is_trainer_state(document):
        keys = ", ".join(list(document)[:5]) if isinstance(document, dict) else type(document).__name__
        raise Unreadable(f"is no state of Hugging Face's Trainer (it holds: {keys[:100]})")
    history = [entry for entry in document["log_history"] if isinstance(entry, dict)]
    loss, loss_step = _last(history, "loss")
    evaluations, evaluated_step = _evaluations(history)
    max_steps = _count(document.get("max_steps"))
    return TrainerState(
        global_step=document["global_step"],
        epoch=_number(document.get("epoch")),
        max_steps=max_steps if max_steps and max_steps < _NO_COUNT else None,
        loss=loss,
        loss_step=loss_step,
        learning_rate=_last(history, "learning_rate")[0],
        tokens_seen=_count(document.get("num_input_tokens_seen")) or None,
        evaluations=evaluations,
        evaluated_step=evaluated_step,
        best=_best(document),
        last_logged_step=max(
            (step for entry in history if (step := _count(entry.get("step"))) is not None), default=None
        ),
        train_batch_size=_count(document.get("train_batch_size")),
    )


def of_another_program(listing: Listing) -> list[Problem]:
    """What to know of a file of that name which Trainer has not written; nothing where there is none."""
    try:
        if NAME in listing:
            read_trainer_state(listing)
    except Unreadable as fault:
        return [Problem(NAME, f"{fault}: it is not read, and the folder is taken for what its other files are")]
    return []


def _last(history: list[dict[str, Any]], key: str) -> tuple[float | None, int | None]:
    for entry in reversed(history):
        if (value := _number(entry.get(key))) is not None:
            return value, _count(entry.get("step"))
    return None, None


def _evaluations(history: list[dict[str, Any]]) -> tuple[dict[str, float], int | None]:
    """Everything named `eval_...` at the last step at which something was: several data sets share a step."""
    steps = [_count(entry.get("step")) for entry in history if any(key.startswith("eval_") for key in entry)]
    last = max((step for step in steps if step is not None), default=None)
    found = {
        key: number
        for entry in history
        if _count(entry.get("step")) == last and last is not None
        for key, value in entry.items()
        if key.startswith("eval_") and not key.endswith(_TIMES) and (number := _number(value)) is not None
    }
    return found, last


def _best(document: Mapping[str, Any]) -> dict[str, Any]:
    metric, folder = _number(document.get("best_metric")), document.get("best_model_checkpoint")
    said = {"metric": metric, "checkpoint": folder if isinstance(folder, str) else None}
    said["step"] = _count(document.get("best_global_step"))
    return {name: value for name, value in said.items() if value is not None}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _NO_COUNT else None


def _number(value: Any) -> float | None:
    """A number; NaN and infinity are numbers too: a loss that broke is worth saying."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) or isinstance(value, float) else None
