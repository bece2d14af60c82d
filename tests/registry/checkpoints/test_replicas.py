"""Copies that are recorded later: found by a scan, made by a copy, told part by part."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.detail import get_checkpoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import PartSpec, Registration, ReplicaSpec
from registry.checkpoints.replicas import ReplicaDiffers, add_replicas
from registry.snapshots import LayoutSpec
from tests.factories import make_run

SHARED = ReplicaSpec("/mnt/ckpt/10", "shared", bytes=100, digest_algorithm="blake3", digest="aa" * 32)


def made(session: Session, *replicas: ReplicaSpec, world_size: int | None = None) -> int:
    layout = LayoutSpec(world_size=world_size) if world_size else None
    given = Registration(step=10, replicas=replicas, layout=layout)
    return register_checkpoint(session, make_run(session).id, given).checkpoint_id


def add(session: Session, checkpoint: int, *replicas: ReplicaSpec) -> int:
    return add_replicas(session, checkpoint, replicas, ["/mnt"], actor="test")


def test_a_further_copy_is_added_once(session: Session) -> None:
    checkpoint = made(session, SHARED)
    other = ReplicaSpec("s3://bucket/10", "object", bytes=100)
    assert add(session, checkpoint, other) == 1
    assert add(session, checkpoint, other) == 0
    found = {each.uri: each for each in get_checkpoint(session, checkpoint).replicas}
    assert set(found) == {"/mnt/ckpt/10", "s3://bucket/10"}
    assert found["s3://bucket/10"].managed is False


def test_what_is_known_of_a_copy_is_completed_and_never_overwritten(session: Session) -> None:
    checkpoint = made(session, ReplicaSpec("/mnt/ckpt/10", "shared"))
    assert add(session, checkpoint, SHARED) == 0
    (row,) = get_checkpoint(session, checkpoint).replicas
    assert (row.bytes, row.digest) == (100, "aa" * 32)


@pytest.mark.parametrize(
    ("replica", "said"),
    [
        (ReplicaSpec("s3://b/10", "object", digest_algorithm="blake3", digest="bb" * 32), "digest is bbbb"),
        (ReplicaSpec("/mnt/ckpt/10", "shared", bytes=99), "99 bytes, where 100 are recorded"),
    ],
)
def test_other_content_is_no_copy(session: Session, replica: ReplicaSpec, said: str) -> None:
    checkpoint = made(session, SHARED)
    with pytest.raises(ReplicaDiffers, match=said):
        add(session, checkpoint, replica)


def test_digests_of_different_algorithms_are_not_held_against_each_other(session: Session) -> None:
    checkpoint = made(session, SHARED)
    assert add(session, checkpoint, ReplicaSpec("s3://b/10", "object", digest_algorithm="sha256", digest="cc")) == 1


def test_each_host_adds_its_part_until_every_rank_is_there(session: Session) -> None:
    def part(host: str, ranks: str, save: str = "s1") -> ReplicaSpec:
        return ReplicaSpec("local://ckpt/10", "local", parts=[PartSpec(host, ranks, f"/nvme/{host}", 50, save)])

    checkpoint = made(session, part("a", "0-3"), world_size=8)
    assert [each.state for each in get_checkpoint(session, checkpoint).replicas] == ["partial"]
    add(session, checkpoint, part("b", "4-7"))
    assert [each.state for each in get_checkpoint(session, checkpoint).replicas] == ["present"]


def test_parts_of_another_save_never_make_one_copy(session: Session) -> None:
    def part(host: str, ranks: str, save: str) -> ReplicaSpec:
        return ReplicaSpec("local://ckpt/10", "local", parts=[PartSpec(host, ranks, f"/nvme/{host}", 50, save)])

    checkpoint = made(session, part("a", "0-3", "s1"), world_size=8)
    add(session, checkpoint, part("b", "4-7", "s2"))
    assert [each.state for each in get_checkpoint(session, checkpoint).replicas] == ["partial"]


def test_a_checkpoint_that_is_not_there_has_no_copies(session: Session) -> None:
    with pytest.raises(CheckpointNotFound):
        add(session, 1, SHARED)
