"""What the `config` of a harness 0.3 result says about the model, the step and the number of shots.

Nothing here trusts a name alone: a step is taken from the revision, the trainer's iteration or the last part
of the model's path, and two places that disagree leave it unknown. The number of shots is dropped when the
file's own prefix, or its name, contradicts it: published files say 0 in the config of five-shot results.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.jsonfile import Repeated

INT64_MAX = 2**63 - 1
SCALAR = (str, int, float, bool)
# Of the 190 settings that GPT-NeoX writes into `model_args`, those that say what was trained and where.
NEOX_FACTS = ("iteration", "save", "load", "git_hash", "wandb_group", "train_iters", "eval_results_prefix")
CONFIG_FACTS = ("model", "batch_size", "num_fewshot", "limit", "bootstrap_iters")
STEP_NAME = re.compile(r"(?:global[_-]?step|step|checkpoint|iter)[-_]?(\d{1,20})")
STEP_INSIDE = re.compile(r"(?<![a-z])(?:global_)?step[-_]?(\d{1,20})(?!\d)")
SHOTS = re.compile(r"(?<![a-z0-9])(zero|one|five|\d{1,3})[-_]?shot", re.IGNORECASE)
SHOT_WORDS = {"zero": 0, "one": 1, "five": 5}


@dataclass
class Setup:
    """How the evaluation was run, as far as the file says."""

    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    comparability: dict[str, Any] = field(default_factory=dict)
    n_shot: int | None = None
    step: int | None = None
    step_source: str = ""
    model_path: str | None = None
    model_revision: str | None = None

    def note(self, problem: str) -> None:
        """Each doubt once, however many scores share it."""
        if problem not in self.problems:
            self.problems.append(problem)


def read_setup(document: Mapping[str, Any], name: str = "") -> Setup:
    """The setup of a result document; `name` is the file's name and can only contradict."""
    setup = Setup()
    config = document.get("config")
    if not isinstance(config, dict):
        setup.note("the file has no config: model, step and number of shots are unknown")
        return setup
    _note_repeated(document, setup)
    setup.facts = {key: config[key] for key in CONFIG_FACTS if isinstance(config.get(key), SCALAR)}
    _read_model(config.get("model_args"), setup)
    _read_step(config.get("model_args"), setup, name)
    _read_shots(config, setup, name)
    _read_limits(config, setup)
    return setup


def _note_repeated(document: Mapping[str, Any], setup: Setup) -> None:
    for part in ("config", "versions"):
        value = document.get(part)
        for key in sorted(value.clashes) if isinstance(value, Repeated) else ():
            setup.note(f"{part}.{key} stands twice, with different values; the last one was read")


def split_model_args(text: str) -> dict[str, str]:
    """`pretrained=a,revision=b` as a dict; a part without `=` belongs to the value before it."""
    found: dict[str, str] = {}
    last = ""
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            last = key.strip()
            found[last] = value
        elif last:
            found[last] += f",{part}"
    return found


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


def _read_step(model_args: Any, setup: Setup, name: str) -> None:
    claims = {source: step for source, step in _step_claims(model_args, setup) if step <= INT64_MAX}
    if len(set(claims.values())) == 1:
        setup.step_source, setup.step = next(iter(claims.items()))
    elif claims:
        said = ", ".join(f"{source} says {step}" for source, step in claims.items())
        setup.note(f"the step is unknown: {said}")
    in_name = STEP_INSIDE.search(name.lower())
    if in_name and setup.step is not None and int(in_name[1]) != setup.step:
        setup.note(f"the file's name says step {in_name[1]}, {setup.step_source} says {setup.step}")


def _step_claims(model_args: Any, setup: Setup) -> Iterator[tuple[str, int]]:
    if setup.model_revision and (found := STEP_NAME.fullmatch(setup.model_revision)):
        yield "revision", int(found[1])
    last = (setup.model_path or "").rstrip("/").rpartition("/")[2]
    if found := STEP_NAME.fullmatch(last):
        yield "the model's path", int(found[1])
    if not isinstance(model_args, dict):
        return
    iteration = model_args.get("iteration")
    if isinstance(iteration, int) and not isinstance(iteration, bool) and iteration >= 0:
        yield "iteration", iteration
    prefix = model_args.get("eval_results_prefix")
    if isinstance(prefix, str) and (found := STEP_INSIDE.search(prefix)):
        yield "eval_results_prefix", int(found[1])


def _read_shots(config: Mapping[str, Any], setup: Setup, name: str) -> None:
    stated = config.get("num_fewshot")
    if isinstance(stated, list) and stated:
        _read_shot_list(stated, setup)
        return
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 0:
        return
    model_args = config.get("model_args")
    prefix = model_args.get("eval_results_prefix") if isinstance(model_args, dict) else None
    places = (("eval_results_prefix", prefix), ("the file's name", name))
    against = {place: shots for place, text in places if (shots := _shots_in(text)) not in (None, stated)}
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


def _shots_in(text: Any) -> int | None:
    found = SHOTS.search(text) if isinstance(text, str) else None
    if found is None:
        return None
    word = found[1].lower()
    return SHOT_WORDS[word] if word in SHOT_WORDS else int(word)


def _read_limits(config: Mapping[str, Any], setup: Setup) -> None:
    """A limit or a task description changes what was measured, so such results compare with their like."""
    limit = config.get("limit")
    if isinstance(limit, (int, float)) and not isinstance(limit, bool):
        setup.comparability["limit"] = limit
        setup.note(f"only the first {limit} items of each task were evaluated (config.limit)")
    descriptions = config.get("description_dict")
    if descriptions:
        canonical = json.dumps(descriptions, sort_keys=True).encode()
        setup.comparability["description_digest"] = hashlib.sha256(canonical).hexdigest()[:16]
