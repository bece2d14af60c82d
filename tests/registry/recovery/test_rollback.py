"""Going back: which checkpoints may be candidates, in which order, and what the answer says."""

import math
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, update
from sqlalchemy.orm import Session

from registry.aliases import AliasNotFound, move_alias
from registry.attempts import amend_attempt
from registry.checkpoints.commands import BatchItem, register_batch, register_checkpoint
from registry.checkpoints.registration import ParentSpec, PieceSpec, Registration, ReplicaSpec
from registry.evals.scores import NewScore
from registry.ids import new_id
from registry.models import Replica
from registry.recovery.answers import RollbackAnswer
from registry.recovery.rollback import BadRollbackQuestion, find_rollback_candidates
from registry.recovery.watched import NothingToWatch, Watch
from registry.resume_points import ResumePoint
from registry.runs import RunNotFound, RunRow
from registry.search.conditions import read_conditions
from registry.snapshots import LayoutSpec
from registry.types import Relation
from tests.factories import ALL_PIECES, at, make_attempt, make_checkpoint, make_project, make_run, make_score

START = at("2026-11-01")
GB = 10**9


def whole(session: Session, run: RunRow, step: int, *, size: int | None = 100 * GB, **known: Any) -> int:
    """A checkpoint with all pieces and one unverified copy on shared storage, saved 12 s a step after the start."""
    known.setdefault("pieces", ALL_PIECES)
    known.setdefault("saved_at", START + timedelta(seconds=12 * step))
    known.setdefault("replicas", (ReplicaSpec(f"/ckpt/{run.name}/{step}-{new_id()}", "shared", bytes=size),))
    known["scores"] = tuple(known.get("scores", ()))
    return register_checkpoint(session, run.id, Registration(step, **known)).checkpoint_id


def verify(session: Session, checkpoint_id: int, verification: str = "verified") -> None:
    session.execute(update(Replica).where(Replica.checkpoint_id == checkpoint_id).values(verification=verification))


def steps(answer: RollbackAnswer) -> list[int]:
    return [each.checkpoint.step for each in answer.candidates]


def left_out(answer: RollbackAnswer) -> dict[int, str]:
    return {each.checkpoint.step: each.filter for each in answer.excluded}


def mmlu(value: float) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042)


def arc(value: float, **known: Any) -> NewScore:
    return NewScore("arc_challenge", value, metric="acc", n_samples=1172, **known)


def test_the_newest_whole_checkpoint_comes_first_and_says_its_terms(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000, 3000):
        verify(session, whole(session, run, step))
    answer = find_rollback_candidates(session, run_id=run.id)
    assert steps(answer) == [3000, 2000, 1000]
    first, second, _ = answer.candidates
    assert [each.rank for each in answer.candidates] == [1, 2, 3]
    assert first.terms["restore_minutes"] == pytest.approx(8.77, abs=0.005)
    assert first.terms["replay_minutes"] == 0
    assert second.terms["replay_minutes"] == pytest.approx(200)
    assert second.terms["steps_lost"] == 1000
    assert second.terms["p_ok"] == pytest.approx(0.95)
    assert answer.at_step == 3000
    assert "Of the candidates, step 3000 of" in answer.sentence
    assert any("assume" in each for each in answer.assumptions)
    assert not any("A step is assumed" in each for each in answer.assumptions)


def test_evidence_for_the_copy_moves_the_order(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 2990)
    for step in (2985, 2984):
        verify(session, whole(session, run, step))
    make_attempt_beat(session, run, 3000)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert steps(answer)[0] == 2985
    assert [each.terms["evidence"] for each in answer.candidates] == ["verified hash", "none", "verified hash"]


def make_attempt_beat(session: Session, run: RunRow, step: int) -> None:
    amend_attempt(session, run.id, 1, {"step": step})


def test_how_far_the_run_came_is_what_its_newest_attempt_said(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000)
    make_attempt_beat(session, run, 1500)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.at_step == 1500
    assert answer.candidates[0].terms["steps_lost"] == 500


