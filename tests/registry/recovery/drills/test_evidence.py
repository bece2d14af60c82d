"""What a restore plan takes from drills: times, reliability, and the proof that a checkpoint came back."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ReplicaSpec
from registry.recovery.drills import Checks, NewDrill, Step, record_drill
from registry.recovery.drills.evidence import ENOUGH, Reliability, Sample, measure
from registry.recovery.ranking import p_ok
from registry.recovery.restore_plan import RestorePlan, plan_restore
from registry.recovery.restore_time import FIXED_SECONDS, shown_reliability
from registry.runs import RunRow
from tests.factories import at, make_checkpoint, make_run
from tests.registry.recovery.drills.test_record import WHOLE, report

GB = 10**9
SHARED = ReplicaSpec("/mnt/1000", "shared", bytes=100 * GB)
FAST = {"read": 10.0, "verify": 4.0, "load": 30.0, "run": 2.0}
READ_ONLY = Checks(read="passed", verify="passed")


def saved(session: Session, run: RunRow | None = None, step: int = 300, **known: Any) -> int:
    given = {"format": "dcp", "replicas": (replace(SHARED, uri=f"/mnt/{step}"),), **known}
    return make_checkpoint(session, run, step, **given)


def replica_of(session: Session, number: int) -> int:
    return plan_restore(session, number).copies[0].place.replica_id


def drill(session: Session, number: int, key: str, **known: Any) -> None:
    given: dict[str, Any] = {"bytes_read": 100 * GB, "seconds": FAST, "steps_run": 10, **known}
    new: NewDrill = report(key, replica_id=replica_of(session, number), **given)
    record_drill(session, number, new, actor="test")


def told(session: Session, number: int) -> tuple[RestorePlan, Reliability]:
    plan = plan_restore(session, number)
    return plan, plan.reliability[plan.copies[0].place.replica_id]


@pytest.mark.parametrize(("drills", "shown"), [(29, 0.90), (59, 0.95), (299, 0.99)])
def test_drills_without_a_failure_show_a_reliability(drills: int, shown: float) -> None:
    assert shown_reliability(drills) == pytest.approx(shown, abs=0.0025)
    assert shown_reliability(drills - 1) < shown


def test_eleven_passed_and_one_failed_drill_move_the_chance(session: Session) -> None:
    """Beta(19, 1) of a verified copy becomes .9375."""
    run = make_run(session)
    number = saved(session, run)
    others = [saved(session, run, 400 + each) for each in range(12)]
    for each, other in enumerate(others):
        failed = {"verdict": "failed", "reason": "it crashed", "checks": replace(WHOLE, run="failed")}
        drill(session, other, f"k{each}", **(failed if each == 0 else {}))
    drill(session, number, "own", checks=READ_ONLY, steps_run=0)
    _, found = told(session, number)
    assert (found.evidence, found.passed, found.failed, found.trained) == ("verified hash", 12, 1, 11)
    assert found.chance == pytest.approx((19 + 12) / (20 + 13))
    assert p_ok("verified hash", 11, 1) == pytest.approx(0.9375)
    assert "12 of 13 drills passed, 11 of them trained" in found.words


def test_drills_of_another_format_tier_or_project_do_not_count(session: Session) -> None:
    run = make_run(session)
    number = saved(session, run)
    drill(session, saved(session, run, 301, format="megatron"), "format")
    objects = (ReplicaSpec("s3://b/302", "object", bytes=100 * GB),)
    drill(session, saved(session, run, 302, replicas=objects), "tier")
    drill(session, saved(session), "project")
    _, found = told(session, number)
    assert (found.evidence, found.passed, found.failed, found.chance, found.words) == ("none", 0, 0, 0.6, "")


def test_times_are_assumed_until_there_are_enough_drills(session: Session) -> None:
    run = make_run(session)
    number = saved(session, run)
    for each in range(ENOUGH - 1):
        drill(session, saved(session, run, 400 + each), f"k{each}")
    plan, _ = told(session, number)
    assert plan.copies[0].time is not None
    assert plan.copies[0].time.drills == 0
    assert "Restore times assume" in plan.assumptions[0]
    slow = {**FAST, "read": 200.0}
    drill(session, saved(session, run, 900), "slow", seconds=slow)
    plan, _ = told(session, number)
    time = plan.copies[0].time
    assert time is not None
    assert (time.drills, time.load) == (ENOUGH, 30.0)
    assert time.expected == pytest.approx(FIXED_SECONDS + (19 * 10 + 200) / 20 + 4 + 30)
    assert time.p95 == pytest.approx(FIXED_SECONDS + 44)  # the 19th of 20
    assert "20 drills of this format" in plan.assumptions[0]
    assert len(plan.assumptions) == 1


def test_an_rto_is_held_against_what_drills_measured(session: Session) -> None:
    run = make_run(session)
    number = saved(session, run)
    assert plan_restore(session, number, rto_seconds=560).chosen is not None
    for each in range(ENOUGH):
        drill(session, saved(session, run, 400 + each), f"k{each}", seconds={**FAST, "read": 100.0})
    assert plan_restore(session, number, rto_seconds=560).chosen is None
    assert plan_restore(session, number, rto_seconds=620).chosen is not None


def test_seconds_are_in_proportion_to_the_bytes_within_reason() -> None:
    samples = [Sample(50 * GB, 10.0, 2.0, 30.0)] * ENOUGH
    found = measure(samples, 100 * GB)
    assert found is not None
    assert (found.transfer, found.verify, found.load, found.p95) == (20, 4, 30, 54)
    assert measure(samples, 10**6) is None
    assert measure(samples, 1000 * GB) is None
    assert measure(samples, None) is None
    assert measure(samples[:-1], 100 * GB) is None
    unloaded = measure([Sample(100 * GB, 10.0, 2.0, None)] * ENOUGH, 100 * GB)
    assert unloaded is not None
    assert unloaded.load == 20  # assumed


def test_a_drill_that_trained_proves_that_the_checkpoint_restores(session: Session) -> None:
    number = saved(session)
    plan, _ = told(session, number)
    assert (plan.proof.proven, plan.proof.words) == (False, "no drill has shown yet that it restores")
    drill(session, number, "read", checks=READ_ONLY, steps_run=0)
    plan, _ = told(session, number)
    assert (plan.proof.proven, plan.proof.words) == (False, "a drill on 2026-11-20 read it; none has loaded it")
    drill(session, number, "run", losses=[Step(301, 1.7), Step(302, 1.6)], steps_run=2)
    plan, found = told(session, number)
    assert plan.proof.proven
    assert plan.proof.words == "it came back in a drill on 2026-11-20 and trained 2 steps, with torch 2.9.0"
    assert plan.proof.software == {"torch": "2.9.0", "cairn-client": "0.1"}
    assert found.evidence == "drill"
    assert plan.copies[0].reason == "loaded and trained in a drill on 2026-11-20"


def test_a_newer_failure_takes_the_proof_away(session: Session) -> None:
    number = saved(session)
    drill(session, number, "run")
    later = at("2026-11-25T10:00")
    failed = {"verdict": "failed", "reason": "it crashed", "checks": replace(WHOLE, run="failed")}
    new = replace(report("later", replica_id=replica_of(session, number), **failed), started_at=later, ended_at=later)
    record_drill(session, number, new, actor="test")
    plan, found = told(session, number)
    assert not plan.proof.proven
    assert plan.proof.words == "its last drill failed on 2026-11-25: it crashed"
    assert (plan.copies[0].feasible, found.evidence) == (True, "failed")
    assert "its last drill failed" in plan.copies[0].reason


def test_a_copy_that_a_drill_could_not_read_is_not_planned_with_until_one_can(session: Session) -> None:
    number = saved(session)
    failed = {"verdict": "failed", "reason": "a.bin is missing", "checks": Checks(read="failed"), "steps_run": 0}
    drill(session, number, "bad", **failed)
    plan, _ = told(session, number)
    assert plan.chosen is None
    assert plan.copies[0].reason == "its last drill failed on 2026-11-20: a.bin is missing"
    later = at("2026-11-21T10:00")
    again = report("good", replica_id=replica_of(session, number), checks=READ_ONLY)
    record_drill(session, number, replace(again, started_at=later, ended_at=later), actor="test")
    assert plan_restore(session, number).chosen is not None


def test_replay_stands_beside_the_time(session: Session) -> None:
    run = make_run(session)
    number = saved(session, run, 1000, saved_at=at("2026-11-01T00:00"))
    assert plan_restore(session, number).replay.words == "nothing, the run stands at this checkpoint"
    newest = saved(session, run, 1300, saved_at=at("2026-11-01T01:00"))
    found = plan_restore(session, number).replay
    assert (found.steps, found.seconds, found.at_step) == (300, 3600, 1300)
    assert found.words == "300 steps, to step 1300, about 60.0 min at 12 s a step"
    assert plan_restore(session, newest).replay.steps == 0
    other = saved(session, step=1)
    assert plan_restore(session, other).replay.seconds == 0
