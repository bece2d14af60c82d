"""Where a checkpoint comes from: its tokens by source, and every stage of the way; as a page and as Markdown."""

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.checkpoints.errors import CheckpointNotFound
from registry.ids import from_text
from registry.overview.briefs import read_briefs
from registry.provenance.bundle import Provenance, Stage, read_provenance
from registry.provenance.data_seen import CONTINUED
from registry.provenance.model_card import to_markdown
from registry.tokens import Caller
from ui import filters
from ui.access import ViewerDep
from ui.contexts import Answer, Command
from ui.evidence import ProvenanceContext, SourceRow, StageRow
from ui.refs import ref_of
from ui.respond import HEADERS, show
from ui.words import grouped_steps

router = APIRouter(include_in_schema=False)

MOST_SOURCES = 60
MOST_STAGES = 200  # on the page; the file has all
MOST_UNKNOWN = 50


@router.get("/checkpoints/{checkpoint_id}/provenance")
def provenance_page(checkpoint_id: str, session: SessionDep, viewer: ViewerDep) -> HTMLResponse:
    """The whole chain, the newest stage first."""
    found = _own(session, viewer.caller, checkpoint_id)
    newest = found.stages[:MOST_STAGES]
    briefs = read_briefs(session, [each.checkpoint.id for each in newest])
    total = sum(found.tokens_by_source.values())
    sources = tuple(
        SourceRow(name, filters.count(tokens), tokens / total)
        for name, tokens in list(found.tokens_by_source.items())[:MOST_SOURCES]
    )
    own = ref_of(briefs[found.detail.checkpoint.id])
    context = ProvenanceContext(
        ref=own,
        answer=_answer(found),
        sources=sources,
        largest=max((each.share for each in sources), default=1.0),
        stages=tuple(
            StageRow(
                ref_of(briefs[stage.checkpoint.id]),
                (stage.came_from or "anew").replace("_", " "),
                f"{filters.grouped(stage.first_step)} – {filters.grouped(stage.checkpoint.step)}",
                "not recorded" if stage.tokens is None else filters.count(stage.tokens),
                stage.data_version or "not recorded",
                stage.config_digest[:8] if stage.config_digest else "not recorded",
                stage.code.commit[:12] if stage.code is not None and stage.code.commit else "not recorded",
                _tree(stage),
                tuple(_notes(stage)),
            )
            for stage in newest
        ),
        unknown=tuple(_unknown(found)),
        markdown_href=f"/checkpoints/{checkpoint_id}/provenance.md",
        command=Command("All of it as files, to train it again:", f"cairn reproduce {checkpoint_id} FOLDER"),
    )
    title = f"Where {filters.middle(own.run_name, 40)} · {own.step} comes from"
    return show("provenance.html", context, title=title, section="Runs", viewer=viewer)


@router.get("/checkpoints/{checkpoint_id}/provenance.md")
def provenance_markdown(checkpoint_id: str, session: SessionDep, viewer: ViewerDep) -> Response:
    """The same as a section of a model card."""
    found = _own(session, viewer.caller, checkpoint_id)
    name = f"provenance-{checkpoint_id}.md"
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(to_markdown(found), media_type="text/markdown; charset=utf-8", headers=headers)


def _own(session: Session, caller: Caller, checkpoint_id: str) -> Provenance:
    number = from_text(checkpoint_id)
    if number is None:
        raise CheckpointNotFound(f"There is no checkpoint {checkpoint_id[:40]!r}. Find lists those that exist.")
    found = read_provenance(session, number)
    caller.require_project(found.detail.project_id)
    return found


def _answer(found: Provenance) -> Answer:
    """What it has seen, over how many stages, and what is in doubt."""
    seen = "How many tokens it has seen is not recorded"
    if found.tokens_total is not None:
        seen = f"It has seen {filters.count(found.tokens_total)} tokens"
    if found.tokens_by_source:
        first, tokens = next(iter(found.tokens_by_source.items()))
        share = tokens / sum(found.tokens_by_source.values())
        of_what = ", {} of them {}" if found.tokens_total is not None else "; of those that can be counted {} are {}"
        seen += of_what.format(filters.percent(share), first)
    stages = filters.plural(len(found.stages), "stage")
    doubts = []
    if found.dirty:
        doubts.append(f"{filters.plural(len(found.dirty), 'stage')} ran with uncommitted code")
    if found.unknown:
        doubts.append(f"{filters.plural(len(found.unknown), 'thing')} not recorded")
    detail = f"{'; '.join(doubts)}.".capitalize() if doubts else ""
    return Answer(f"{seen}, over {stages}.", "warn" if doubts else "plain", detail)


def _unknown(found: Provenance) -> Iterator[str]:
    """What is not known, and what stands in the file only."""
    yield from (grouped_steps(each) for each in found.unknown[:MOST_UNKNOWN])
    if len(found.unknown) > MOST_UNKNOWN:
        yield f"{filters.plural(len(found.unknown) - MOST_UNKNOWN, 'thing')} more; the Markdown file names each"
    if len(found.stages) > MOST_STAGES:
        older = filters.plural(len(found.stages) - MOST_STAGES, "older stage")
        yield f"{older}, counted in the tokens above and not shown here; the Markdown file has all"


def _tree(stage: Stage) -> str:
    if stage.code is None or stage.code.dirty is None:
        return "not said"
    if not stage.code.dirty:
        return "clean"
    return f"dirty, diff {stage.code.diff_digest[:19]}" if stage.code.diff_digest else "dirty"


def _notes(stage: Stage) -> Iterator[str]:
    for each in stage.repeated:
        steps = f"{filters.grouped(each.first)} – {filters.grouped(each.last)}"
        yield f"steps {steps} were trained before, in attempt {each.attempt}"
    for each in stage.skipped:
        yield f"the data of steps {filters.grouped(each.first)} – {filters.grouped(each.last)} was skipped"
    if stage.came_from == CONTINUED:
        return  # what follows was said of the attempt's first stage
    if stage.changes:
        yield f"changed: {filters.middle(stage.changes, 200)}"
    if stage.reason:
        yield f"because: {filters.middle(stage.reason, 200)}"
    if stage.command:
        yield f"launched with: {filters.middle(stage.command, 300)}"
