"""A rollback because of the loss: what the answer proposes, and which checkpoints the spike rules out."""

import math
from collections.abc import Sequence

import pytest
from sqlalchemy.orm import Session

from registry.attempts import AttemptSpec, open_attempt
from registry.ids import from_text
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import Watch
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.series import Points, record_series
from tests.factories import make_attempt, make_project, make_run
from tests.registry.recovery.test_rollback import arc, left_out, steps, verify, whole


def losses(session: Session, run: RunRow, values: Sequence[float], first: int = 1, attempt: int | None = None) -> None:
    at = list(range(first, first + len(values)))
    record_series(session, run.id, [Points("loss", at, list(values), attempt)])


def calm(count: int) -> list[float]:
    return [2.0 + 0.01 * (place % 7) for place in range(count)]


def spiked(session: Session, *, comes_back: bool) -> RunRow:
    """Checkpoints every 100 steps to 600; the loss is up from step 430 to 450, or to the end."""
    run = make_run(session)
    for step in range(100, 601, 100):
        whole(session, run, step)
    up = [6.0] * (21 if comes_back else 171)
    losses(session, run, [*calm(429), *up, *calm(600 - 429 - len(up))])
    return run


def test_a_spike_that_lasts_rules_out_what_was_saved_in_it_and_says_what_to_skip(session: Session) -> None:
    run = spiked(session, comes_back=False)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert (answer.spike.spike.from_step, answer.spike.spike.to_step) == (430, 600)
    assert answer.spike.rewind_to is not None
    assert answer.spike.rewind_to.step == 300
    assert answer.spike.skip == ((330, 600),)
    assert steps(answer)[0] == 300
    assert left_out(answer) == {600: "spike", 500: "spike", 400: "spike"}
    assert "Go back to step 300 of" in answer.sentence
    assert "within 100 steps of the spike" in answer.excluded[2].reason
    assert "rewind to step 300 and skip the data of steps 330 to 600" in answer.sentence
    assert any("at most 100 steps before" in each for each in answer.assumptions)
    assert "after step 429" in answer.excluded[0].reason


def test_a_spike_that_came_back_rules_nothing_out(session: Session) -> None:
    run = spiked(session, comes_back=True)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert answer.spike.spike.recovered
    assert steps(answer)[0] == 600
    assert "came back by itself" in answer.sentence
    assert "Of the candidates, step 600 of" in answer.headline


def test_the_checkpoint_to_rewind_to_is_the_first_candidate_even_where_a_newer_one_is_less_sure(
    session: Session,
) -> None:
    run = spiked(session, comes_back=False)
    verify(session, whole(session, run, 299))
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert answer.spike.rewind_to is not None
    assert (steps(answer)[:2], answer.spike.rewind_to.step) == ([299, 300], 299)
    assert "rewind to step 299" in answer.sentence
    assert "Go back to step 299" in answer.sentence


def test_where_nothing_older_is_left_the_newest_before_the_spike_is_good_enough(session: Session) -> None:
    run = make_run(session)
    for step in (400, 420):
        whole(session, run, step)
    losses(session, run, [*calm(429), *[6.0] * 171])
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert answer.spike.rewind_to is not None
    assert (steps(answer), answer.spike.rewind_to.step) == ([420, 400], 420)


def test_what_the_answer_proposes_is_the_new_attempt(session: Session) -> None:
    run = spiked(session, comes_back=False)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    body = answer.spike.attempt
    assert body is not None
    point = ResumePoint(checkpoint_id=from_text(body["resumed_from"]))
    skip = tuple((each["from"], each["to"]) for each in body["skip"])
    attempt, _ = open_attempt(session, run.id, AttemptSpec(resumed_from=point, reason=body["reason"], skip=skip))
    assert (list(attempt.skip), attempt.reason) == ([(330, 600)], "loss spike at steps 430 to 600")
    # The spike lies on steps that the new attempt left behind: the path that goes on has none.
    losses(session, run, calm(200), first=301, attempt=attempt.number)
    assert find_rollback_candidates(session, run_id=run.id).spike is None


def test_with_a_watch_the_loss_is_not_asked(session: Session) -> None:
    run = spiked(session, comes_back=False)
    for step in range(1100, 1601, 100):
        whole(session, run, step, scores=[arc(0.4)])
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert answer.spike is None
    assert "spike" not in answer.excluded_counts


