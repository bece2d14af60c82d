"""What a launch goes on from: the newest that is whole and fits, and why not what is newer."""

from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.registration import PartSpec, PieceSpec, Registration, ReplicaSpec
from registry.db import Database, now
from registry.ids import new_id
from registry.incidents.suspicion import say_suspect
from registry.models import Checkpoint, CheckpointSuspicion, Replica
from registry.recovery.resume import plan_resume
from registry.recovery.resume_path import live_select
from registry.recovery.resume_shapes import NEEDED, BadResumeQuestion, ResumePlan, ResumeQuestion
from registry.resume_points import ResumePoint
from registry.runs import RunNotFound, RunRow
from registry.snapshots import ConfigTooLarge, LayoutSpec
from registry.types import PieceName
from tests.factories import ALL_PIECES, make_attempt, make_project, make_run

GB = 10**9
EIGHT = LayoutSpec(world_size=8, tp=2, pp=1, dp=4, cp=1, ep=1, sharding="fully_reshardable")
COUNTED = {**ALL_PIECES, "data_position": PieceSpec(position_evidence="counter")}
STATEFUL = {**ALL_PIECES, "data_position": PieceSpec(position_evidence="state")}


def save(session: Session, run: RunRow, step: int, *, pieces: Any = None, **known: Any) -> int:
    """A checkpoint with all pieces and a copy on shared storage, unless something else is said."""
    given = {
        "pieces": ALL_PIECES if pieces is None else pieces,
        "replicas": (ReplicaSpec(f"/mnt/{step}-{new_id()}", "shared", bytes=GB),),
        **known,
    }
    return register_checkpoint(session, run.id, Registration(step, **given)).checkpoint_id


def without(*names: str, absent: bool = True) -> dict[str, PieceSpec]:
    presence = "absent" if absent else "unknown"
    return {name: PieceSpec(presence) if name in names else piece for name, piece in ALL_PIECES.items()}


def plan(session: Session, run: RunRow, **known: Any) -> ResumePlan:
    return plan_resume(session, run.id, ResumeQuestion(**known))


def steps(answer: ResumePlan) -> list[int]:
    return [each.checkpoint.step for each in answer.candidates]


def left_out(answer: ResumePlan) -> dict[int, str]:
    return {each.checkpoint.step: each.filter for each in answer.excluded}


def test_the_newest_comes_first_and_the_others_are_its_fallbacks(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 3000, 2000):
        save(session, run, step)
    answer = plan(session, run)
    assert steps(answer) == [3000, 2000, 1000]
    assert [each.steps_behind for each in answer.candidates] == [0, 1000, 2000]
    assert "from step 3000, the newest, on shared storage" in answer.sentence
    assert answer.excluded == ()


def test_the_archive_of_a_step_comes_before_the_light_one(session: Session) -> None:
    run = make_run(session)
    light, archive = save(session, run, 1000, kind="light"), save(session, run, 1000)
    assert [each.checkpoint.id for each in plan(session, run).candidates] == [archive, light]


def test_what_a_newer_attempt_left_behind_is_superseded(session: Session) -> None:
    run = make_run(session)
    save(session, run, 1000)
    save(session, run, 2000)
    make_attempt(session, run, resumed_from=ResumePoint(step=1000))
    assert steps(plan(session, run)) == [1000]
    save(session, run, 1500)
    assert steps(plan(session, run)) == [1500, 1000]


def test_a_fork_without_checkpoints_of_its_own_goes_on_from_what_it_came_from(session: Session) -> None:
    project = make_project(session)
    base, fork = make_run(session, project, "base"), make_run(session, project, "fork")
    for step in (1000, 2000, 3000):
        save(session, base, step)
    make_attempt(session, fork, resumed_from=ResumePoint(run="base", step=2000))
    answer = plan(session, fork)
    assert [(each.checkpoint.run.name, each.checkpoint.step) for each in answer.candidates] == [
        ("base", 2000),
        ("base", 1000),
    ]
    save(session, fork, 2500)
    assert steps(plan(session, fork)) == [2500, 2000, 1000]


@pytest.mark.parametrize(
    ("known", "filter_name"),
    [
        ({"state": "pending"}, "state"),
        ({"loss": float("nan")}, "loss"),
        ({"loss": float("inf")}, "loss"),
        ({"tags": {"quarantine": "bad data"}}, "quarantine"),
        ({"pieces": without("optimizer")}, "pieces"),
        ({"pieces": without("data_position")}, "pieces"),
        ({"pieces": without("data_position", absent=False)}, "pieces"),
        ({"pieces": {}}, "pieces"),
        ({"pieces": {**ALL_PIECES, "optimizer": PieceSpec(moment="a"), "weights": PieceSpec(moment="b")}}, "moment"),
        ({"replicas": ()}, "copy"),
        ({"replicas": (ReplicaSpec("/nvme/1", "local", host="gone", bytes=GB),)}, "copy"),
    ],
)
def test_a_checkpoint_that_cannot_be_relied_on_is_passed_over_with_the_reason(
    session: Session, known: dict[str, Any], filter_name: str
) -> None:
    run = make_run(session)
    save(session, run, 1000)
    save(session, run, 2000, **known)
    answer = plan(session, run)
    assert steps(answer) == [1000]
    assert left_out(answer) == {2000: filter_name}
    assert answer.excluded[0].reason
    assert answer.excluded_counts == {filter_name: 1}
    assert answer.candidates[0].steps_behind == 1000


