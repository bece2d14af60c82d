"""From which copy to restore, how long it takes, and why not from the others."""

from typing import Any

import pytest
from sqlalchemy import event, update
from sqlalchemy.orm import Session

from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import PartSpec, PieceSpec, Registration, ReplicaSpec
from registry.db import now
from registry.ids import new_id
from registry.incidents.suspicion import say_suspect
from registry.layout.cells import Verdict
from registry.layout.spec import ContradictoryLayout
from registry.models import Checkpoint, CheckpointSuspicion, Replica
from registry.recovery.copies import read_places
from registry.recovery.restore_plan import RestorePlan, plan_restore
from registry.snapshots import LayoutSpec
from registry.types import PieceName
from tests.factories import ALL_PIECES, make_run

GB = 10**9
EIGHT = LayoutSpec(world_size=8, tp=2, pp=1, dp=4, cp=1, ep=1, sharding="fully_reshardable")
LOCAL = ReplicaSpec("/nvme/1000", "local", host="node1", bytes=100 * GB)
SHARED = ReplicaSpec("/mnt/1000", "shared", bytes=100 * GB)
OBJECT = ReplicaSpec("s3://ckpt/1000", "object", bytes=100 * GB)
SPREAD = ReplicaSpec(
    "/nvme/spread",
    "local",
    parts=(PartSpec("node1", "0-3", "/nvme/1", 50 * GB, "s"), PartSpec("node2", "4-7", "/nvme/2", 50 * GB, "s")),
)


def saved(session: Session, *replicas: ReplicaSpec, **known: Any) -> int:
    """A checkpoint with all pieces, in the layout of eight ranks, with these copies."""
    given = {"pieces": dict(ALL_PIECES), "layout": EIGHT, **known}
    return register_checkpoint(
        session, make_run(session).id, Registration(1000, replicas=replicas, **given)
    ).checkpoint_id


def tiers(plan: RestorePlan) -> list[tuple[str, bool]]:
    return [(each.place.tier, each.feasible) for each in plan.copies]


def why(plan: RestorePlan, tier: str) -> str:
    return next(each.reason for each in plan.copies if each.place.tier == tier)


def minutes(plan: RestorePlan) -> float:
    assert plan.chosen is not None
    assert plan.chosen.time is not None
    return round(plan.chosen.time.expected / 60, 2)


def test_shared_storage_comes_first_and_the_object_store_is_the_fallback(session: Session) -> None:
    number = saved(session, OBJECT, SHARED)
    plan = plan_restore(session, number)
    assert tiers(plan) == [("shared", True), ("object", True)]
    assert minutes(plan) == 8.77
    assert "Restore it from shared storage, /mnt/1000, in about 8.8 min" in plan.sentence
    session.execute(update(Replica).where(Replica.uri == SHARED.uri).values(state="removed_elsewhere"))
    plan = plan_restore(session, number)
    assert tiers(plan) == [("object", True), ("shared", False)]
    assert minutes(plan) == 9.27
    assert why(plan, "shared") == "somebody else removed it"


def test_a_local_copy_counts_only_while_its_node_is_there(session: Session) -> None:
    number = saved(session, LOCAL, SHARED)
    plan = plan_restore(session, number)
    assert tiers(plan) == [("shared", True), ("local", False)]
    assert "name the hosts" in why(plan, "local")
    plan = plan_restore(session, number, hosts=["node1"])
    assert tiers(plan) == [("local", True), ("shared", True)]
    assert minutes(plan) == 8.51
    assert "node1 is not among" in why(plan_restore(session, number, hosts=["node2"]), "local")
    assert "only node1 can read it" in why(plan_restore(session, number, hosts=["node1", "node2"]), "local")


