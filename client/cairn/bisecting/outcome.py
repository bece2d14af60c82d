"""What an evaluation wrote: the score that a search asked for, from result files of any known format."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cairn.errors import Invalid
from cairn.formats import EvalScore
from cairn.results.gather import gather, reread
from cairn.types import Bisect


class NoOutcome(Invalid):
    """The results do not hold the score that was asked for."""


@dataclass(frozen=True)
class Outcome:
    value: float
    stderr: float | None
    n_samples: int | None
    score: EvalScore

    def is_whole(self, items: int | None) -> bool:
        """Whether it is of the whole benchmark, which has so many items."""
        return items is not None and self.n_samples is not None and self.n_samples >= items


def read_outcome(folder: Path, asked: Bisect) -> Outcome:
    """The score of the search's benchmark and metric in the result files below a folder. Raises `NoOutcome`."""
    if asked.capability is not None:
        raise NoOutcome("A capability is a mean over benchmarks: search one of them.", code="not-sendable")
    found = gather([folder])
    scores = [score for result in found.results for score in reread(result).scores]
    named = [each for each in scores if _is_asked(each, asked)]
    if not named:
        raise NoOutcome(_why(scores, [f"{each.file}: {each.reason}" for each in found.refused], asked, folder), code="")
    best = max(named, key=lambda each: (each.n_samples or 0, each.stderr is not None))
    if not math.isfinite(best.value):
        raise NoOutcome(f"{asked.benchmark} is {best.value}: that is no score to compare.", code="not-sendable")
    return Outcome(best.value, best.stderr, best.n_samples, best)


def _is_asked(score: EvalScore, asked: Bisect) -> bool:
    return (
        score.benchmark == asked.benchmark
        and asked.metric in (None, score.metric)
        and asked.filter in (None, score.filter)
    )


def _why(scores: Sequence[EvalScore], refused: Sequence[str], asked: Bisect, folder: Path) -> str:
    wanted = ".".join(filter(None, (asked.benchmark, asked.metric, asked.filter)))
    there = list(dict.fromkeys(".".join(filter(None, (each.benchmark, each.metric, each.filter))) for each in scores))
    if there:
        return f"The results hold no {wanted}; there are {', '.join(there[:8])}."
    if refused:
        return f"The results below {folder} cannot be read: {refused[0]}"
    return f"The command wrote no result file below {folder}."
