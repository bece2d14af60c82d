"""Standing watches: what they find when scores and losses arrive, in any order, and what does not disturb them."""

import json
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.aliases import AliasNotFound, move_alias, roll_back_alias
from registry.db import Database
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.models import OutboxEvent, WatchDue
from registry.resume_points import ResumePoint
from registry.runs import RunNotFound, RunRow
from registry.series import Points, record_series
from registry.watches.findings import (
    FindingNotFound,
    FindingRow,
    FindingWithdrawn,
    amend_finding,
    count_open,
    get_finding,
    list_findings,
)
from registry.watches.look import close_look, look, look_at_due
from registry.watches.standing import BadWatch, WatchNotFound, WatchRow, WatchSpec, end_watch, list_watches, stand_watch
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run, make_score


def gsm8k(value: float, **known: Any) -> NewScore:
    return NewScore("gsm8k", value, metric="exact_match", n_samples=1319, **known)


def watch(session: Session, run: RunRow, **known: Any) -> WatchRow:
    known.setdefault("run_id", run.id)
    return stand_watch(session, run.project_id, WatchSpec(**known), actor="ann")[0]


def looks(session: Session) -> None:
    """One round in the test's own transaction."""
    for watch_id in sorted(session.scalars(select(WatchDue.watch_id).distinct())):
        close_look(session, look(session, watch_id))


def findings(session: Session, **known: Any) -> list[FindingRow]:
    looks(session)
    return list_findings(session, None, **known)


def scored(session: Session, run: RunRow, values: Sequence[float], first: int = 1) -> list[int]:
    return [
        make_checkpoint(session, run, 1000 * step, scores=[gsm8k(value)]) for step, value in enumerate(values, first)
    ]


FALL = [0.60] * 6 + [0.50] * 3


def test_a_fall_leaves_a_finding_when_its_score_arrives(session: Session) -> None:
    run = make_run(session)
    standing = watch(session, run, capability="math")
    scored(session, run, [0.60] * 6)
    assert findings(session) == []
    fallen = scored(session, run, [0.50], first=7)[0]
    (found,) = findings(session)
    assert (found.checkpoint and found.checkpoint.id, found.from_step, found.to_step) == (fallen, 6000, 7000)
    assert (found.state, found.watch_id, found.run.id) == ("open", standing.id, run.id)
    assert found.sentence.startswith("Math fell by 10.0 ± ")
    assert found.detail["made_of"] == ["gsm8k"]
    assert found.question == {"run_id": to_text(run.id), "watch": {"capability": "math"}}
    assert found.parameters == {"run": to_text(run.id), "watch": "math"}
    assert count_open(session, [run.project_id]) == 1


@pytest.mark.parametrize("odd", [61.0, -3.0, math.nan, math.inf])
@pytest.mark.parametrize("where", [slice(6, 9), slice(0, 6), slice(0, 9)])
def test_a_value_that_never_ranks_settles_nothing(session: Session, odd: float, where: slice) -> None:
    run = make_run(session)
    watch(session, run, capability="math")
    ids = scored(session, run, FALL)
    (before,) = findings(session)
    for each in ids[where]:
        make_score(session, each, "gsm8k", odd, metric="exact_match", n_samples=1319)
    (after,) = findings(session)
    assert after == before
    for each in ids[6:]:
        make_score(session, each, "gsm8k", 0.6, metric="exact_match", n_samples=1319, evaluated_at=at("2026-11-02"))
    (mended,) = findings(session)
    assert mended.state == "withdrawn"