def test_a_suspect_is_passed_over_until_it_is_cleared(session: Session) -> None:
    run = make_run(session)
    save(session, run, 1000)
    number = save(session, run, 2000)
    checkpoint = session.get_one(Checkpoint, number)
    say_suspect(session, checkpoint, suspect=True, reason="diverges", actor="test")
    assert left_out(plan(session, run)) == {2000: "suspect"}
    say_suspect(session, checkpoint, suspect=False, reason="", actor="test")
    assert steps(plan(session, run)) == [2000, 1000]


def test_of_a_checkpoint_with_one_suspect_copy_the_other_is_taken(session: Session) -> None:
    run = make_run(session)
    copies = (ReplicaSpec("/mnt/1", "shared", bytes=GB), ReplicaSpec("s3://b/1", "object", bytes=GB))
    number = save(session, run, 1000, replicas=copies)
    shared = session.scalars(select(Replica).where(Replica.uri == "/mnt/1")).one()
    known = {"project_id": run.project_id, "checkpoint_id": number, "replica_id": shared.id}
    mark = {"signature": "x", "reason": "two attempts failed alike", "incidents": 2, "since": now()}
    session.add(CheckpointSuspicion(id=new_id(), **known, **mark))
    session.flush()
    (candidate,) = plan(session, run).candidates
    assert [(each.place.tier, each.feasible) for each in candidate.copies] == [("object", True), ("shared", False)]


def test_a_missing_optimizer_or_position_is_refused_unless_asked(session: Session) -> None:
    """Elsewhere it only warned."""
    run = make_run(session)
    save(session, run, 1000, pieces=without("optimizer", "data_position"))
    refused = plan(session, run)
    assert refused.candidates == ()
    assert "its moments would be forgotten" in refused.excluded[0].reason
    assert "data would be repeated" in refused.excluded[0].reason
    assert "ask for fewer than weights, optimizer, data_position" in refused.sentence
    assert plan(session, run, require=(PieceName.OPTIMIZER,)).candidates == ()
    asked = plan(session, run, require=())
    assert steps(asked) == [1000]
    assert any("Not asked for: the optimizer (absent)" in note for note in asked.candidates[0].notes)
    save(session, run, 2000, pieces=without("weights"))
    assert left_out(plan(session, run, require=())) == {2000: "pieces"}  # the weights are always needed


def test_the_random_state_may_be_absent_and_is_told(session: Session) -> None:
    run = make_run(session)
    save(session, run, 1000, pieces=without("random_state"))
    answer = plan(session, run)
    assert any("random state is absent" in note for note in answer.candidates[0].notes)
    assert left_out(plan(session, run, require=(*NEEDED, PieceName.RANDOM_STATE))) == {1000: "pieces"}


def test_the_layout_of_today_decides_and_the_next_that_fits_is_taken(session: Session) -> None:
    run = make_run(session)
    save(session, run, 1000, layout=EIGHT, pieces=COUNTED)
    stuck = LayoutSpec(world_size=8, tp=2, pp=1, dp=4, cp=1, ep=1, sharding="dp_reshardable")
    save(session, run, 2000, layout=stuck, pieces=COUNTED)
    assert steps(plan(session, run, layout=EIGHT)) == [2000, 1000]
    answer = plan(session, run, layout=LayoutSpec(world_size=8, tp=4, pp=1))
    assert steps(answer) == [1000]
    assert left_out(answer) == {2000: "layout"}
    assert "the optimizer cannot be loaded" in answer.excluded[0].reason
    assert any("order of sums" in note or "drill it" in note for note in answer.candidates[0].notes)


def test_a_layout_that_only_the_attempt_recorded_counts(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, layout=LayoutSpec(world_size=8, tp=2, pp=1, dp=4, cp=1, sharding="dp_reshardable"))
    save(session, run, 1000)
    assert left_out(plan(session, run, layout=LayoutSpec(world_size=8, tp=4))) == {1000: "layout"}


def test_a_cursor_that_does_not_follow_another_dp_is_no_silent_success(session: Session) -> None:
    """Data-parallel 2 to 1 dropped a cursor while load reported success."""
    run = make_run(session)
    two = LayoutSpec(world_size=2, tp=1, pp=1, dp=2, cp=1, sharding="fully_reshardable")
    save(session, run, 1000, layout=two, pieces=STATEFUL)
    one = LayoutSpec(world_size=1)
    assert left_out(plan(session, run, layout=one)) == {1000: "layout"}
    answer = plan(session, run, layout=one, require=(PieceName.OPTIMIZER,))
    assert steps(answer) == [1000]