@pytest.mark.parametrize(
    ("filter", "known", "reason"),
    [
        ("state", {"state": "pending"}, "pending"),
        ("loss", {"loss": math.nan}, "NaN"),
        ("loss", {"loss": math.inf}, "Infinity"),
        ("quarantine", {"tags": {"quarantine": "sdc"}}, "quarantined"),
        ("pieces", {"pieces": {"weights": PieceSpec()}}, "whether it has the optimizer and the data position"),
        ("pieces", {"pieces": ALL_PIECES | {"optimizer": PieceSpec("absent")}}, "it lacks the optimizer"),
        ("copy", {"replicas": ()}, "no copy"),
    ],
)
def test_what_cannot_be_resumed_is_left_out_with_its_reason(
    session: Session, filter: str, known: dict[str, Any], reason: str
) -> None:
    run = make_run(session)
    whole(session, run, 1000)
    whole(session, run, 2000, **known)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert steps(answer) == [1000]
    (excluded,) = answer.excluded
    assert (excluded.checkpoint.step, excluded.filter) == (2000, filter)
    assert reason in excluded.reason
    assert answer.excluded_counts == {filter: 1}


def test_random_state_may_be_absent(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, pieces=ALL_PIECES | {"random_state": PieceSpec("absent")})
    assert steps(find_rollback_candidates(session, run_id=run.id)) == [1000]


def test_a_corrupt_copy_is_no_copy(session: Session) -> None:
    run = make_run(session)
    verify(session, whole(session, run, 2000), "corrupt")
    assert left_out(find_rollback_candidates(session, run_id=run.id)) == {2000: "copy"}


def test_a_removed_copy_is_no_copy(session: Session) -> None:
    run = make_run(session)
    gone = whole(session, run, 2000)
    session.execute(update(Replica).where(Replica.checkpoint_id == gone).values(state="removed_elsewhere"))
    assert left_out(find_rollback_candidates(session, run_id=run.id)) == {2000: "copy"}


def test_superseded_checkpoints_are_left_out(session: Session) -> None:
    run = make_run(session)
    kept = whole(session, run, 1000)
    whole(session, run, 2000)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=kept))
    whole(session, run, 1500, saved_at=at("2026-11-03"))
    answer = find_rollback_candidates(session, run_id=run.id)
    assert sorted(steps(answer)) == [1000, 1500]
    assert left_out(answer) == {2000: "superseded"}


def test_the_step_asked_for_is_included(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000, 3000):
        whole(session, run, step)
    answer = find_rollback_candidates(session, run_id=run.id, at_or_before_step=2000)
    assert steps(answer) == [2000, 1000]
    assert left_out(answer) == {3000: "step"}


def test_a_time_range_includes_its_start_and_not_its_end(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000, 3000):
        whole(session, run, step)
    answer = find_rollback_candidates(
        session,
        run_id=run.id,
        after=START + timedelta(seconds=12 * 2000),
        before=START + timedelta(seconds=12 * 3000),
    )
    assert steps(answer) == [2000]
    assert left_out(answer) == {1000: "time", 3000: "time"}


def test_conditions_leave_out_what_misses_them_and_what_has_no_value(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, scores=[mmlu(0.6)])
    whole(session, run, 2000, scores=[mmlu(0.4)])
    whole(session, run, 3000)
    whole(session, run, 4000, scores=[mmlu(math.nan)])
    conditions = read_conditions(
        [
            {"benchmark": "mmlu", "relation": ">=", "threshold": 0.5},
            {"field": "step", "relation": "<", "threshold": 50000},
        ]
    )
    answer = find_rollback_candidates(session, run_id=run.id, conditions=conditions)
    assert steps(answer) == [1000]
    reasons = {each.checkpoint.step: each.reason for each in answer.excluded}
    assert reasons[2000] == "mmlu >= 0.5 is not met"
    assert reasons[3000] == reasons[4000] == "mmlu >= 0.5 has no such value"
    assert set(answer.excluded_counts) == {"condition"}


def test_a_capability_condition_uses_percentiles(session: Session) -> None:
    run = make_run(session)
    low, high, none = (whole(session, run, step) for step in (1000, 2000, 3000))
    conditions = read_conditions([{"capability": "math", "relation": "strong"}])
    ranked = {low: 0.5, high: 0.9}
    answer = find_rollback_candidates(
        session, run_id=run.id, conditions=conditions, capabilities=lambda name, *_: ranked if name == "math" else None
    )
    assert steps(answer) == [2000]
    assert {each.checkpoint.id for each in answer.excluded} == {low, none}
    nobody = find_rollback_candidates(session, run_id=run.id, conditions=conditions)
    assert "too few" in nobody.excluded[0].reason