def test_a_finding_is_announced_once(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    scored(session, run, FALL)
    looks(session)
    make_checkpoint(session, run, 20000, scores=[gsm8k(0.50)])
    (found,) = findings(session)
    events = session.scalars(select(OutboxEvent).where(OutboxEvent.topic == "finding.opened")).all()
    assert [each.subject_id for each in events] == [found.id]
    told = json.loads(events[0].payload)
    assert (told["sentence"], told["run"], told["from_step"]) == (found.sentence, to_text(run.id), 6000)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_arrival_decides_nothing(session: Session, seed: int) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    order = list(enumerate(FALL + [0.40] * 3, 1))
    random.Random(seed).shuffle(order)
    for step, value in order:
        make_checkpoint(session, run, 1000 * step, scores=[gsm8k(value)])
        looks(session)
    standing = [each for each in findings(session) if each.state == "open"]
    assert sorted((each.from_step, each.to_step) for each in standing) == [(6000, 7000), (9000, 10000)]


def test_scores_that_are_not_finite_fire_nothing(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    scored(session, run, [0.60] * 6 + [math.nan, -math.inf, math.inf])
    assert findings(session) == []


def test_a_re_evaluation_of_an_old_checkpoint_is_no_fall_and_a_corrected_score_withdraws_one(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    ids = scored(session, run, [0.60] * 6 + [0.50])
    (found,) = findings(session)
    known = {"metric": "exact_match", "n_samples": 1319}
    make_score(session, ids[0], "gsm8k", 0.59, evaluated_at=at("2026-11-02"), **known)
    assert [each.state for each in findings(session)] == ["open"]
    make_score(session, ids[-1], "gsm8k", 0.61, evaluated_at=at("2026-11-02"), **known)
    assert [(each.id, each.state) for each in findings(session)] == [(found.id, "withdrawn")]
    make_score(session, ids[-1], "gsm8k", 0.50, evaluated_at=at("2026-11-03"), **known)
    assert [(each.id, each.state) for each in findings(session)] == [(found.id, "open")]


def test_an_acknowledged_finding_that_had_gone_opens_again_when_its_score_falls_anew(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    fallen = scored(session, run, [0.60] * 6 + [0.50])[-1]
    (found,) = findings(session)
    amend_finding(session, found.id, {"state": "acknowledged", "note": "shard 7"}, actor="bea")
    known = {"metric": "exact_match", "n_samples": 1319}
    for day, value, state in ((2, 0.61, "withdrawn"), (3, 0.40, "open")):
        make_score(session, fallen, "gsm8k", value, evaluated_at=at(f"2026-11-0{day}"), **known)
        assert [(each.id, each.state) for each in findings(session)] == [(found.id, state)]
    (again,) = findings(session)
    assert (again.acknowledged_at, again.acknowledged_by, again.note) == (None, None, "shard 7")
    events = session.scalars(select(OutboxEvent.topic).order_by(OutboxEvent.id)).all()
    assert [each for each in events if each.startswith("finding.")] == [
        "finding.opened",
        "finding.withdrawn",
        "finding.opened",
    ]


def test_an_acknowledged_finding_opens_again_where_a_later_score_raises_it_and_only_there(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    fallen = scored(session, run, [0.60] * 6 + [0.50])[-1]
    (found,) = findings(session)
    amend_finding(session, found.id, {"state": "acknowledged"}, actor="bea")
    make_checkpoint(session, run, 6500, scores=[gsm8k(0.50)])  # the same fall, seen earlier
    assert [(each.id, each.state, each.to_step) for each in findings(session)] == [(found.id, "acknowledged", 6500)]
    known = {"metric": "exact_match", "n_samples": 1319, "evaluated_at": at("2026-11-02")}
    for early in (fallen, *(each.checkpoint.id for each in findings(session) if each.checkpoint)):
        make_score(session, early, "gsm8k", 0.59, **known)
    make_checkpoint(session, run, 8000, scores=[gsm8k(0.50)])
    assert [(each.id, each.state, each.to_step) for each in findings(session)] == [(found.id, "open", 8000)]


def test_results_under_other_conditions_fire_nothing(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    scored(session, run, [0.60] * 6)
    for step in (7000, 8000):
        make_checkpoint(session, run, step, scores=[gsm8k(0.3, n_shot=25)])
    assert findings(session) == []


def test_what_a_rollback_left_behind_is_withdrawn(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    ids = scored(session, run, FALL)
    assert [each.state for each in findings(session)] == ["open"]
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=ids[5]))
    assert [each.state for each in findings(session)] == ["withdrawn"]
    assert findings(session, states=["open"]) == []


def test_lower_is_better_is_turned_round(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="wmdp")
    for step, value in enumerate([0.30] * 6 + [0.45], 1):
        make_checkpoint(session, run, step, scores=[NewScore("wmdp", value, metric="acc", n_samples=3668)])
    assert len(findings(session)) == 1


def test_another_benchmark_and_another_run_are_not_watched(session: Session) -> None:
    project = make_project(session)
    run, other = make_run(session, project), make_run(session, project)
    watch(session, run, benchmark="mmlu")
    scored(session, run, FALL)
    scored(session, other, FALL)
    assert findings(session) == []


def test_a_fork_is_compared_with_what_it_came_from(session: Session) -> None:
    project = make_project(session)
    base, fork = make_run(session, project), make_run(session, project)
    ids = scored(session, base, [0.60] * 6)
    make_attempt(session, fork, resumed_from=ResumePoint(checkpoint_id=ids[-1]))
    watch(session, fork, benchmark="gsm8k")
    scored(session, fork, [0.45], first=7)
    (found,) = findings(session)
    assert (found.run.id, found.from_step, found.to_step) == (fork.id, 6000, 7000)


def test_a_watch_that_is_made_late_looks_at_what_is_there(session: Session) -> None:
    run = make_run(session)
    scored(session, run, FALL)
    watch(session, run)
    assert len(findings(session)) == 1


def test_a_watch_on_an_alias_follows_it_from_run_to_run(session: Session) -> None:
    project = make_project(session)
    old, new = make_run(session, project, "old"), make_run(session, project, "new")
    good, bad = scored(session, old, [0.60])[0], scored(session, new, [0.50])[0]
    move_alias(session, project.id, "production", good, actor="ann")
    watch(session, old, run_id=None, alias="production", capability="math")
    scored(session, new, [0.10], first=2)  # nobody serves it
    assert findings(session) == []
    move_alias(session, project.id, "production", bad, actor="ann")
    (found,) = findings(session)
    assert (found.run.name, found.alias, found.checkpoint and found.checkpoint.id) == ("new", "production", bad)
    assert found.question == {"alias": f"{project.name}/production", "watch": {"capability": "math"}}
    assert "which production moved to, scores below" in found.sentence
    roll_back_alias(session, project.id, "production", actor="ann")
    assert len(findings(session)) == 1


def test_a_score_of_what_an_alias_serves_is_looked_at_when_it_arrives(session: Session) -> None:
    run = make_run(session)
    good, bad = scored(session, run, [0.60])[0], make_checkpoint(session, run, 2000)
    for target in (good, bad):
        move_alias(session, run.project_id, "production", target, actor="ann")
    watch(session, run, run_id=None, alias="production", benchmark="gsm8k")
    assert findings(session) == []
    make_score(session, bad, "gsm8k", 0.5, metric="exact_match", n_samples=1319)
    assert len(findings(session)) == 1


def curve(session: Session, run: RunRow, values: Sequence[float], first: int = 1, name: str = "loss") -> None:
    steps = list(range(first, first + len(values)))
    record_series(session, run.id, [Points(name, steps, list(values))])


def calm(count: int, seed: int = 1) -> list[float]:
    noise = random.Random(seed)
    return [2.2 + noise.gauss(0, 0.02) for _ in range(count)]


def test_a_spike_of_the_loss_leaves_a_finding_that_follows_it(session: Session) -> None:
    run = make_run(session)
    watch(session, run, kind="loss")
    curve(session, run, calm(100))
    assert findings(session) == []
    curve(session, run, [4.0, 5.1], first=101)
    (found,) = findings(session)
    assert (found.kind, found.from_step, found.to_step) == ("loss", 101, 102)
    assert "has not come back yet" in found.sentence
    assert found.question == {"run_id": to_text(run.id)}
    curve(session, run, [3.5, *calm(10)], first=103)
    (after,) = findings(session)
    assert (after.id, after.to_step) == (found.id, 103)
    assert "came back by itself" in after.sentence


def test_a_single_high_point_is_no_finding_and_a_nan_is(session: Session) -> None:
    run = make_run(session)
    watch(session, run, kind="loss")
    curve(session, run, [*calm(60), 5.0, *calm(60)], name="train/loss")
    assert findings(session) == []
    curve(session, run, [math.nan], first=122, name="train/loss")
    (found,) = findings(session)
    assert found.sentence.startswith("The loss was not finite at step 122")


def test_a_curve_that_is_no_loss_marks_nothing(session: Session) -> None:
    run = make_run(session)
    watch(session, run, kind="loss")
    looks(session)
    curve(session, run, calm(10), name="grad_norm")
    assert session.scalar(select(func.count()).select_from(WatchDue)) == 0


def test_a_finding_is_acknowledged_by_whom_and_when(session: Session) -> None:
    run = make_run(session)
    watch(session, run, benchmark="gsm8k")
    ids = scored(session, run, FALL)
    (found,) = findings(session)
    done = amend_finding(session, found.id, {"state": "acknowledged", "note": "data of shard 7"}, actor="bea")
    assert (done.state, done.acknowledged_by, done.note) == ("acknowledged", "bea", "data of shard 7")
    assert done.acknowledged_at is not None
    again = amend_finding(session, found.id, {"state": "acknowledged"}, actor="cy")
    assert (again.acknowledged_by, again.acknowledged_at) == ("bea", done.acknowledged_at)
    make_checkpoint(session, run, 20000, scores=[gsm8k(0.50)])
    assert [each.state for each in findings(session)] == ["acknowledged"]
    assert amend_finding(session, found.id, {"state": "open"}, actor="bea").acknowledged_by is None
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=ids[5]))
    looks(session)
    with pytest.raises(FindingWithdrawn):
        amend_finding(session, found.id, {"state": "open"}, actor="bea")
    assert get_finding(session, found.id).state == "withdrawn"
    with pytest.raises(FindingNotFound):
        amend_finding(session, 1, {}, actor="bea")


def test_the_same_watch_again_is_the_same_and_one_that_ended_begins_again(session: Session) -> None:
    run = make_run(session)
    spec = WatchSpec(run_id=run.id, capability="math")
    first, made = stand_watch(session, run.project_id, spec, actor="ann")
    same, again = stand_watch(session, run.project_id, WatchSpec(run_id=run.id, capability="数学"), actor="bea")
    assert (made, again, same.id, same.created_by) == (True, False, first.id, "ann")
    assert end_watch(session, first.id, actor="ann").ended_at is not None
    scored(session, run, FALL)
    assert findings(session) == []
    assert stand_watch(session, run.project_id, spec, actor="ann")[1]
    assert len(findings(session)) == 1
    assert [each.id for each in list_watches(session, [run.project_id])] == [first.id]
    with pytest.raises(WatchNotFound):
        end_watch(session, 1, actor="ann")


@pytest.mark.parametrize(
    ("known", "pointer"),
    [
        ({"run_id": None}, ""),
        ({"alias": "production"}, ""),
        ({"benchmark": "gsm8k", "capability": "math"}, "/watch"),
        ({"kind": "loss", "benchmark": "gsm8k"}, "/watch"),
        ({"kind": "loss", "run_id": None, "alias": "production"}, "/alias"),
        ({"kind": "gradient"}, "/kind"),
        ({"capability": "mth"}, "/watch/capability"),
    ],
)
def test_what_cannot_be_watched_is_refused(session: Session, known: dict[str, Any], pointer: str) -> None:
    run = make_run(session)
    with pytest.raises(BadWatch) as refused:
        watch(session, run, **known)
    assert refused.value.errors[0].pointer == pointer


def test_a_benchmark_that_nobody_knows_is_watched_with_a_warning_until_a_result_has_it(session: Session) -> None:
    run = make_run(session)
    assert watch(session, run, benchmark="gsm8k").warning is None  # of the table, though nothing is scored yet
    typo, ours = watch(session, run, benchmark="gsmk8"), watch(session, run, benchmark="our-own-suite")
    assert typo.warning == "No result here and no benchmark table has it yet. Did you mean gsm8k or mgsm?"
    assert ours.warning == "No result here and no benchmark table has it yet."
    make_checkpoint(session, run, 1000, scores={"our-own-suite": 0.5})
    assert [each.warning for each in list_watches(session, [run.project_id])] == [None, typo.warning, None]


def test_a_watch_is_of_a_run_and_an_alias_of_its_project(session: Session) -> None:
    run, other = make_run(session), make_run(session)
    with pytest.raises(BadWatch, match="another project"):
        watch(session, run, run_id=other.id)
    with pytest.raises(RunNotFound):
        watch(session, run, run_id=1)
    with pytest.raises(AliasNotFound):
        watch(session, run, run_id=None, alias="nowhere")


def test_without_a_watch_nothing_is_marked(session: Session) -> None:
    scored(session, make_run(session), FALL)
    assert session.scalar(select(func.count()).select_from(WatchDue)) == 0


def test_several_processes_that_look_at_once_open_one_finding(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        standing = watch(session, run, benchmark="gsm8k")
        scored(session, run, FALL)
    looked = []
    for _ in range(3):
        with committed_database.read() as session:
            looked.append(look(session, standing.id))
    opened = []
    for each in looked:
        with committed_database.write() as session:
            opened.append(close_look(session, each))
    assert opened == [1, 0, 0]
    assert look_at_due(committed_database) == 0
    with committed_database.read() as session:
        assert len(list_findings(session, None)) == 1


def test_a_look_that_saw_older_scores_than_another_is_dropped(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        standing = watch(session, run, benchmark="gsm8k")
        scored(session, run, [0.60] * 6)
    with committed_database.read() as session:
        older = look(session, standing.id)
    with committed_database.write() as session:
        scored(session, run, [0.50], first=7)
    assert look_at_due(committed_database) == 1
    with committed_database.write() as session:
        assert close_look(session, older) == 0
    with committed_database.read() as session:
        assert [each.state for each in list_findings(session, None)] == ["open"]


def test_what_arrives_during_a_look_is_looked_at_by_the_next(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        standing = watch(session, run, benchmark="gsm8k")
        scored(session, run, [0.60] * 6)
    with committed_database.read() as session:
        seen = look(session, standing.id)
    with committed_database.write() as session:
        scored(session, run, [0.50], first=7)
    with committed_database.write() as session:
        assert close_look(session, seen) == 0
    assert look_at_due(committed_database) == 1


@pytest.mark.parametrize(
    ("value", "why"),
    [(64.0, "3 checkpoints with a score off the scale"), (math.nan, "3 checkpoints with a score that is not")],
)
def test_a_watch_on_scores_of_which_none_counts_says_so(session: Session, value: float, why: str) -> None:
    run = make_run(session)
    ids = scored(session, run, [value] * 3)
    move_alias(session, run.project_id, "production", ids[0], actor="ann")
    of_run = watch(session, run, benchmark="gsm8k")
    of_alias = watch(session, run, run_id=None, alias="production", capability="math")
    for each in (of_run, of_alias):
        assert each.warning is not None
        assert f"nothing can be found yet: {why}" in each.warning
    scored(session, run, [0.6], first=4)
    assert [each.warning for each in list_watches(session, [run.project_id])] == [None, None]
