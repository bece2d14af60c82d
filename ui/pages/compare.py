"""Two checkpoints side by side: which scores really changed, what else changed, and what is suspect."""

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep, SettingsDep
from registry.aliases import alias_history, list_aliases
from registry.aliases.named import FORMS, find_named_checkpoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.errors import NotFound
from registry.evals.project_table import read_project_table
from registry.ids import to_text
from registry.overview.briefs import read_briefs
from registry.overview.runs import has_runs, list_run_overviews
from registry.overview.starts import newest_pair
from registry.projects import list_projects
from registry.provenance.compare import Comparison, compare_checkpoints
from registry.tokens import Caller
from ui.access import ViewerDep
from ui.commands import first_steps
from ui.compare.answer import compare_answer
from ui.compare.context import compare_context
from ui.contexts import Answer, Link
from ui.contexts.compare import CompareContext
from ui.csv_files import csv_file
from ui.links import address
from ui.refs import ref_of
from ui.respond import go_to, show
from ui.words import message_of

router = APIRouter(include_in_schema=False)

NEWEST_RUNS = 20  # looked through for one with two checkpoints


@router.get("/compare")
def compare_page(
    request: Request,
    session: SessionDep,
    viewer: ViewerDep,
    settings: SettingsDep,
    baseline: str = "",
    candidate: str = "",
    all: str = "",
) -> Response:
    """A side is named as on the command line. `all` shows the benchmarks that did not move, too."""
    baseline, candidate = baseline.strip(), candidate.strip()
    if not baseline and not candidate:
        pair = _default_pair(session, viewer.caller)
        if pair is not None:
            return go_to(address("/compare", baseline=pair[0], candidate=pair[1]))
    try:
        sides = [_resolve(session, viewer.caller, text) for text in (baseline, candidate)]
    except NotFound as error:
        page = _question(
            session, viewer.caller, baseline, candidate, message_of(error) if baseline or candidate else ""
        )
        return show("compare.html", page, title="Compare", section="Compare", viewer=viewer, status=404)
    if sides[0] is None or sides[1] is None:
        return show(
            "compare.html",
            replace(
                _question(session, viewer.caller, baseline, candidate, ""),
                empty=() if has_runs(session, viewer.caller.project_ids) else first_steps(request),
            ),
            title="Compare",
            section="Compare",
            viewer=viewer,
        )
    found = compare_checkpoints(session, sides[0], sides[1], mirrors=settings.git_mirrors)
    page = _page(session, found, (baseline, candidate), every=bool(all))
    return show("compare.html", page, title="Compare", section="Compare", viewer=viewer)


@router.get("/compare.csv")
def compare_csv(session: SessionDep, viewer: ViewerDep, baseline: str, candidate: str) -> StreamingResponse:
    """Every benchmark of the comparison, all figures with every digit."""
    old, new = (_resolve(session, viewer.caller, text) for text in (baseline, candidate))
    if old is None or new is None:
        raise CheckpointNotFound(f"Name both sides. {FORMS}")
    header = (
        *("benchmark", "metric", "filter", "capability", "baseline", "candidate", "delta", "stderr"),
        *("p_value", "q_value", "minimum_detectable", "method", "verdict", "why"),
    )
    rows = [
        (
            *(each.benchmark, each.metric, each.filter, each.capability, each.baseline, each.candidate, each.delta),
            *(each.stderr, each.p_value, each.q_value, each.minimum_detectable, each.method, each.verdict, each.why),
        )
        for each in compare_checkpoints(session, old, new).scores.scores
    ]
    return csv_file(f"compare-{to_text(old)}-{to_text(new)}", header, rows)


def _page(session: Session, found: Comparison, typed: tuple[str, str], *, every: bool) -> CompareContext:
    briefs = read_briefs(session, [found.baseline.id, found.candidate.id])
    old, new = (ref_of(briefs[side.id]) for side in (found.baseline, found.candidate))
    table = read_project_table(
        session, sorted({briefs[side.id].project_id for side in (found.baseline, found.candidate)})
    )
    return compare_context(found, old, new, typed, table, every=every)


def _question(session: Session, caller: Caller, baseline: str, candidate: str, problem: str) -> CompareContext:
    links = [
        Link(f"what {name} changed", address("/compare", baseline=old, candidate=new))
        for name, old, new in _alias_moves(session, caller)
    ]
    return CompareContext(
        None,
        None,
        compare_answer(None) if not problem else Answer("One of the two was not found.", "warn"),
        suggestions=tuple(links[:6]),
        typed_baseline=baseline,
        typed_candidate=candidate,
        problem=problem,
    )


def _resolve(session: Session, caller: Caller, text: str) -> int | None:
    """The checkpoint that is named; None where nothing is. Raises what `find_named_checkpoint` does."""
    return find_named_checkpoint(session, caller, text) if text else None


def _alias_moves(session: Session, caller: Caller) -> list[tuple[str, str, str]]:
    """(alias, before, now) of every alias that was moved, the last moved first."""
    names = {row.id: row.name for row in list_projects(session, caller.project_ids)}
    aliases = list_aliases(session, sorted(names))
    moves = []
    for alias in sorted(aliases, key=lambda alias: alias.moved_at, reverse=True):
        last = alias_history(session, alias.project_id, alias.name, limit=1)[0]
        if last.previous_id is not None:
            label = f"{names[alias.project_id]}/{alias.name}"
            moves.append((label, to_text(last.previous_id), to_text(last.checkpoint_id)))
    return moves


def _default_pair(session: Session, caller: Caller) -> tuple[str, str] | None:
    """What an unasked comparison shows: what the last move of an alias changed, else the two newest of a run.

    The run is the newest that has two; where the newest runs have one each, the run that has most.
    """
    for _, old, new in _alias_moves(session, caller):
        return old, new
    newest = list_run_overviews(session, project_ids=caller.project_ids, limit=NEWEST_RUNS).rows
    largest = list_run_overviews(session, project_ids=caller.project_ids, sort="checkpoints", limit=1).rows
    for run in (*newest, *largest):
        pair = newest_pair(session, run.project_id, run.id) if run.checkpoints > 1 else None
        if pair is not None:
            return to_text(pair[0]), to_text(pair[1])
    return None