def falling(session: Session, drop: float, after: int = 14000, through: int = 20000) -> RunRow:
    """Twenty whole checkpoints; ARC challenge rises with the logarithm of the step and falls after `after`."""
    run = make_run(session)
    for step in range(1000, 21000, 1000):
        value = 0.2 + 0.07 * math.log(step / 1000) - (drop if step > after else 0.0)
        verify(session, whole(session, run, step, scores=[arc(value)] if step <= through else []))
    return run


def test_going_back_to_before_a_fall(session: Session) -> None:
    run = falling(session, 0.08)
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert answer.onset is not None
    assert answer.onset.onset is not None
    assert answer.onset.onset.is_established
    assert (answer.onset.onset.after_step, answer.onset.onset.by_step) == (14000, 15000)
    assert answer.last_known_good is not None
    assert answer.last_known_good.step == 14000
    assert steps(answer)[:2] == [14000, 13000]
    assert answer.excluded_counts == {"p_bad": 6}
    assert len(answer.onset.points) == 20
    assert answer.candidates[0].terms["p_bad"] == pytest.approx(0.0, abs=0.01)
    assert "Fell by" in answer.sentence


def test_a_fall_that_is_not_established_is_said_to_be_provisional(session: Session) -> None:
    run = falling(session, 0.02)
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(capability="knowledge"))
    assert answer.onset is not None
    assert answer.onset.made_of == ("arc_challenge",)
    assert answer.sentence.startswith("No fall is established: nothing here speaks for going back. If you must: step ")
    assert "provisional" in answer.sentence


def test_unscored_checkpoint_is_left_out_by_default(session: Session) -> None:
    run = falling(session, 0.0, through=18000)
    watched = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert {step for step, filter in left_out(watched).items() if filter == "unscored"} == {19000, 20000}
    assert steps(find_rollback_candidates(session, run_id=run.id))[0] == 20000


def test_between_two_evaluated_ones_the_later_speaks_for_it(session: Session) -> None:
    run = falling(session, 0.08)
    between = whole(session, run, 13500)
    beyond = whole(session, run, 14500)
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"), limit=30)
    assert between in {each.checkpoint.id for each in answer.candidates}
    assert beyond in {each.checkpoint.id for each in answer.excluded}


def test_results_under_other_conditions_do_not_enter_the_curve(session: Session) -> None:
    run = falling(session, 0.0)
    odd = whole(session, run, 20500, scores=[arc(0.05, n_shot=25)])
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert answer.onset is not None
    assert odd not in {each.checkpoint.id for each in answer.onset.points}
    assert "1 checkpoint was evaluated under other conditions only" in answer.onset.why


def test_evaluations_of_a_converted_copy_count_for_its_source(session: Session) -> None:
    project = make_project(session)
    run, copies = make_run(session, project), make_run(session, project)
    for step in range(1000, 9000, 1000):
        source = whole(session, run, step)
        make_checkpoint(
            session, copies, step, parents=[ParentSpec(source, Relation.CONVERTED)], scores=[arc(0.3 + step / 1e6)]
        )
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert answer.onset is not None
    assert [each.checkpoint.step for each in answer.onset.points] == list(range(1000, 9000, 1000))
    assert {each.checkpoint.run.id for each in answer.onset.points} == {run.id}


def test_a_benchmark_recorded_in_parts_is_the_mean_of_them_all(session: Session) -> None:
    run = make_run(session)
    for step in range(1000, 6000, 1000):
        parts = [("mmlu_anatomy", 0.55), ("mmlu_astronomy", 0.25), ("arc_challenge", 0.25)]
        scores = [NewScore(name, value, metric="acc", n_samples=150) for name, value in parts]
        whole(session, run, step, scores=scores)
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(capability="knowledge"))
    assert answer.onset is not None
    assert answer.onset.made_of == ("arc_challenge", "mmlu_anatomy", "mmlu_astronomy")
    assert answer.onset.points[0].value == pytest.approx((0.20 + 0.0) / 2)


def test_production_is_ranked_by_all_capabilities_among_what_the_watch_lets_through(session: Session) -> None:
    run = make_run(session)
    for step in range(1000, 9000, 1000):
        boolq = NewScore("boolq", 0.9 if step == 2000 else 0.6, metric="acc", n_samples=3270)
        whole(session, run, step, scores=[arc(0.5 if step <= 5000 else 0.3), boolq])
    answer = find_rollback_candidates(session, run_id=run.id, mode="production", watch=Watch(benchmark="arc_challenge"))
    assert answer.candidates[0].checkpoint.step == 2000
    assert answer.judged_by == ("arc_challenge", "boolq")
    assert answer.excluded_counts == {"p_bad": 3}


