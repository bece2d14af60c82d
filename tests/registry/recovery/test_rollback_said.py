"""What the answer of a rollback says: no fall, scores that do not count, single outliers, and what is served now."""

import math

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.aliases import move_alias
from registry.evals.scores import NewScore
from registry.models import Checkpoint
from registry.recovery.answers import RollbackAnswer
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import Watch
from registry.runs import RunRow
from tests.factories import make_run
from tests.registry.recovery.test_rollback import falling, left_out, mmlu, steps, verify, whole

WATCH = Watch(benchmark="mmlu")


def run_of(session: Session, scores: list[NewScore]) -> RunRow:
    run = make_run(session)
    for place, score in enumerate(scores, 1):
        verify(session, whole(session, run, 1000 * place, scores=[score]))
    return run


def asked(session: Session, run: RunRow) -> RollbackAnswer:
    return find_rollback_candidates(session, run_id=run.id, watch=WATCH)


OTHER = NewScore("mmlu", 0.5, metric="acc", n_samples=14042, n_shot=25)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (mmlu(math.nan), "9 checkpoints with a score that is not finite were left out"),
        (mmlu(50.0), "9 checkpoints with a score off the scale were left out"),
        (OTHER, "9 checkpoints were evaluated under other conditions only"),
    ],
)
def test_scores_that_do_not_count_are_said_with_the_true_reason(session: Session, odd: NewScore, words: str) -> None:
    answer = asked(session, run_of(session, [*[mmlu(0.5)] * 11, *[odd] * 9]))
    assert answer.onset is not None
    assert answer.onset.onset is not None
    assert answer.onset.why == words
    assert words in answer.sentence
    unscored = {each.reason for each in answer.excluded if each.filter == "unscored"}
    assert unscored == {"no comparable finite score at or after its step, so it may be bad already"}


def test_a_checkpoint_whose_results_are_left_out_for_two_reasons_is_counted_once(session: Session) -> None:
    run = run_of(session, [mmlu(0.5)] * 6)
    both = [mmlu(math.nan), NewScore("mmlu", 50.0, metric="acc_norm", n_samples=14042)]
    whole(session, run, 9000, scores=both)
    answer = asked(session, run)
    assert answer.onset is not None
    assert answer.onset.why == "1 checkpoint with a score that is not finite was left out"


def test_a_score_off_the_scale_does_not_take_the_others_of_a_composite_away(session: Session) -> None:
    run = make_run(session)
    for step in range(1000, 7000, 1000):
        arc = NewScore("arc_challenge", 50.0, metric="acc", n_samples=1172)
        whole(session, run, step, scores=[mmlu(0.5), arc])
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(capability="knowledge"))
    assert answer.onset is not None
    assert (answer.onset.made_of, answer.onset.evaluated) == (("mmlu",), 6)


def test_one_score_that_stands_alone_is_no_reason_to_go_far_back(session: Session) -> None:
    run = run_of(session, [mmlu(0.3 if place == 10 else 0.6) for place in range(1, 21)])
    answer = asked(session, run)
    assert answer.last_known_good is not None
    assert (answer.last_known_good.step, steps(answer)[0]) == (20000, 20000)
    assert "Step 10000 stands alone: evaluate it again." in answer.sentence
    (odd,) = [each for each in answer.excluded if each.filter == "unscored"]
    assert odd.checkpoint.step == 10000
    assert "evaluate it again" in odd.reason
    assert answer.onset is not None
    assert 10000 in {each.checkpoint.step for each in answer.onset.points}


@pytest.mark.parametrize("bad", [(20,), (10, 11), (19, 20)])
def test_a_drop_at_the_newest_score_or_of_two_is_no_score_that_stands_alone(
    session: Session, bad: tuple[int, ...]
) -> None:
    answer = asked(session, run_of(session, [mmlu(0.3 if place in bad else 0.6) for place in range(1, 21)]))
    assert answer.onset is not None
    assert answer.onset.alone == ()


def test_a_fall_says_to_go_back(session: Session) -> None:
    run = falling(session, 0.08)
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert answer.speaks_for_going_back
    assert answer.headline.startswith("Go back to step 14000")


