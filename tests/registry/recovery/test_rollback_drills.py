"""Drills as evidence in a rollback: they move the chance that a restore works, or leave a copy out, and are told."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ReplicaSpec
from registry.models import Replica
from registry.recovery.answers import Candidate, RollbackAnswer
from registry.recovery.drills import Checks, record_drill
from registry.recovery.restore_plan import plan_restore
from registry.recovery.rollback import find_rollback_candidates
from registry.runs import RunRow
from tests.factories import make_run
from tests.registry.recovery.drills.test_record import WHOLE, report
from tests.registry.recovery.test_rollback import GB, left_out, mmlu, steps, verify, whole

CRASHED: dict[str, Any] = {"verdict": "failed", "reason": "the job crashed", "checks": replace(WHOLE, run="failed")}
UNREADABLE: dict[str, Any] = {"verdict": "failed", "reason": "3 files are missing", "checks": Checks(read="failed")}
READ_ONLY: dict[str, Any] = {"checks": Checks(read="passed")}


def drill(session: Session, checkpoint_id: int, key: str, *, copy: bool = True, **known: Any) -> None:
    query = select(Replica.id).where(Replica.checkpoint_id == checkpoint_id).order_by(Replica.id).limit(1)
    replica_id = session.scalars(query).one() if copy else None
    record_drill(session, checkpoint_id, report(key, replica_id=replica_id, **known), actor="test")


def run_of_three(session: Session, apart: int = 1000, **known: Any) -> tuple[RunRow, list[int]]:
    run = make_run(session)
    ids = [whole(session, run, 3000 - each * apart, **known) for each in (2, 1, 0)]
    for each in ids:
        verify(session, each)
    return run, ids


def asked(session: Session, run: RunRow, **known: Any) -> RollbackAnswer:
    return find_rollback_candidates(session, run_id=run.id, **known)


def at_step(answer: RollbackAnswer, step: int) -> Candidate:
    return next(each for each in answer.candidates if each.checkpoint.step == step)


def test_a_passed_drill_is_the_evidence_of_its_copy_and_is_told(session: Session) -> None:
    run, (_, second, _) = run_of_three(session)
    drill(session, second, "k", steps_run=10)
    found = at_step(asked(session, run), 2000)
    assert found.terms["evidence"] == "drill"
    assert found.terms["p_ok"] == pytest.approx((20 * 0.99 + 1) / 21)
    assert (found.terms["drills_passed"], found.terms["drills_failed"]) == (1, 0)
    assert any("loaded and trained in a drill on 2026-11-20" in each for each in found.reasons)


def test_a_failed_drill_takes_the_first_place_and_says_why(session: Session) -> None:
    run, (*_, newest) = run_of_three(session, apart=10)
    before = asked(session, run)
    assert steps(before)[0] == 3000
    assert "A failed drill or a failed verification of this copy would take" in before.candidates[0].reasons[-1]
    drill(session, newest, "k", steps_run=0, **CRASHED)
    answer = asked(session, run)
    assert steps(answer)[0] == 2990
    found = at_step(answer, 3000)
    assert found.terms["evidence"] == "failed"
    assert found.terms["p_ok"] == pytest.approx(20 * 0.10 / 21)
    assert any("Its last drill failed on 2026-11-20: the job crashed" in each for each in found.reasons)
    assert any("evidence: a failed drill; 0 of 1 drill of its tier and format passed" in each for each in found.reasons)


def test_a_failed_drill_far_ahead_of_the_next_one_is_worth_a_try_and_warned_of(session: Session) -> None:
    """Trying costs 9 min, the next one 200 min of replay: 8.77 + .905 x 208.77 is less than 208.77 + .05 x 208.77."""
    run, (*_, newest) = run_of_three(session)
    before = asked(session, run).candidates[0].reasons
    assert any("a failed drill would not, since trying it costs 9 min only" in each for each in before)
    drill(session, newest, "k", steps_run=0, **CRASHED)
    answer = asked(session, run)
    assert steps(answer)[0] == 3000
    assert "The last drill of it failed, so it may not load. Have step 2000 ready." in answer.sentence
    assert any("It is first although a drill of it failed" in each for each in answer.candidates[0].reasons)


def test_the_only_candidate_is_called_that(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000)
    assert any("No other candidate is left" in each for each in asked(session, run).candidates[0].reasons)


def test_a_copy_that_a_drill_could_not_read_is_left_out(session: Session) -> None:
    run, (*_, newest) = run_of_three(session)
    drill(session, newest, "k", steps_run=0, **UNREADABLE)
    answer = asked(session, run)
    assert left_out(answer) == {3000: "copy"}
    assert "its last drill failed on 2026-11-20: 3 files are missing" in answer.excluded[0].reason


def test_another_copy_is_taken_where_a_drill_could_not_read_one(session: Session) -> None:
    run = make_run(session)
    both = (ReplicaSpec("/mnt/1000", "shared", bytes=GB), ReplicaSpec("s3://b/1000", "object", bytes=GB))
    number = whole(session, run, 1000, replicas=both)
    drill(session, number, "k", steps_run=0, **UNREADABLE)
    broken = session.scalars(select(Replica.uri).where(Replica.checkpoint_id == number).order_by(Replica.id)).first()
    (found,) = asked(session, run).candidates
    assert found.copy.uri != broken


def test_the_newest_drill_of_a_copy_counts(session: Session) -> None:
    run, (*_, newest) = run_of_three(session)
    drill(session, newest, "first", steps_run=0, **CRASHED)
    drill(session, newest, "second", steps_run=10)
    found = at_step(asked(session, run), 3000)
    assert found.terms["evidence"] == "drill"
    assert (found.terms["drills_passed"], found.terms["drills_failed"]) == (1, 1)


def test_a_drill_that_only_read_shows_the_size_only(session: Session) -> None:
    run = make_run(session)
    drill(session, whole(session, run, 1000), "k", steps_run=0, **READ_ONLY)
    assert at_step(asked(session, run), 1000).terms["evidence"] == "size only"


def test_drills_of_the_same_tier_and_format_move_every_chance(session: Session) -> None:
    """Beta(19, 1) of a verified copy with 11 passed drills and 1 failed becomes .9375."""
    run = make_run(session)
    for each in range(12):
        other = whole(session, make_run(session), 100 + each, format="dcp")
        outcome: dict[str, Any] = {"steps_run": 0, **CRASHED} if each == 0 else {"steps_run": 10}
        with_project = session.scalars(select(Replica.project_id).where(Replica.checkpoint_id == other)).one()
        assert with_project != run.project_id
        drill(session, other, f"elsewhere{each}", **outcome)
    number = whole(session, run, 3000, format="dcp")
    verify(session, number)
    alone = at_step(asked(session, run), 3000)
    assert alone.terms["p_ok"] == pytest.approx(0.95)  # drills of other projects say nothing here
    for each in range(12):
        other = whole(session, run, 100 + each, format="dcp")
        drill(session, other, f"k{each}", **({"steps_run": 0, **CRASHED} if each == 0 else {"steps_run": 10}))
    found = at_step(asked(session, run), 3000)
    assert found.terms["evidence"] == "verified hash"
    assert found.terms["p_ok"] == pytest.approx(0.9375)
    megatron = whole(session, run, 4000, format="megatron")
    verify(session, megatron)
    assert at_step(asked(session, run), 4000).terms["p_ok"] == pytest.approx(0.95)


def test_a_drill_of_no_copy_in_particular_is_told_and_counts_for_none(session: Session) -> None:
    run, (*_, newest) = run_of_three(session)
    drill(session, newest, "k", copy=False, steps_run=0, **CRASHED)
    found = at_step(asked(session, run), 3000)
    assert found.terms["evidence"] == "verified hash"
    assert any("A drill that names no copy failed on 2026-11-20: the job crashed" in each for each in found.reasons)


def test_production_asks_for_proof_after_a_failed_drill(session: Session) -> None:
    run = make_run(session)
    ids = [whole(session, run, step, scores=[mmlu(score)]) for step, score in ((1000, 0.5), (2000, 0.6), (3000, 0.61))]
    for each in ids:
        verify(session, each)
    drill(session, ids[2], "k", steps_run=0, **CRASHED)
    answer = asked(session, run, mode="production")
    assert steps(answer) == [2000, 1000, 3000]
    assert any(each.startswith("Not proven") for each in at_step(answer, 3000).reasons)


def test_a_rollback_and_a_restore_plan_say_the_same_of_a_copy(session: Session) -> None:
    run, (first, second, newest) = run_of_three(session, format="dcp")
    drill(session, first, "a", steps_run=10)
    drill(session, second, "b", steps_run=0, **CRASHED)
    drill(session, newest, "c", steps_run=0, **READ_ONLY)
    for each in asked(session, run).candidates:
        plan = plan_restore(session, each.checkpoint.id)
        reliability = plan.reliability[plan.copies[0].place.replica_id]
        assert each.terms["evidence"] == reliability.evidence
        assert each.terms["p_ok"] == pytest.approx(reliability.chance)
