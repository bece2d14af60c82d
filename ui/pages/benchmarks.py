"""The benchmark table of a project: what needs mapping first, then what looks wrong, then everything."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.errors import FieldError
from registry.evals.catalogue import catalogue
from registry.evals.table.editing import SCALES, InvalidBenchmark, put_benchmark
from registry.evals.table.listing import BenchmarkEntry, get_benchmark, list_benchmarks
from registry.projects import ProjectRow, find_project, list_projects
from registry.tokens import Caller
from registry.types import Direction, Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.commands import first_steps
from ui.contexts import Answer, Fact, Link
from ui.contexts.benchmarks import BenchmarkContext, BenchmarkField, BenchmarkRow, BenchmarksContext
from ui.links import address
from ui.respond import Viewer, go_to, show

router = APIRouter(include_in_schema=False)

ROWS: Final = 100
NONE: Final = "(none)"  # how the form says that a benchmark is in no capability
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


@router.get("/benchmarks")
def benchmarks_page(
    request: Request,
    session: SessionDep,
    viewer: ViewerDep,
    project: str = "",
    only: str = "occurring",
    after: str = "",
) -> HTMLResponse:
    """The table of one project, by default what its results have; `only=all` shows the shipped table with it."""
    projects = list_projects(session, viewer.caller.project_ids)
    if not project and not projects:
        page = replace(_empty(), empty=first_steps(request))
        return show("benchmarks.html", page, title="Benchmarks", section="Benchmarks", viewer=viewer)
    row = _project(session, viewer.caller, project or projects[0].name)
    only = only if only in ("all", "occurring") else "occurring"
    found = list_benchmarks(session, row.id, after=after or None, limit=ROWS + 1, only=only)
    unmapped = list_benchmarks(session, row.id, limit=ROWS, only="unmapped")
    page = BenchmarksContext(
        project=row.name,
        projects=tuple(
            Link(each.name, address("/benchmarks", project=each.name, only=only), each.id == row.id)
            for each in projects
        )
        if len(projects) > 1
        else (),
        answer=_answer(found, unmapped),
        unmapped=tuple(_row(each, row.name) for each in unmapped),
        flagged=tuple(_row(each, row.name) for each in found[:ROWS] if each.flags),
        rows=tuple(_row(each, row.name) for each in found[:ROWS]),
        choices=tuple(
            Link(text, address("/benchmarks", project=row.name, only=name), name == only)
            for name, text in (("occurring", "with results here"), ("all", "all that are known"))
        ),
        older=address("/benchmarks", project=row.name, only=only, after=found[ROWS - 1].name)
        if len(found) > ROWS
        else None,
    )
    return show("benchmarks.html", page, title="Benchmarks", section="Benchmarks", viewer=viewer)


@router.get("/benchmarks/edit")
def benchmark_page(
    session: SessionDep,
    viewer: ViewerDep,
    project: str,
    name: str,
    saved: str = "",
    same_as: str = "",
    capability: str = "",
    scale: str = "",
) -> HTMLResponse:
    """One benchmark with what the project says of it. A proposal fills the form in; saving it is up to the reader."""
    row = _project(session, viewer.caller, project)
    proposed = {
        name: text for name, text in (("same_as", same_as), ("capability", capability), ("scale", scale)) if text
    }
    notice = "Saved. It counts from the next answer on, everywhere." if saved else ""
    if proposed and not saved:
        notice = "Filled in with the proposal: nothing is changed before you save it."
    return _show(session, viewer, row, name, typed=proposed, notice=notice)


@router.post("/benchmarks/edit")
def save_benchmark(
    session: WriteSessionDep,
    viewer: FormViewerDep,
    project: str,
    name: str,
    capability: Annotated[str, Form(max_length=200)] = "",
    direction: Annotated[str, Form(max_length=200)] = "",
    scale: Annotated[str, Form(max_length=200)] = "",
    chance: Annotated[str, Form(max_length=200)] = "",
    sample_count: Annotated[str, Form(max_length=200)] = "",
    preferred_metrics: Annotated[str, Form(max_length=2_000)] = "",
    same_as: Annotated[str, Form(max_length=512)] = "",
    aliases: Annotated[str, Form(max_length=4_000)] = "",
    note: Annotated[str, Form(max_length=4_000)] = "",
) -> Response:
    """Say all of the form: what is empty, the shipped table says again."""
    row = _project(session, viewer.caller, project)
    viewer.caller.require(Scope.WRITE)
    typed = {
        "capability": capability,
        "direction": direction,
        "scale": scale,
        "chance": chance,
        "sample_count": sample_count,
        "preferred_metrics": preferred_metrics,
        "same_as": same_as,
        "aliases": aliases,
        "note": note,
    }
    try:
        put_benchmark(session, row.id, name, _read(typed), actor=viewer.caller.name)
    except InvalidBenchmark as error:
        session.rollback()
        return _show(session, viewer, row, name, typed=typed, errors=error.errors, status=422)
    return go_to(address("/benchmarks/edit", project=row.name, name=name, saved="1"))


def _project(session: Session, caller: Caller, name: str) -> ProjectRow:
    row = find_project(session, name)
    caller.require_project(row.id)
    return row


def _read(typed: Mapping[str, str]) -> dict[str, Any]:
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


def _answer(found: Sequence[BenchmarkEntry], unmapped: Sequence[BenchmarkEntry]) -> Answer:
    flagged = sum(1 for each in found if each.flags)
    if unmapped:
        amount = filters.plural(len(unmapped), "benchmark")
        verb = "measures" if len(unmapped) == 1 else "measure"
        return Answer(f"{amount} {verb} nothing that searches know: say which capability.", "warn")
    if flagged:
        return Answer(f"{filters.plural(flagged, 'benchmark')} with figures that look wrong.", "warn")
    if not found:
        return Answer("No result is recorded yet; the shipped table will read the first ones.", "unknown")
    return Answer("Every benchmark with results here has its place.", "good")


def _row(each: BenchmarkEntry, project: str) -> BenchmarkRow:
    proposal = each.proposal
    accept = None
    if proposal is not None:
        fields = {"same_as": proposal.same_as} if proposal.same_as else {"scale": proposal.scale}
        accept = Link("look at it", address("/benchmarks/edit", project=project, name=each.name, **fields))
    lows = [metric.low for metric in each.occurring if metric.low is not None]
    highs = [metric.high for metric in each.occurring if metric.high is not None]
    return BenchmarkRow(
        name=each.name,
        href=address("/benchmarks/edit", project=project, name=each.name),
        capability=_title(each.capability),
        reads=_reads(each),
        metrics=", ".join(_metric(metric.metric, metric.filter) for metric in each.occurring[:3])
        + (f" and {len(each.occurring) - 3} more" if len(each.occurring) > 3 else ""),
        range=f"{filters.number(min(lows), 3)} to {filters.number(max(highs), 3)}" if lows else filters.MISSING,
        own=", ".join(each.own),
        flags=each.flags,
        proposal=proposal.reason if proposal is not None else "",
        accept=accept,
    )


def _metric(metric: str, filter: str) -> str:
    return ",".join(part for part in (metric, filter) if part) or "(no metric)"


def _title(capability: str | None) -> str:
    titles = {each.name: each.title for each in catalogue().capabilities}
    return titles.get(capability or "", filters.MISSING)


def _reads(each: BenchmarkEntry) -> str:
    chance = "" if each.chance is None else f", guessing {filters.number(each.chance, 3)}"
    return (
        f"{each.direction} is better, {each.scale}{chance}" if each.direction != "target" else f"target, {each.scale}"
    )


def _show(
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
            f"{entry.name}: {_title(entry.capability) if entry.capability else 'in no capability'}, {_reads(entry)}.",
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
            _metric(metric.metric, metric.filter),
            f"{filters.number(metric.low)} to {filters.number(metric.high)}"
            if metric.low is not None
            else "no finite value",
        )
        for metric in entry.occurring
    ]
    if entry.part_of:
        facts.append(Fact("part of", entry.part_of))
    return [*facts, Fact("family", entry.family)]


def _empty() -> BenchmarksContext:
    return BenchmarksContext("", (), Answer("There is no project yet.", "unknown"), (), (), (), (), None)
