"""The form of one benchmark: what the project says of it, beside what the shipped table says."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from registry.errors import FieldError
from registry.evals.catalogue import catalogue
from registry.evals.table.editing import SCALES, InvalidBenchmark
from registry.evals.table.listing import BenchmarkEntry, get_benchmark
from registry.projects import ProjectRow
from registry.types import Direction, Scope
from ui import filters
from ui.benchmarks.listing import NONE, metric_words, reads_of, title_of
from ui.contexts import Answer, Fact, Link
from ui.contexts.benchmarks import BenchmarkContext, BenchmarkField
from ui.links import address
from ui.respond import Viewer, show

_FIELDS: Final = (
    ("capability", "Capability"),
    ("direction", "Better is"),
    ("scale", "Scale"),
    ("chance", "Score of guessing, in that scale"),
    ("sample_count", "Samples"),
    ("preferred_metrics", "Metrics, the preferred one first: metric,filter; …"),
    ("same_as", "Another name for"),
    ("aliases", "Other names of it, with ; between"),
    ("note", "Note"),
)


def read_form(typed: Mapping[str, str]) -> dict[str, Any]:
    """The form's texts as values. Raises InvalidBenchmark for a number that is none."""
    said: dict[str, Any] = {name: text.strip() or None for name, text in typed.items()}
    errors = []
    for name, kind, wanted in (("chance", float, "a number"), ("sample_count", int, "a whole number")):
        if said[name] is not None:
            try:
                said[name] = kind(said[name])
            except ValueError:
                errors.append(FieldError(f"/{name}", f"expected {wanted}"))
    if said["capability"] == NONE:
        said["capability"] = ""
    if said["preferred_metrics"] is not None:
        pairs = [part.strip().rpartition(",") for part in said["preferred_metrics"].split(";") if part.strip()]
        said["preferred_metrics"] = [[name, filter] if comma else [filter, ""] for name, comma, filter in pairs]
    said["aliases"] = [part.strip() for part in (said["aliases"] or "").split(";") if part.strip()]
    if errors:
        raise InvalidBenchmark(f"{errors[0].pointer[1:]}: {errors[0].message}.", errors=errors)
    return said


def show_form(
    session: Session,
    viewer: Viewer,
    project: ProjectRow,
    name: str,
    *,
    typed: Mapping[str, str],
    errors: Sequence[FieldError] = (),
    notice: str = "",
    status: int = 200,
) -> HTMLResponse:
    entry = get_benchmark(session, project.id, name)
    wrong = {error.pointer[1:]: error.message for error in errors}
    own = _said(entry)
    where = title_of(entry.capability) if entry.capability else "in no capability"
    fields = tuple(
        BenchmarkField(
            field,
            label,
            typed.get(field, own[field]),
            _shipped(entry, field),
            _options(field),
            wrong.get(field, ""),
        )
        for field, label in _FIELDS
    )
    page = BenchmarkContext(
        project=project.name,
        name=entry.name,
        answer=Answer(
            f"{entry.name}: {where}, {reads_of(entry)}.",
            "warn" if entry.flags else "plain",
        ),
        facts=tuple(_facts(entry)),
        flags=entry.flags,
        fields=fields,
        may_edit=viewer.caller.scope is not Scope.READ,
        action=address("/benchmarks/edit", project=project.name, name=entry.name),
        back=Link("All benchmarks of this project", address("/benchmarks", project=project.name)),
        notice=notice,
        problem="That cannot be said: see below." if errors else "",
    )
    return show("benchmark.html", page, title=entry.name, section="Benchmarks", viewer=viewer, status=status)


def _said(entry: BenchmarkEntry) -> dict[str, str]:
    """The form's texts of what the project says already."""
    values: dict[str, Any] = {
        "capability": entry.capability or NONE,
        "direction": entry.direction,
        "scale": entry.scale,
        "chance": "" if entry.chance is None or not math.isfinite(entry.chance) else f"{entry.chance:g}",
        "sample_count": "" if entry.sample_count is None else str(entry.sample_count),
        "preferred_metrics": "; ".join(_pair(pair) for pair in entry.metrics),
        "same_as": entry.same_as or "",
        "note": entry.note,
    }
    said = {name: str(value) if name in entry.own else "" for name, value in values.items()}
    shipped = catalogue().get(entry.name)
    known = shipped.aliases if shipped is not None and shipped.name == entry.name else ()
    return said | {"aliases": "; ".join(name for name in entry.aliases if name not in known)}


def _pair(pair: tuple[str, str]) -> str:
    return f"{pair[0]},{pair[1]}"


def _shipped(entry: BenchmarkEntry, field: str) -> str:
    """What the shipped table says where the project says nothing."""
    row = catalogue().get(entry.name)
    if row is None:
        return ""
    values = {
        "capability": row.capability or NONE,
        "direction": row.direction.value,
        "scale": row.scale,
        "chance": "" if row.chance is None else f"{row.chance:g}",
        "sample_count": "" if row.sample_count is None else str(row.sample_count),
        "preferred_metrics": "; ".join(map(_pair, row.metrics)),
        "same_as": row.name if row.name != entry.name and row.part_of is None else "",
        "note": row.note,
        "aliases": "; ".join(row.aliases) if row.name == entry.name else "",
    }
    return values[field]


def _options(field: str) -> tuple[str, ...]:
    names = {
        "capability": (*(each.name for each in catalogue().capabilities), NONE),
        "direction": tuple(Direction),
        "scale": SCALES,
    }
    return names.get(field, ())


def _facts(entry: BenchmarkEntry) -> Sequence[Fact]:
    facts = [
        Fact(
            metric_words(metric.metric, metric.filter),
            f"{filters.number(metric.low)} to {filters.number(metric.high)}"
            if metric.low is not None
            else "no finite value",
        )
        for metric in entry.occurring
    ]
    if entry.part_of:
        facts.append(Fact("part of", entry.part_of))
    return [*facts, Fact("family", entry.family)]
