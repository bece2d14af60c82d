"""A search for the checkpoint after which a score fell: where it stands, and what to evaluate next."""

import re
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response

from api.deps import SessionDep, WriteSessionDep
from registry.checkpoints.detail import project_of
from registry.checkpoints.errors import CheckpointNotFound
from registry.ids import from_text, to_text
from registry.overview.briefs import read_briefs
from registry.provenance.bisect import (
    BisectAnswer,
    BisectNotFound,
    Target,
    get_bisect,
    project_of_bisect,
    start_bisect,
)
from registry.types import Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.contexts import Answer, CheckpointRef, Command, Fact, Link
from ui.evidence import BisectContext, EvaluationRow, GapRow
from ui.links import address
from ui.refs import ref_of
from ui.respond import go_to, show
from ui.words import grouped_steps

router = APIRouter(include_in_schema=False)

SHOWN_GAPS = 24
LEAST_SHOWN = 0.01


@router.post("/bisects")
def start(
    session: WriteSessionDep,
    viewer: FormViewerDep,
    good: Annotated[str, Form()] = "",
    bad: Annotated[str, Form()] = "",
    benchmark: Annotated[str, Form(max_length=512)] = "",
    metric: Annotated[str, Form(max_length=512)] = "",
    filter: Annotated[str, Form(max_length=512)] = "",
) -> Response:
    """Start a search, or go on with the same one."""
    viewer.caller.require(Scope.WRITE)
    ends = [from_text(text) for text in (good, bad)]
    if ends[0] is None or ends[1] is None:
        raise CheckpointNotFound("A search needs two checkpoints, the good one and the bad one.")
    projects = [project_of(session, each) for each in (ends[0], ends[1])]
    for project_id in projects:
        viewer.caller.require_project(project_id)
    target = Target(benchmark, metric or None, filter or None)
    found, _ = start_bisect(session, projects[1], ends[0], ends[1], target, actor=viewer.caller.name)
    return go_to(f"/bisects/{to_text(found.id)}")


@router.get("/bisects/{bisect_id}")
def bisect_page(bisect_id: str, session: SessionDep, viewer: ViewerDep) -> HTMLResponse:
    """The answer so far, the next evaluation with its command, then the evidence."""
    number = from_text(bisect_id)
    if number is None:
        raise BisectNotFound(f"There is no search {bisect_id[:40]!r}. Compare starts one.")
    viewer.caller.require_project(project_of_bisect(session, number))
    found = get_bisect(session, number)
    ids = {each.id for gap in found.posterior for each in (gap.after, gap.before)}
    refs = {key: ref_of(brief) for key, brief in read_briefs(session, sorted(ids)).items()}
    return show("bisect.html", _context(found, refs), title="Search for the fall", section="Compare", viewer=viewer)


def _context(found: BisectAnswer, refs: dict[int, CheckpointRef]) -> BisectContext:
    likely = sorted(range(len(found.posterior)), key=lambda place: -found.posterior[place].probability)[:SHOWN_GAPS]
    gaps = [
        (place, found.posterior[place])
        for place in sorted(likely)
        if place in found.credible or found.posterior[place].probability >= LEAST_SHOWN
    ]
    upcoming = found.next
    good, bad = to_text(found.good.id), to_text(found.bad.id)
    words, command = "", None
    if upcoming is not None:
        likelihood = filters.percent(upcoming.probability_bad)
        words = f"on {filters.grouped(upcoming.items)} items; it is bad with {likelihood}."
        task = f"--benchmark {found.what[0]} " if found.target.capability is None else ""
        command = Command(
            "Its score counts as soon as it is recorded. A command can drive the search to its end:",
            f"cairn why --good {good} --bad {bad} --bisect {task}"
            "--eval 'lm_eval --model hf --model_args pretrained={path} --tasks TASK --limit {items} "
            "--output_path {output}'",
        )
    sure = found.gap.probability >= 0.95
    return BisectContext(
        answer=Answer(_sentence(found), "plain" if not sure else "bad" if found.is_proven else "warn"),
        good=refs[found.good.id],
        bad=refs[found.bad.id],
        target=found.target.name,
        next=None if upcoming is None else refs[upcoming.checkpoint.id],
        next_words=words,
        command=command,
        gaps=tuple(
            GapRow(refs[gap.after.id], refs[gap.before.id], gap.probability, place in found.credible)
            for place, gap in gaps
        ),
        more_gaps=len(found.posterior) - len(gaps),
        evaluations=tuple(
            EvaluationRow(
                refs[each.checkpoint.id],
                filters.number(each.value),
                f"{filters.number(each.delta, 3)} ± {filters.number(each.stderr, 2)}",
                "not said" if each.items is None else filters.grouped(each.items),
                each.source,
                each.probability_bad,
            )
            for each in found.evaluations
        ),
        facts=(
            Fact("fall", filters.number(found.drop, 3), "on the benchmark's own scale, as a fraction of it"),
            Fact("items to see it", filters.grouped(found.items), "n = ψ (4/fall)²: four standard errors"),
            Fact(
                "answers that change, assumed",
                filters.percent(found.discordance),
                "ψ, the share of items whose answer changes",
            ),
            Fact("left out, without a copy", str(found.left_out), "checkpoints on the way that cannot be evaluated"),
        ),
        actions=_actions(found, good, bad, sure),
    )


def _sentence(found: BisectAnswer) -> str:
    """The domain's words, with the run that both ends belong to named once."""
    words = f"{found.why[0].upper()}{found.why[1:]}."
    run, other = found.gap.after.run, found.gap.before.run
    if run.id == other.id:
        name = re.escape(run.name)
        both = re.compile(rf"{name} step (\d[\d,]*\b) and {name} step (\d[\d,]*\b)")
        words = both.sub(lambda ends: f"steps {ends[1]} and {ends[2]} of {filters.middle(run.name, 60)}", words)
    return grouped_steps(words)


def _actions(found: BisectAnswer, good: str, bad: str, sure: bool) -> tuple[Link, ...]:
    """Once it is known where the fall lies: what changed there, and going back to before it."""
    links = []
    if sure:
        after, before = to_text(found.gap.after.id), to_text(found.gap.before.id)
        links.append(Link("What changed there", address("/compare", baseline=after, candidate=before)))
        run = to_text(found.gap.after.run.id)
        links.append(Link("Roll back to before it", address("/rollback", run=run, step=str(found.gap.after.step))))
    return (*links, Link("Compare the two ends", address("/compare", baseline=good, candidate=bad)))
