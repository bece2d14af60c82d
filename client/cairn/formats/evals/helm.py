"""A run of HELM: a folder with `run_spec.json`, `stats.json` and others, one benchmark and one model.

`stats.json` is a list of {"name": {"name", "split", "perturbation"}, "count": trials, "mean": ...}. A count of 0 has
no mean and is left out. What HELM counts beside the benchmark (tokens, seconds, reasons to stop) is left out as well,
as one line. The number of samples is the statistic `num_instances` of the same split and perturbation; the standard
deviation is over trials, so there is no standard error. The plain result of the split `test`, or of the only one, has
no filter; a perturbation is one, and so is another split.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cairn.formats.evals.lm_eval_v04_config import digest
from cairn.formats.evals.setup import Setup, set_step
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, listing, text_fault
from cairn.formats.evals.values import limit_of, number, text_of, whole, why_no_number
from cairn.formats.refusals import Refused

NAME = "helm"
FILES = ("run_spec.json", "stats.json", "scenario.json", "scenario_state.json", "per_instance_stats.json")
BOOKKEEPING = re.compile(
    r"num_.*|.*_runtime|training_.*|batch_size|finish_reason_.*|prompt_truncated|max_prob|predicted_index"
    r"|inference_.*|estimated_num_tokens.*"
)
# Statistics of the output's own probability: scores only where the benchmark is language modelling.
OF_THE_OUTPUT = frozenset({"logprob", "perplexity", "bits_per_byte", "logprob_per_byte"})
# Arguments in a run's name that say how it was asked, not what.
HOW = frozenset({"model", "model_deployment", "method", "data_augmentation", "max_train_instances", "groups"})
PROMPT_PARTS = ("method", "instructions", "input_prefix", "output_prefix", "reference_prefix", "global_prefix")


def is_run_spec(document: Any) -> bool:
    return isinstance(document, dict) and all(
        isinstance(document.get(key), dict) for key in ("scenario_spec", "adapter_spec")
    )


def is_stats(document: Any) -> bool:
    return (
        isinstance(document, list)
        and bool(document)
        and all(isinstance(each, dict) and isinstance(each.get("name"), dict) and "count" in each for each in document)
    )


def read_run(run_spec: Any, stats: Any, folder: str = "") -> EvalFile:
    """The scores of one run. `folder` is its name, which can only contradict."""
    spec = run_spec["adapter_spec"]
    setup = Setup(model_path=text_of(spec.get("model")))
    setup.facts = {"run_spec": run_spec.get("name"), "model_deployment": spec.get("model_deployment")}
    set_step(setup)
    _check_folder(run_spec, folder, setup)
    found = Findings(problems=setup.problems)
    benchmark, keys = _benchmark(run_spec)
    if text_fault(benchmark):
        raise Refused("HELM's run_spec.json names no benchmark (name, groups).")
    shared = {
        "n_shot": whole(spec.get("max_train_instances")),
        "harness": NAME,
        "comparability": {**keys, **_adapter_keys(spec)},
    }
    _read_stats(benchmark, stats, spec.get("method") == "language_modeling", shared, found)
    return found.to_file(NAME, **setup.origin())


def _read_stats(
    benchmark: str, stats: Sequence[Mapping[str, Any]], modelling: bool, shared: Mapping[str, Any], found: Findings
) -> None:
    counts = {_where(each): whole(each.get("mean")) for each in stats if each["name"].get("name") == "num_instances"}
    splits = sorted({_where(each)[0] for each in stats})
    main = "test" if "test" in splits else splits[0]
    aside = set()
    for each in stats:
        metric, where = each["name"].get("name"), _where(each)
        item = f"{benchmark}.{metric} {' '.join(where)}".strip()
        if not isinstance(metric, str) or text_fault(metric):
            found.skip(f"{benchmark} {where[0]}", "the name of a statistic cannot be stored")
        elif BOOKKEEPING.fullmatch(metric) or (metric in OF_THE_OUTPUT and not modelling):
            aside.add(metric)
        elif not each.get("count"):
            found.skip(item, "nothing was measured (count 0), which is not zero")
        elif (value := number(each.get("mean"))) is None:
            found.skip(item, why_no_number(each.get("mean")))
        else:
            split, perturbation = where
            said = {"split": split, "perturbation": perturbation}
            own = {
                "filter": " ".join(filter(None, ("" if split == main else split, perturbation))),
                "n_samples": counts.get(where),
                "comparability": shared["comparability"] | {key: text for key, text in said.items() if text},
            }
            found.scores.append(EvalScore(benchmark, metric, value, **{**shared, **own}))
    if aside:
        found.skip(listing(sorted(aside), 40), "statistics of the run, not of the benchmark")


def _where(stat: Mapping[str, Any]) -> tuple[str, str]:
    """Split and perturbation of a statistic; the plain one has no perturbation."""
    split = text_of(stat["name"].get("split")) or ""
    perturbation = stat["name"].get("perturbation")
    if not isinstance(perturbation, dict):
        return split, ""
    said = [text_of(perturbation.get(key)) for key in ("name", "computed_on")]
    rest = {key: perturbation[key] for key in sorted(perturbation) if key not in ("name", "computed_on")}
    told = {key: value for key, value in rest.items() if value is not None and not isinstance(value, bool)}
    return split, " ".join([*filter(None, said), *([digest(told)] if told else [])]) or "perturbed"


def _benchmark(run_spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The benchmark's name, and what else its arguments say: `mmlu:subject=anatomy,...` is mmlu_anatomy."""
    scenario, _, arguments = str(run_spec.get("name") or "").partition(":")
    groups = run_spec.get("groups")
    named = [group for group in groups if isinstance(group, str)] if isinstance(groups, list) else []
    said = dict(part.partition("=")[::2] for part in arguments.split(",") if "=" in part)
    benchmark = named[0] if named else scenario
    if subject := said.pop("subject", ""):
        benchmark = f"{benchmark}_{subject}"
    if said.get("dataset") == benchmark:
        del said["dataset"]
    rest = {key: value for key, value in said.items() if key not in HOW and not text_fault(key) and text_of(value)}
    return benchmark, ({"arguments": ",".join(f"{key}={rest[key]}" for key in sorted(rest))} if rest else {})


def _adapter_keys(spec: Mapping[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {"prompt_digest": digest({key: spec.get(key) for key in PROMPT_PARTS})}
    if method := text_of(spec.get("method")):
        keys["method"] = method
    if (limit := limit_of(spec.get("max_eval_instances"))) is not None:
        keys["max_eval_instances"] = limit
    return keys


def _check_folder(run_spec: Mapping[str, Any], folder: str, setup: Setup) -> None:
    """HELM names the folder after the run, with other signs for those that a file system would not take."""
    name = str(run_spec.get("name") or "")
    if "=" in folder and re.sub(r"[\W_]+", "", folder) != re.sub(r"[\W_]+", "", name):
        setup.note(f"the folder is named {folder[:200]!r}, its run_spec.json {name[:200]!r}")
