"""`trainer_state.json` of transformers' Trainer: the evaluations in its `log_history`, each at its step.

    {"global_step": 2000, "log_history": [{"step": 1000, "eval_loss": 0.9, "eval_wer": 43.1, "eval_runtime": 54.8}]}

The Trainer writes a runtime for each set that it evaluates (`eval_runtime`, `eval_g0_runtime`): so the sets are known
by name, `eval` or `eval_g0`, and the rest of a key is the metric (`loss`, `rouge-1`, `rewards/chosen`). A set is kept
as a benchmark under its own name: it is data of this training, not a public benchmark of the same name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cairn.formats.evals.setup import INT64_MAX, SCALAR
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, Place, text_fault
from cairn.formats.evals.values import number, whole, why_no_number
from cairn.formats.refusals import Refused

NAME = "trainer-state"
HARNESS = "transformers-trainer"
OWN_KEYS = ("max_steps", "num_train_epochs", "total_flos", "is_world_process_zero", "is_local_process_zero")
# How long the evaluation took.
SPEEDS = frozenset(
    {
        *("runtime", "samples_per_second", "steps_per_second", "tokens_per_second"),
        *("model_preparation_time", "jit_compilation_time"),
    }
)
FACTS = ("global_step", "epoch", "max_steps", "best_metric", "best_model_checkpoint", "num_input_tokens_seen")


def matches(document: Any) -> bool:
    """The Trainer's own keys; a file of another program with this name lacks them."""
    if not isinstance(document, dict) or not isinstance(document.get("log_history"), list):
        return False
    return "global_step" in document and sum(key in document for key in OWN_KEYS) >= 2


def read(document: Any, name: str = "") -> EvalFile:
    found = Findings()
    predicted = 0
    for index, entry in enumerate(document["log_history"]):
        if not isinstance(entry, dict):
            found.skip(f"log_history/{index}", "expected an object")
            continue
        if any(isinstance(key, str) and key.startswith("eval_") for key in entry):
            _read_entry(index, entry, found)
        predicted += any(key.startswith("predict_") for key in entry)
    if predicted:
        found.skip(f"predict_* of {predicted} entries", "results of a prediction, which name no step")
    if not found.scores and not found.skipped:
        raise Refused(
            f"The trainer_state.json holds no evaluation: {len(document['log_history'])} entries of training."
        )
    _note_repeats(found)
    steps = sorted({score.place.step for score in found.scores if score.place.step is not None})
    last = whole(document.get("global_step"))
    if last is not None and steps and steps[-1] > last:
        found.note(f"an evaluation stands at step {steps[-1]}, beyond the global_step {last}")
    facts = {key: document[key] for key in FACTS if isinstance(document.get(key), SCALAR)}
    facts["steps"] = tuple(steps)
    only = steps[0] if len(steps) == 1 else None
    return found.to_file(NAME, facts=facts, step=only, step_source="" if only is None else "log_history")


def _read_entry(index: int, entry: Mapping[str, Any], found: Findings) -> None:
    step = whole(entry.get("step"))
    if step is None or step > INT64_MAX:
        found.skip(f"log_history/{index}", "an evaluation without a step")
        return
    for benchmark, metric, raw in _results(entry):
        item, value = f"{benchmark}.{metric} at step {step}", number(raw)
        if fault := text_fault(benchmark) or text_fault(metric):
            found.skip(item, fault)
        elif value is None:
            found.skip(item, why_no_number(raw))
        else:
            found.scores.append(EvalScore(benchmark, metric, value, harness=HARNESS, place=Place(step=step)))


def _results(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(set, metric, value): the set is the longest prefix that has a runtime of its own, else `eval`."""
    sets = [key.removesuffix("_runtime") for key in entry if key.startswith("eval") and key.endswith("_runtime")]
    sets.sort(key=len, reverse=True)
    for key, raw in entry.items():
        if not key.startswith("eval_"):
            continue
        benchmark = next((each for each in sets if key.startswith(f"{each}_")), "eval")
        metric = key[len(benchmark) + 1 :]
        if metric not in SPEEDS:
            yield benchmark, metric, raw


def _note_repeats(found: Findings) -> None:
    """The same figure twice is one; two figures of one metric at one step are both kept, the later one counts."""
    found.scores = list({_identity(score): score for score in found.scores}.values())
    seen = [(score.benchmark, score.metric, score.place) for score in found.scores]
    repeated = len(seen) - len(set(seen))
    if repeated:
        found.note(f"{repeated} results stand beside another one of the same metric at the same step; all are kept")


def _identity(score: EvalScore) -> tuple[Any, ...]:
    return (score.benchmark, score.metric, score.place, repr(score.value))


FORMAT = Format(NAME, "json", matches, read)
