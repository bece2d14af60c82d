"""Result files of lm-evaluation-harness 0.3 and the forks that share its shape.

    {"results": {task: {metric: number, metric_stderr: number}}, "versions": {task: number}, "config": {...}}

Three variants are read too: results nested under the time of the evaluation (BLOOM's files), results as a
list with one entry per prompt (the promptsource fork), and task names that carry a version and a prompt
template (the Japanese fork: `jcommonsenseqa-1.1-0.3` is jcommonsenseqa, version 1.1, template 0.3).
The shape is older than 0.3 and the files do not name their version, so `harness_version` stays unknown.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.evals.lm_eval_v03_config import read_setup
from cairn.formats.evals.setup import Setup
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import error_of, number, version_text, why_no_number
from cairn.formats.jsonfile import Repeated
from cairn.formats.refusals import Refused

NAME = "lm-eval-v03"
HARNESS = "lm-evaluation-harness"
STDERR = "_stderr"
# What the promptsource fork writes beside the numbers of an entry.
DESCRIPTIONS = frozenset(
    {
        *("task_name", "prompt_name", "prompt_id", "prompt_jinja", "prompt_original_task"),
        *("dataset_path", "dataset_name", "subset", "comment", "fixed_answer_choice_list"),
    }
)
TIME_KEY = re.compile(r"\d{4}-\d{2}-\d{2}[-T_ ]\d{2}[-:]\d{2}[-:]\d{2}")


@dataclass
class _Task:
    """One task's numbers, before they become scores."""

    label: str
    benchmark: str
    numbers: Mapping[str, Any]
    version: str | None
    comparability: dict[str, Any] = field(default_factory=dict)


def matches(document: Any) -> bool:
    """`results` and `versions` side by side, and none of what 0.4 added."""
    if not isinstance(document, dict) or is_newer(document):
        return False
    results = document.get("results")
    return isinstance(results, (dict, list)) and isinstance(document.get("versions"), dict)


def is_newer(document: Mapping[str, Any]) -> bool:
    """Version 0.4 added top-level keys and writes `metric,filter`."""
    if "results" not in document:
        return False
    if {"n-shot", "configs", "group_subtasks", "higher_is_better"} & document.keys():
        return True
    results = document["results"]
    tasks = results.values() if isinstance(results, dict) else ()
    return any("," in metric for task in tasks if isinstance(task, dict) for metric in task)


def read(document: Any, name: str = "") -> EvalFile:
    """Every score of the file. Raises `Refused` when there is none to import."""
    if isinstance(document, Repeated) and document.clashes:
        raise Refused(f"{sorted(document.clashes)[0]!r} stands twice in the file, with different values.")
    setup = read_setup(document, name)
    found = Findings(problems=setup.problems)
    for task in _tasks(document, found):
        _read_task(task, setup, found)
    return found.to_file(NAME, **setup.origin())


def _tasks(document: Mapping[str, Any], found: Findings) -> Iterator[_Task]:
    results, versions = document["results"], document["versions"]
    entries = _listed(results, found) if isinstance(results, list) else results.items()
    clashes = results.clashes if isinstance(results, Repeated) else ()
    for label, numbers in entries:
        if label in clashes:
            found.skip(label, "the task stands twice in the file, with different results")
        elif not isinstance(numbers, dict):
            found.skip(label, "expected an object of metrics")
        elif fault := text_fault(label):
            found.skip(label, fault)
        else:
            version = version_text(versions.get(label))
            for when, dated in _by_time(numbers, found):
                yield _task(label, dated, version_text(_at(versions.get(label), when)) or version)


def _listed(results: list[Any], found: Findings) -> Iterator[tuple[str, Any]]:
    """Entries of the list form, under the harness's own name for them: `task+prompt`."""
    for index, entry in enumerate(results):
        task = entry.get("task_name") if isinstance(entry, dict) else None
        if not isinstance(task, str):
            found.skip(f"results/{index}", "expected an object with a task_name")
            continue
        prompt = entry.get("prompt_name")
        yield (f"{task}+{prompt}" if isinstance(prompt, str) else task), entry


def _by_time(numbers: dict[str, Any], found: Findings) -> Iterator[tuple[str, Any]]:
    """The results of a task, oldest first: those under a time of evaluation one by one."""
    times = sorted(key for key, value in numbers.items() if isinstance(value, dict) and TIME_KEY.match(key))
    if not times:
        yield "", numbers
        return
    found.note("results are nested under a time without a zone, so the time of evaluation is unknown")
    for when in times:
        yield when, numbers[when]


def _at(version: Any, when: str) -> Any:
    return version.get(when) if isinstance(version, dict) else None


def _task(label: str, numbers: dict[str, Any], version: str | None) -> _Task:
    task = _Task(label, label, numbers, version)
    prompt = numbers.get("prompt_id")
    if isinstance(prompt, str):
        task.comparability["prompt_id"] = prompt
    # Only where the file's own version agrees is the tail of the name read as version and template.
    tail = re.fullmatch(r"(.+)-([0-9.]+)-([0-9.]+)", label)
    if tail and tail[2] == version:
        task.benchmark = tail[1]
        task.comparability["prompt_template"] = tail[3]
    return task


def _read_task(task: _Task, setup: Setup, found: Findings) -> None:
    clashes = task.numbers.clashes if isinstance(task.numbers, Repeated) else ()
    for metric, raw in task.numbers.items():
        item = f"{task.label}.{metric}"
        if metric in DESCRIPTIONS:
            continue
        if metric.endswith(STDERR):
            if metric.removesuffix(STDERR) not in task.numbers:
                found.skip(item, "a standard error without its score")
            continue
        value = number(raw)
        if metric in clashes or f"{metric}{STDERR}" in clashes:
            found.skip(item, "the key stands twice in the file, with different values")
        elif fault := text_fault(metric):
            found.skip(item, fault)
        elif value is None:
            found.skip(item, why_no_number(raw))
        else:
            found.scores.append(_score(task, setup, found, metric, value))


def _score(task: _Task, setup: Setup, found: Findings, metric: str, value: float) -> EvalScore:
    published = number(task.numbers.get(f"{metric}{STDERR}"))
    stderr = error_of(published)
    if published is not None and stderr is None:
        found.note(f"{task.label}.{metric}: the standard error {published} was left out, it is no error")
    return EvalScore(
        benchmark=task.benchmark,
        metric=metric,
        value=value,
        stderr=stderr,
        n_shot=setup.n_shot,
        version=task.version,
        harness=HARNESS,
        comparability={**setup.comparability, **task.comparability},
    )


FORMAT = Format(NAME, "json", matches, read)
