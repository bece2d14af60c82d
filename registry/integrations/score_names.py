"""Which of a tracker's metrics are benchmark scores: those whose name the benchmark table knows. Pure.

`gsm8k`, `gsm8k/exact_match,strict-match`, `eval/mmlu/acc`, `gsm8k.exact_match.flexible-extract`; of `eval_loss` none,
since no benchmark is called loss. What the table does not know stays a metric of the checkpoint, under its own name.
"""

import re
from dataclasses import dataclass
from typing import Final

from registry.evals.catalogue import catalogue
from registry.evals.scores import split_metric

_BEFORE: Final = re.compile(
    r"^(?:(?:lm[-_])?eval(?:uation)?s?|test|val(?:id(?:ation)?)?|benchmarks?)[/_.]", re.IGNORECASE
)
# Ends of names that are a score's error, its number of examples or its time, not the score.
_NO_SCORE: Final = re.compile(
    r"(?:stderr|std_err|_runtime|_per_second|_samples|_steps|num_examples)(?:,.*)?$", re.IGNORECASE
)


@dataclass(frozen=True)
class ScoreName:
    benchmark: str
    metric: str = ""
    filter: str = ""


def score_name(key: str) -> ScoreName | None:
    """The benchmark, metric and filter that a tracker's metric name means; None where the table knows no such."""
    if _NO_SCORE.search(key):
        return None
    name = _BEFORE.sub("", key)
    if catalogue().get(name) is not None:
        return ScoreName(name)
    for sign in ("/", ".", ":"):
        benchmark, found, metric = name.partition(sign)
        if found and metric and catalogue().get(benchmark) is not None:
            metric, filter_name = split_metric(metric)
            if sign == "." and "." in metric:
                metric, _, filter_name = metric.partition(".")
            return ScoreName(benchmark, metric, filter_name)
    return None