def test_a_spread_copy_needs_every_node_and_the_same_layout(session: Session) -> None:
    number = saved(session, SPREAD)
    assert tiers(plan_restore(session, number, hosts=["node1", "node2"])) == [("local", True)]
    assert "node2 is not among" in why(plan_restore(session, number, hosts=["node1", "node3"]), "local")
    other = LayoutSpec(world_size=8, tp=1)
    assert "the layout changes" in why(plan_restore(session, number, hosts=["node1", "node2"], layout=other), "local")
    (place,) = read_places(session, session.get_one(Checkpoint, number).project_id, [number])[number]
    assert (place.bytes, len(place.parts)) == (100 * GB, 2)


def test_an_rto_is_held_against_the_slow_restores(session: Session) -> None:
    number = saved(session, SHARED)
    assert plan_restore(session, number, rto_seconds=545).chosen is not None
    plan = plan_restore(session, number, rto_seconds=530)
    assert plan.chosen is None
    assert "over 8.8 min" in why(plan, "shared")
    assert "GB/s would be needed" in why(plan, "shared")
    unknown = saved(session, ReplicaSpec("/mnt/x", "shared"))
    assert plan_restore(session, unknown).chosen is not None
    assert "cannot be promised" in why(plan_restore(session, unknown, rto_seconds=1e6), "shared")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"verification": "corrupt"}, "corrupt"),
        ({"state": "partial"}, "do not cover every rank"),
        ({"state": "removed"}, "removed"),
    ],
)
def test_a_copy_that_is_not_whole_is_not_read(session: Session, change: dict[str, str], said: str) -> None:
    number = saved(session, SHARED)
    session.execute(update(Replica).values(**change))
    plan = plan_restore(session, number)
    assert plan.chosen is None
    assert said in plan.sentence


def test_of_equally_fast_copies_the_verified_one_is_read(session: Session) -> None:
    number = saved(session, SHARED, ReplicaSpec("/mnt/z", "shared", bytes=100 * GB))
    session.execute(update(Replica).where(Replica.uri == "/mnt/z").values(verification="verified"))
    chosen = plan_restore(session, number).chosen
    assert chosen is not None
    assert (chosen.place.uri, chosen.reason) == ("/mnt/z", "")


def test_what_speaks_against_the_checkpoint_itself_is_said_first(session: Session) -> None:
    assert "no copy of it is recorded" in plan_restore(session, saved(session)).sentence
    pending = plan_restore(session, saved(session, SHARED, state="pending"))
    assert pending.sentence == "Do not restore it: it is pending, and only a committed checkpoint can be loaded."
    assert "its loss is NaN" in plan_restore(session, saved(session, SHARED, loss=float("nan"))).sentence
    suspect = saved(session, SHARED)
    say_suspect(session, session.get_one(Checkpoint, suspect), suspect=True, reason="loss jumped", actor="test")
    assert "it is suspect: loss jumped" in plan_restore(session, suspect).obstacle


def test_a_suspect_copy_is_passed_over_for_the_next_tier(session: Session) -> None:
    """A corrupt local copy was loaded 44 times in a row: after two failures alike the next copy is advised."""
    number = saved(session, SHARED, OBJECT)
    checkpoint = session.get_one(Checkpoint, number)
    (shared, _) = sorted(read_places(session, checkpoint.project_id, [number])[number], key=lambda each: each.uri)
    session.add(
        CheckpointSuspicion(
            id=new_id(),
            project_id=checkpoint.project_id,
            checkpoint_id=number,
            replica_id=shared.replica_id,
            signature="x",
            reason="two attempts failed alike",
            incidents=2,
            since=now(),
        )
    )
    session.flush()
    plan = plan_restore(session, number)
    assert tiers(plan) == [("object", True), ("shared", False)]
    assert "suspect" in why(plan, "shared")


