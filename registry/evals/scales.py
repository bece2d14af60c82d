"""The scales of benchmarks: which values each can hold, and what is said of a value that it cannot.

A value outside was reported in another scale: it is kept as it came, never rescaled by guess, and never ranked.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue
from registry.evals.project_table import ProjectTable, read_project_table

LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "fraction": (0.0, 1.0),
    "percent": (-100.0, 100.0),
    "ten": (0.0, 10.0),
    "log": (0.0, math.inf),
}
WORDS: Final = {"fraction": "0 to 1", "percent": "0 to 100", "ten": "0 to 10", "log": "above 0"}
MOST: Final = 10  # notes of one answer
_SLACK: Final = 1e-9


class Scored(Protocol):
    @property
    def benchmark(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def filter(self) -> str: ...
    @property
    def value(self) -> float: ...


def can_hold(scale: str, value: float) -> bool:
    """Whether a value can be of a scale; one that is not finite is no matter of scales."""
    low, high = LIMITS.get(scale, (-math.inf, math.inf))
    if not math.isfinite(value):
        return True
    return low - _SLACK <= value <= high + _SLACK and not (scale == "log" and value == 0)


def bounds(scale: str) -> tuple[float, float] | None:
    """The lowest and the highest value that `can_hold` lets pass; None where it lets all."""
    if scale not in LIMITS:
        return None
    low, high = LIMITS[scale]
    return (math.ulp(0.0) if scale == "log" else low - _SLACK), min(high + _SLACK, sys.float_info.max)


def scale_notes(session: Session, project_id: int, scores: Iterable[Scored]) -> list[str]:
    """Values outside what the benchmark table says their scale can hold, a sentence for each benchmark and metric.

    The project's own table is read only where a value does not fit the shipped one.
    """
    odd = [
        each for each in scores if not can_hold(_shipped_scale(each.benchmark, each.metric, each.filter), each.value)
    ]
    if not odd:
        return []
    table = read_project_table(session, [project_id])
    figures: dict[tuple[str, str, str], list[float]] = {}
    for each in odd:
        if not can_hold(table.for_metric(each.benchmark, each.metric, each.filter).scale, each.value):
            figures.setdefault((each.benchmark, each.metric, each.filter), []).append(each.value)
    notes = [_note(table, key, values) for key, values in figures.items()]
    return (
        notes
        if len(notes) <= MOST
        else [*notes[:MOST], f"and values of {len(notes) - MOST} more metrics are off scale"]
    )


def _note(table: ProjectTable, key: tuple[str, str, str], values: list[float]) -> str:
    name, metric, _ = key
    more = f" and {len(values) - 1} more" if len(values) > 1 else ""
    words = WORDS[table.for_metric(*key).scale]
    return (
        f"{f'{name}.{metric}'.rstrip('.')}: {values[0]:g}{more} cannot be of its scale in the benchmark table"
        f" ({words}); kept as it came, never ranked"
    )


@lru_cache(maxsize=16_384)
def _shipped_scale(*key: Any) -> str:
    return catalogue().for_metric(*key).scale
