"""What a config file says, as plain values."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.refusals import Refused
from cairn.numbers import Written

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 100_000


@dataclass(frozen=True)
class Problem:
    """Something of a config that was not read, or that may mean something else than it says. `path` is dotted."""

    path: str
    reason: str
    is_duplicate: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


@dataclass(frozen=True)
class Config:
    """`values` as the file nests them: objects, lists, text, numbers (`Written`, as they stand), booleans, null."""

    format: str
    values: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()

    @property
    def flat(self) -> dict[str, Any]:
        """Dotted paths and plain values, in order; a list's items are numbered: `lr`, `optimizer.betas.0`."""
        return dict(flatten(self.values))


@dataclass
class Reading:
    """What a reader notes while it goes on."""

    problems: list[Problem] = field(default_factory=list)

    def note(self, path: str, reason: str) -> None:
        self.problems.append(Problem(path, reason))

    def twice(self, path: str, kept: Any) -> None:
        """A key that stands twice with different values; as programs do, the last one is kept."""
        self.problems.append(
            Problem(path, f"stands twice with different values; the last one was read, {kept!r:.60}", True)
        )


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    members: Iterator[tuple[str, Any]] | None = None
    if isinstance(value, Mapping) and value:
        members = iter(value.items())
    elif isinstance(value, list) and value:
        members = ((str(index), item) for index, item in enumerate(value))
    if members is None:
        yield path, value
        return
    for key, member in members:
        yield from flatten(member, joined(path, key))


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def check_bounds(values: Any) -> None:
    """Raises `Refused` for what is nested too deep, and for aliases that unfold to more than any config holds."""
    count, level = 0, [values]
    for _ in range(MAX_DEPTH + 1):
        members = [
            each.values() if isinstance(each, Mapping) else each for each in level if isinstance(each, Mapping | list)
        ]
        count += sum(map(len, members))
        if count > MAX_VALUES:
            raise Refused(f"The config holds more than {MAX_VALUES:,} values.")
        level = [child for each in members for child in each]
        if not members:
            return
    raise Refused(f"The config is nested more than {MAX_DEPTH} deep, or contains itself.")


def written(text: str) -> float:
    """A number with the text that it has in the file, where JSON can say it so; 1e999 is refused as no number."""
    try:
        number: float = Written(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is beyond what a double can hold")
    return number
