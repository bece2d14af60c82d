"""Bytes by run, tier and state."""

from sqlalchemy import event, update
from sqlalchemy.orm import Session

from registry.checkpoints.registration import PartSpec, ReplicaSpec
from registry.models import Replica
from registry.resume_points import ResumePoint
from registry.snapshots import LayoutSpec
from registry.storage.usage import Usage, storage_usage
from tests.factories import make_attempt, make_checkpoint, make_project, make_run


def told(rows: list[Usage]) -> list[tuple[str, str | None, str, bool, int, int]]:
    return [(each.run.name, each.tier, each.state, each.superseded, each.checkpoints, each.bytes) for each in rows]


def test_bytes_are_told_by_run_tier_and_state(session: Session) -> None:
    project = make_project(session)
    one, two = make_run(session, project, "one"), make_run(session, project, "two")
    shared, stored = ReplicaSpec("/mnt/1", "shared", bytes=10), ReplicaSpec("s3://b/1", "object", bytes=10)
    make_checkpoint(session, one, 1000, replicas=(shared, stored))
    make_checkpoint(session, one, 2000, replicas=(ReplicaSpec("/mnt/2", "shared", bytes=30),))
    make_attempt(session, one, resumed_from=ResumePoint(step=1000))
    make_checkpoint(session, one, 1500, replicas=(ReplicaSpec("/mnt/3", "shared", bytes=7),), state="pending")
    make_checkpoint(session, two, 1)
    assert told(storage_usage(session, project_ids=[project.id])) == [
        ("one", "shared", "committed", True, 1, 30),
        ("one", "object", "committed", False, 1, 10),
        ("one", "shared", "committed", False, 1, 10),
        ("one", "shared", "pending", False, 1, 7),
        ("two", None, "committed", False, 1, 0),
    ]
    assert told(storage_usage(session, run_id=two.id)) == [("two", None, "committed", False, 1, 0)]
    assert storage_usage(session, project_ids=[make_project(session).id]) == []


def test_a_size_nobody_recorded_is_counted_as_unknown_and_parts_are_added_up(session: Session) -> None:
    run = make_run(session)
    parts = (PartSpec("a", "0", "/a", 3, "s"), PartSpec("b", "1", "/b", 4, "s"))
    copies = (ReplicaSpec("/mnt/1", "shared"), ReplicaSpec("/nvme", "local", parts=parts))
    make_checkpoint(session, run, replicas=copies, layout=LayoutSpec(world_size=2))
    found = {each.tier: (each.bytes, each.unknown_sizes, each.copies) for each in storage_usage(session, run_id=run.id)}
    assert found == {"shared": (0, 1, 1), "local": (7, 0, 1)}


def test_a_copy_that_is_gone_takes_no_room(session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, replicas=(ReplicaSpec("/mnt/1", "shared", bytes=10),))
    session.execute(update(Replica).values(state="removed"))
    assert told(storage_usage(session, run_id=run.id)) == [(run.name, None, "committed", False, 1, 0)]


def test_it_is_one_statement(session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, replicas=(ReplicaSpec("/mnt/1", "shared", bytes=10),))
    seen: list[str] = []

    def note(*arguments: object) -> None:
        seen.append(str(arguments[2]))

    event.listen(session.get_bind(), "before_cursor_execute", note)
    storage_usage(session, project_ids=[run.project_id])
    event.remove(session.get_bind(), "before_cursor_execute", note)
    assert len(seen) == 1
