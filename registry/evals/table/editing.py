"""Change what a project says of a benchmark. Every change is audited, and counts from the next answer on."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.audit import record
from registry.changes import note_changes
from registry.db import now
from registry.errors import FieldError, Invalid
from registry.evals.catalogue import catalogue, key_of
from registry.evals.normalise import TOP
from registry.evals.project_table import OwnEntry, ProjectTable, read_project_table
from registry.evals.score_series import MAX_BENCHMARKS, TooManyBenchmarks
from registry.ids import new_id
from registry.models import Benchmark as BenchmarkRow
from registry.types import Direction

SCALES: Final = ("fraction", "percent", "ten", "raw", "log")
MAX_ALIASES: Final = 50
FIELDS: Final = (
    *("capability", "direction", "scale", "chance", "sample_count", "preferred_metrics", "same_as", "note"),
    "aliases",
)


class InvalidBenchmark(Invalid):
    code = "invalid-benchmark"
    title = "That cannot be said of a benchmark"


def put_benchmark(session: Session, project_id: int, name: str, said: Mapping[str, Any], *, actor: str) -> None:
    """Say all of this of a benchmark, and nothing else: what `said` leaves out, the shipped table says again.

    `capability` '' is none. `aliases` are other names that results write for it. Raises InvalidBenchmark.
    """
    _say(session, project_id, name, {field: said.get(field) for field in FIELDS}, actor)


def patch_benchmark(session: Session, project_id: int, name: str, said: Mapping[str, Any], *, actor: str) -> None:
    """Say this of a benchmark; None takes back what was said. What `said` leaves out stays. Raises InvalidBenchmark."""
    _say(session, project_id, name, dict(said), actor)


def _say(session: Session, project_id: int, name: str, said: dict[str, Any], actor: str) -> None:
    aliases_given = "aliases" in said
    aliases = list(dict.fromkeys(said.pop("aliases", None) or ()))
    table = read_project_table(session, [project_id])
    row = _row(session, project_id, name)
    before = {field: _shown(getattr(row, field), field) for field in FIELDS if field != "aliases"}
    errors = _errors(name, before | said, aliases, table)
    if errors:
        raise InvalidBenchmark(f"{name[:80]}: {errors[0].message}.", errors=errors)
    for field, value in said.items():
        setattr(row, field, json.dumps(value) if field == "preferred_metrics" and value is not None else value)
    changed = {field: [before[field], value] for field, value in said.items() if before[field] != value}
    touched = {row.id}
    if aliases_given:
        moved, named = _name(session, project_id, name, aliases)
        touched |= moved
        changed |= named
    if not changed:
        return
    session.flush()
    note_changes(session, project_id, touched)
    detail = {"benchmark": name, "changes": changed}
    record(session, actor=actor, action="benchmark.set", project_id=project_id, subject_id=row.id, detail=detail)


def _name(
    session: Session, project_id: int, name: str, aliases: Sequence[str]
) -> tuple[set[int], dict[str, list[list[str]]]]:
    """Let exactly these names mean the benchmark; (rows that changed, the change)."""
    here = (BenchmarkRow.project_id == project_id, BenchmarkRow.same_as == name)
    before = {row.name: row for row in session.scalars(select(BenchmarkRow).where(*here))}
    moved = set()
    for gone in before.keys() - set(aliases):
        before[gone].same_as = None
        moved.add(before[gone].id)
    for alias in aliases:
        if alias not in before:
            row = _row(session, project_id, alias)
            row.same_as = name
            moved.add(row.id)
    return moved, {"aliases": [sorted(before), sorted(aliases)]} if moved else {}


def _row(session: Session, project_id: int, name: str) -> BenchmarkRow:
    """The project's row of this name, made where nobody wrote the name yet."""
    here = (BenchmarkRow.project_id == project_id, BenchmarkRow.name == name)
    row = session.scalars(select(BenchmarkRow).where(*here)).one_or_none()
    if row is None:
        taken = session.scalar(select(func.count()).where(BenchmarkRow.project_id == project_id)) or 0
        if taken >= MAX_BENCHMARKS:
            raise TooManyBenchmarks(f"A project has at most {MAX_BENCHMARKS} benchmarks, and this one has {taken}.")
        row = BenchmarkRow(id=new_id(), project_id=project_id, name=name, created_at=now())
        session.add(row)
        session.flush()
    return row


