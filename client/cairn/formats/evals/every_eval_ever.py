"""Records of the `every_eval_ever` schema: one model, the results of any harness, with the source named.

    {"schema_version": "0.3.0", "model_info": {"id": ...}, "eval_library": {"name", "version"},
     "evaluation_results": [{"evaluation_name", "metric_config": {"metric_id"}, "score_details": {"score": 0.75}}]}

The scale that a record declares (`min_score`, `max_score`) is kept beside the figure, which stays as it is.
"""

from collections.abc import Mapping
from typing import Any

from cairn.formats.evals.lm_eval_v04_config import digest
from cairn.formats.evals.setup import Setup, set_step
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, text_fault
from cairn.formats.evals.values import error_of, number, text_of, time_of_epoch, whole, why_no_number

NAME = "every-eval-ever"


def matches(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and "schema_version" in document
        and isinstance(document.get("model_info"), dict)
        and isinstance(document.get("evaluation_results"), list)
    )


def read(document: Any, name: str = "") -> EvalFile:
    model, library = document["model_info"], document.get("eval_library")
    library = library if isinstance(library, dict) else {}
    setup = Setup(model_path=text_of(model.get("id")) or text_of(model.get("name")))
    setup.facts = {"evaluation_id": document.get("evaluation_id"), "schema_version": document["schema_version"]}
    more = model.get("additional_details")
    setup.model_revision = text_of(more.get("revision")) if isinstance(more, dict) else None
    set_step(setup, name)
    found = Findings(problems=setup.problems)
    shared: dict[str, Any] = {
        "harness": _known(library.get("name")) or NAME,
        "harness_version": _known(library.get("version")),
    }
    for index, result in enumerate(document["evaluation_results"]):
        if isinstance(result, dict):
            _read_result(index, result, document, shared, found)
        else:
            found.skip(f"evaluation_results/{index}", "expected an object")
    return found.to_file(NAME, **setup.origin())


def _read_result(
    index: int, result: Mapping[str, Any], document: Any, shared: Mapping[str, Any], found: Findings
) -> None:
    config, details = _mapping(result, "metric_config"), _mapping(result, "score_details")
    benchmark = _benchmark(result)
    metric = text_of(config.get("metric_id")) or text_of(config.get("metric_name")) or ""
    value = number(details.get("score"))
    item = f"evaluation_results/{index}"
    if fault := text_fault(benchmark):
        found.skip(item, fault)
    elif value is None:
        found.skip(item, why_no_number(details.get("score")))
    else:
        uncertainty = _mapping(details, "uncertainty")
        error = uncertainty.get("standard_error")
        when = result.get("evaluation_timestamp") or document.get("evaluation_timestamp")
        found.scores.append(
            EvalScore(
                benchmark,
                metric,
                value,
                stderr=error_of(number(error.get("value") if isinstance(error, dict) else error)),
                n_samples=whole(uncertainty.get("num_samples")),
                evaluated_at=time_of_epoch(when) or (text_of(when) if isinstance(when, str) and "T" in when else None),
                comparability=_keys(result, config),
                **shared,
            )
        )


def _benchmark(result: Mapping[str, Any]) -> str:
    """`source.bench` of the data set `bench` is `bench`; else the evaluation's own name."""
    named = result.get("evaluation_name")
    evaluation = named if isinstance(named, str) else ""
    dataset = text_of(_mapping(result, "source_data").get("dataset_name"))
    return dataset if dataset and evaluation.endswith(f".{dataset}") else evaluation or dataset or ""


def _keys(result: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for name in ("min_score", "max_score"):
        bound = number(config.get(name))
        if bound is not None and bound not in (0.0, 1.0):
            keys[name] = bound
    if result.get("generation_config"):
        keys["generation_config"] = digest(result["generation_config"])
    return keys


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _known(value: Any) -> str | None:
    text = text_of(value)
    return None if text == "unknown" else text


FORMAT = Format(NAME, "json", matches, read)