def test_pieces_of_different_saves_are_never_one_checkpoint(session: Session) -> None:
    pieces = {**ALL_PIECES, "weights": PieceSpec(moment="save-1"), "optimizer": PieceSpec(moment="save-2")}
    assert "different saves" in plan_restore(session, saved(session, SHARED, pieces=pieces)).obstacle
    one = {**ALL_PIECES, "weights": PieceSpec(moment="save-1"), "optimizer": PieceSpec(moment="save-1")}
    assert plan_restore(session, saved(session, SHARED, pieces=one)).obstacle == ""


def test_each_piece_has_its_own_answer(session: Session) -> None:
    pieces = {**ALL_PIECES, "data_position": PieceSpec(position_evidence="state")}
    number = saved(session, SHARED, pieces=pieces)
    fits = plan_restore(session, number, layout=LayoutSpec(world_size=4, tp=2)).compatibility
    assert fits.told == "dp 4 to 2"
    assert {name.value: fit.verdict for name, fit in fits.pieces.items()} == {
        "weights": Verdict.EXACT,
        "optimizer": Verdict.EXACT,
        "data_position": Verdict.REFUSED,
        "random_state": Verdict.DRILL,
    }
    told = plan_restore(session, number, layout=LayoutSpec(world_size=4, tp=2)).sentence
    assert "In the layout asked for, this cannot be loaded: the data position (" in told
    assert "cannot be loaded" not in plan_restore(session, number).sentence
    same = plan_restore(session, number).compatibility
    assert {fit.verdict for fit in same.pieces.values()} == {Verdict.EXACT}


def test_a_count_of_samples_beside_a_loaders_state_is_the_way_out(session: Session) -> None:
    pieces = {**ALL_PIECES, "data_position": PieceSpec(position_evidence="state")}
    for counted in ({"tokens_seen": 10**9}, {"data_cursor": {"consumed_samples": 5}}):
        number = saved(session, SHARED, pieces=pieces, **counted)
        fit = plan_restore(session, number, layout=LayoutSpec(world_size=4)).compatibility.pieces
        assert fit[PieceName.DATA_POSITION].verdict is Verdict.DRILL
        assert "skip by the samples" in fit[PieceName.DATA_POSITION].words


def test_another_model_cannot_be_loaded_at_all(session: Session) -> None:
    number = saved(session, SHARED, config={"model": {"num_layers": 24}})
    target = LayoutSpec(world_size=8, extra={"num_layers": 32})
    assert "number of layers is 32" in plan_restore(session, number, layout=target).obstacle


def test_a_conversion_that_nobody_timed_promises_no_rto(session: Session) -> None:
    zero = LayoutSpec(world_size=8, tp=1, pp=1, dp=8, cp=1, sharding="zero-2", extra={"zero_stage": 2})
    number = saved(session, SHARED, layout=zero, format="deepspeed")
    plan = plan_restore(session, number, layout=LayoutSpec(world_size=4))
    assert plan.chosen is not None
    assert "conversion comes on top" in plan.chosen.reason
    assert plan_restore(session, number, layout=LayoutSpec(world_size=4), rto_seconds=1e6).chosen is None


def test_bad_questions_are_refused(session: Session) -> None:
    with pytest.raises(CheckpointNotFound):
        plan_restore(session, 12)
    with pytest.raises(ContradictoryLayout):
        plan_restore(session, saved(session, SHARED), layout=LayoutSpec(world_size=7, tp=2))


def test_a_plan_takes_the_same_number_of_statements_for_any_number_of_copies(session: Session) -> None:
    few = saved(session, SHARED, LOCAL, OBJECT)
    many = saved(session, LOCAL, *(ReplicaSpec(f"/mnt/{place}", "shared", bytes=GB) for place in range(40)))
    assert statements(session, few) == statements(session, many)


def statements(session: Session, number: int) -> int:
    session.expunge_all()
    seen: list[str] = []

    def note(*arguments: object) -> None:
        seen.append(str(arguments[2]))

    event.listen(session.get_bind(), "before_cursor_execute", note)
    plan_restore(session, number)
    event.remove(session.get_bind(), "before_cursor_execute", note)
    return len(seen)
