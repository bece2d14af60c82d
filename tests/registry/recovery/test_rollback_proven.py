"""A fall that too few scores cannot show over the steps: what a comparison of two, and what a bisect, makes of it."""

import pytest
from sqlalchemy.orm import Session

from registry.aliases import move_alias
from registry.evals.scores import NewScore
from registry.provenance.bisect import BisectAnswer, Target, observe, start_bisect
from registry.recovery.answers import RollbackAnswer
from registry.recovery.onset import Onset
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import Watch
from registry.runs import RunRow
from tests.factories import make_run
from tests.registry.recovery.test_rollback import left_out, steps, verify, whole

MATH = Watch(capability="math")
GSM8K = Target("gsm8k", "acc", "")


def gsm8k(value: float) -> NewScore:
    return NewScore("gsm8k", value, metric="acc", n_samples=1319)


def trained(session: Session, scores: dict[int, float]) -> tuple[RunRow, dict[int, int]]:
    """Steps 10 to 160, of which few are evaluated."""
    run, ids = make_run(session), {}
    for step in range(10, 170, 10):
        ids[step] = whole(session, run, step, scores=[gsm8k(scores[step])] if step in scores else [])
        verify(session, ids[step])
    return run, ids


def asked(session: Session, run: RunRow, watch: Watch | None = MATH) -> RollbackAnswer:
    return find_rollback_candidates(session, run_id=run.id, watch=watch)


def onset_of(answer: RollbackAnswer) -> Onset:
    assert answer.onset is not None
    assert answer.onset.onset is not None
    return answer.onset.onset


def searched(session: Session, run: RunRow, ids: dict[int, int], fell_after: int, most: int = 99) -> BisectAnswer:
    found, _ = start_bisect(session, run.project_id, ids[10], ids[160], GSM8K, actor="ann")
    while found.next is not None and most > 0:
        value = 0.613 if found.next.checkpoint.step <= fell_after else 0.46
        found = observe(session, found.id, found.next.checkpoint.id, value=value, n_samples=1319, actor="ann")
        most -= 1
    return found


def test_of_two_evaluated_the_one_proven_worse_is_not_what_to_go_back_to(session: Session) -> None:
    run, _ = trained(session, {10: 0.613, 160: 0.46})
    answer = asked(session, run)
    onset = onset_of(answer)
    assert (onset.found_by, onset.after_step, onset.by_step) == ("comparison", 10, 160)
    assert onset.q_value == pytest.approx(7.9e-16, rel=0.1)
    assert "Step 160 is worse than step 10 by 15.3 ± 1.9 points (q = 7.9e-16)" in answer.sentence
    assert f"`cairn why {run.project}/{run.name}@10 {run.project}/{run.name}@160 --bisect` says" in answer.sentence
    assert answer.headline.startswith("Go back to step 10 of")
    assert (steps(answer), left_out(answer)[160]) == ([10], "p_bad")
    between, worse = (
        next(each.reason for each in answer.excluded if each.checkpoint.step == step) for step in (100, 160)
    )
    assert "nothing tells of it alone" in between
    assert worse == "the chance that it is bad already is 100%, above 5%"


def test_a_third_score_between_the_two_narrows_the_fall(session: Session) -> None:
    run, _ = trained(session, {10: 0.613, 90: 0.61, 160: 0.46})
    onset = onset_of(asked(session, run))
    assert (onset.after_step, onset.by_step, onset.last_known_good) == (90, 160, 90)


def test_two_that_do_not_differ_prove_nothing_and_say_so(session: Session) -> None:
    run, _ = trained(session, {10: 0.613, 160: 0.60})
    answer = asked(session, run)
    assert not onset_of(answer).is_established
    assert answer.headline.startswith("No fall is established: nothing here speaks for going back. If you must: step")
    assert "Held against step 10, step 160 is not proven to be worse: it lies lower by 1.3 ± 1.9" in answer.sentence


