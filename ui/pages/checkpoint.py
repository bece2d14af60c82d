"""Everything that is known about one checkpoint, with what it can be used for said first."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.checkpoints.detail import CheckpointDetail, get_checkpoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import PieceSpec
from registry.evals.profile import profile
from registry.evals.read import list_scores
from registry.evals.results import results_of
from registry.ids import from_text, to_text
from registry.lineage import Edge, edges_around
from registry.overview.briefs import Brief, read_briefs
from registry.overview.runs import SavedStep, neighbours
from registry.overview.scores import has_more_scores
from registry.snapshots import flatten
from registry.tokens import Caller
from registry.types import PieceName, Presence, Resumability
from ui import filters
from ui.access import ViewerDep
from ui.charts import colour_of
from ui.commands import first_scores
from ui.contexts import (
    Answer,
    CheckpointContext,
    Chip,
    Fact,
    LineageRow,
    Link,
    PieceRow,
    ReplicaRow,
    SourceRow,
)
from ui.csv_files import csv_file
from ui.links import address, segment
from ui.refs import config_text, ref_of
from ui.respond import show
from ui.score_groups import score_groups

router = APIRouter(include_in_schema=False)

QUICKLY_RANKED = 100_000  # scores of a project that are read in well under a second
NEAR_EDGES = 40  # parents and children shown; the chain may have thousands

# What resuming loses without a piece, and what it means not to know.
CONSEQUENCES = {
    PieceName.WEIGHTS: ("Nothing can be loaded.", "Nothing is proven to be loadable."),
    PieceName.OPTIMIZER: ("The moments are forgotten: expect a bump in the loss.", "The moments may be forgotten."),
    PieceName.DATA_POSITION: ("Data will be repeated or skipped.", "Data may be repeated or skipped."),
    PieceName.RANDOM_STATE: ("It continues, but not bit for bit.", "It may not continue bit for bit."),
}


@router.get("/checkpoints/{checkpoint_id}")
def checkpoint_page(checkpoint_id: str, session: SessionDep, viewer: ViewerDep, ranked: str = "") -> HTMLResponse:
    """`ranked` asks for percentiles even where the project has so many scores that reading them takes its time."""
    detail = _detail(session, viewer.caller, checkpoint_id)
    own = detail.checkpoint
    up, down = edges_around(session, detail.project_id, own.id)
    near = [edge for edge in [*up, *down] if own.id in (edge.parent_id, edge.child_id)][:NEAR_EDGES]
    before, after = neighbours(session, own.id)
    briefs = read_briefs(session, [own.id, *(each for edge in near for each in (edge.parent_id, edge.child_id))])
    brief = briefs[own.id]
    scores = list_scores(session, detail.project_id, [own.id], every=True)
    _, readings = results_of(session, detail.project_id, [own.id])
    quick = bool(ranked) or not has_more_scores(session, detail.project_id, QUICKLY_RANKED)
    groups = score_groups(scores, readings, profile(session, own.id) if quick and scores else None)
    context = CheckpointContext(
        ref=ref_of(brief),
        colour=colour_of(to_text(own.run.id)),
        answer=_answer(detail, brief),
        facts=_facts(detail, brief),
        aliases=tuple(Chip(name, f"/aliases/{segment(own.project)}/{segment(name)}") for name in detail.aliases),
        tags=tuple(Fact(name, value) for name, value in detail.tags.items()),
        notes=detail.notes,
        pieces=tuple(_piece_row(name, detail.pieces[name]) for name in PieceName),
        replicas=_replicas(detail),
        capabilities=groups,
        rank_href=None if quick else f"/checkpoints/{checkpoint_id}?ranked=1#scores",
        metrics=tuple(
            Fact(name, filters.number(value), filters.exact(value)) for name, value in detail.metrics.items()
        ),
        layout=_layout(detail),
        config=_flat(detail.config),
        config_digest=None,
        data_version=detail.data_version.name if detail.data_version else None,
        data_sources=_sources(detail),
        code=_code(detail),
        environment=_flat(detail.environment),
        lineage=_lineage(own.id, near, briefs),
        actions=_actions(detail, before),
        csv_href=f"/checkpoints/{checkpoint_id}/scores.csv",
        previous=_step_link(before),
        next=_step_link(after),
        score_command=first_scores(checkpoint_id),
    )
    title = f"{filters.middle(own.run.name, 40)} · {own.attempt} · {own.step}"
    return show("checkpoint.html", context, title=title, section="Runs", viewer=viewer)


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


def _answer(detail: CheckpointDetail, brief: Brief) -> Answer:
    if detail.state != "committed":
        tone = "warn" if detail.state == "pending" else "bad"
        why = "its save has not been confirmed yet" if detail.state == "pending" else "its files may be gone"
        return Answer(f"{detail.state.capitalize()}: {why}.", tone)
    words, tone = _use(detail)
    superseded = " A newer attempt went back before this step, so it is off the live path." if detail.superseded else ""
    return Answer(f"{words}; {_where(brief)}.", tone, superseded.strip())


def _use(detail: CheckpointDetail) -> tuple[str, str]:
    missing = [filters.words(name) for name, piece in detail.pieces.items() if piece.presence == Presence.ABSENT]
    unknown = [filters.words(name) for name, piece in detail.pieces.items() if piece.presence == Presence.UNKNOWN]
    match detail.resumability:
        case Resumability.EXACT:
            return "Resumes exactly: all four pieces are recorded", "good"
        case Resumability.RESUMABLE:
            lacks = "absent" if missing else "not known"
            return f"Resumable, though not bit for bit: the random state is {lacks}", "good"
        case Resumability.WEIGHTS_ONLY:
            return "Weights only: good for evaluation and fine-tuning, not for resuming", "warn"
        case Resumability.INCOMPLETE:
            return f"Incomplete: without {_listed(missing)}", "bad"
        case _:
            return f"Whether it can be resumed is unknown: nobody said whether it has {_listed(unknown)}", "unknown"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _where(brief: Brief) -> str:
    copies = brief.copies
    if not copies.tiers:
        return "no copy of its files is recorded"
    amount = "one copy" if len(copies.tiers) == 1 else "copies"
    verified = f"verified on {_listed(copies.verified_tiers)}" if copies.verified_tiers else "never verified"
    return f"{amount} on {_listed(copies.tiers)} storage, {verified}"


def _facts(detail: CheckpointDetail, brief: Brief) -> tuple[Fact, ...]:
    saved = filters.absolute(detail.checkpoint.saved_at) + (
        " (arrival; nobody said)" if detail.saved_at_assumed else ""
    )
    facts = [
        Fact("saved", saved),
        Fact("loss", filters.number(detail.loss), filters.exact(detail.loss)),
        Fact("learning rate", filters.number(detail.lr), filters.exact(detail.lr)),
        Fact("tokens seen", filters.count(detail.tokens_seen), filters.exact(detail.tokens_seen)),
        Fact("epoch", filters.number(detail.epoch), filters.exact(detail.epoch)),
        Fact("parameters", filters.count(brief.parameter_count), filters.exact(brief.parameter_count)),
        Fact("size of a copy", filters.size(brief.copies.bytes), filters.exact(brief.copies.bytes)),
        Fact("saving took", filters.duration(detail.save_seconds), filters.exact(detail.save_seconds)),
        Fact("training stalled", filters.duration(detail.stall_seconds), filters.exact(detail.stall_seconds)),
        Fact("format", " ".join(filter(None, (detail.format, detail.format_version))) or filters.MISSING),
    ]
    facts = [fact for fact in facts if fact.value != filters.MISSING]
    if detail.milestone:
        facts.append(Fact("milestone", "kept for ever"))
    if detail.data_cursor is not None:
        cursor = str(detail.data_cursor)
        facts.append(Fact("data cursor", filters.middle(cursor, 60), cursor[:2000], mono=True))
    return tuple(facts)


def _piece_row(name: PieceName, piece: PieceSpec) -> PieceRow:
    evidence = piece.evidence or {"unknown": "nobody said", "absent": "recorded as absent"}.get(
        piece.presence, "recorded as present"
    )
    if piece.position_evidence:
        evidence += ", a loader state" if piece.position_evidence == "state" else ", a counter of samples"
    absent, unknown = CONSEQUENCES[name]
    said = {Presence.ABSENT.value: absent, Presence.UNKNOWN.value: unknown}
    return PieceRow(name.value, str(piece.presence), evidence, said.get(str(piece.presence), ""))


def _replicas(detail: CheckpointDetail) -> tuple[ReplicaRow, ...]:
    def state(each: Any) -> str:
        if each.state != "present":
            return str(each.state)
        return {"verified": "verified", "corrupt": "corrupt"}.get(each.verification, "present")

    return tuple(
        ReplicaRow(
            id=to_text(each.id),
            uri=each.uri,
            tier=each.tier,
            host=each.host,
            bytes=each.bytes,
            files=each.file_count,
            state=state(each),
            digest=f"{each.digest_algorithm}:{each.digest}" if each.digest else None,
            recorded_at=each.recorded_at,
            managed="managed" if each.managed else "unmanaged",
            parts="; ".join(f"{host}: ranks {ranks}" for host, ranks, _ in each.parts),
        )
        for each in detail.replicas
    )


def _layout(detail: CheckpointDetail) -> tuple[Fact, ...]:
    layout = detail.layout
    if layout is None:
        return ()
    named = (
        ("world size", layout.world_size),
        ("tensor parallel", layout.tp),
        ("pipeline parallel", layout.pp),
        ("data parallel", layout.dp),
        ("context parallel", layout.cp),
        ("expert parallel", layout.ep),
    )
    facts = [Fact(name, filters.grouped(value) if value is not None else "unknown") for name, value in named]
    facts.append(Fact("sharding", layout.sharding or "unknown"))
    return (*facts, *_flat(layout.extra))


def _flat(values: Mapping[str, Any] | None) -> tuple[Fact, ...]:
    return tuple(Fact(path, config_text(value), mono=True) for path, value in flatten(values)) if values else ()


def _sources(detail: CheckpointDetail) -> tuple[SourceRow, ...]:
    mix = detail.data_version.mix if detail.data_version else {}
    total = sum(source.weight or 0.0 for source in mix.values())
    rows = [
        SourceRow(name, source.weight / total if source.weight is not None and total else None, source.tokens)
        for name, source in mix.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.weight or 0.0), row.name)))


def _code(detail: CheckpointDetail) -> tuple[Fact, ...]:
    code = detail.code
    if code is None:
        return ()
    tree = {None: "unknown whether clean", True: "with uncommitted changes", False: "clean"}[code.dirty]
    facts = [Fact("commit", code.commit or "not recorded", mono=code.commit is not None), Fact("tree", tree)]
    if code.diff_digest:
        facts.append(Fact("digest of the changes", filters.middle(code.diff_digest, 40), code.diff_digest, mono=True))
    if code.remote:
        href = code.remote if code.remote.startswith(("https://", "http://")) else None
        facts.append(Fact("repository", code.remote, href=href))
    return tuple(facts)


def _lineage(own: int, edges: Sequence[Edge], briefs: Mapping[int, Brief]) -> tuple[LineageRow, ...]:
    rows = []
    for edge in edges:
        upwards = edge.child_id == own
        other = briefs.get(edge.parent_id if upwards else edge.child_id)
        direction = "this came from" if upwards else "this led to"
        rows.append(LineageRow(direction, edge.relation, ref_of(other) if other else None, "not registered"))
    return tuple(rows)


def _actions(detail: CheckpointDetail, before: SavedStep | None) -> tuple[Link, ...]:
    own, identity = detail.checkpoint, to_text(detail.checkpoint.id)
    links = []
    if before:
        compare = address("/compare", baseline=to_text(before.checkpoint_id), candidate=identity)
        links.append(Link("Compare with the one before", compare))
    aliases = [] if detail.aliases else ["production"]
    rollback = address("/rollback", run=to_text(own.run.id), step=str(own.step))
    links.append(Link("Roll the run back to here or before", rollback))
    for name in aliases if detail.state == "committed" else ():
        links.append(Link(f"Point {name} here…", address(f"/aliases/{segment(own.project)}/{name}", to=identity)))
    if detail.data_version:
        same = address(
            "/find", mode="filter", filter=f"data_version = '{detail.data_version.name.replace(chr(39), chr(39) * 2)}'"
        )
        links.append(Link("Others with this data", same))
    return tuple(links)
