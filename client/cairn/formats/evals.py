"""What an evaluation result file says, as plain values: the shapes that every reader here answers with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.numbers import number_to_wire


class Refused(ValueError):
    """A file that cannot be imported; the message says what is wrong with it and what was expected."""


@dataclass(frozen=True)
class EvalScore:
    """One result. `value` and `stderr` are as published: no rescaling, NaN and infinities kept.

    `comparability` holds what else two results must share before they may be compared.
    """

    benchmark: str
    metric: str
    value: float
    filter: str = ""
    stderr: float | None = None
    n_samples: int | None = None
    n_shot: int | None = None
    version: str | None = None
    harness: str | None = None
    harness_version: str | None = None
    evaluated_at: str | None = None
    comparability: Mapping[str, Any] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """The fields of `POST /checkpoints/{id}/scores`: unknown ones left out, non-finite as strings."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        if not said["comparability"]:
            del said["comparability"]
        return {name: number_to_wire(value) for name, value in said.items()}


@dataclass(frozen=True)
class Skipped:
    """Something in the file that was not imported, and why."""

    item: str
    reason: str


@dataclass(frozen=True)
class EvalFile:
    """One result file. `problems` are doubts that a reader of the scores should see beside them.

    `step` is what the file itself says (`step_source` names the place), None where it says nothing or
    contradicts itself. `model_path` and `model_revision` name what was evaluated, as the file writes them.
    """

    format: str
    scores: tuple[EvalScore, ...]
    skipped: tuple[Skipped, ...] = ()
    problems: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    step: int | None = None
    step_source: str = ""
    model_path: str | None = None
    model_revision: str | None = None


def text_fault(text: str) -> str:
    """Why a name cannot be stored ('' when it can): no NUL, no half of a surrogate pair."""
    if not text:
        return "the name is empty"
    if any(letter < " " or letter == "\x7f" for letter in text):
        return "the name contains a control character"
    if len(text) > MAX_NAME:
        return f"the name has {len(text)} characters, the limit is {MAX_NAME}"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "the name contains a lone surrogate"
    return ""


MAX_NAME = 512