def test_the_gap_of_a_bisect_is_the_onset_where_the_scores_give_none(session: Session) -> None:
    run, ids = trained(session, {10: 0.613, 160: 0.46})
    found = searched(session, run, ids, fell_after=90)
    assert found.done
    for watch in (MATH, Watch(benchmark="gsm8k")):
        answer = asked(session, run, watch)
        onset = onset_of(answer)
        assert (onset.found_by, onset.bisect_id) == ("bisect", found.id)
        assert (onset.after_step, onset.by_step, onset.last_known_good) == (90, 100, 90)
        assert "A bisect of gsm8k.acc found that it fell between steps 90 and 100, with a probability of" in (
            answer.sentence
        )
        assert answer.headline.startswith("Go back to step 90 of")
        assert answer.candidates[0].terms["p_bad"] == pytest.approx(0.0, abs=0.05)
        assert set(left_out(answer)) == {100, 110, 120, 130, 140, 150, 160}


def test_a_bisect_that_still_runs_gives_what_it_knows(session: Session) -> None:
    run, ids = trained(session, {10: 0.613, 160: 0.46})
    running = searched(session, run, ids, fell_after=90, most=1)
    assert running.next is not None
    answer = asked(session, run)
    onset = onset_of(answer)
    assert onset.found_by == "bisect"
    assert onset.by_step is not None
    assert onset.after_step is not None
    assert onset.by_step - onset.after_step > 10
    assert f"It is not finished: `cairn why {run.project}/{run.name}@10" in answer.sentence


def test_a_bisect_of_something_else_is_no_evidence(session: Session) -> None:
    run, ids = trained(session, {10: 0.613, 160: 0.46})
    searched(session, run, ids, fell_after=90)
    for step, value in ((10, 0.60), (160, 0.60)):
        make_mmlu(session, ids[step], value)
    assert not onset_of(asked(session, run, Watch(capability="knowledge"))).is_established


def make_mmlu(session: Session, checkpoint_id: int, value: float) -> None:
    from tests.factories import make_score

    make_score(session, checkpoint_id, "mmlu", value, metric="acc", n_samples=14042)


def test_a_bisect_between_two_that_do_not_differ_proves_nothing(session: Session) -> None:
    run, ids = trained(session, {10: 0.605, 160: 0.60})
    start_bisect(session, run.project_id, ids[10], ids[160], GSM8K, actor="ann")
    assert not onset_of(asked(session, run)).is_established


def test_a_score_that_came_back_after_the_bisect_makes_it_no_fall(session: Session) -> None:
    run, ids = trained(session, {10: 0.613, 160: 0.46})
    searched(session, run, ids, fell_after=90)
    verify(session, whole(session, run, 170, scores=[gsm8k(0.62)]))
    assert not onset_of(asked(session, run)).is_established


def test_the_curve_decides_where_it_suffices(session: Session) -> None:
    run, ids = trained(session, dict.fromkeys(range(10, 120, 10), 0.613) | dict.fromkeys(range(120, 170, 10), 0.46))
    searched(session, run, ids, fell_after=50)
    onset = onset_of(asked(session, run))
    assert (onset.found_by, onset.after_step, onset.by_step) == ("scores", 110, 120)


def test_the_last_known_good_of_a_bisect_is_a_candidate_where_nothing_scored_is_left(session: Session) -> None:
    run, ids = trained(session, {10: 0.613, 160: 0.46})
    move_alias(session, run.project_id, "production", ids[10], actor="test")
    searched(session, run, ids, fell_after=90)
    alias = f"{run.project}/production"
    answer = find_rollback_candidates(session, alias=alias, mode="production", watch=MATH)
    assert answer.last_known_good is not None
    assert (answer.last_known_good.step, steps(answer), 90 in left_out(answer)) == (90, [90], False)
    assert answer.candidates[0].terms["composite"] is None
    assert answer.candidates[0].reasons[0].endswith("it stands here alone, as the last known good")
    assert left_out(answer)[80] == "unscored"
    ended = find_rollback_candidates(session, alias=alias, mode="production", watch=MATH, at_or_before_step=80)
    assert (ended.candidates, set(left_out(ended).values()) >= {"step", "unscored"}) == ((), True)
