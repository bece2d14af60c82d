"""A kept answer as a sentence and tables. Its JSON may be older than this code: nothing in it is required."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from registry.provenance.records import DecisionRow
from ui import filters
from ui.contexts import Answer, Fact, Link
from ui.evidence import Table
from ui.links import address, segment
from ui.rollback.context import filter_in_words
from ui.words import grouped_steps, long_spans

MOST_ROWS = 40
Cell = Link | str
TITLES = {"compare": "Comparison", "rollback": "Rollback", "search": "Search"}


def title_of(row: DecisionRow) -> str:
    """What the record is about, in a few words."""
    if row.kind == "compare":
        return f"Comparison of {_name(row.answer.get('baseline'))} and {_name(row.answer.get('candidate'))}"
    if row.kind == "rollback":
        return f"Rollback of {row.request.get('alias') or _run_name(row)}"
    return f"Search for ‘{filters.middle(str(row.request.get('query') or row.request.get('conditions')), 60)}’"


def _run_name(row: DecisionRow) -> str:
    """The name of the run that was rolled back, as one of the answer's checkpoints tells it; else its id."""
    for each in (*_maps(row.answer, "candidates"), *_maps(row.answer, "excluded")):
        checkpoint = each.get("checkpoint")
        run = checkpoint.get("run") if isinstance(checkpoint, Mapping) else None
        if isinstance(run, Mapping) and run.get("name"):
            return str(run["name"])
    return str(row.request.get("run_id"))


def question_of(row: DecisionRow) -> tuple[Fact, ...]:
    """What was asked; a checkpoint, a run or an alias is a link to its page."""
    return tuple(_asked(row, name, value) for name, value in row.request.items())


def _asked(row: DecisionRow, name: str, value: Any) -> Fact:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    label = name.replace("_", " ").removesuffix(" id")
    if name == "run_id" and isinstance(value, str):
        return Fact(label, _run_name(row), value, f"/runs/{segment(value)}")
    if name in ("baseline", "candidate") and isinstance(value, str):
        return Fact(label, _name(row.answer.get(name)), value, _href(row.answer.get(name)))
    if name == "alias" and isinstance(value, str) and "/" in value:
        project, _, alias = value.partition("/")
        return Fact(label, value, "", f"/aliases/{segment(project)}/{segment(alias)}")
    return Fact(label, text)


def answer_of(row: DecisionRow) -> Answer:
    found = row.answer
    if row.kind == "compare":
        fallen, verb = _fallen(found)
        if not fallen:
            return Answer("Nothing fell beyond its uncertainty when this was kept.")
        suspects = _maps(found, "suspects")
        first = ", ".join(map(str, suspects[0].get("changes") or ())) if suspects else ""
        cause = f"; the first suspect was {filters.middle(first, 80)}" if first else "; no recorded change explained it"
        named = ", ".join(fallen[:4])
        return Answer(f"{named[:1].upper()}{named[1:]} {verb} when this was kept{cause}.", "bad")
    if row.kind == "rollback":
        candidates = _maps(found, "candidates")
        if not candidates:
            return Answer("There was no checkpoint to go back to when this was kept.", "warn")
        return Answer(f"{_name(candidates[0].get('checkpoint'))} came first when this was kept.", "good")
    results = _maps(found, "results")
    if not results:
        return Answer("Nothing was found when this was kept.", "warn")
    strict = "" if found.get("strict") else ", though none met every condition"
    return Answer(f"{_name(results[0].get('checkpoint'))} came first when this was kept{strict}.", "good")


def _fallen(found: Mapping[str, Any]) -> tuple[list[str], str]:
    """What fell, capabilities before single benchmarks, and how surely. A benchmark that is suspected did not."""

    def named(rows: str, name: str, verdict: str) -> list[str]:
        return [str(each.get(name)) for each in _maps(found, rows) if each.get("verdict") == verdict]

    fell = named("capabilities", "capability", "regressed") or named("scores", "benchmark", "regressed")
    return (fell, "had fallen") if fell else (named("capabilities", "capability", "suspected"), "may have fallen")


def tables_of(row: DecisionRow) -> tuple[Table, ...]:
    if row.kind == "compare":
        return _compared(row.answer)
    if row.kind == "rollback":
        return _rolled_back(row.answer)
    return _searched(row.answer)