def test_without_a_fall_nothing_speaks_for_going_back(session: Session) -> None:
    answer = asked(session, run_of(session, [mmlu(0.5 + 0.001 * place) for place in range(20)]))
    assert not answer.speaks_for_going_back
    assert answer.headline.startswith("No fall is established: nothing here speaks for going back. If you must: step ")
    assert "Go back to" not in answer.sentence


def test_what_is_served_stands_beside_the_candidates_and_no_difference_is_told_within_the_errors(
    session: Session,
) -> None:
    run = run_of(session, [mmlu(0.5)] * 20)
    target = whole(session, run, 21000, scores=[mmlu(0.501)])
    verify(session, target)
    move_alias(session, run.project_id, "production", target, actor="test")
    for mode in ("production", "training"):
        answer = find_rollback_candidates(session, alias=f"{run.project}/production", mode=mode, watch=WATCH)
        assert answer.served is not None
        assert answer.served.checkpoint.id == target
        assert answer.served.terms["composite"] == pytest.approx((0.501 - 0.25) / 0.75)
        assert answer.served.terms["p_ok"] == pytest.approx(0.95)
        first = steps(answer)[0]
        told = "No difference can be told" if first != 21000 else "It is the first candidate itself"
        assert answer.served.sentence.startswith(told)


def test_a_difference_beyond_the_errors_is_told_with_its_size(session: Session) -> None:
    run = run_of(session, [*[mmlu(0.6)] * 12, *[mmlu(0.4)] * 8])
    target = int(find_rollback_candidates(session, run_id=run.id).candidates[0].checkpoint.id)
    move_alias(session, run.project_id, "production", target, actor="test")
    answer = find_rollback_candidates(session, alias=f"{run.project}/production", mode="production", watch=WATCH)
    assert answer.served is not None
    assert "scores better by 26.7 ± " in answer.served.sentence


def test_where_what_is_served_scores_best_the_first_line_says_to_stay(session: Session) -> None:
    run = run_of(session, [mmlu(0.6), *[mmlu(0.4)] * 6])
    move_alias(session, run.project_id, "production", served_id(session, run, 1000), actor="test")
    answer = find_rollback_candidates(session, alias=f"{run.project}/production", mode="production")
    assert answer.candidates
    stay = "Nothing speaks for going back: step 1000, which is served now, scores better than every candidate."
    assert answer.headline.startswith(f"{stay} If you must: step ")
    assert answer.sentence.startswith(stay)
    assert "Going back scores worse by" in answer.sentence


def test_the_last_known_good_that_does_not_come_first_is_explained(session: Session) -> None:
    run = run_of(session, [*[mmlu(0.6)] * 12, *[mmlu(0.4)] * 8])
    whole(session, run, 12500, scores=[mmlu(0.6)], pieces={})
    answer = asked(session, run)
    assert answer.last_known_good is not None
    assert answer.last_known_good.step == 12500
    assert left_out(answer)[12500] == "pieces"
    assert steps(answer)[0] == 12000
    assert "Step 12500, the last known good, is left out: training needs it whole" in answer.sentence


def test_what_surely_scores_better_speaks_for_going_back_where_too_few_were_evaluated(session: Session) -> None:
    """Two evaluated checkpoints can be held against each other, though not scanned."""
    run = run_of(session, [mmlu(0.6), mmlu(0.5)])
    move_alias(session, run.project_id, "production", served_id(session, run, 2000), actor="test", reason="new")
    answer = find_rollback_candidates(session, alias=f"{run.project}/production", mode="production", watch=WATCH)
    assert "Going back scores better by" in answer.sentence
    assert "nothing here speaks for going back" not in answer.sentence
    assert answer.headline.startswith("Go back to step 1000")
    assert answer.speaks_for_going_back


def test_what_scores_no_better_does_not_speak_for_going_back(session: Session) -> None:
    run = run_of(session, [mmlu(0.6), mmlu(0.601)])
    move_alias(session, run.project_id, "production", served_id(session, run, 2000), actor="test", reason="new")
    answer = find_rollback_candidates(session, alias=f"{run.project}/production", mode="production", watch=WATCH)
    assert "nothing here speaks for going back" in answer.sentence
    assert not answer.speaks_for_going_back


def served_id(session: Session, run: RunRow, step: int) -> int:
    return session.scalars(select(Checkpoint.id).where(Checkpoint.run_id == run.id, Checkpoint.step == step)).one()
