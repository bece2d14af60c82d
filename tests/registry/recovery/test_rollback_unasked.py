"""Rolling back without saying what got worse: every capability is looked at, and what fell is said."""

import math

from sqlalchemy.orm import Session

from registry.evals.scores import NewScore
from registry.recovery.every_capability import MOST_POINTS
from registry.recovery.rollback import find_rollback_candidates
from tests.factories import make_run
from tests.registry.recovery.test_rollback import falling, mmlu, steps, verify, whole
from tests.registry.recovery.test_rollback_proven import MATH, asked, searched, trained


def test_unasked_a_rollback_says_that_nobody_asked_and_what_fell(session: Session) -> None:
    run = falling(session, 0.08)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert [each.watch.words for each in answer.fallen] == ["knowledge"]
    assert (answer.fallen[0].onset.after_step, answer.fallen[0].onset.by_step) == (14000, 15000)
    assert answer.headline.startswith(
        "You did not say what got worse, and knowledge fell between steps 14000 and 15000: ask again with knowledge "
        "watched. Of all candidates, step 20000 of"
    )
    assert "knowledge: Fell by" in answer.sentence
    assert not answer.speaks_for_going_back
    assert steps(answer)[0] == 20000


def test_unasked_and_nothing_fell_no_advice_to_go_back_is_given(session: Session) -> None:
    run = make_run(session)
    for place in range(1, 11):
        verify(session, whole(session, run, 1000 * place, scores=[mmlu(0.5 + 0.001 * place)]))
    for mode, why in (("training", "costs the least time to go back to"), ("production", "has the surest score")):
        answer = find_rollback_candidates(session, run_id=run.id, mode=mode)
        assert answer.looked_at == ("knowledge",)
        assert answer.headline.startswith(
            "You did not say what got worse; no fall is established in knowledge. Of the candidates, step 10000 of"
        )
        assert why in answer.headline
        assert "Go back" not in answer.sentence
        assert not answer.speaks_for_going_back


def test_unasked_where_nothing_was_evaluated(session: Session) -> None:
    run = make_run(session)
    verify(session, whole(session, run, 1000))
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.looked_at == ()
    assert "nothing was evaluated that could show a fall" in answer.headline


def test_unasked_two_checkpoints_are_compared_and_a_bisect_counts(session: Session) -> None:
    run, ids = trained(session, {10: 0.613, 160: 0.46})
    assert "math fell between steps 10 and 160" in asked(session, run, None).headline
    searched(session, run, ids, fell_after=90)
    assert "math fell between steps 90 and 100" in asked(session, run, None).headline
    assert asked(session, run, MATH).fallen == ()


def test_unasked_a_long_run_is_looked_at_through_some_of_its_checkpoints(session: Session) -> None:
    run = make_run(session)
    count = 2 * MOST_POINTS
    for place in range(1, count + 1):
        value = 0.3 + 0.03 * math.log(place) - (0.08 if place > 0.7 * count else 0.0)
        whole(session, run, place, scores=[NewScore("arc_challenge", value, metric="acc", n_samples=1172)])
    answer = find_rollback_candidates(session, run_id=run.id)
    (fallen,) = answer.fallen
    assert len(fallen.onset.steps) == MOST_POINTS
    assert fallen.onset.steps[-1] == count
    assert fallen.onset.after_step is not None
    assert abs(fallen.onset.after_step - 0.7 * count) <= 4
