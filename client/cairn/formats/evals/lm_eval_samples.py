"""Per-sample results of lm-evaluation-harness 0.4: `samples_TASK_DATE.jsonl`, one line per item and filter.

    {"doc_id": 0, "doc_hash": ..., "prompt_hash": ..., "filter": "none", "metrics": ["acc"], "acc": 1.0, ...}

A score is the mean over the items, with sd/√n as its standard error (n - 1 in the sd); with it come the values of the
items, each known by its doc_hash and prompt_hash, so that two checkpoints can be compared item by item. A digest of
all those pairs tells whether two results are over the same items. Metrics that are no mean of their items are left out.
The lines do not name their task: it is taken from the file's name, and that is noted.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.evals.content import Lines, open_file, open_for_reading
from cairn.formats.evals.lm_eval_v03 import HARNESS
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import number, text_of
from cairn.formats.refusals import Refused

NAME = "lm-eval-samples"
FILE_NAME = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d{2}-\d{2}T[\d.:-]+)?\.jsonl")
# Metrics that the harness does not average: perplexities, corpus scores, scores over all predictions at once.
NO_MEANS = frozenset(
    {
        *("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "weighted_perplexity"),
        *("bleu", "chrf", "ter", "mcc", "f1", "matthews_correlation", "brier_score"),
    }
)


@dataclass
class _Items:
    """The results of one metric under one filter."""

    values: list[float] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    hashed: bool = True  # every line says both hashes


def matches(lines: Lines) -> bool:
    return _is_item(lines.first)


def _is_item(row: Mapping[str, Any]) -> bool:
    """A line names an item, a filter and its metrics, as the harness writes them."""
    return "doc_id" in row and "filtered_resps" in row and isinstance(row.get("metrics"), list) and "filter" in row


def read(lines: Lines, name: str = "") -> EvalFile:
    task = FILE_NAME.fullmatch(name.replace("\\", "/").rpartition("/")[2])
    if task is None or text_fault(task["task"]):
        raise Refused("The lines do not name their task, and the file's name is not samples_TASK_DATE.jsonl.")
    found = Findings()
    found.note(f"the task, {task['task']}, is taken from the file's name: the lines do not say it")
    groups: dict[tuple[str, str], _Items] = {}
    documents = set()
    for line, row in lines:
        if _is_item(row):
            documents.add(str(row["doc_id"]))
            _collect(line, row, groups, found)
        else:
            found.skip(f"line {line}", "expected doc_id, filter, filtered_resps and metrics")
    for (metric, filter), items in groups.items():
        found.scores.append(_score(task["task"], metric, filter, items, found))
    return found.to_file(NAME, facts={"items": len(documents)})


def _collect(index: int, row: Mapping[str, Any], groups: dict[tuple[str, str], _Items], found: Findings) -> None:
    filter = text_of(row["filter"]) or ""
    for metric in row["metrics"]:
        if not isinstance(metric, str) or text_fault(metric):
            found.skip(f"line {index}", "the name of a metric cannot be stored")
            continue
        raw = row.get(metric)
        value = float(raw) if isinstance(raw, bool) else number(raw)
        if metric in NO_MEANS or isinstance(raw, (list, dict)):
            _skip_once(found, metric, "it is no mean of its items; the results file holds its value")
        elif value is None:
            found.skip(f"line {index}.{metric}", "missing in the file, which is not zero")
        else:
            items = groups.setdefault((metric, "" if filter == "none" else filter), _Items())
            items.values.append(value)
            items.keys.append(f"{row.get('doc_hash')} {row.get('prompt_hash')}")
            items.hashed = items.hashed and bool(row.get("doc_hash")) and bool(row.get("prompt_hash"))
            items.documents.append(str(row["doc_id"]))


def _skip_once(found: Findings, item: str, reason: str) -> None:
    if all(each.item != item for each in found.skipped):
        found.skip(item, reason)


def _score(task: str, metric: str, filter: str, items: _Items, found: Findings) -> EvalScore:
    if len(set(items.documents)) != len(items.documents):
        found.note(f"{task}.{metric}: some items stand several times; each line was counted")
    if not items.hashed:
        found.note(f"{task}.{metric}: lines without doc_hash and prompt_hash, so only their mean can be compared")
    mean, stderr = mean_and_error(items.values)
    return EvalScore(
        benchmark=task,
        metric=metric,
        value=mean,
        filter=filter,
        stderr=stderr,
        n_samples=len(items.values),
        harness=HARNESS,
        comparability={"items_digest": _digest(items.keys)},
        samples=tuple(zip(items.keys, items.values, strict=True)) if items.hashed else (),
    )


def mean_and_error(values: list[float]) -> tuple[float, float | None]:
    """The mean and sd/√n. No error from a single value, and none where a value is not finite."""
    count = len(values)
    if not all(map(math.isfinite, values)):
        return sum(values), None  # NaN or an infinity, as the mean is
    mean = math.fsum(values) / count
    if count < 2 or not math.isfinite(mean):
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1) if abs(mean) < 1e150 else math.inf
    return mean, math.sqrt(variance / count) if variance < math.inf else None


def _digest(keys: Iterable[str]) -> str:
    """Of the set of items, in whatever order they stand."""
    return hashlib.sha256("\n".join(sorted(keys)).encode("utf-8", "replace")).hexdigest()[:16]


def slim(path: str) -> bytes:
    """The lines of a samples file without documents, prompts and answers: what scores and pairing need. `OSError`."""
    with open_for_reading(path) as file:
        content = open_file(file)
        lines = content.value if isinstance(content.value, Lines) else ()
        kept = [json.dumps(_slim(row), separators=(",", ":")) for _, row in lines if _is_item(row)]
    return "\n".join(kept).encode() + b"\n"


def _slim(row: Mapping[str, Any]) -> dict[str, Any]:
    metrics = [name for name in row["metrics"] if isinstance(name, str)]
    names = ("doc_id", "doc_hash", "prompt_hash", "filter", "metrics", *metrics)
    return {name: row[name] for name in names if name in row} | {"filtered_resps": []}


FORMAT = Format(NAME, "jsonl", matches, read)
