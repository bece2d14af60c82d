"""A fork that counts its steps anew: what it came from is older than all of it, whatever its steps are."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from registry.aliases import move_alias
from registry.attempts import AttemptSpec, open_attempt
from registry.projects import ProjectRow
from registry.recovery.answers import RollbackAnswer
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import Watch
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.watches.findings import list_findings
from registry.watches.look import close_look, look
from registry.watches.standing import WatchSpec, stand_watch
from tests.factories import make_project, make_run
from tests.registry.recovery.test_rollback import mmlu, whole

RISING = [0.40 + 0.02 * place for place in range(10)]


def scored(session: Session, run: RunRow, values: Sequence[float], every: int, after: int = 0) -> list[int]:
    return [
        whole(session, run, after + every * place, scores=[mmlu(value)]) for place, value in enumerate(values, start=1)
    ]


def forked(session: Session, values: Sequence[float], after: int = 0) -> tuple[ProjectRow, RunRow, int]:
    """A base of ten checkpoints to step 10000, whose score rises to 0.58, and a fork of the last, every 100 steps."""
    project = make_project(session)
    base, fork = make_run(session, project, "base"), make_run(session, project, "fork")
    loaded = scored(session, base, RISING, 1000)[-1]
    open_attempt(session, fork.id, AttemptSpec(resumed_from=ResumePoint(checkpoint_id=loaded)))
    scored(session, fork, values, 100, after)
    return project, fork, loaded


def ask(session: Session, run: RunRow) -> RollbackAnswer:
    return find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="mmlu"), limit=20)


def test_a_fork_that_holds_its_score_has_not_fallen(session: Session) -> None:
    _, fork, _ = forked(session, [0.58] * 10)
    answer = ask(session, fork)
    assert answer.onset is not None
    assert not answer.onset.is_established
    assert {each.checkpoint.run.name for each in answer.onset.points} == {"fork"}
    assert find_rollback_candidates(session, run_id=fork.id).fallen == ()


def test_a_fall_in_the_fork_is_found_there_and_leaves_what_it_came_from_a_candidate(session: Session) -> None:
    _, fork, loaded = forked(session, [*[0.58] * 5, *[0.50] * 5])
    answer = ask(session, fork)
    assert answer.onset is not None
    assert answer.onset.onset is not None
    assert (answer.onset.onset.after_step, answer.onset.onset.by_step) == (500, 600)
    assert answer.excluded_counts == {"p_bad": 5}
    assert [each.checkpoint.step for each in answer.candidates[:6]] == [500, 400, 300, 200, 100, 10000]
    origin = answer.candidates[5]
    assert (origin.checkpoint.id, origin.terms["steps_lost"], origin.terms["p_bad"]) == (loaded, 1000.0, 0.0)
    further = answer.candidates[6]
    assert (further.checkpoint.step, further.terms["steps_lost"]) == (9000, 2000.0)


def test_a_fork_that_counts_on_is_one_curve_with_what_it_came_from(session: Session) -> None:
    _, fork, loaded = forked(session, [0.50] * 5, after=10_000)
    answer = ask(session, fork)
    assert answer.onset is not None
    assert answer.onset.onset is not None
    assert (answer.onset.onset.after_step, answer.onset.evaluated) == (10_000, 15)
    assert (answer.candidates[0].checkpoint.id, answer.candidates[0].terms["steps_lost"]) == (loaded, 500.0)


def test_a_watch_on_a_fork_finds_its_own_falls_only(session: Session) -> None:
    _, fork, _ = forked(session, [*[0.58] * 8, 0.50])
    watch, _ = stand_watch(session, fork.project_id, WatchSpec(run_id=fork.id, benchmark="mmlu"), actor="ann")
    close_look(session, look(session, watch.id))
    assert [(each.from_step, each.to_step) for each in list_findings(session, None)] == [(800, 900)]


def test_what_an_alias_served_before_from_another_run_is_no_step_of_this_one(session: Session) -> None:
    project = make_project(session)
    old, new = make_run(session, project, "old"), make_run(session, project, "new")
    served = whole(session, old, 9000, scores=[mmlu(0.30)])
    move_alias(session, project.id, "production", served, actor="test")
    move_alias(session, project.id, "production", scored(session, new, [0.58] * 8, 100)[-1], actor="test")
    answer = find_rollback_candidates(
        session, alias=f"{project.name}/production", mode="production", watch=Watch(benchmark="mmlu"), limit=20
    )
    assert answer.onset is not None
    assert not answer.onset.is_established
    assert {each.checkpoint.run.name for each in answer.onset.points} == {"new"}
    assert served in [each.checkpoint.id for each in answer.candidates]
