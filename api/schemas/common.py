"""Values that travel: ids, times, numbers that may be non-finite, names and texts with their limits."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
)

from registry import ids
from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.filters.left_out import LeftOut
from registry.strict_json import MAX_DEPTH, depth_of, special_name
from registry.types import INT64_MAX, MAX_ATTEMPT, NON_FINITE

# A name: no control characters, and not only spaces.
VISIBLE: Final = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
NO_NUL: Final = r"^[^\x00]*$"
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}([.,]\d{1,6})?)?\s?([Zz]|[+-]\d{2}:?\d{2})", re.ASCII
)


def read_number(value: Any) -> float:
    """A number, or one of the strings that stand for a non-finite one; `true` is no number."""
    if isinstance(value, str) and value in NON_FINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f'expected a number, or one of "NaN", "Infinity", "-Infinity"; got {_shown(value)}')
    try:
        return float(value)
    except OverflowError:
        raise ValueError("beyond what a 64-bit float can hold") from None


def read_finite(value: Any) -> float:
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        raise ValueError(f"expected a finite number; got {_shown(value)}")
    number = read_number(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number; got {special_name(number)}")
    return number


def read_time(value: Any) -> datetime:
    """An ISO 8601 time with its zone, as UTC."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError(f"expected an ISO 8601 time with a zone, such as 2026-11-01T12:00:00Z; got {_shown(value)}")
    try:
        return datetime.fromisoformat(value.upper().replace(",", ".")).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"no such time: {value}") from None


def read_id(value: Any) -> int:
    """An id of this registry, as its number."""
    number = ids.from_text(value) if isinstance(value, str) else None
    if number is None:
        raise ValueError(f"expected an id, {ids.LENGTH} letters and digits; got {_shown(value)}")
    return number


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def wire_number(number: float | None) -> float | str | None:
    """A number as JSON carries it: non-finite ones as strings."""
    return number if number is None or math.isfinite(number) else special_name(number)


_NUMBER_SCHEMA: Final = {"anyOf": [{"type": "number"}, {"type": "string", "enum": list(NON_FINITE)}]}

Number = Annotated[float, PlainValidator(read_number), PlainSerializer(wire_number), WithJsonSchema(_NUMBER_SCHEMA)]
Finite = Annotated[float, PlainValidator(read_finite), WithJsonSchema({"type": "number"})]
NonNegative = Annotated[
    float,
    PlainValidator(read_finite),
    AfterValidator(lambda number: number if number >= 0 else _refuse("expected zero or more")),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Time = Annotated[
    datetime,
    PlainValidator(read_time),
    PlainSerializer(lambda moment: moment.isoformat().replace("+00:00", "Z")),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Id = Annotated[
    int,
    PlainValidator(read_id),
    PlainSerializer(ids.to_text),
    WithJsonSchema({"type": "string", "pattern": "^[0-7][0-9a-hjkmnp-tv-z]{12}$"}),
]
Count = Annotated[int, Field(ge=0, le=INT64_MAX)]
Positive = Annotated[int, Field(ge=1, le=INT64_MAX)]
Step = Annotated[int, Field(ge=0, le=INT64_MAX)]
AttemptNumber = Annotated[int, Field(ge=1, le=MAX_ATTEMPT)]
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"),
]
ShortName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._-]+$")]
Text = Annotated[str, StringConstraints(max_length=4_096, pattern=NO_NUL)]
LongText = Annotated[str, StringConstraints(max_length=65_536, pattern=NO_NUL)]
Uri = Annotated[str, StringConstraints(min_length=1, max_length=4_096, pattern=NO_NUL)]


def within_depth(value: Any) -> Any:
    depth = depth_of(value)
    if depth > MAX_DEPTH:
        raise ValueError(f"nested {depth} levels deep; at most {MAX_DEPTH} are accepted")
    return value


# Free-form values: whatever JSON holds, to a depth.
FreeValue = Annotated[Any, AfterValidator(within_depth)]
FreeObject = Annotated[dict[str, Any], AfterValidator(within_depth)]


def _refuse(message: str) -> float:
    raise ValueError(message)


class Shape(BaseModel):
    """What a request sends: unknown fields are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Patch(Shape):
    """A merge patch. `amends` is what was sent when it was made: a field of that which is not of this never changes."""

    amends: ClassVar[type[Shape]]

    @classmethod
    def fixed(cls) -> frozenset[str]:
        return frozenset(cls.amends.model_fields) - frozenset(cls.model_fields)


class Answer(BaseModel):
    """What the service answers."""

    model_config = ConfigDict(frozen=True)


class RunRef(Answer):
    id: Id
    name: str


class CheckpointRef(Answer):
    """What every answer says at least wherever it names a checkpoint."""

    id: Id
    project: str
    run: RunRef
    attempt: int
    step: int
    kind: str
    saved_at: Time

    @classmethod
    def from_row(cls, row: CheckpointIdentity) -> "CheckpointRef":
        return cls.model_construct(
            id=row.id,
            project=row.project,
            run=_run_ref(row.run),
            attempt=row.attempt,
            step=row.step,
            kind=row.kind,
            saved_at=row.saved_at,
        )


@lru_cache(maxsize=1_000)
def _run_ref(row: RunName) -> RunRef:
    """One for all checkpoints of a run: hundreds of an answer may be of the same."""
    return RunRef.model_construct(id=row.id, name=row.name)


class LeftOutProjects(Answer):
    """Projects that a query leaves out, since they have the benchmark as these `scores` only; `score` is the first."""

    score: str
    scores: list[str]
    projects: list[str]

    @classmethod
    def by_name(cls, found: Mapping[str, Sequence[LeftOut]]) -> dict[str, list[Self]]:
        return {
            name: [
                cls.model_construct(score=each.scores[0], scores=list(each.scores), projects=list(each.projects))
                for each in several
            ]
            for name, several in found.items()
        }


class ProblemError(Answer):
    pointer: str
    detail: str


class Problem(BaseModel):
    """RFC 9457. Single problems carry further members, such as `position` of an invalid filter."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str | None = None
    errors: list[ProblemError] | None = None
