"""To which checkpoint a result belongs: what was asked for, then what the file says, then what the registry knows.

A run that only the file names is never taken silently: `Planned.guessed` says so, and it must be agreed to.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn.calls.base import literal
from cairn.client import Client
from cairn.formats.evals.setup import STEP_INSIDE, step_of
from cairn.results.gather import Refusal, Result
from cairn.types import Checkpoint

STEPS_A_QUERY = 200
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Asked:
    """What the person said. A checkpoint by its id, or a project, a run, a step, each or none."""

    checkpoint: str | None = None
    project: str | None = None
    run: str | None = None
    step: int | None = None
    model: str | None = None


@dataclass
class Planned:
    """Where a result goes: the fields of the import call, and how they are known.

    `guessed`: the run was found through the file alone. `new` says which of its steps are not recorded yet, None
    where that is not known.
    """

    result: Result
    target: dict[str, Any]
    source: str
    guessed: bool = False
    new: list[int] | None = None
    label: str = ""

    @property
    def where(self) -> str:
        """`project/run@step`, or `project/run, 3 steps 1000 to 3000`, or an id."""
        if self.label:
            return self.label
        run = f"{self.target['project']}/{self.target.get('run', '(as its rows say)')}"
        steps = self.steps
        if len(steps) > 1:
            return f"{run}, {len(steps)} steps {steps[0]} to {steps[-1]}"
        return f"{run}@{steps[0]}" if steps else run

    @property
    def steps(self) -> list[int]:
        asked = self.target.get("step")
        return self.result.steps if asked is None else [asked]


@dataclass
class Plan:
    planned: list[Planned] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def guessed(self) -> list[Planned]:
        return [each for each in self.planned if each.guessed]


def place(client: Client, results: Sequence[Result], asked: Asked) -> Plan:
    """A plan for every result, or the reason why it has none. Asks the registry, writes nothing."""
    plan = Plan()
    known: dict[Any, Any] = {}
    for result in results:
        found = _place(client, result, asked, known)
        if isinstance(found, str):
            plan.refused.append(Refusal(result.name, found))
        else:
            plan.planned.append(found)
    _mark_new(client, plan.planned)
    return plan


def _place(client: Client, result: Result, asked: Asked, known: dict[Any, Any]) -> Planned | str:
    if len(result.models) > 1 and asked.model is None:
        return f"It holds results of {len(result.models)} models ({', '.join(result.models[:8])}); say --model."
    more = {"model": asked.model} if asked.model else {}
    if asked.checkpoint:
        return Planned(result, {"checkpoint": asked.checkpoint, **more}, "--checkpoint", label=asked.checkpoint)
    if asked.project and (asked.run or _rows_name_all(result)):
        more |= {"run": asked.run} if asked.run else {}
        return _with_step(result, {"project": asked.project, **more}, asked, "--run" if asked.run else "its rows")
    key = (asked.project, result.model_path, result.model_revision)
    if key not in known:
        known[key] = _find(client, result, asked)
    found = known[key]
    if isinstance(found, str):
        return found
    target, source, label = found
    if "checkpoint" in target:
        return Planned(result, {**target, **more}, source, guessed=True, label=label)
    return _with_step(result, {**target, **more}, asked, source, guessed=True)


def _rows_name_all(result: Result) -> bool:
    return all(place.run is not None or place.checkpoint is not None for place in result.places)


def _with_step(
    result: Result, target: dict[str, Any], asked: Asked, source: str, *, guessed: bool = False
) -> Planned | str:
    if asked.step is not None:
        said = (
            f", --step ({result.step_source} says {result.step})"
            if result.step not in (None, asked.step)
            else ", --step"
        )
        return Planned(result, {**target, "step": asked.step}, source + said, guessed)
    named = all(place.checkpoint is not None for place in result.places)
    if not result.steps and not named:
        return "It does not say at which step it was evaluated; say --step."
    return Planned(result, target, f"{source}, {result.step_source or 'its rows'}", guessed)


def _find(client: Client, result: Result, asked: Asked) -> tuple[dict[str, Any], str, str] | str:
    """Target, how it is known, and a label; or why there is none."""
    path = result.model_path
    if path is None:
        return "It does not say which model was evaluated; say --project and --run, or --checkpoint."
    copies = list(_of_project(client.iter_checkpoints(filter=f"replicas.uri = {literal(path)}", limit=3), asked))
    if len(copies) == 1:
        return {"checkpoint": copies[0].id}, f"the copy at {path}", _label(copies[0])
    names = list(run_names(path))
    for name in names:
        projects = _projects_with(client, name, asked.project)
        if len(projects) > 1:
            return f"A run {name!r} is in {' and in '.join(projects)}; say --project."
        if projects:
            return {"project": projects[0], "run": name}, f"the model {path}", ""
    if asked.project and names:
        return {"project": asked.project, "run": names[0]}, f"the model {path} (a new run)", ""
    return f"No run is named like its model {path!r}; say --project and --run, or --checkpoint."


def _label(checkpoint: Checkpoint) -> str:
    run = checkpoint.run.name if checkpoint.run else "?"
    return f"{checkpoint.project}/{run}@{checkpoint.step}"


def run_names(path: str) -> Iterator[str]:
    """Names that a run of this model may have: a folder without its step, the name of a repository, the whole."""
    parts = [part for part in re.split(r"[/\\]", path) if part]
    while parts and (step_of(parts[-1]) is not None or parts[-1].lower() in ("hf", "huggingface", "checkpoints")):
        rest = STEP_INSIDE.sub("", parts[-1]).replace("--", "-").strip("-_. ")
        if len(parts) == 1 or (rest and step_of(rest) is None and not re.fullmatch(r"(?i)\W*(hf|ckpt)?\W*", rest)):
            parts[-1] = re.sub(r"(?i)[-_.]hf$", "", rest) or parts[-1]
            break
        parts.pop()
    if parts:
        yield parts[-1]
    if REPOSITORY.fullmatch(path) and len(parts) == 2:
        yield path


def _of_project(found: Iterable[Checkpoint], asked: Asked) -> Iterator[Checkpoint]:
    return (each for each in found if asked.project in (None, each.project))


def _projects_with(client: Client, run: str, project: str | None) -> list[str]:
    """The projects that have a checkpoint of a run of this name: none, one, or two of several."""
    found: list[str] = []
    while len(found) < 2:
        where = [f"run.name = {literal(run)}", *([f"project = {literal(project)}"] if project else [])]
        where += [f"project != {literal(each)}" for each in found]
        page = list(client.iter_checkpoints(filter=" and ".join(where), limit=1))
        if not page:
            break
        found.append(page[0].project)
    return found


def _mark_new(client: Client, planned: Sequence[Planned]) -> None:
    """Which steps are not recorded yet: one question for a run and up to 200 of its steps."""
    wanted: dict[tuple[str, str], set[int]] = {}
    for each in planned:
        if "run" in each.target:
            wanted.setdefault((each.target["project"], each.target["run"]), set()).update(each.steps)
    recorded = {key: _recorded(client, *key, sorted(steps)) for key, steps in wanted.items()}
    for each in planned:
        if "run" in each.target:
            there = recorded[each.target["project"], each.target["run"]]
            each.new = [step for step in each.steps if step not in there]


def _recorded(client: Client, project: str, run: str, steps: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for start in range(0, len(steps), STEPS_A_QUERY):
        listed = ", ".join(map(str, steps[start : start + STEPS_A_QUERY]))
        where = f"project = {literal(project)} and run.name = {literal(run)} and step in ({listed})"
        found.update(each.step for each in client.iter_checkpoints(filter=where) if each.step is not None)
    return found
