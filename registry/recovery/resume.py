"""Which checkpoint a launch goes on from: the newest that is whole, beyond suspicion, and fits where it is to run.

The service decides the order and says why what is newer was left out. What only a host can see (whether a path is
there, and whole) the client checks, and takes the next copy, then the next checkpoint.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy.orm import Session

from registry.checkpoints.rows import RunName
from registry.errors import FieldError
from registry.recovery.resume_filters import Found, judge_page
from registry.recovery.resume_path import newest_pages
from registry.recovery.resume_shapes import BadResumeQuestion, ResumeCandidate, ResumePlan, ResumeQuestion
from registry.recovery.scope import Scope, scope_of_run
from registry.snapshots import refuse_too_many_paths
from registry.wording import counted

MAX_EXCLUDED: Final = 100


def plan_resume(session: Session, run_id: int, question: ResumeQuestion) -> ResumePlan:
    """The run's checkpoints to go on from, the newest first; those before a fork come after its own.

    Raises RunNotFound, BadResumeQuestion, ContradictoryLayout, ConfigTooLarge.
    """
    if question.limit < 1:
        message = "expected at least one checkpoint"
        raise BadResumeQuestion(f"At /limit: {message}.", errors=[FieldError("/limit", message)])
    if question.config is not None:
        refuse_too_many_paths(question.config)
    scope = scope_of_run(session, run_id)
    found = Found()
    for rows in newest_pages(session, scope):
        judge_page(session, scope.project_id, rows, question, found)
        if len(found.candidates) >= question.limit:
            break
    candidates = tuple(found.candidates[: question.limit])
    counts = Counter(each.filter for each in found.excluded)
    return ResumePlan(
        run=RunName(scope.run_id, scope.runs[scope.run_id]),
        project=scope.project,
        sentence=_sentence(scope, candidates, found, counts, question),
        candidates=candidates,
        excluded=tuple(found.excluded[:MAX_EXCLUDED]),
        excluded_counts=dict(counts.most_common()),
        considered=found.considered,
    )


def _sentence(
    scope: Scope,
    candidates: Sequence[ResumeCandidate],
    found: Found,
    counts: Mapping[str, int],
    question: ResumeQuestion,
) -> str:
    name = f"{scope.project}/{scope.runs[scope.run_id]}"
    if candidates:
        best = candidates[0]
        copy = best.copies[0]
        behind = f", {counted(best.steps_behind, 'step')} behind the newest" if best.steps_behind else ", the newest"
        return f"Resume {name} from step {best.checkpoint.step}{behind}, on {copy.place.tier} storage."
    if not found.considered:
        return f"{name} has no checkpoint yet: there is nothing to resume."
    told = ", ".join(f"{count} by {filter_name}" for filter_name, count in counts.items())
    hint = ""
    if "pieces" in counts:
        need = ", ".join(each.value for each in question.needed)
        hint = f" To go on without a piece, ask for fewer than {need}."
    elif "layout" in counts:
        hint = " In the layout that they were saved with they would load; or ask for fewer pieces."
    return f"Of {counted(found.considered, 'checkpoint')} of {name}, none can be resumed from ({told}).{hint}"