def test_a_loss_of_nan_is_a_spike_and_the_steps_before_it_are_candidates(session: Session) -> None:
    run = make_run(session)
    for step in (100, 200):
        whole(session, run, step)
    losses(session, run, [*calm(149), *[math.nan] * 51])
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert answer.spike.spike.shape == "non-finite"
    assert (steps(answer), left_out(answer)) == ([100], {200: "spike"})


def test_the_step_asked_for_bounds_the_loss_that_is_looked_at(session: Session) -> None:
    run = spiked(session, comes_back=False)
    assert find_rollback_candidates(session, run_id=run.id, at_or_before_step=420).spike is None


def test_a_spike_before_the_first_checkpoint_proposes_to_start_again_without_its_data(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 100)
    losses(session, run, [*calm(49), *[6.0] * 60])
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert (answer.spike.rewind_to, answer.candidates) == (None, ())
    body = answer.spike.attempt
    assert body == {"restart": True, "reason": "loss spike at steps 50 to 109", "skip": [{"from": 0, "to": 109}]}
    again, _ = open_attempt(session, run.id, AttemptSpec(restart=True, reason=body["reason"], skip=((0, 109),)))
    assert (again.number, list(again.skip)) == (2, [(0, 109)])
    assert "no loadable checkpoint was saved before it, so start again from nothing" in answer.sentence
    assert "(too near a spike of the loss, or after it). To loosen that: watch" in answer.sentence


def test_a_late_chunk_speaks_for_its_steps_and_an_older_attempt_for_what_lives_on(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 100)
    kept = whole(session, run, 200)
    losses(session, run, [*calm(199), 9.0, 9.0, 9.0, *calm(20)])
    losses(session, run, calm(222))  # sent again, mended
    assert find_rollback_candidates(session, run_id=run.id).spike is None
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=kept))
    losses(session, run, [9.0] * 5, first=201, attempt=2)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert (answer.spike.spike.from_step, answer.spike.spike.to_step) == (201, 205)


@pytest.mark.parametrize("name", ["loss", "train/loss", "lm loss"])
def test_the_curve_may_have_the_name_that_a_trainer_gave_it(session: Session, name: str) -> None:
    run = make_run(session)
    values = [*calm(100), *[7.0] * 4, *calm(20)]
    record_series(session, run.id, [Points(name, list(range(124)), values), Points("grad_norm", [1], [9.0])])
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert answer.spike.curve == name


def test_of_a_long_curve_the_newest_stretch_is_read(session: Session) -> None:
    run = make_run(session)
    values = [*calm(5000), *[9.0] * 4, *calm(4996)]
    for start in range(0, 40_000, 10_000):
        losses(session, run, values if start == 0 else calm(10_000), first=1 + start)
    assert find_rollback_candidates(session, run_id=run.id).spike is None
    losses(session, run, values, first=40_001)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.spike is not None
    assert answer.spike.spike.from_step == 45_001


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_loss_that_begins_not_finite_names_nothing_to_rewind_to_and_no_data(
    session: Session, comes_back: bool
) -> None:
    run = make_run(session)
    whole(session, run, 3)
    losses(session, run, [*[math.nan] * 6, *(calm(20) if comes_back else [])], first=0)
    spike = find_rollback_candidates(session, run_id=run.id).spike
    assert spike is not None
    assert (spike.rewind_to, spike.skip) == (None, ())
    again = {"restart": True, "reason": "loss spike at steps 0 to 5", "skip": []}
    assert spike.attempt == (None if comes_back else again)


@pytest.mark.parametrize(("first", "skip"), [(0, (0, 5)), (501, (501, 506))])
def test_a_fork_whose_loss_begins_not_finite_starts_again_from_what_it_came_from(
    session: Session, first: int, skip: tuple[int, int]
) -> None:
    """Whether it counts its steps anew or on."""
    project = make_project(session)
    base = make_run(session, project, "base")
    for step in (400, 500):
        loaded = whole(session, base, step)
    child = make_run(session, project)
    make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=loaded))
    whole(session, child, first + 3, attempt=1)
    losses(session, child, [math.nan] * 6, first=first)
    answer = find_rollback_candidates(session, run_id=child.id)
    assert answer.spike is not None
    assert answer.spike.rewind_to is not None
    assert (answer.spike.rewind_to.id, answer.spike.skip, answer.spike.run_id) == (loaded, (skip,), child.id)
    assert answer.headline.endswith(
        f"start again from step 500 of base and skip the data of steps {skip[0]} to {skip[1]}. "
        "Go back to step 500 of base (attempt 1)."
    )
    point = ResumePoint(checkpoint_id=loaded)
    assert open_attempt(session, child.id, AttemptSpec(resumed_from=point, skip=(skip,)))[0].number == 2
