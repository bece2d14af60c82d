"""Keeping drills: once for each key, and judged by what the run itself recorded."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ReplicaSpec
from registry.models import Replica
from registry.recovery.drills import BadDrill, Checks, DrillExists, DrillRow, NewDrill, Step, list_drills, record_drill
from registry.recovery.drills.queries import Asked
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.series import Points, record_series
from registry.snapshots import LayoutSpec
from tests.factories import at, make_attempt, make_checkpoint, make_run
from tests.registry.recovery.drills.test_compare import curve

LAYOUT = LayoutSpec(world_size=8, tp=2, dp=4)
SOFTWARE = {"torch": "2.9.0", "cairn-client": "0.1"}
SAVED = {"layout": LAYOUT, "environment": {"libraries": {"torch": "2.9.0", "cairn-client": "0.2"}}, "loss": 1.8}
BEGAN = at("2026-11-20T10:00")
WHOLE = Checks("passed", "passed", "passed", "passed")


def report(key: str = "k", **known: Any) -> NewDrill:
    given = {"layout": LAYOUT, "software": SOFTWARE, "checks": WHOLE, "verdict": "passed", **known}
    return NewDrill(key=key, host="node1", started_at=BEGAN, ended_at=BEGAN + timedelta(minutes=3), **given)


def saved(session: Session, values: list[float] | None = None, **known: Any) -> tuple[RunRow, int]:
    run = make_run(session)
    number = make_checkpoint(session, run, 300, **{**SAVED, **known})
    if values:
        record_series(session, run.id, [Points("train/loss", range(1, len(values) + 1), values)])
    return run, number


def losses(values: list[float], count: int = 10, shift: float = 0.0) -> list[Step]:
    return [Step(300 + each, values[299 + each] + shift) for each in range(1, count + 1)]


def recorded(session: Session, number: int, new: NewDrill) -> DrillRow:
    return record_drill(session, number, new, actor="test")[0]


def test_the_same_report_again_is_the_same_drill(session: Session) -> None:
    _, number = saved(session)
    first, made = record_drill(session, number, report(), actor="test")
    again, remade = record_drill(session, number, report(), actor="another")
    assert (made, remade, again) == (True, False, first)
    with pytest.raises(DrillExists, match="says something else"):
        record_drill(session, number, report(bytes_read=5), actor="test")
    assert record_drill(session, number, report("other"), actor="test")[0].id != first.id


def test_equal_losses_in_the_same_layout_and_software_are_exact(session: Session) -> None:
    values = curve()
    _, number = saved(session, values)
    found = recorded(session, number, report(losses=losses(values)))
    assert (found.verdict, found.exact, found.continuation, found.cold_start) == ("passed", True, "passed", "passed")
    assert found.steps_run == 10


@pytest.mark.parametrize(
    ("change", "exact", "told"),
    [
        ({"layout": LayoutSpec(world_size=4, tp=2, dp=2)}, False, "the layout is another one"),
        ({"layout": None}, None, "whether the layout is the same is not known"),
        ({"software": {"torch": "2.10.0"}}, False, "torch 2.9.0 to 2.10.0"),
        ({"software": {}}, None, "the software is not known"),
        ({"exact": False}, False, ""),
    ],
)
def test_equal_losses_elsewhere_are_not_called_exact(
    session: Session, change: dict[str, Any], exact: bool | None, told: str
) -> None:
    values = curve()
    _, number = saved(session, values)
    found = recorded(session, number, report(losses=losses(values), **change))
    assert (found.verdict, found.exact) == ("passed", exact)
    assert told in found.comparison


def test_a_report_that_says_it_passed_fails_where_the_curve_disagrees(session: Session) -> None:
    values = curve()
    _, number = saved(session, values)
    found = recorded(session, number, report(losses=losses(values, shift=0.4), exact=True))
    assert (found.verdict, found.exact, found.continuation) == ("failed", False, "failed")
    assert "0.4 higher on average than those of attempt 1, and" in found.reason


def test_a_training_that_began_anew_is_found_out(session: Session) -> None:
    values = curve()
    _, number = saved(session, values)
    cold = [Step(300 + each, values[each - 1]) for each in range(1, 11)]
    found = recorded(session, number, report(losses=cold))
    assert (found.verdict, found.cold_start) == ("failed", "failed")
    assert "its weights were not loaded" in found.reason


def test_a_cold_start_that_was_run_beside_it_counts_where_none_is_recorded(session: Session) -> None:
    values = curve()
    _, number = saved(session)
    found = recorded(session, number, report(losses=losses(values), cold_losses=[Step(1, 10.0), Step(2, 8.1)]))
    assert (found.verdict, found.cold_start, found.continuation, found.exact) == ("passed", "passed", "not_tried", None)
    found = recorded(session, number, report("b", losses=[Step(301, 9.8)], cold_losses=[Step(1, 10.0), Step(2, 8.1)]))
    assert (found.verdict, found.cold_start) == ("failed", "failed")


def test_what_went_on_in_the_attempt_that_resumed_from_it_is_the_continuation(session: Session) -> None:
    values = curve()
    run, number = saved(session, values[:300])
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=number))
    record_series(session, run.id, [Points("train/loss", range(301, 401), values[300:], attempt=2)])
    found = recorded(session, number, report(losses=losses(values)))
    assert (found.continuation, found.exact) == ("passed", True)
    assert "attempt 2, which resumed from it" in found.comparison


def test_another_attempt_is_no_continuation(session: Session) -> None:
    values = curve()
    run, number = saved(session, values[:300])
    make_attempt(session, run)
    record_series(session, run.id, [Points("train/loss", range(301, 401), values[300:], attempt=2)])
    assert recorded(session, number, report(losses=losses(values))).continuation == "not_tried"


def test_a_drill_that_failed_stays_failed_however_good_its_losses_are(session: Session) -> None:
    values = curve()
    _, number = saved(session, values)
    checks = replace(WHOLE, run="failed")
    new = report(losses=losses(values), verdict="failed", reason="the command ended with 1", checks=checks)
    found = recorded(session, number, new)
    assert (found.verdict, found.continuation, found.exact) == ("failed", "passed", False)
    assert found.reason == "the command ended with 1"


def test_what_was_not_tried_is_never_passed(session: Session) -> None:
    values = curve()
    _, number = saved(session, values)
    found = recorded(session, number, report(checks=Checks(read="passed")))
    told = (found.checks.verify, found.checks.files, found.checks.run, found.continuation, found.cold_start)
    assert set(told) == {"not_tried"}
    assert (found.verdict, found.exact, found.steps_run) == ("passed", None, 0)


def test_a_loss_that_is_not_finite_comes_back_as_it_was(session: Session) -> None:
    _, number = saved(session)
    found = recorded(session, number, report(losses=[Step(301, 1.5), Step(302, float("inf"))]))
    assert (found.verdict, found.losses) == ("failed", [Step(301, 1.5), Step(302, float("inf"))])


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"checks": Checks(read="failed")}, "/verdict"),
        ({"verdict": "failed"}, "/reason"),
        ({"replica_id": 12345}, "/replica_id"),
        ({"losses": [Step(302, 1.0), Step(301, 1.0)]}, "/losses"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(session: Session, change: dict[str, Any], pointer: str) -> None:
    _, number = saved(session)
    with pytest.raises(BadDrill) as refused:
        recorded(session, number, report(**change))
    assert refused.value.errors[0].pointer == pointer


def test_the_tier_and_format_are_those_of_the_moment(session: Session) -> None:
    _, number = saved(session, replicas=(ReplicaSpec("/mnt/300", "shared"),), format="dcp")
    replica = session.query(Replica).filter_by(checkpoint_id=number).one()
    found = recorded(session, number, report(replica_id=replica.id))
    assert (found.tier, found.format, found.replica_id) == ("shared", "dcp", replica.id)


def test_drills_are_listed_the_newest_first(session: Session) -> None:
    run, number = saved(session)
    made = [recorded(session, number, report(f"k{each}")).id for each in range(3)]
    other = recorded(session, saved(session)[1], report()).id
    asked = Asked(frozenset({run.project_id}), run.id, number)
    found = [row.id for row in list_drills(session, asked)]
    assert found == sorted(made, reverse=True)
    assert other not in found
    assert [row.id for row in list_drills(session, asked, before_id=found[0], limit=1)] == [found[1]]


def spiked(values: list[float], step: int = 305) -> list[float]:
    """The same training, if it had gone wrong from a step on."""
    return [value + (2.5 if at >= step else 0) for at, value in enumerate(values, 1)]


def went_on(session: Session, run: RunRow, number: int, values: list[float]) -> None:
    """A second attempt, which resumed from the checkpoint at step 300."""
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=number))
    record_series(session, run.id, [Points("train/loss", range(301, 401), values[300:], attempt=2)])


def test_the_live_path_speaks_before_the_attempt_that_was_left(session: Session) -> None:
    """Attempt 1 had a spike after the checkpoint, for which it was left; attempt 2 went on without it."""
    values = curve()
    run, number = saved(session, spiked(values))
    went_on(session, run, number, values)
    found = recorded(session, number, report(losses=losses(values)))
    assert (found.verdict, found.continuation, found.exact) == ("passed", "passed", True)
    assert "equal those of attempt 2, which resumed from it" in found.comparison
    other = recorded(session, number, report("other", losses=losses(curve(seed=8))))
    assert (other.verdict, other.continuation) == ("passed", "passed")
    assert "attempt 2, which resumed from it" in other.comparison


def test_one_training_that_went_on_from_it_is_enough(session: Session) -> None:
    values = curve()
    run, number = saved(session, values)
    went_on(session, run, number, spiked(values))
    found = recorded(session, number, report(losses=losses(values)))
    assert (found.verdict, found.exact) == ("passed", True)
    assert "equal those of attempt 1, superseded beyond step 300; they are not those of attempt 2" in found.comparison


def test_losses_like_none_that_went_on_from_it_are_held_against_the_live_path(session: Session) -> None:
    values = curve()
    run, number = saved(session, spiked(values))
    went_on(session, run, number, values)
    found = recorded(session, number, report(losses=losses(values, shift=-1.0)))
    assert (found.verdict, found.continuation) == ("failed", "failed")
    assert "1 lower on average than those of attempt 2, which resumed from it" in found.reason


def test_a_live_path_may_go_through_several_attempts(session: Session) -> None:
    """Attempt 1 went wrong at 306, and attempt 2 went on from a save in between."""
    values = curve()
    run, number = saved(session, spiked(values, 306))
    between = make_checkpoint(session, run, 305)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=between))
    record_series(session, run.id, [Points("train/loss", range(306, 401), values[305:], attempt=2)])
    found = recorded(session, number, report(losses=losses(values)))
    assert (found.verdict, found.exact) == ("passed", True)
    assert "equal those of attempts 1 and 2, the run's live path" in found.comparison


def test_a_run_that_began_anew_leaves_the_continuation_of_a_checkpoint(session: Session) -> None:
    values = curve()
    run, number = saved(session, values)
    make_attempt(session, run, restart=True)
    found = recorded(session, number, report(losses=losses(values)))
    assert (found.continuation, found.exact) == ("passed", True)
    assert "attempt 1, superseded" in found.comparison


def test_a_reason_ends_without_a_full_stop(session: Session) -> None:
    _, number = saved(session)
    found = recorded(session, number, report(verdict="failed", reason="it cannot be read: no such file or directory."))
    assert found.reason == "it cannot be read: no such file or directory"
