"""What a checkpoint on storage says, as plain values: the shapes that every reader here answers with.

Sizes are bytes. A count or degree that the files do not tell is None, never 0 or 1. Paths are relative to the
root, with `/`; a name that is no UTF-8 is kept as surrogate escapes, and `path_text` makes it printable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


class Unreadable(ValueError):
    """A file or folder that cannot be read as what it seems to be; the message says what is wrong with it."""


class OutOfReach(Unreadable):
    """What cannot be read from here, whatever lies there: no such kind of address, no access, nothing answers."""


class Unrecognised(Unreadable):
    """Nothing that any reader knows; the message says what was looked for."""


class Presence(str, Enum):
    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


class PositionEvidence(str, Enum):
    """What says where in the data training stood: a loader's own state, or a count of consumed samples, which
    holds only while data set, blend, seed and batch size stay equal."""

    STATE = "state"
    COUNTER = "counter"

    def __str__(self) -> str:
        return self.value


class Resumability(str, Enum):
    EXACT = "exact"
    RESUMABLE = "resumable"
    WEIGHTS_ONLY = "weights-only"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """Whether one piece is there, and the file or key that says so. `position` belongs to `data_position` alone."""

    state: Presence
    evidence: str = ""
    position: PositionEvidence | None = None


UNKNOWN = Finding(Presence.UNKNOWN, "the files do not tell")


def present(evidence: str, position: PositionEvidence | None = None) -> Finding:
    return Finding(Presence.PRESENT, evidence, position)


def absent(evidence: str) -> Finding:
    return Finding(Presence.ABSENT, evidence)


def unknown(evidence: str) -> Finding:
    return Finding(Presence.UNKNOWN, evidence)


def lacking(finding: Finding, files: Sequence[str]) -> Finding:
    """What is said to be there while some of its files are missing, or cut short, is not."""
    if finding.state is not Presence.PRESENT or not files:
        return finding
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return absent(f"{finding.evidence}; but not whole: {path_text(files[0])}{more}")


@dataclass(frozen=True)
class Pieces:
    """The four that resuming needs. `optimizer` includes scheduler, master weights and scaler."""

    weights: Finding = UNKNOWN
    optimizer: Finding = UNKNOWN
    data_position: Finding = UNKNOWN
    random_state: Finding = UNKNOWN

    def items(self) -> tuple[tuple[str, Finding], ...]:
        return tuple(vars(self).items())


@dataclass(frozen=True)
class Layout:
    """How the state was split across ranks when it was saved, as far as the files tell."""

    world_size: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    sharding: str | None = None
    zero_stage: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tensor:
    """One tensor. `dtype` in short form (`f32`, `bf16`, ...); `chunks` counts the parts it is stored in."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str | None = None
    chunks: int = 1
    piece: str = "weights"


@dataclass(frozen=True)
class Problem:
    """Something about one item that a person should know; `path` is '' where it is about the whole."""

    path: str
    reason: str


@dataclass(frozen=True)
class Inspection:
    """Everything that the files of one checkpoint say.

    `step_source` names the place that the step comes from, `disagreements` what contradicts it (or another answer).
    `complete` is None where the format has no way to tell; `missing` are the paths that should be there.
    `last_written` are the files that end a save of this format, where all is there; empty where none shows its end.
    `parameter_count` and `dtypes` (dtype to parameters) are of the weights alone. `tensors` is cut at
    `MAX_TENSORS`; `tensor_count` is not. `identity` is what a `cairn.json` beside the checkpoint says.
    """

    format: str
    root: str
    format_version: str | None = None
    step: int | None = None
    step_source: str = ""
    disagreements: tuple[str, ...] = ()
    pieces: Pieces = field(default_factory=Pieces)
    layout: Layout = field(default_factory=Layout)
    parameter_count: int | None = None
    dtypes: Mapping[str, int] = field(default_factory=dict)
    tensor_count: int | None = None
    tensors: tuple[Tensor, ...] = ()
    bytes: int = 0
    files: int = 0
    complete: bool | None = None
    missing: tuple[str, ...] = ()
    last_written: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] | None = None

    @property
    def resumability(self) -> Resumability:
        """Of a checkpoint with a file missing or cut short, no piece is trusted before somebody looked."""
        return Resumability.INCOMPLETE if self.complete is False else resumability_of(self.pieces)

    def having(self, **changes: Any) -> "Inspection":
        return replace(self, **changes)


MAX_TENSORS = 100_000


def resumability_of(pieces: Pieces) -> Resumability:
    """The kindest use that what is present allows; the service states the same rule over what it has recorded.

    Without the optimizer the moments are forgotten, without the data position data is repeated: neither is
    `resumable`. Weights that come with neither are `weights-only`. A piece of which nobody spoke proves nothing.
    """
    weights, optimizer, position, random = (finding.state for _, finding in pieces.items())
    if weights is not Presence.PRESENT:
        return Resumability.INCOMPLETE if weights is Presence.ABSENT else Resumability.UNKNOWN
    if optimizer is position is Presence.ABSENT and random is not Presence.PRESENT:
        return Resumability.WEIGHTS_ONLY
    if Presence.ABSENT in (optimizer, position):
        return Resumability.INCOMPLETE
    if Presence.UNKNOWN in (optimizer, position):
        return Resumability.UNKNOWN
    return Resumability.EXACT if random is Presence.PRESENT else Resumability.RESUMABLE


def path_text(path: str) -> str:
    r"""A path as text that can be printed and sent: a byte that is no UTF-8 becomes `\xff`, half a pair `\ud800`."""
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # from JSON, which can say what no file system has
        return path.encode("utf-8", "backslashreplace").decode()
