"""What a project says of its benchmarks."""

from dataclasses import dataclass, field
from typing import Any

from cairn.reading import ANY, FLAG, NUMBER, TEXT, TEXTS, WHOLE, many
from cairn.types.base import Answer


@dataclass(frozen=True, kw_only=True)
class Benchmark(Answer):
    """How the figures of a benchmark read in a project. `own`: the fields that the project says itself.

    `needs_mapping`: results have it and no capability claims it; `proposal` says how it could be mapped, and why.
    `flags`: what looks wrong about its figures, in words.
    """

    name: str = field(metadata=TEXT)
    capability: str | None = field(default=None, metadata=TEXT)
    direction: str = field(default="higher", metadata=TEXT)
    scale: str = field(default="raw", metadata=TEXT)
    chance: float | None = field(default=None, metadata=NUMBER)
    sample_count: int | None = field(default=None, metadata=WHOLE)
    preferred_metrics: Any = field(default=None, metadata=ANY)
    aliases: tuple[str, ...] = field(default=(), metadata=TEXTS)
    same_as: str | None = field(default=None, metadata=TEXT)
    own: tuple[str, ...] = field(default=(), metadata=TEXTS)
    flags: tuple[str, ...] = field(default=(), metadata=TEXTS)
    needs_mapping: bool = field(default=False, metadata=FLAG)
    proposal: Any = field(default=None, metadata=ANY)


@dataclass(frozen=True, kw_only=True)
class BenchmarkPage(Answer):
    items: tuple[Benchmark, ...] = field(metadata=many(Benchmark))
    next_cursor: str | None = field(default=None, metadata=TEXT)
