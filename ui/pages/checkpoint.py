"""Everything that is known about one checkpoint, with what it can be used for said first."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.checkpoints.detail import CheckpointDetail, get_checkpoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.evals.profile import profile
from registry.evals.read import list_scores
from registry.evals.results import results_of
from registry.ids import from_text, to_text
from registry.incidents.suspicion import suspects_of
from registry.lineage import edges_around
from registry.overview.briefs import read_briefs
from registry.overview.runs import SavedStep, neighbours
from registry.overview.scores import has_more_scores
from registry.tokens import Caller
from registry.types import PieceName
from ui import filters
from ui.access import ViewerDep
from ui.charts import colour_of
from ui.checkpoint.facts import (
    code_facts,
    facts_of,
    flat_facts,
    layout_facts,
    lineage_rows,
    piece_row,
    replica_rows,
    source_rows,
)
from ui.checkpoint.restore import read_question, restore_block
from ui.checkpoint.scores import score_groups
from ui.checkpoint.summary import actions_of, answer_of
from ui.commands import first_scores
from ui.contexts import Chip, Fact, Link
from ui.contexts.checkpoint import CheckpointContext
from ui.csv_files import csv_file
from ui.links import segment
from ui.refs import ref_of
from ui.respond import show

router = APIRouter(include_in_schema=False)

QUICKLY_RANKED = 100_000  # scores of a project that are read in well under a second
NEAR_EDGES = 200  # parents and children looked at; the chain may have thousands


@router.get("/checkpoints/{checkpoint_id}")
def checkpoint_page(
    checkpoint_id: str,
    session: SessionDep,
    viewer: ViewerDep,
    ranked: str = "",
    layout: Annotated[str, Query(max_length=200)] = "",
    rto: Annotated[str, Query(max_length=20)] = "",
    hosts: Annotated[str, Query(max_length=4_000)] = "",
) -> HTMLResponse:
    """`ranked` asks for percentiles even where the project has so many scores that reading them takes its time.

    `layout` (tp=4,pp=2,dp=8), `rto` in seconds and `hosts` are the question of the restore plan.
    """
    detail = _detail(session, viewer.caller, checkpoint_id)
    own = detail.checkpoint
    up, down = edges_around(session, detail.project_id, own.id)
    every = [edge for edge in [*up, *down] if own.id in (edge.parent_id, edge.child_id)]
    near = every[:NEAR_EDGES]
    before, after = neighbours(session, own.id)
    briefs = read_briefs(session, [own.id, *(each for edge in near for each in (edge.parent_id, edge.child_id))])
    brief = briefs[own.id]
    scores = list_scores(session, detail.project_id, [own.id], every=True)
    results, readings = results_of(session, detail.project_id, [own.id])
    quick = bool(ranked) or not has_more_scores(session, detail.project_id, QUICKLY_RANKED)
    groups = score_groups(
        scores, results[own.id], readings, profile(session, own.id) if quick and results[own.id] else None
    )
    asked, left_out = read_question(layout, rto, hosts)
    restore, contradicted = restore_block(session, own.id, checkpoint_id, asked)
    suspicion = suspects_of(session, [own.id]).get(own.id)
    context = CheckpointContext(
        ref=ref_of(brief, suspect=suspicion is not None),
        colour=colour_of(to_text(own.run.id)),
        answer=answer_of(detail, brief, suspicion, restore.proof),
        restore=restore,
        facts=facts_of(detail, brief),
        aliases=tuple(Chip(name, f"/aliases/{segment(own.project)}/{segment(name)}") for name in detail.aliases),
        tags=tuple(Fact(name, value) for name, value in detail.tags.items()),
        notes=detail.notes,
        pieces=tuple(piece_row(name, detail.pieces[name]) for name in PieceName),
        replicas=replica_rows(detail),
        capabilities=groups,
        rank_href=None if quick else f"/checkpoints/{checkpoint_id}?ranked=1#scores",
        metrics=tuple(
            Fact(name, filters.number(value), filters.exact(value)) for name, value in detail.metrics.items()
        ),
        layout=layout_facts(detail),
        config=flat_facts(detail.config),
        config_digest=None,
        data_version=detail.data_version.name if detail.data_version else None,
        data_sources=source_rows(detail),
        code=code_facts(detail),
        environment=flat_facts(detail.environment),
        lineage=lineage_rows(own.id, near, briefs, cut=len(every) > len(near)),
        actions=actions_of(detail, before),
        csv_href=f"/checkpoints/{checkpoint_id}/scores.csv",
        previous=_step_link(before),
        next=_step_link(after),
        score_command=first_scores(checkpoint_id),
    )
    title = f"{filters.middle(own.run.name, 40)} · {own.attempt} · {own.step}"
    notices = [*left_out, *contradicted]
    return show("checkpoint.html", context, title=title, section="Runs", viewer=viewer, notices=notices)


@router.get("/checkpoints/{checkpoint_id}/scores.csv")
def checkpoint_scores_csv(checkpoint_id: str, session: SessionDep, viewer: ViewerDep) -> StreamingResponse:
    """Every result that is kept, those that count now marked."""
    detail = _detail(session, viewer.caller, checkpoint_id)
    header = (
        *("benchmark", "metric", "filter", "value", "stderr", "n_samples", "n_shot", "version"),
        *("harness", "harness_version", "evaluated_at", "current"),
    )
    rows = [
        (
            *(row.benchmark, row.metric, row.filter, row.value, row.stderr, row.n_samples, row.n_shot, row.version),
            *(row.harness, row.harness_version, row.evaluated_at, "yes" if row.current else "no"),
        )
        for row in list_scores(session, detail.project_id, [detail.checkpoint.id], every=True)
    ]
    return csv_file(f"{detail.checkpoint.run.name}-{detail.checkpoint.step}-scores", header, rows)


def _detail(session: Session, caller: Caller, checkpoint_id: str) -> CheckpointDetail:
    number = from_text(checkpoint_id)
    if number is None:
        raise CheckpointNotFound(f"There is no checkpoint {checkpoint_id[:40]!r}. Find lists those that exist.")
    detail = get_checkpoint(session, number)
    caller.require_project(detail.project_id)
    return detail


def _step_link(neighbour: SavedStep | None) -> Link | None:
    if neighbour is None:
        return None
    return Link(f"step {filters.grouped(neighbour.step)}", f"/checkpoints/{to_text(neighbour.checkpoint_id)}")
