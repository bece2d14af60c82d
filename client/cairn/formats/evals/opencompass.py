"""The summary that OpenCompass writes: a CSV with a row for each data set and a column for each model.

    dataset,version,metric,mode,internlm2-1.8b-hf
    ceval-accountant,002837,accuracy,gen,36.73
    ceval,-,naive_average,gen,47.03

`version` is a hash of the prompt and stays text; `-` is a group, which has none. The mode (gen, ppl, ...) is kept as
the filter: it is another way to ask the same questions, and under it the benchmark table knows that OpenCompass
counts from 0 to 100. Where the file has several models, each score says its own.
"""

from dataclasses import replace
from typing import Any

from cairn.formats.evals.setup import Setup, set_step, step_of
from cairn.formats.evals.shapes import NOWHERE, EvalFile, EvalScore, Findings, Format, Place, text_fault
from cairn.formats.evals.tables import header_of, read_table
from cairn.formats.evals.values import MISSING, number_in, text_of, why_no_number_in
from cairn.formats.refusals import Refused

NAME = "opencompass"
COLUMNS = ["dataset", "version", "metric", "mode"]


def matches(text: str) -> bool:
    return header_of(text)[:4] == COLUMNS


def read(text: str, name: str = "") -> EvalFile:
    table = read_table(text)
    models = table.header[4:]
    if not models:
        raise Refused("The OpenCompass summary has no column of a model.")
    found = Findings()
    for fault in filter(None, map(text_fault, models)):
        raise Refused(f"The name of a model's column cannot be stored: {fault}.")
    for line, row in zip(table.lines, table.rows, strict=True):
        for model, cell in zip(models, row[4:], strict=True):
            _read_cell(line, row[:4], model, cell, found)
    if len(models) > 1:
        return found.to_file(NAME, facts={"models": tuple(models)})
    setup = Setup(problems=found.problems, model_path=models[0])
    set_step(setup, name)
    found.scores = [replace(score, place=NOWHERE) for score in found.scores]
    return found.to_file(NAME, **setup.origin())


def _read_cell(line: int, row: list[str], model: str, cell: str, found: Findings) -> None:
    dataset, version, metric, mode = row
    item = f"{dataset or f'line {line}'} of {model}"
    value = number_in(cell)
    if fault := text_fault(dataset) or (text_fault(metric) if metric not in MISSING else ""):
        found.skip(item, fault)
    elif value is None:
        found.skip(item, why_no_number_in(cell))
    else:
        shared: dict[str, Any] = {"version": None if version in MISSING else text_of(version), "harness": NAME}
        shared["filter"] = "" if mode in MISSING else text_of(mode) or ""
        shared["place"] = Place(model=model, step=step_of(model))
        found.scores.append(EvalScore(dataset, "" if metric in MISSING else metric, value, **shared))


FORMAT = Format(NAME, "text", matches, read)
