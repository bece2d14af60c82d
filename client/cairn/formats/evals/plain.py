"""Plain tables of scores: CSV, TSV, JSON lines or a JSON array, one result a row.

The columns are known by name: a benchmark and a value must be there; metric, filter, standard error, numbers of
samples and shots, version, harness, time, and what the row says about its checkpoint may be. A column
`comparability.NAME` is kept as such a key. Any other column is left out, and named.

A checkpoint is an id, `run@step`, `project/run@step` (also `@attempt.step`), a step, or a name with a step in it.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cairn.formats.evals.content import Lines
from cairn.formats.evals.setup import INT64_MAX, step_of
from cairn.formats.evals.shapes import NOWHERE, EvalFile, EvalScore, Findings, Format, Place, listing, text_fault
from cairn.formats.evals.tables import header_of, read_table
from cairn.formats.evals.values import MISSING, error_of, number, number_in, text_of, whole, why_no_number_in
from cairn.formats.jsonfile import Repeated

NAME = "plain-table"
COLUMNS = {
    "benchmark": ("benchmark", "task", "dataset", "bench"),
    "value": ("value", "score"),
    "metric": ("metric",),
    "filter": ("filter",),
    "stderr": ("stderr", "standard_error", "se"),
    "n_samples": ("n_samples", "num_samples", "samples"),
    "n_shot": ("n_shot", "n-shot", "num_fewshot", "shots"),
    "version": ("version", "task_version", "benchmark_version"),
    "harness": ("harness",),
    "harness_version": ("harness_version",),
    "evaluated_at": ("evaluated_at",),
    "checkpoint": ("checkpoint", "checkpoint_id", "ckpt"),
    "project": ("project",),
    "run": ("run", "run_name"),
    "attempt": ("attempt",),
    "step": ("step", "global_step", "iteration"),
    "model": ("model", "model_name"),
}
FIELD_OF = {name: field for field, names in COLUMNS.items() for name in names}
KEY_PREFIX = "comparability."
CHECKPOINT = re.compile(
    r"(?:(?P<project>[A-Za-z0-9._-]{1,128})/)?(?P<run>[^@]{1,512})@(?:(?P<attempt>\d{1,9})\.)?(?P<step>\d{1,19})"
)
ID = re.compile(r"[0-9a-hjkmnp-tv-z]{13}")  # ids of Cairn are 13 of these


def matches_text(text: str) -> bool:
    return _is_table(header_of(text))


def matches_lines(lines: Lines) -> bool:
    return _is_table(lines.first)


def matches_array(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) and _is_table(row) for row in rows)


def _is_table(names: Iterable[str]) -> bool:
    return {"benchmark", "value"} <= {FIELD_OF.get(name.lower()) for name in names}


def read_text(text: str, name: str = "") -> EvalFile:
    table = read_table(text)
    cells = ({key: cell for key, cell in zip(table.header, row, strict=True) if key} for row in table.rows)
    return _read(zip((f"line {line}" for line in table.lines), cells, strict=True))


def read_lines(lines: Lines, name: str = "") -> EvalFile:
    return _read((f"line {number}", row) for number, row in lines)


def read_array(rows: list[Mapping[str, Any]], name: str = "") -> EvalFile:
    return _read((f"row {index}", row) for index, row in enumerate(rows, 1))


def _read(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> EvalFile:
    found = Findings()
    unknown: dict[str, None] = {}
    for label, row in rows:
        fields = {FIELD_OF[key.lower()]: value for key, value in row.items() if key.lower() in FIELD_OF}
        keys = {key[len(KEY_PREFIX) :]: value for key, value in row.items() if key.startswith(KEY_PREFIX)}
        unknown |= dict.fromkeys(key for key in row if key.lower() not in FIELD_OF and not key.startswith(KEY_PREFIX))
        if isinstance(row, Repeated) and row.clashes:
            found.skip(label, f"{sorted(row.clashes)[0]!r} stands twice, with different values")
        else:
            _read_row(label, fields, keys, found)
    if unknown:
        found.note(f"columns that are not read: {listing([ascii(each[:40]) for each in unknown])}")
    places = {score.place for score in found.scores}
    steps = {place.step for place in places}
    only = steps.pop() if len(steps) == 1 else None
    models = {place.model for place in places}
    facts = {"models": tuple(sorted(filter(None, models)))}
    model = models.pop() if len(models) == 1 else None
    source = "" if only is None else "its table"
    return found.to_file(NAME, facts=facts, step=only, step_source=source, model_path=model)


def _read_row(label: str, fields: Mapping[str, Any], keys: Mapping[str, Any], found: Findings) -> None:
    benchmark, metric, filter = (_text(fields.get(name)) for name in ("benchmark", "metric", "filter"))
    item = f"{label}: {benchmark}" if not text_fault(benchmark) else label
    value = _number(fields.get("value"))
    place = _place(fields)
    if fault := text_fault(benchmark) or (metric and text_fault(metric)) or (filter and text_fault(filter)):
        found.skip(item, fault)
    elif value is None:
        found.skip(item, why_no_number_in(_text(fields.get("value"))))
    elif isinstance(place, str):
        found.skip(item, place)
    else:
        stderr = _number(fields.get("stderr"))
        if stderr is not None and error_of(stderr) is None:
            found.note(f"{item}: the standard error {stderr} was left out, it is no error")
        more: dict[str, Any] = {name: whole(_number(fields.get(name))) for name in ("n_samples", "n_shot")}
        for name in ("version", "harness", "harness_version", "evaluated_at"):
            more[name] = _known(fields.get(name))
        more["comparability"] = {key: cell for key, cell in keys.items() if _is_key(key, cell)}
        found.scores.append(EvalScore(benchmark, metric, value, filter, error_of(stderr), place=place, **more))


def _is_key(key: str, value: Any) -> bool:
    if text_fault(key):
        return False
    if isinstance(value, str):
        return not text_fault(value)
    found = number(value)
    return isinstance(value, bool) or (found is not None and math.isfinite(found))


def _place(fields: Mapping[str, Any]) -> Place | str:
    """What the row says about its checkpoint; a text is the reason why that cannot be."""
    said = {name: _known(fields.get(name)) for name in ("project", "run", "model")}
    numbers: dict[str, int | None] = {}
    for name in ("step", "attempt"):
        numbers[name] = whole(_number(fields.get(name)))
        if numbers[name] is None and _known(fields.get(name)) is not None:
            return f"the {name} {_text(fields.get(name))[:40]!r} is no whole number"
    named = _checkpoint(_known(fields.get("checkpoint")))
    if isinstance(named, str):
        return named
    for name, value in {**said, **numbers}.items():
        other = getattr(named, name)
        if value is not None and other is not None and value != other:
            return f"its checkpoint says {name} {other}, its {name} column {value}"
    found = {name: value if value is not None else getattr(named, name) for name, value in {**said, **numbers}.items()}
    return Place(checkpoint=named.checkpoint, **found)  # type: ignore[arg-type]


def _checkpoint(text: str | None) -> Place | str:
    if text is None:
        return NOWHERE
    if re.fullmatch(r"\d{1,12}", text):
        return Place(step=int(text))
    if found := CHECKPOINT.fullmatch(text):
        attempt = found["attempt"]
        step = int(found["step"])
        if step <= INT64_MAX:
            return Place(step, int(attempt) if attempt else None, found["run"], found["project"])
    if ID.fullmatch(text):
        return Place(checkpoint=text)
    step_in_name = step_of(text)
    if step_in_name is not None and step_in_name <= INT64_MAX:
        return Place(step=step_in_name)
    return f"{text[:80]!r} names no checkpoint: expected an id, a step, run@step or project/run@step"


def _text(value: Any) -> str:
    """A cell as text; a number of JSON as it would be written, and nothing for null."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else repr(value)


def _known(value: Any) -> str | None:
    text = _text(value)
    return None if text.lower() in MISSING else text_of(text)


def _number(value: Any) -> float | None:
    return number_in(value) if isinstance(value, str) else number(value)


CSV = Format(NAME, "text", matches_text, read_text)
LINES = Format(NAME, "jsonl", matches_lines, read_lines)
ARRAY = Format(NAME, "json", matches_array, read_array)
