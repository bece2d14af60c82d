"""What `append` called spooled is delivered, each record once at least, in the order of its attempt: whatever happens
between writing, reading, acknowledging, a full disk, a lost lease and the death of the process, in any order."""

import shutil
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from cairn.spool import files, tenure
from cairn.spool import lease as leases
from cairn.spool import writer as writers
from cairn.spool.backlog import Backlog
from cairn.spool.lease import claim
from cairn.spool.places import spool_folders
from cairn.spool.writer import SpoolWriter
from hypothesis import given, settings
from hypothesis import strategies as st

EVENTS = st.lists(
    st.sampled_from(
        ["append"] * 6
        + ["both"] * 3
        + ["later", "tick", "tick", "take", "take", "half", "full", "lost", "again", "die"]
    ),
    min_size=5,
    max_size=80,
)


class World:
    """One process that writes, its sender, and what the service has heard."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.heard: dict[str, list[int]] = {"a": [], "b": []}
        self.promised: set[tuple[str, int]] = set()
        self.step = 0
        self.space: deque[int] = deque()  # bytes of each of the next writes; none: as many as are wanted
        self.begin()

    def begin(self) -> None:
        self.writer = SpoolWriter([self.root], lambda said: None)
        self.writer.tick()
        assert self.writer.folder is not None
        self.backlog = Backlog(self.writer.folder)

    def append(self) -> None:
        self.step += 1
        key = "ab"[self.step % 2]
        if self.writer.append({"kind": "saved", "key": key, "step": self.step}):
            self.promised.add((key, self.step))

    def both(self) -> None:
        """Two in one write, of which a full disk may take the first alone."""
        first, self.step = self.step + 1, self.step + 2
        pair = [("ab"[step % 2], step) for step in (first, self.step)]
        if self.writer.append(*({"kind": "saved", "key": key, "step": step} for key, step in pair)):
            self.promised.update(pair)

    def later(self) -> None:
        self.step += 1
        record = {"kind": "saved", "key": "ab"[self.step % 2], "step": self.step}
        self.writer.append_later(lambda: record)

    def tick(self) -> None:
        self.writer.tick()

    def take(self, most: int = 3) -> None:
        self.follow()
        found = self.backlog.take(most)
        if found:
            key = found[0].record["key"]
            self.heard[key] += [each.record["step"] for each in found]
            self.backlog.ack(key, found[-1].number)

    def half(self) -> None:
        """Sent, but the answer is lost."""
        self.follow()
        for each in self.backlog.take(2):
            self.heard[each.record["key"]].append(each.record["step"])

    def full(self) -> None:
        self.space.append(60 if self.step % 2 else 7)  # in the second of two lines, or in the first

    def lost(self) -> None:
        """Somebody thinks this process dead, and takes over what it left."""
        folder = self.writer.folder
        if folder is None or not folder.exists():
            return
        leases.Lease(folder, 1).release()
        taken = claim(folder)
        assert taken is not None
        self.drain(Backlog(folder))
        shutil.rmtree(folder)

    def again(self) -> None:
        """The sender begins anew from what is on disk."""
        self.backlog = Backlog(self.backlog.folder)

    def die(self) -> None:
        self.writer.close()
        self.writer.release()
        self.adopt()
        self.begin()

    def follow(self) -> None:
        folder = self.writer.folder
        if folder is not None and folder != self.backlog.folder:
            fresh = Backlog(folder)
            fresh.follow(self.backlog)
            self.backlog = fresh

    def adopt(self) -> None:
        for folder in list(spool_folders(self.root)):
            if claim(folder) is not None:
                self.drain(Backlog(folder))
                shutil.rmtree(folder)

    def drain(self, backlog: Backlog) -> None:
        while found := backlog.take(5):
            key = found[0].record["key"]
            self.heard[key] += [each.record["step"] for each in found]
            backlog.ack(key, found[-1].number)


def _in_order_of_first(heard: list[int]) -> bool:
    first = list(dict.fromkeys(heard))
    return first == sorted(first)


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_whatever_happens_what_was_promised_arrives_in_order(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path_factory.mktemp("promise") / "spool")
        patch.setattr(writers, "RETRY_SECONDS", 0.0)
        patch.setattr(tenure, "RENEW_SECONDS", 0.0)
        patch.setattr(files, "SEGMENT_BYTES", 300)
        real = files.os.write

        def write(handle: int, content: bytes) -> int:
            short = world.space and handle == world.writer._files.handle
            return real(handle, content[: world.space.popleft()] if short else content)

        patch.setattr(files.os, "write", write)
        for event in events:
            getattr(world, event)()
        world.space.clear()
        for _ in range(3):
            world.writer.tick()
        world.follow()
        world.drain(world.backlog)
        assert world.backlog.settled.through <= world.writer.last
        world.die()
        heard = {(key, step) for key, steps in world.heard.items() for step in steps}
        assert world.promised <= heard, sorted(world.promised - heard)
        assert all(_in_order_of_first(steps) for steps in world.heard.values()), world.heard
        world.writer.close()


def test_numbers_count_as_settled_only_when_they_were_answered_for(tmp_path: Path) -> None:
    world = World(tmp_path / "spool")
    for _ in range(6):
        world.append()
    assert (world.backlog.settled.through, world.writer.last) == (0, 6)
    world.half()
    assert world.backlog.settled.through == 0
    world.drain(world.backlog)
    assert world.backlog.settled.through == world.writer.last == 6
    found: Any = world.writer.folder
    shutil.rmtree(found)  # an empty folder, or none, is no proof that everything was delivered
    world.append()
    assert world.backlog.settled.through < world.writer.last