def test_watching_what_is_not_recorded_is_refused_with_what_is(session: Session) -> None:
    run = falling(session, 0.0)
    with pytest.raises(NothingToWatch, match="knowledge"):
        find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="gsm8k"))


def test_three_evaluated_checkpoints_are_too_few_to_scan_and_it_is_said(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000, 3000):
        whole(session, run, step, scores=[arc(0.4)])
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert steps(answer)[0] == 3000
    assert "3 evaluated checkpoints, and 4 are needed" in answer.sentence
    assert answer.last_known_good is None


def test_an_unknown_size_is_said_and_never_taken_as_no_time(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 2000, size=None)
    answer = find_rollback_candidates(session, run_id=run.id)
    (candidate,) = answer.candidates
    assert candidate.terms["restore_minutes"] is None
    assert candidate.terms["expected_minutes"] is None
    assert any("unknown" in reason for reason in candidate.reasons)
    for limit in (3600, 1e9):
        late = find_rollback_candidates(session, run_id=run.id, rto_seconds=limit)
        assert left_out(late) == {2000: "size"}
        assert "size of the copy unknown" in late.sentence
        assert "record the sizes of the copies, or name no limit of time" in late.sentence
        assert "too slow" not in late.sentence


def test_the_rto_is_held_against_the_slow_restores(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, size=100 * GB)  # 527 s expected, 540 s in 95 of 100
    whole(session, run, 2000, size=1000 * GB)
    answer = find_rollback_candidates(session, run_id=run.id, rto_seconds=545)
    assert steps(answer) == [1000]
    assert left_out(answer) == {2000: "rto"}
    assert find_rollback_candidates(session, run_id=run.id, rto_seconds=530).candidates == ()


def test_another_layout_needs_a_drill_and_what_its_format_refuses_is_left_out(session: Session) -> None:
    run = make_run(session)
    eight = LayoutSpec(world_size=64, tp=8)
    whole(session, run, 1000, layout=eight, format="torch_dist")
    whole(session, run, 2000, layout=LayoutSpec(world_size=64, tp=8, sharding="dp_reshardable"), format="megatron")
    same = find_rollback_candidates(session, run_id=run.id, target_layout=eight)
    assert steps(same) == [2000, 1000]
    assert not any("drill it before" in reason for reason in same.candidates[0].reasons)
    other = find_rollback_candidates(session, run_id=run.id, target_layout=LayoutSpec(world_size=64, tp=4))
    assert steps(other) == [1000]
    assert any("tp 8 to 4" in reason for reason in other.candidates[0].reasons)
    assert left_out(other) == {2000: "layout"}


def test_a_fork_may_go_back_into_the_run_it_came_from(session: Session) -> None:
    project = make_project(session)
    base, fork = make_run(session, project, "base"), make_run(session, project, "fork")
    whole(session, base, 1000)
    forked_from = whole(session, base, 2000)
    whole(session, base, 3000)
    make_attempt(session, fork, resumed_from=ResumePoint(checkpoint_id=forked_from))
    whole(session, fork, 2500)
    answer = find_rollback_candidates(session, run_id=fork.id)
    assert [(each.checkpoint.run.name, each.checkpoint.step) for each in answer.candidates] == [
        ("fork", 2500),
        ("base", 2000),
        ("base", 1000),
    ]
    assert any("run base" in reason for reason in answer.candidates[1].reasons)
    assert 3000 not in left_out(answer)


def test_production_needs_weights_only_and_ranks_by_what_is_sure(session: Session) -> None:
    run = make_run(session)
    weights = {"weights": PieceSpec()}
    for step, value in ((1000, 0.40), (2000, 0.60), (3000, 0.50)):
        verify(session, whole(session, run, step, pieces=weights, scores=[mmlu(value)]))
    move_alias(session, run.project_id, "production", whole(session, run, 4000, scores=[mmlu(0.45)]), actor="test")
    answer = find_rollback_candidates(session, alias=f"{run.project}/production", mode="production")
    assert steps(answer) == [2000, 3000, 1000]
    assert left_out(answer) == {4000: "alias_target"}
    stderr = math.sqrt(0.6 * 0.4 / 14041) / 0.75
    assert answer.candidates[0].terms["lower_bound"] == pytest.approx(0.35 / 0.75 - 1.645 * stderr, abs=1e-4)


