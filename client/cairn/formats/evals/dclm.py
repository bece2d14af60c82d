"""Evaluation files of DCLM: `evaluation_*_heavy.json`, the figures of one model under LLM Foundry's suite.

    {"eval_metrics": {"icl": {task: accuracy}, "perplexity": x, "downstream_perpexity": {task: x}},
     "Core": x, "Extended": x, "low_variance_datasets_centered": x, ..., "creation_date": "2024_06_12-07_07_17"}

Accuracies are read, the perplexities too, and the two published aggregates (`Core`, `Extended`: means of centred
accuracies, which may be negative). The other aggregates are the same figures under older names. The time of the
evaluation has no zone, so it stays a fact of the file.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cairn.formats.evals.setup import SCALAR, Setup, set_step
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import number, text_of, why_no_number
from cairn.formats.jsonfile import Repeated
from cairn.formats.refusals import Refused

NAME = "dclm"
AGGREGATES = ("Core", "Extended")
FACTS = ("name", "uuid", "model_uuid", "creation_date", "eval_version", "_filename", "missing tasks")


def matches(document: Any) -> bool:
    metrics = document.get("eval_metrics") if isinstance(document, dict) else None
    return isinstance(metrics, dict) and isinstance(metrics.get("icl"), dict)


def read(document: Any, name: str = "") -> EvalFile:
    if isinstance(document, Repeated) and document.clashes:
        raise Refused(f"{sorted(document.clashes)[0]!r} stands twice in the file, with different values.")
    setup = Setup(facts={key: document[key] for key in FACTS if isinstance(document.get(key), SCALAR)})
    setup.model_path = text_of(document.get("model"))
    set_step(setup, name)
    found = Findings(problems=setup.problems)
    if not document.get("model_uuid"):
        found.note("the file names no model record (model_uuid), only what kind of model it was")
    if "creation_date" in setup.facts:
        found.note("the time of evaluation has no zone, so it is not kept as one")
    version = text_of(document.get("eval_version"))
    for benchmark, metric, raw in _figures(document):
        item, value = f"{benchmark}.{metric}", number(raw)
        if fault := text_fault(benchmark):
            found.skip(item, fault)
        elif value is None:
            found.skip(item, why_no_number(raw))
        else:
            shots = 0 if benchmark.endswith("_zeroshot") else None  # of the other tasks the file does not say it
            score = EvalScore(benchmark, metric, value, n_shot=shots, harness=NAME, harness_version=version)
            found.scores.append(score)
    return found.to_file(NAME, **setup.origin())


def _figures(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    metrics = document["eval_metrics"]
    for task, value in metrics["icl"].items():
        yield task, "accuracy", value
    if "perplexity" in metrics:
        yield "dclm_validation", "perplexity", metrics["perplexity"]
    downstream = metrics.get("downstream_perpexity")
    for task, value in downstream.items() if isinstance(downstream, dict) else ():
        yield task, "perplexity", value
    for aggregate in AGGREGATES:
        if aggregate in document:
            yield f"dclm_{aggregate.lower()}", "centered_accuracy", document[aggregate]


FORMAT = Format(NAME, "json", matches, read)
