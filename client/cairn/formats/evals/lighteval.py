"""Result files of lighteval: `results_*.json`.

    {"config_general": {"model_name": ..., "lighteval_sha": ...},
     "results": {"suite|task|shots": {"acc": 0.5, "acc_stderr": 0.01}, "all": {...}}, "versions": {...}, ...}

The mean over everything that was evaluated (`all`) is left out, since it means something else in every file. The mean
over a task's subsets (`suite|mmlu:_average|5`) is the task's, marked as an average. Details are Parquet files, which
the standard library cannot read: they are refused.
"""

import re
from collections.abc import Mapping
from typing import Any

from cairn.formats.evals.setup import SCALAR, Setup, set_step, split_model_args
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import error_of, limit_of, number, text_of, version_text, why_no_number
from cairn.formats.jsonfile import Repeated
from cairn.formats.refusals import Refused

NAME = "lighteval"
TASK = re.compile(r"(?:(?P<suite>[^|]+)\|)?(?P<task>[^|]+)\|(?P<shots>\d{1,4})(?:\|(?P<truncate>[01]))?")
AVERAGE = ":_average"
FACTS = ("lighteval_sha", "model_sha", "model_dtype", "model_size", "override_batch_size", "job_id")
# Of the questions and of the prompts; lighteval also hashes tokens, which depend on the model.
HASHES = ("hash_examples", "hash_full_prompts")


def matches(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("results"), dict):
        return False
    return isinstance(document.get("config_general"), dict)


def read(document: Any, name: str = "") -> EvalFile:
    if isinstance(document, Repeated) and document.clashes:
        raise Refused(f"{sorted(document.clashes)[0]!r} stands twice in the file, with different values.")
    general = document["config_general"]
    setup = _setup(general, name)
    found = Findings(problems=setup.problems)
    clashes = document["results"].clashes if isinstance(document["results"], Repeated) else ()
    for key, row in document["results"].items():
        label = TASK.fullmatch(key)
        if key == "all":
            found.skip(key, "the mean over everything in this file, which differs from file to file")
        elif key in clashes:
            found.skip(key, "the task stands twice in the file, with different results")
        elif not isinstance(row, dict):
            found.skip(key, "expected an object of metrics")
        elif label is None or text_fault(key):
            found.skip(key, "expected a task as suite|task|shots")
        else:
            _read_row(key, label, row, document, setup, found)
    return found.to_file(NAME, **setup.origin())


def _setup(general: Mapping[str, Any], name: str) -> Setup:
    setup = Setup(facts={key: general[key] for key in FACTS if isinstance(general.get(key), SCALAR)})
    config = general.get("model_config")
    config = config if isinstance(config, dict) else {}
    stated = (
        text_of(general.get("model_name")) or text_of(config.get("model_name")) or text_of(config.get("pretrained"))
    )
    if stated and "=" in stated:  # written as the arguments of the command line
        arguments = split_model_args(stated)
        stated = arguments.get("pretrained") or arguments.get("model_name") or stated
        setup.model_revision = text_of(arguments.get("revision"))
    setup.model_path = text_of(stated)
    setup.model_revision = setup.model_revision or text_of(config.get("revision"))
    set_step(setup, name)
    if (limit := limit_of(general.get("max_samples"))) is not None:
        setup.comparability["limit"] = limit
        setup.note(f"only {limit} items of each task were evaluated (max_samples)")
    return setup


def _read_row(
    key: str, label: "re.Match[str]", row: Mapping[str, Any], document: Any, setup: Setup, found: Findings
) -> None:
    task, is_average = label["task"].removesuffix(AVERAGE), label["task"].endswith(AVERAGE)
    shared: dict[str, Any] = {
        "n_shot": int(label["shots"]),
        "version": version_text(_at(document, "versions", key)),
        "harness": NAME,
        "harness_version": text_of(document["config_general"].get("lighteval_sha")),
        "comparability": {**setup.comparability, **_keys(key, label, is_average, document)},
    }
    clashes = row.clashes if isinstance(row, Repeated) else ()
    for metric, raw in row.items():
        item, value = f"{key}.{metric}", number(raw)
        if metric.endswith("_stderr"):
            if metric.removesuffix("_stderr") not in row:
                found.skip(item, "a standard error without its score")
        elif metric in clashes or f"{metric}_stderr" in clashes:
            found.skip(item, "the key stands twice in the file, with different values")
        elif fault := text_fault(metric):
            found.skip(item, fault)
        elif value is None:
            found.skip(item, why_no_number(raw))
        else:
            stderr = error_of(number(row.get(f"{metric}_stderr")))
            found.scores.append(EvalScore(task, metric, value, stderr=stderr, **shared))


def _keys(key: str, label: "re.Match[str]", is_average: bool, document: Any) -> dict[str, Any]:
    keys: dict[str, Any] = {"suite": label["suite"]} if label["suite"] else {}
    if is_average:
        keys["aggregate"] = "mean of subsets"
    hashes = _at(document, "summary_tasks", key, "hashes")
    for name in HASHES:
        if isinstance(hashes, dict) and (text := text_of(hashes.get(name))):
            keys[name] = text
    return keys


def _at(document: Any, *path: str) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


FORMAT = Format(NAME, "json", matches, read)
