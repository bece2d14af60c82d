"""The markdown tables that lm-evaluation-harness 0.4 prints, with the line about the model above them.

    hf (pretrained=org/model), gen_kwargs: (None), limit: 1000.0, num_fewshot: 0, batch_size: 4
    | Tasks |Version|Filter|n-shot| Metric |   |Value |   |Stderr|
    |mmlu   |      2|none  |      |acc     |↑  |0.6153|±  |0.0040|
    | - stem|      2|none  |      |acc     |↑  |0.5641|±  |0.0071|

A blank cell repeats the one above. An indented row shows the alias of a group's subtask: it is read under the name
that the harness gives such tasks, the outermost group's followed by `_` and the alias. A second table, `Groups`,
repeats rows of the first. Values are rounded to four digits by the harness.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cairn.formats.evals.lm_eval_v03 import HARNESS
from cairn.formats.evals.setup import Setup, set_step, split_model_args
from cairn.formats.evals.shapes import EvalFile, EvalScore, Findings, Format, Place, text_fault
from cairn.formats.evals.tables import pipe_tables
from cairn.formats.evals.values import MISSING, error_of, limit_of, number_in, text_of, whole, why_no_number_in

NAME = "lm-eval-markdown"
TASK_COLUMNS = ("Tasks", "Task", "Groups", "Group")
MODEL_LINE = re.compile(
    r"[\w.-]+ \((?P<args>.*?)\), gen_kwargs: \((?P<gen>.*?)\), limit: (?P<limit>[^,]*), (?P<rest>.*)"
)
SHOTS = re.compile(r"num_fewshot: (\d+)")


@dataclass
class _Row:
    """The cells that a row repeats from the ones above it."""

    group: str = ""
    task: str = ""
    version: str | None = None
    n_shot: int | None = None


def matches(text: str) -> bool:
    return any(_is_result(header) for _, header, _ in pipe_tables(text))


def read(text: str, name: str = "") -> EvalFile:
    found = Findings()
    setups: list[Setup] = []
    for before, header, rows in pipe_tables(text):
        if not _is_result(header):
            continue
        if MODEL_LINE.fullmatch(before) or not setups:
            setups.append(_setup(before, name))
        setup = setups[-1]
        _read_table(header, rows, setup, found)
    several = len({(setup.model_path, setup.model_revision) for setup in setups}) > 1
    for setup in setups:
        for problem in setup.problems:
            found.note(problem)
    if several:
        found.note("the file holds tables of several models")
    else:
        found.scores = [_without_place(score) for score in found.scores]
    found.scores = list({_identity(score): score for score in found.scores}.values())
    return found.to_file(NAME, **({} if several else setups[0].origin()))


def _is_result(header: Sequence[str]) -> bool:
    return bool(header) and header[0] in TASK_COLUMNS and {"Version", "Filter", "Metric", "Value"} <= set(header)


def _setup(line: str, name: str) -> Setup:
    setup = Setup()
    said = MODEL_LINE.fullmatch(line)
    if said is None:
        setup.note("no line about the model stands above the table: model and limit are unknown")
        set_step(setup, name)
        return setup
    arguments = split_model_args(said["args"])
    setup.facts = {f"model_args.{key}": value for key, value in arguments.items()}
    setup.model_path = text_of(arguments.get("pretrained"))
    setup.model_revision = text_of(arguments.get("revision"))
    set_step(setup, name)
    if (limit := limit_of(number_in(said["limit"]))) is not None:
        setup.comparability["limit"] = limit
        setup.note(f"only the first {limit} items of each task were evaluated (limit)")
    if said["gen"] not in ("None", "{}", "") and (text := text_of(said["gen"])):
        setup.comparability["gen_kwargs"] = text
    shots = SHOTS.search(said["rest"])
    setup.n_shot = int(shots[1]) if shots and len(shots[1]) < 6 else None
    return setup


def _read_table(header: list[str], rows: list[tuple[int, list[str]]], setup: Setup, found: Findings) -> None:
    row = _Row()
    for line, cells in rows:
        if len(cells) != len(header):
            found.skip(f"line {line}", f"it has {len(cells)} cells, the header has {len(header)}")
            continue
        named = {name: cell for name, cell in zip(header, cells, strict=True) if name}
        _enter(row, named, header[0], setup, found)
        _read_row(row, named, line, setup, found)


def _enter(row: _Row, named: dict[str, str], task_column: str, setup: Setup, found: Findings) -> None:
    """Take the row's own task, version and shots; a row without a task goes on with the one above."""
    cell = named[task_column]
    if not cell.strip():
        return
    alias = re.fullmatch(r"\s*- ?(\S.*)", cell)
    if alias is None:
        row.group = row.task = cell.strip()
    else:
        # `arc - challenge` is no alias: those start with the dash, behind their indentation.
        inner = alias[1].strip()
        row.task = inner if inner.startswith(row.group) else f"{row.group}_{inner}"
        found.note("indented rows show aliases; each is read as a subtask of the group above it")
    version = named["Version"].strip()
    row.version = None if version.lower() in MISSING else text_of(version)
    shots = named.get("n-shot", "").strip()
    row.n_shot = whole(number_in(shots))
    if "n-shot" not in named:
        row.n_shot = setup.n_shot


def _read_row(row: _Row, named: dict[str, str], line: int, setup: Setup, found: Findings) -> None:
    metric, filter = named["Metric"].strip(), named["Filter"].strip()
    if metric in ("alias", ""):
        return
    item = f"{row.task or f'line {line}'}.{metric}"
    value = number_in(named["Value"])
    if fault := text_fault(row.task) or text_fault(metric):
        found.skip(item, fault)
    elif value is None:
        found.skip(item, why_no_number_in(named["Value"]))
    else:
        shared: dict[str, Any] = {"n_shot": row.n_shot, "version": row.version, "harness": HARNESS}
        shared |= {"stderr": error_of(number_in(named.get("Stderr", ""))), "comparability": setup.comparability}
        shared["place"] = Place(model=setup.model_path, step=setup.step)
        found.scores.append(
            EvalScore(row.task, metric, value, "" if filter == "none" else text_of(filter) or "", **shared)
        )


def _without_place(score: EvalScore) -> EvalScore:
    return EvalScore(**{**vars(score), "place": Place()})


def _identity(score: EvalScore) -> tuple[Any, ...]:
    return (score.benchmark, score.metric, score.filter, repr(score.value), score.place, score.version)


FORMAT = Format(NAME, "text", matches, read)
