"""Result files of lm-evaluation-harness 0.4: `results_*.json`.

    {"results": {task: {"alias": ..., "metric,filter": number, "metric_stderr,filter": number or "N/A"}},
     "groups": {...}, "group_subtasks": {...}, "configs": {...}, "versions": {...}, "n-shot": {...},
     "n-samples": {task: {"original": n, "effective": n}}, "task_hashes": {...}, "config": {...}, ...}

A group's row stands in `results` and again in `groups`. Its number of samples is the sum of its subtasks' effective
ones; where one of them is unknown, or the group is no mean over samples, it stays unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cairn.formats.evals.lm_eval_v03 import HARNESS, is_newer
from cairn.formats.evals.lm_eval_v04_config import read_setup, task_keys
from cairn.formats.evals.setup import Setup
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import error_of, number, text_of, time_of_epoch, version_text, whole, why_no_number
from cairn.formats.jsonfile import Repeated
from cairn.formats.refusals import Refused

NAME = "lm-eval-v04"
# What stands in a row beside its numbers; a group's row carries a key that is a single space.
DESCRIPTIONS = frozenset({"alias", "name", "sample_len", "sample_count", "samples", " ", ""})


def matches(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("results"), dict) and is_newer(document)


def read(document: Any, name: str = "") -> EvalFile:
    """Every score of the file. Raises `Refused` when there is none to import."""
    if isinstance(document, Repeated) and document.clashes:
        raise Refused(f"{sorted(document.clashes)[0]!r} stands twice in the file, with different values.")
    setup = read_setup(document, name)
    found = Findings(problems=setup.problems)
    for task, row in _rows(document, found):
        if fault := text_fault(task):
            found.skip(task, fault)
        else:
            _read_row(task, row, document, setup, found)
    return found.to_file(NAME, **setup.origin())


def _rows(document: Mapping[str, Any], found: Findings) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of `results`, then those of `groups` that are not among them."""
    results = document["results"]
    groups = _mapping(document, "groups")
    clashes = results.clashes if isinstance(results, Repeated) else ()
    for task, row in [*results.items(), *((group, row) for group, row in groups.items() if group not in results)]:
        if task in clashes:
            found.skip(task, "the task stands twice in the file, with different results")
        elif not isinstance(row, dict):
            found.skip(task, "expected an object of metrics")
        else:
            yield task, row
    for group, row in groups.items():
        if group in results and repr(results[group]) != repr(row):
            found.note(f"{group}: `groups` and `results` differ; `results` was read")


def _read_row(task: str, row: Mapping[str, Any], document: Mapping[str, Any], setup: Setup, found: Findings) -> None:
    shared: dict[str, Any] = {
        "n_samples": _samples(task, document),
        "n_shot": _shots(task, document, setup),
        "version": _version(_mapping(document, "versions").get(task)),
        "harness": HARNESS,
        "harness_version": text_of(document.get("lm_eval_version")) or text_of(document.get("git_hash")),
        "evaluated_at": time_of_epoch(document.get("date")),
        "comparability": {**setup.comparability, **task_keys(task, document)},
    }
    clashes = row.clashes if isinstance(row, Repeated) else ()
    for key, raw in row.items():
        metric, filter = split_key(key)
        item, value = f"{task}.{key}", number(raw)
        if key in DESCRIPTIONS:
            continue
        if metric.endswith("_stderr"):
            if _key(metric.removesuffix("_stderr"), key) not in row:
                found.skip(item, "a standard error without its score")
        elif key in clashes or _key(f"{metric}_stderr", key) in clashes:
            found.skip(item, "the key stands twice in the file, with different values")
        elif fault := text_fault(metric) or (text_fault(filter) if filter else ""):
            found.skip(item, fault)
        elif value is None:
            found.skip(item, why_no_number(raw))
        else:
            stderr = _stderr(item, row.get(_key(f"{metric}_stderr", key)), found)
            found.scores.append(EvalScore(task, metric, value, filter, stderr, **shared))


def split_key(key: str) -> tuple[str, str]:
    """`acc,none` as ('acc', ''), `exact_match,strict-match` as it says: at the last comma."""
    metric, comma, filter = key.rpartition(",")
    if not comma:
        return key, ""
    return metric, "" if filter == "none" else filter


def _key(metric: str, like: str) -> str:
    """The key of another metric under the same filter."""
    _, comma, filter = like.rpartition(",")
    return f"{metric}{comma}{filter}" if comma else metric


def _stderr(item: str, raw: Any, found: Findings) -> float | None:
    """`N/A` and NaN mean that there is no error, not that it is zero."""
    published = number(raw)
    stderr = error_of(published)
    if published is not None and stderr is None:
        found.note(f"{item}: the standard error {published} was left out, it is no error")
    return stderr


def _version(raw: Any) -> str | None:
    return None if raw == "N/A" else version_text(raw)


def _shots(task: str, document: Mapping[str, Any], setup: Setup) -> int | None:
    stated = _mapping(document, "n-shot").get(task)
    if stated is None:
        config = _mapping(document, "configs").get(task)
        stated = config.get("num_fewshot") if isinstance(config, dict) else None
    shots = whole(stated)
    return setup.n_shot if shots is None and not _subtasks(task, document) else shots


def _samples(task: str, document: Mapping[str, Any]) -> int | None:
    """How many items were really evaluated; for a group the sum of its leaves."""
    counts = _mapping(document, "n-samples")
    total, todo, seen = 0, [task], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        below = _subtasks(name, document)
        if below and _is_weighted(name, document):
            todo += below
            continue
        entry = counts.get(name)
        effective = whole(entry.get("effective")) if isinstance(entry, dict) else None
        if effective is None:
            return None
        total += effective
    return total


def _subtasks(task: str, document: Mapping[str, Any]) -> list[str]:
    below = _mapping(document, "group_subtasks").get(task)
    return [name for name in below if isinstance(name, str)] if isinstance(below, list) else []


def _is_weighted(group: str, document: Mapping[str, Any]) -> bool:
    """Whether the group's value is a mean over samples: the harness's default, unless its config says otherwise."""
    config = _mapping(document, "configs").get(group)
    metrics = config.get("aggregate_metric_list") if isinstance(config, dict) else None
    listed = metrics if isinstance(metrics, list) else [metrics]
    return all(each.get("weight_by_size") is not False for each in listed if isinstance(each, dict))


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


FORMAT = Format(NAME, "json", matches, read)