def _compared(found: Mapping[str, Any]) -> tuple[Table, ...]:
    suspects = [
        (
            ", ".join(map(str, each.get("changes") or ())),
            str(each.get("strength", "")),
            "; ".join(map(str, (each.get("reasons") or ())[:3])),
        )
        for each in _maps(found, "suspects")
    ]
    columns = ("benchmark", "difference", "verdict", "metric", "baseline", "candidate", "method")
    scores = [
        (
            str(each.get("benchmark") or ""),
            _number(each.get("delta")),
            str(each.get("verdict") or "").replace("_", " "),
            str(each.get("metric") or ""),
            *(_number(each.get(name)) for name in ("baseline", "candidate")),
            str(each.get("method") or ""),
        )
        for each in _maps(found, "scores")
    ]
    changes = [
        (str(each.get("path")), _short(each.get("old")), _short(each.get("new")), str(each.get("class")))
        for each in _maps(found, "config_changes")
        if each.get("class") != "inert"
    ]
    return (
        *_table("Suspects", ("change", "strength", "why"), suspects if _fallen(found)[0] else ()),
        *_table("Benchmarks", columns, scores, narrow=3, numbers=(1, 4, 5)),
        *_table("Config", ("path", "baseline", "candidate", "class"), changes, narrow=3),
    )


def _rolled_back(found: Mapping[str, Any]) -> tuple[Table, ...]:
    candidates = [
        (str(each.get("rank")), _link(each.get("checkpoint")), _reason("; ".join(map(str, each.get("reasons") or ()))))
        for each in _maps(found, "candidates")
    ]
    excluded = [
        (_link(each.get("checkpoint")), filter_in_words(str(each.get("filter"))), _reason(str(each.get("reason"))))
        for each in _maps(found, "excluded")
    ]
    return (
        *_table("Candidates", ("rank", "checkpoint", "reasons"), candidates, numbers=(0,)),
        *_table("Left out", ("checkpoint", "filter", "reason"), excluded),
    )


def _reason(text: str) -> str:
    return long_spans(grouped_steps(text))


def _searched(found: Mapping[str, Any]) -> tuple[Table, ...]:
    rows = [
        (
            _link(each.get("checkpoint")),
            _number(each.get("score")),
            "; ".join(
                f"{evidence.get('capability') or evidence.get('benchmark')} {_number(evidence.get('percentile'))}"
                for evidence in _maps(each, "evidence")
            ),
        )
        for each in _maps(found, "results")
    ]
    return _table("Results", ("checkpoint", "score", "evidence: percentile"), rows, numbers=(1,))


def again_of(row: DecisionRow) -> str:
    """The same question, asked now."""
    request = {name: str(value) for name, value in row.request.items() if isinstance(value, str)}
    if row.kind == "compare":
        return address("/compare", baseline=request.get("baseline"), candidate=request.get("candidate"))
    if row.kind == "rollback":
        return address("/rollback", run=request.get("run_id"), alias=request.get("alias"))
    return address("/find", q=request.get("query"), project=request.get("project"))


def _table(
    title: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    narrow: int = 2,
    numbers: tuple[int, ...] = (),
) -> tuple[Table, ...]:
    if not rows:
        return ()
    return (Table(title, columns, tuple(rows[:MOST_ROWS]), narrow, max(0, len(rows) - MOST_ROWS), numbers),)


def _maps(found: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = found.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _name(checkpoint: Any) -> str:
    """`run · attempt · step`, as it is written everywhere."""
    if not isinstance(checkpoint, Mapping):
        return "a checkpoint"
    run = checkpoint.get("run")
    name = run.get("name") if isinstance(run, Mapping) else "?"
    step = checkpoint.get("step")
    return f"{name} · {checkpoint.get('attempt')} · {filters.grouped(step) if isinstance(step, int) else step}"


def _link(checkpoint: Any) -> Cell:
    href = _href(checkpoint)
    return Link(_name(checkpoint), href) if href else _name(checkpoint)


def _href(checkpoint: Any) -> str | None:
    if not isinstance(checkpoint, Mapping) or not isinstance(checkpoint.get("id"), str):
        return None
    return f"/checkpoints/{segment(checkpoint['id'])}"


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return filters.number(float(value))


def _short(value: Any) -> str:
    return filters.middle("" if value is None else str(value), 60)