def test_production_says_what_is_not_proven(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, scores=[mmlu(0.6)])
    answer = find_rollback_candidates(session, run_id=run.id, mode="production")
    assert any(reason.startswith("Not proven") for reason in answer.candidates[0].reasons)


def test_production_leaves_out_what_nobody_evaluated(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, scores=[mmlu(0.6)])
    whole(session, run, 2000)
    answer = find_rollback_candidates(session, run_id=run.id, mode="production")
    assert (steps(answer), left_out(answer)) == ([1000], {2000: "unscored"})


def test_what_the_alias_served_before_is_a_candidate_from_any_run(session: Session) -> None:
    project = make_project(session)
    old, new = make_run(session, project, "old"), make_run(session, project, "new")
    served = whole(session, old, 5000, scores=[mmlu(0.6)])
    whole(session, old, 6000, scores=[mmlu(0.7)])
    move_alias(session, project.id, "production", served, actor="test")
    move_alias(session, project.id, "production", whole(session, new, 100, scores=[mmlu(0.5)]), actor="test")
    answer = find_rollback_candidates(session, alias=f"{project.name}/production", mode="production")
    assert [each.checkpoint.id for each in answer.candidates] == [served]


def test_an_empty_answer_says_which_filter_to_loosen(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000):
        whole(session, run, step, pieces={"weights": PieceSpec()}, scores=[mmlu(0.5)])
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.candidates == ()
    assert "both checkpoints were left out (pieces absent or unknown). To loosen that: record" in answer.sentence
    assert "production mode" in answer.sentence
    nothing = find_rollback_candidates(session, run_id=make_run(session).id)
    assert "no checkpoints yet" in nothing.sentence


def test_questions_that_name_nothing_or_too_much_are_refused(session: Session) -> None:
    run = make_run(session)
    questions: list[dict[str, Any]] = [
        {},
        {"run_id": run.id, "alias": "a/b"},
        {"alias": "nameless"},
        {"run_id": run.id, "mode": "x"},
    ]
    for asked in questions:
        with pytest.raises(BadRollbackQuestion):
            find_rollback_candidates(session, **asked)
    with pytest.raises(RunNotFound):
        find_rollback_candidates(session, run_id=1)
    with pytest.raises(AliasNotFound):
        find_rollback_candidates(session, alias=f"{run.project}/nowhere")


def test_nan_scores_are_never_ranked(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, scores=[mmlu(0.6)])
    make_score(session, whole(session, run, 2000), "mmlu", math.nan, metric="acc", n_samples=14042)
    answer = find_rollback_candidates(session, run_id=run.id, mode="production")
    assert (steps(answer), left_out(answer)) == ([1000], {2000: "unscored"})


def many(session: Session, count: int) -> RunRow:
    project = make_project(session)
    run = make_run(session, project)
    items = [
        BatchItem(
            project.name,
            run.name,
            Registration(
                step,
                saved_at=START + timedelta(seconds=step),
                pieces=ALL_PIECES,
                replicas=(ReplicaSpec(f"/ckpt/{step}", "shared", bytes=GB),),
                scores=(arc(0.2 + 0.01 * math.log(step)),),
            ),
        )
        for step in range(1, count + 1)
    ]
    register_batch(session, items)
    return run


def test_the_number_of_statements_does_not_grow_with_the_run(session: Session) -> None:
    counts = []
    for size in (5, 50):
        run = many(session, size)
        seen: list[str] = []
        engine = session.get_bind().engine

        def note(*args: Any, seen: list[str] = seen) -> None:
            seen.append(args[2])

        event.listen(engine, "before_cursor_execute", note)
        find_rollback_candidates(
            session,
            run_id=run.id,
            watch=Watch(benchmark="arc_challenge"),
            conditions=read_conditions([{"field": "step", "relation": ">", "threshold": 1}]),
        )
        event.remove(engine, "before_cursor_execute", note)
        counts.append(len(seen))
    assert counts[0] == counts[1]
    assert counts[0] <= 18


def test_a_run_of_2000_checkpoints_is_answered_whole(session: Session) -> None:
    run = many(session, 2000)
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="arc_challenge"))
    assert answer.considered == 2000
    assert len(answer.candidates) == 5
