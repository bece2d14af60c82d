"""Which of a history's numbers are benchmark scores: those whose name the project's benchmark table knows.

`gsm8k`, `eval/gsm8k`, `eval/mmlu/acc`, `gsm8k.exact_match.flexible-extract`; of `eval/loss` none, since no benchmark is
called loss. An import from the live service reads names in the same way. What the table does not know stays a metric.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

from cairn.calls.base import segment
from cairn.client import Client
from cairn.errors import NotFound

_BEFORE = re.compile(r"^(?:(?:lm[-_])?eval(?:uation)?s?|test|val(?:id(?:ation)?)?|benchmarks?)[/_.]", re.IGNORECASE)
# Ends of names that are a score's error, its number of examples or its time, not the score.
_NO_SCORE = re.compile(r"(?:stderr|std_err|_runtime|_per_second|_samples|_steps|num_examples)(?:,.*)?$", re.IGNORECASE)
PAGE = 200


def known_benchmarks(client: Client, project: str) -> frozenset[str]:
    """Names and aliases of the project's table, in lower case. Empty with a service that does not tell them."""
    try:
        return frozenset(_names(client, project))
    except NotFound:
        return frozenset()


def _names(client: Client, project: str) -> Iterator[str]:
    cursor: str | None = None
    while True:
        page: Any = client._fetch(f"/projects/{segment(project)}/benchmarks", limit=PAGE, cursor=cursor)
        for each in page.get("items", ()):
            if each.get("shipped") or each.get("own"):
                yield from (str(name).lower() for name in (each.get("name"), *(each.get("aliases") or ())))
        cursor = page.get("next_cursor")
        if cursor is None:
            return


def score_name(key: str, known: Collection[str]) -> dict[str, str] | None:
    """Benchmark, metric and filter of a name; None where no benchmark is called so."""
    if _NO_SCORE.search(key):
        return None
    name = _BEFORE.sub("", key)
    if name.lower() in known:
        return {"benchmark": name}
    for sign in ("/", ".", ":"):
        benchmark, found, metric = name.partition(sign)
        if found and metric and benchmark.lower() in known:
            divider = "." if sign == "." and "," not in metric else ","
            metric, _, filter_name = metric.partition(divider)
            said = {"benchmark": benchmark, "metric": metric, "filter": "" if filter_name == "none" else filter_name}
            return {part: text for part, text in said.items() if text}
    return None
