"""What a search page shows unasked: the strongest checkpoint at each capability."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from registry.evals.catalogue import Capability, catalogue
from registry.overview.briefs import read_briefs
from registry.overview.scores import has_more_scores
from registry.projects import find_project, list_projects
from registry.search.answers import SearchResult
from registry.search.query import search_checkpoints
from registry.tokens import Caller
from ui import filters
from ui.contexts import Answer, Link
from ui.contexts.find import StrongestRow
from ui.find.found import evidence_row
from ui.links import address
from ui.refs import ref_of

QUICKLY_RANKED = 200_000  # scores of all the projects, which are read within a second


def strongest_rows(session: Session, caller: Caller, project: str | None) -> tuple[StrongestRow, ...]:
    """One row for each capability that anything was evaluated on; none where reading the scores takes its time."""
    if not _is_quick(session, caller, project):
        return ()
    found: list[tuple[Capability, SearchResult]] = []
    skills = (each for each in catalogue().capabilities if each.name != "lm")  # the health of a model, not a skill
    for capability in skills:
        asked = [{"capability": capability.name, "relation": "strong"}]
        answer = search_checkpoints(session, project_ids=caller.project_ids, conditions=asked, project=project, limit=1)
        found += [(capability, each) for each in answer.results if each.evidence and each.evidence[0].benchmarks]
    briefs = read_briefs(session, [each.checkpoint.id for _, each in found])
    return tuple(
        StrongestRow(
            Link(capability.title, address("/find", q=f"strong {capability.name}", project=project)),
            ref_of(briefs[each.checkpoint.id]),
            evidence_row(each.evidence[0]),
        )
        for capability, each in found
    )


def strongest_answer(rows: Sequence[StrongestRow]) -> Answer:
    if not rows:
        return Answer("Say what the checkpoint should be good and bad at.")
    first = rows[0]
    name, step = filters.middle(first.ref.run_name, 60), filters.grouped(first.ref.step)
    return Answer(
        f"{name} at step {step} is the strongest at {first.capability.text.lower()}.",
        "plain",
        "The strongest at each capability is below. Say what a checkpoint should be good and bad at, together.",
    )


def _is_quick(session: Session, caller: Caller, project: str | None) -> bool:
    if project is not None:
        row = find_project(session, project)
        caller.require_project(row.id)
        projects = [row]
    else:
        projects = list_projects(session, caller.project_ids)
    share = QUICKLY_RANKED // max(1, len(projects))
    return not any(has_more_scores(session, each.id, share) for each in projects)
