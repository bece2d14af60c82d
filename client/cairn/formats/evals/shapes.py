"""What an evaluation result file says, as plain values: the shapes that every reader here answers with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.refusals import Refused
from cairn.numbers import number_to_wire

MAX_NAME = 512


@dataclass(frozen=True)
class Place:
    """Which checkpoint a score belongs to, where one file holds the scores of several. None: the row does not say."""

    step: int | None = None
    attempt: int | None = None
    run: str | None = None
    project: str | None = None
    checkpoint: str | None = None  # an id
    model: str | None = None  # as the file writes it


NOWHERE = Place()


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
    place: Place = NOWHERE
    # (the item's hashes, value) for each item that `value` is the mean of, where the file says them.
    samples: tuple[tuple[str, float], ...] = field(default=(), repr=False)

    def to_wire(self) -> dict[str, Any]:
        """The fields of `POST /checkpoints/{id}/scores`: unknown ones left out, non-finite as strings."""
        said = {
            name: value for name, value in vars(self).items() if value is not None and name not in ("place", "samples")
        }
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

    `step` is what the file itself says (`step_source` names the place), None where it says nothing, contradicts
    itself, or holds several steps: then each score has its own `place`. `model_path` and `model_revision` name
    what was evaluated, as the file writes them.
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

    @property
    def places(self) -> tuple[Place, ...]:
        """The different places of its scores, in the order of the file."""
        return tuple(dict.fromkeys(score.place for score in self.scores))


@dataclass(frozen=True)
class Format:
    """One kind of result file: how its content is recognised, and how it is read.

    `kind` says what `matches` and `read` are given: a JSON value (`json`), the values of the lines (`jsonl`),
    a text (`text`) or the bytes of an archive (`zip`). `read` also gets the file's name.
    """

    name: str
    kind: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, str], EvalFile]


@dataclass
class Findings:
    """What a reader collects while it goes through a file. Each doubt is noted once, however many scores share it."""

    scores: list[EvalScore] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def skip(self, item: str, reason: str) -> None:
        self.skipped.append(Skipped(printable(item), reason))

    def to_file(self, format: str, **known: Any) -> EvalFile:
        """Raises `Refused` when there is no score to import."""
        if not self.scores:
            first = f" (first: {self.skipped[0].item}: {self.skipped[0].reason})" if self.skipped else ""
            raise Refused(f"The file has the shape of {format} but holds no score{first}.")
        return EvalFile(format, tuple(self.scores), tuple(self.skipped), tuple(self.problems), **known)


def printable(text: str) -> str:
    """`text` as it is where it can be stored; else its start, in ASCII."""
    return ascii(text[:80]) if text_fault(text) else text


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


def listing(names: Sequence[Any], limit: int = 6) -> str:
    """'a, b, c and 4 more', for messages."""
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