def _shown(value: Any, field: str) -> Any:
    return json.loads(value) if field == "preferred_metrics" and value is not None else value


def _errors(name: str, said: Mapping[str, Any], aliases: Sequence[str], table: ProjectTable) -> list[FieldError]:
    """What is wrong with what would be said, with the pointer of each."""
    found = dict(_wrong_words(said))
    found |= _wrong_numbers(name, said, table)
    found |= _wrong_names(name, said["same_as"], aliases, table)
    return [FieldError(f"/{pointer}", message) for pointer, message in found.items()]


def _wrong_words(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = [each.name for each in catalogue().capabilities]
    wrong = []
    if said["capability"] not in (None, "", *names):
        wrong.append(("capability", f"unknown capability; there are {', '.join(names)}, and '' for none"))
    if said["direction"] not in (None, *Direction):
        wrong.append(("direction", f"expected one of {', '.join(Direction)}"))
    if said["scale"] not in (None, *SCALES):
        wrong.append(("scale", f"expected one of {', '.join(SCALES)}"))
    pairs = said["preferred_metrics"]
    if pairs is not None and len({tuple(pair) for pair in pairs}) != len(pairs):
        wrong.append(("preferred_metrics", "a metric stands there twice"))
    return wrong


def _wrong_numbers(name: str, said: Mapping[str, Any], table: ProjectTable) -> dict[str, str]:
    """A chance level is in the benchmark's own scale, and below its top."""
    chance, count = said["chance"], said["sample_count"]
    wrong = {}
    if count is not None and count < 1:
        wrong["sample_count"] = "expected a whole number of samples, at least 1"
    if chance is None:
        return wrong
    entry = table.get(said["same_as"] or name)
    scale = said["scale"] or (entry.scale if entry is not None else "raw")
    top = TOP.get(scale)
    if not math.isfinite(chance):
        wrong["chance"] = "expected a finite number"
    elif scale == "log":
        wrong["chance"] = "a perplexity has no chance level"
    elif top is not None and not 0 <= chance < top:
        wrong["chance"] = f"a score of guessing on the scale '{scale}' lies from 0 to below {top:g}"
    return wrong


def _wrong_names(name: str, same_as: str | None, aliases: Sequence[str], table: ProjectTable) -> dict[str, str]:
    """One step from a name to its benchmark, so that no circle can arise and every name has one meaning."""
    wrong = {}
    own: Mapping[str, OwnEntry] = table.own
    if same_as is not None:
        target = own.get(same_as)
        if key_of(same_as) == key_of(name):
            wrong["same_as"] = "a benchmark cannot be another name for itself"
        elif target is not None and target.same_as is not None:
            wrong["same_as"] = f"{same_as} is another name for {target.same_as}: say {target.same_as}"
        elif any(entry.same_as == name for entry in own.values()):
            wrong["same_as"] = f"other names stand for {name} already; it must keep an entry of its own"
        elif table.get(same_as) is None:
            wrong["same_as"] = "no such benchmark in the table of this project"
    if len(aliases) > MAX_ALIASES:
        wrong["aliases"] = f"at most {MAX_ALIASES} names"
    for alias in aliases:
        entry = own.get(alias)
        if key_of(alias) == key_of(name):
            wrong["aliases"] = f"{alias} is its own name"
        elif "*" in alias:
            wrong["aliases"] = f"{alias} is a pattern: only the shipped table has those. Name each benchmark"
        elif entry is not None and entry.same_as not in (None, name):
            wrong["aliases"] = f"{alias} is another name for {entry.same_as}; take it from there first"
        elif any(each.same_as == alias for each in own.values()):
            wrong["aliases"] = f"other names stand for {alias}; take them from there first"
    if aliases and same_as is not None:
        wrong["aliases"] = "what is another name itself has no further names"
    return wrong