def test_a_counter_counts_only_while_data_seed_and_batch_size_are_equal(session: Session) -> None:
    config = {"data": {"path": "/data/v1", "blend": "a:1"}, "seed": 1, "train": {"global_batch_size": 512}}
    run = make_run(session)
    save(session, run, 1000, pieces=COUNTED, config=config)
    unasked = plan(session, run)
    assert any("these were not compared" in note for note in unasked.candidates[0].notes)
    same = plan(session, run, config={**config, "log_interval": 5})
    assert any("as far as both configs say, they are" in note for note in same.candidates[0].notes)
    for changed in (
        {**config, "seed": 2},
        {**config, "train": {"global_batch_size": 1024}},
        {**config, "data": {"path": "/data/v2", "blend": "a:1"}},
    ):
        answer = plan(session, run, config=changed)
        assert left_out(answer) == {1000: "data_position"}
        assert "no longer counts" in answer.excluded[0].reason
        assert steps(plan(session, run, config=changed, require=(PieceName.OPTIMIZER,))) == [1000]
    workers = {**config, "data": {**config["data"], "num_workers": 8}}  # type: ignore[dict-item]
    assert steps(plan(session, run, config=workers)) == [1000]


def test_a_loaders_own_state_does_not_depend_on_the_config(session: Session) -> None:
    run = make_run(session)
    save(session, run, 1000, pieces=STATEFUL, config={"seed": 1})
    assert steps(plan(session, run, config={"seed": 2})) == [1000]


def test_another_model_is_never_loaded(session: Session) -> None:
    run = make_run(session, config={"num_layers": 24})
    save(session, run, 1000)
    answer = plan(session, run, config={"model": {"num_hidden_layers": 32}}, require=())
    assert left_out(answer) == {1000: "layout"}
    assert "number of layers is 32" in answer.excluded[0].reason


def test_the_fastest_copy_comes_first_and_the_rto_leaves_out(session: Session) -> None:
    run = make_run(session)
    spread = ReplicaSpec(
        "/nvme", "local", parts=(PartSpec("n1", "0-3", "/n1", GB, "s"), PartSpec("n2", "4-7", "/n2", GB, "s"))
    )
    copies = (
        ReplicaSpec("s3://b/1", "object", bytes=900 * GB),
        ReplicaSpec("/mnt/1", "shared", bytes=900 * GB),
        spread,
    )
    save(session, run, 1000, replicas=copies, layout=EIGHT)
    answer = plan(session, run)
    assert [each.place.tier for each in answer.candidates[0].copies if each.feasible] == ["shared", "object"]
    both = plan(session, run, hosts=frozenset({"n1", "n2"}))
    assert [each.place.tier for each in both.candidates[0].copies] == ["local", "shared", "object"]
    assert left_out(plan(session, run, rto_seconds=520)) == {1000: "rto"}


def test_corrupt_copies_leave_the_next_one(session: Session) -> None:
    run = make_run(session)
    copies = (ReplicaSpec("s3://b/1", "object", bytes=GB), ReplicaSpec("/mnt/1", "shared", bytes=GB))
    save(session, run, 1000, replicas=copies)
    session.execute(update(Replica).where(Replica.uri == "/mnt/1").values(verification="corrupt"))
    (candidate,) = plan(session, run).candidates
    assert [(each.place.tier, each.feasible) for each in candidate.copies] == [("object", True), ("shared", False)]


def test_what_a_host_could_not_read_is_skipped(session: Session) -> None:
    run = make_run(session)
    save(session, run, 1000)
    number = save(session, run, 2000)
    answer = plan(session, run, skip=frozenset({number}))
    assert steps(answer) == [1000]
    assert left_out(answer) == {2000: "unreadable"}


def test_a_run_without_checkpoints_has_nothing_to_resume(session: Session) -> None:
    answer = plan(session, make_run(session))
    assert (answer.candidates, answer.considered) == ((), 0)
    assert "no checkpoint yet" in answer.sentence


def test_bad_questions_are_refused(session: Session) -> None:
    with pytest.raises(RunNotFound):
        plan_resume(session, 12, ResumeQuestion())
    with pytest.raises(ConfigTooLarge):
        plan(session, make_run(session), config={str(place): place for place in range(20_001)})
    with pytest.raises(BadResumeQuestion):
        plan(session, make_run(session), limit=0)


def test_a_long_run_is_not_read_to_its_end(committed_database: Database) -> None:
    """The newest are found by the index, whatever the run has behind them."""
    with committed_database.write() as session:
        run = make_run(session)
        for step in range(1, 60):
            save(session, run, step)
        session.flush()
        assert steps(plan(session, run, limit=3)) == [59, 58, 57]
        assert plan(session, run, limit=3).considered == 25
        if committed_database.is_sqlite:
            compiled = live_select(run.project_id, run.id).compile(
                session.get_bind(), compile_kwargs={"literal_binds": True}
            )
            told = " ".join(row[3] for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}"))
            assert "SEARCH checkpoint" in told
