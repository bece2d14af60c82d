"""What the `config` of a harness 0.3 result says about the model, the step and the number of shots.

The number of shots is dropped when the file's own prefix, or its name, contradicts it: published files say 0 in the
config of five-shot results.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cairn.formats.evals.setup import SCALAR, STEP_INSIDE, THE_NAME, Setup, set_step, shots_in, split_model_args
from cairn.formats.evals.values import limit_of
from cairn.formats.jsonfile import Repeated

# Of the 190 settings that GPT-NeoX writes into `model_args`, those that say what was trained and where.
NEOX_FACTS = ("iteration", "save", "load", "git_hash", "wandb_group", "train_iters", "eval_results_prefix")
CONFIG_FACTS = ("model", "batch_size", "num_fewshot", "limit", "bootstrap_iters")


def read_setup(document: Mapping[str, Any], name: str = "") -> Setup:
    """The setup of a result document; `name` is the file's name, which is asked last."""
    setup = Setup()
    config = document.get("config")
    if not isinstance(config, dict):
        setup.note("the file has no config: model, step and number of shots are unknown")
        set_step(setup, name)
        return setup
    _note_repeated(document, setup)
    setup.facts = {key: config[key] for key in CONFIG_FACTS if isinstance(config.get(key), SCALAR)}
    _read_model(config.get("model_args"), setup)
    set_step(setup, name, _trainer_claims(config.get("model_args")))
    _read_shots(config, setup, name)
    _read_limits(config, setup)
    return setup


def _note_repeated(document: Mapping[str, Any], setup: Setup) -> None:
    for part in ("config", "versions"):
        value = document.get(part)
        for key in sorted(value.clashes) if isinstance(value, Repeated) else ():
            setup.note(f"{part}.{key} stands twice, with different values; the last one was read")


def _read_model(model_args: Any, setup: Setup) -> None:
    """What was evaluated. `config.model` names the harness's adapter (OPT runs as `gpt2`), not the model."""
    if isinstance(model_args, str):
        arguments = split_model_args(model_args)
        setup.model_path = arguments.get("pretrained") or None
        setup.model_revision = arguments.get("revision") or None
        setup.facts.update({f"model_args.{key}": value for key, value in arguments.items()})
    elif isinstance(model_args, dict):
        stated = {key: model_args.get(key) for key in NEOX_FACTS}
        setup.facts.update({f"model_args.{key}": value for key, value in stated.items() if isinstance(value, SCALAR)})
        path = stated["load"] or stated["save"]
        setup.model_path = path if isinstance(path, str) else None


def _trainer_claims(model_args: Any) -> dict[str, int]:
    """The step as GPT-NeoX counts it, and as its prefix for result files names it."""
    claims: dict[str, int] = {}
    if not isinstance(model_args, dict):
        return claims
    iteration = model_args.get("iteration")
    if isinstance(iteration, int) and not isinstance(iteration, bool):
        claims["iteration"] = iteration
    prefix = model_args.get("eval_results_prefix")
    if isinstance(prefix, str) and (found := STEP_INSIDE.search(prefix)):
        claims["eval_results_prefix"] = int(found[1] or found[2])
    return claims


def _read_shots(config: Mapping[str, Any], setup: Setup, name: str) -> None:
    stated = config.get("num_fewshot")
    if isinstance(stated, list) and stated:
        _read_shot_list(stated, setup)
        return
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 0:
        return
    model_args = config.get("model_args")
    prefix = model_args.get("eval_results_prefix") if isinstance(model_args, dict) else None
    places = (("eval_results_prefix", prefix), (THE_NAME, name))
    against = {place: shots for place, text in places if (shots := shots_in(text)) not in (None, stated)}
    if not against:
        setup.n_shot = stated
        return
    said = ", ".join(f"{place} says {shots}" for place, shots in against.items())
    setup.note(f"the number of shots is unknown: config.num_fewshot says {stated}, {said}")
    claims = sorted({stated, *(shots for shots in against.values() if shots is not None)})
    setup.comparability["num_fewshot_claims"] = "|".join(map(str, claims))


def _read_shot_list(stated: list[Any], setup: Setup) -> None:
    """A list names no tasks, and published files order tasks in three ways: only equal numbers are sure."""
    if all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in stated):
        if len(set(stated)) == 1:
            setup.n_shot = stated[0]
            return
        setup.comparability["num_fewshot_list"] = ",".join(map(str, stated))
    setup.note("the number of shots per task is unknown: config.num_fewshot is a list without task names")


def _read_limits(config: Mapping[str, Any], setup: Setup) -> None:
    """A limit or a task description changes what was measured, so such results compare with their like."""
    if (limit := limit_of(config.get("limit"))) is not None:
        setup.comparability["limit"] = limit
        setup.note(f"only the first {limit} items of each task were evaluated (config.limit)")
    descriptions = config.get("description_dict")
    if descriptions:
        canonical = json.dumps(descriptions, sort_keys=True).encode()
        setup.comparability["description_digest"] = hashlib.sha256(canonical).hexdigest()[:16]
