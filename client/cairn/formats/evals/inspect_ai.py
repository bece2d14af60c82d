"""Logs of inspect-ai: one JSON document, or the same in parts inside a zip archive (`.eval`).

    {"version": 2, "status": "success", "eval": {"task", "task_version", "model", "created", "config", ...},
     "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.5}, "stderr": {"value": 0.1}}}]}}

Of an archive only `header.json` is opened, whatever else is in it, and never more than a bounded number of bytes. A
log without results (an evaluation that failed or still runs) is refused. The name of the scorer is the filter.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from cairn.formats import jsonfile
from cairn.formats.evals import archive
from cairn.formats.evals.lm_eval_v04_config import digest
from cairn.formats.evals.setup import SCALAR, Setup, set_step
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import error_of, limit_of, number, text_of, version_text, whole, why_no_number
from cairn.formats.refusals import Refused

NAME = "inspect-ai"
HEADER = "header.json"
# The error of the metric beside it, or its spread: not a score.
OF_ANOTHER = frozenset({"stderr", "bootstrap_stderr", "clustered_stderr", "std", "var", "ci"})
AVERAGES = ("accuracy", "mean")
FACTS = ("task", "task_id", "run_id", "eval_id", "created", "model_base_url", "task_file", "task_registry_name")


def matches(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("eval"), dict):
        return False
    return "status" in document and "task" in document["eval"] and "model" in document["eval"]


def read(document: Any, name: str = "") -> EvalFile:
    run = document["eval"]
    results = document.get("results")
    if not isinstance(results, dict) or not isinstance(results.get("scores"), list):
        raise Refused(f"The inspect-ai log has the status {str(document['status'])[:40]!r} and holds no results.")
    setup = _setup(document, run, name)
    found = Findings(problems=setup.problems)
    task = str(run["task"]).rpartition("/")[2]
    if fault := text_fault(task):
        raise Refused(f"The task of the inspect-ai log cannot be stored: {fault}.")
    if document["status"] != "success":
        found.note(f"the evaluation ended with the status {str(document['status'])[:40]!r}: its results may be partial")
    for score in results["scores"]:
        if isinstance(score, dict) and isinstance(score.get("metrics"), dict):
            _read_score(task, score, document, setup, found)
        else:
            found.skip(task, "expected a score with its metrics")
    return found.to_file(NAME, **setup.origin())


def _read_score(task: str, score: Mapping[str, Any], document: Any, setup: Setup, found: Findings) -> None:
    run, results = document["eval"], document["results"]
    scorer = text_of(score.get("name")) or ""
    metrics = {name: each.get("value") if isinstance(each, dict) else each for name, each in score["metrics"].items()}
    packages = run.get("packages")
    shared: dict[str, Any] = {
        "filter": scorer,
        "n_samples": _samples(score, results),
        "n_shot": setup.n_shot,
        "version": version_text(run.get("task_version")),
        "harness": NAME,
        "harness_version": text_of(packages.get("inspect_ai")) if isinstance(packages, dict) else None,
        "evaluated_at": _time(document),
        "comparability": {**setup.comparability, **_reducer(score)},
    }
    averaged = next((name for name in AVERAGES if name in metrics), None)
    for metric, raw in metrics.items():
        item, value = f"{task}.{metric} ({scorer})", number(raw)
        if metric in OF_ANOTHER:
            continue
        if fault := text_fault(metric):
            found.skip(item, fault)
        elif value is None:
            found.skip(item, why_no_number(raw))
        else:
            stderr = _error(metrics) if metric == averaged or averaged is None else None
            found.scores.append(EvalScore(task, metric, value, stderr=stderr, **shared))


def _samples(score: Mapping[str, Any], results: Mapping[str, Any]) -> int | None:
    """Items that were scored: epochs repeat items, and a reduced item counts once."""
    scored = whole(score.get("scored_samples"))
    return scored if scored is not None else whole(results.get("completed_samples"))


def _error(metrics: Mapping[str, Any]) -> float | None:
    return next((error_of(number(metrics[name])) for name in ("stderr", "bootstrap_stderr") if name in metrics), None)


def _reducer(score: Mapping[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if reducer := text_of(score.get("reducer")):
        keys["reducer"] = reducer
    if score.get("params"):
        keys["scorer_params"] = digest(score["params"])
    return keys


def _setup(document: Any, run: Mapping[str, Any], name: str) -> Setup:
    setup = Setup(facts={key: run[key] for key in FACTS if isinstance(run.get(key), SCALAR)})
    arguments = run.get("model_args")
    arguments = arguments if isinstance(arguments, dict) else {}
    setup.model_path = text_of(arguments.get("model_path")) or text_of(run.get("model"))
    setup.model_revision = text_of(arguments.get("revision"))
    set_step(setup, name)
    task_args = run.get("task_args")
    task_args = task_args if isinstance(task_args, dict) else {}
    setup.n_shot = next((whole(task_args[key]) for key in ("fewshot", "num_fewshot") if key in task_args), None)
    setup.comparability = dict(_keys(document, run, task_args))
    if "limit" in setup.comparability:
        setup.note("only some of the samples were evaluated (config.limit)")
    return setup


def _keys(document: Any, run: Mapping[str, Any], task_args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    config = run.get("config")
    config = config if isinstance(config, dict) else {}
    limit = config.get("limit")
    if isinstance(limit, list) or limit_of(limit) is not None:
        yield "limit", digest(limit) if isinstance(limit, list) else limit_of(limit)
    if (epochs := whole(config.get("epochs"))) not in (None, 1):
        yield "epochs", epochs
    if task_args:
        yield "task_args", digest(task_args)
    plan = document.get("plan")
    if isinstance(plan, dict) and plan.get("steps"):
        # The steps hold the prompt's template; the config how the model was asked to generate.
        yield "plan", digest({"steps": plan["steps"], "config": plan.get("config")})


def _time(document: Any) -> str | None:
    stats = document.get("stats")
    ended = text_of(stats.get("completed_at")) if isinstance(stats, dict) else None
    return ended or text_of(document["eval"].get("created"))


def matches_archive(data: BinaryIO) -> bool:
    names = archive.names(data)
    return HEADER in names or any(name.startswith("_journal/") for name in names)


def read_archive(data: BinaryIO, name: str = "") -> EvalFile:
    """Raises `Refused` for a log that was never finished, and for what unpacks to too much."""
    if HEADER not in archive.names(data):
        raise Refused("The .eval archive has no header.json: its evaluation was never finished.")
    document = jsonfile.load(archive.member(data, HEADER))
    if not matches(document):
        raise Refused("The header.json of the archive is no log of inspect-ai.")
    return read(document, name)


FORMAT = Format(NAME, "json", matches, read)
ARCHIVE = Format(NAME, "zip", matches_archive, read_archive)
