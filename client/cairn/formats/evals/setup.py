"""How an evaluation was run, as far as a file says: the model, its step, the number of shots, what limits comparison.

Nothing here trusts a name alone: a step is taken from the revision, the trainer's iteration or the model's path, and
two places that disagree leave it unknown. The file's own name is asked last, and that is said.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

INT64_MAX = 2**63 - 1
SCALAR = (str, int, float, bool)
STEP_NAME = re.compile(r"(?:global[_-]?step|step|checkpoint|ckpt|iter(?:ation)?)[-_=]?(\d{1,20})")
STEP_INSIDE = re.compile(r"(?<![a-z])(?:global[_-]?)?step[-_=]?(\d{1,20})(?!\d)|(?<![a-z])ep\d+-ba(\d{1,20})(?!\d)")
SHOTS = re.compile(r"(?<![a-z0-9])(zero|one|five|\d{1,3})[-_]?shot", re.IGNORECASE)
SHOT_WORDS = {"zero": 0, "one": 1, "five": 5}
THE_NAME = "the file's name"


@dataclass
class Setup:
    """What holds for every score of a file, or of one table in it."""

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

    def origin(self) -> dict[str, Any]:
        """The fields of `EvalFile` that say where the scores come from."""
        names = ("facts", "step", "step_source", "model_path", "model_revision")
        return {name: getattr(self, name) for name in names}


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


def set_step(setup: Setup, name: str = "", more: Mapping[str, int] | None = None) -> None:
    """The step that all claims agree on: those of revision and path, and `more`. `name` is the file's name."""
    claims = {source: step for source, step in _claims(setup) if step <= INT64_MAX}
    claims.update({source: step for source, step in (more or {}).items() if 0 <= step <= INT64_MAX})
    in_name = step_inside(name.rpartition("/")[2])
    if len(set(claims.values())) == 1:
        setup.step_source, setup.step = next(iter(claims.items()))
        if in_name not in (None, setup.step):
            setup.note(f"{THE_NAME} says step {in_name}, {setup.step_source} says {setup.step}")
    elif claims:
        said = ", ".join(f"{source} says {step}" for source, step in claims.items())
        setup.note(f"the step is unknown: {said}")
    elif in_name is not None:
        setup.step_source, setup.step = THE_NAME, in_name
        setup.note(f"the step, {in_name}, is taken from {THE_NAME}: the file itself says none")


def _claims(setup: Setup) -> Iterator[tuple[str, int]]:
    for source, text in (("revision", setup.model_revision), ("the model's path", setup.model_path)):
        step = step_of(text or "")
        if step is not None:
            yield source, step


def step_of(text: str) -> int | None:
    """The step that a revision or path names: `step3000`, `/runs/a/checkpoint-9000/hf`, `stage1-step50-tokens1B`."""
    parts = [part.lower() for part in re.split(r"[/\\]", text) if part][-3:]
    for part in reversed(parts):
        if found := STEP_NAME.fullmatch(part):
            return int(found[1])
    return step_inside(parts[-1]) if parts else None


def step_inside(text: str) -> int | None:
    """A step somewhere in a name; None for none, for several different ones, and for one that no one could count to."""
    found = {int(first or second) for first, second in STEP_INSIDE.findall(text.lower())}
    step = found.pop() if len(found) == 1 else None
    return step if step is not None and step <= INT64_MAX else None


def shots_in(text: Any) -> int | None:
    """The number of shots that a name states (`five-shot`, `5shot`)."""
    found = SHOTS.search(text) if isinstance(text, str) else None
    if found is None:
        return None
    word = found[1].lower()
    return SHOT_WORDS[word] if word in SHOT_WORDS else int(word)
