"""What `append` calls spooled is on disk; what cannot be written is kept in memory, bounded, and written later."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.recorder.prepare import Prepared
from cairn.spool import files, memory, tenure
from cairn.spool import lease as leases
from cairn.spool import writer as writers
from cairn.spool.adopted import adopt
from cairn.spool.backlog import Backlog
from cairn.spool.writer import SpoolWriter

from tests.client.until import LATEST


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def open_spool(tmp_path: Path, said: list[str]) -> Iterator[Callable[..., SpoolWriter]]:
    made: list[SpoolWriter] = []

    def make(*roots: Path) -> SpoolWriter:
        spool = SpoolWriter(roots or (tmp_path / "spool",), said.append)
        spool.tick()
        made.append(spool)
        return spool

    yield make
    for each in made:
        each.close()


def steps(folder: Path | None) -> list[Any]:
    assert folder is not None
    return [each.record["step"] for each in Backlog(folder).records()]


def record(step: int, **more: Any) -> dict[str, Any]:
    return {"kind": "saved", "key": "k", "step": step, **more}


def test_what_is_spooled_is_in_the_file_when_the_call_returns(open_spool: Callable[..., SpoolWriter]) -> None:
    spool = open_spool()
    assert all(spool.append(record(step)) for step in range(5))
    assert steps(spool.folder) == [0, 1, 2, 3, 4]


def test_a_spool_cannot_be_read_by_others(open_spool: Callable[..., SpoolWriter]) -> None:
    folder = open_spool().folder
    assert folder is not None
    for path in (folder.parent, folder, *folder.glob("records-*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_before_the_folder_is_there_records_wait_in_memory_and_keep_their_order(
    tmp_path: Path, said: list[str]
) -> None:
    spool = SpoolWriter([tmp_path / "spool"], said.append)
    assert not spool.append(record(0))
    spool.tick()
    assert spool.append(record(1))
    assert steps(spool.folder) == [0, 1]
    spool.close()


def test_a_record_that_is_made_later_holds_back_those_after_it(open_spool: Callable[..., SpoolWriter]) -> None:
    spool = open_spool()
    spool.append(record(0))
    spool.append_later(lambda: record(1, cursor="digest"))
    assert not spool.append(record(2))
    spool.tick()
    assert steps(spool.folder) == [0, 1, 2]


def test_large_spools_are_split_into_files_and_read_as_one(
    open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SEGMENT_BYTES", 1_000)
    spool = open_spool()
    for step in range(100):
        assert spool.append(record(step))
        spool.tick()
    assert spool.folder is not None
    backlog = Backlog(spool.folder)
    assert len(backlog.segments()) > 4
    taken = backlog.take(1_000)
    assert [each.record["step"] for each in taken] == list(range(100))
    backlog.ack("k", taken[-1].number)
    assert backlog.take(1_000) == []
    backlog.prune()
    assert len(backlog.segments()) == 2
    assert backlog.is_empty()


def test_a_folder_that_cannot_be_written_is_warned_of_once_and_costs_no_record(
    tmp_path: Path, said: list[str], open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "RETRY_SECONDS", LATEST)  # each try would warn
    blocked = tmp_path / "file"
    blocked.write_text("no folder can be made below a file")
    spool = open_spool(blocked / "spool")
    for step in range(50):
        assert not spool.append(record(step))
        spool.tick()
    assert len([each for each in said if "cannot be written" in each]) == 1
    assert [each["step"] for _, each in spool.from_memory(100)] == list(range(50))


def test_a_second_root_is_used_where_the_first_cannot_be(
    tmp_path: Path, said: list[str], open_spool: Callable[..., SpoolWriter]
) -> None:
    (tmp_path / "file").write_text("")
    spool = open_spool(tmp_path / "file" / "spool", tmp_path / "second")
    assert spool.append(record(0))
    assert spool.folder is not None
    assert spool.folder.parent == tmp_path / "second"
    assert any("is used instead" in each for each in said)


def test_memory_is_bounded_and_what_it_loses_is_told(
    tmp_path: Path, said: list[str], open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MEMORY_BYTES", 10_000)
    (tmp_path / "file").write_text("")
    spool = open_spool(tmp_path / "file" / "spool")
    for step in range(1_000):
        spool.append(record(step))
    assert spool.waiting < 300
    assert spool.lost == 1_000 - spool.waiting
    assert any("newer ones are lost" in each for each in said)


FULL_DISK = """
import json, resource, sys
from pathlib import Path
from cairn.spool.backlog import Backlog
from cairn.spool import writer
writer.RETRY_SECONDS = 0.0
said = []
spool = writer.SpoolWriter([Path(sys.argv[1])], said.append)
spool.tick()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
acknowledged = [step for step in range(2_000) if spool.append({"kind": "saved", "key": "k", "step": step})]
full = (len(acknowledged), spool.waiting, len(said))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # not a byte any more
for _ in range(20):
    spool.tick()
files = len(list(spool.folder.glob("records-*")))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
spool.tick()
late = spool.append({"kind": "saved", "key": "k", "step": 2_000})
found = [each.record["step"] for each in Backlog(spool.folder).records()]
print(json.dumps({"full": full, "late": late, "whole": found == list(range(2_001)), "waiting": spool.waiting,
                  "files": files}))
"""


def test_a_full_disk_loses_nothing_and_everything_is_written_once_there_is_space(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the write fails in the middle of a record."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    found = json.loads(done.stdout)
    acknowledged, waiting, warnings = found["full"]
    assert 100 < acknowledged < 1_000
    assert waiting == 2_000 - acknowledged
    assert warnings == 1
    assert (found["late"], found["whole"], found["waiting"]) == (True, True, 0)
    assert found["files"] == 2  # however often it was tried


def test_a_disk_that_does_not_answer_keeps_no_call_waiting(
    open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool()
    monkeypatch.setattr(writers, "SLOW_SECONDS", 0.0)
    spool._busy_since = time.monotonic() - 1.0  # the background is stuck in a call to the disk
    writes = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda *given: writes.append(given) or real(*given))
    assert not spool.append(record(0))
    assert writes == []
    spool._busy_since = 0.0
    spool.tick()
    assert steps(spool.folder) == [0]


def test_an_owner_whose_spool_was_taken_over_writes_what_was_missed_into_a_new_one(
    open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, "RENEW_SECONDS", 0.0)
    spool = open_spool()
    first = spool.folder
    assert first is not None
    spool.append(record(0))
    spool.tick()  # renewed: the next owner has seen this one
    spool.append(record(1))
    (first / "lease-000002").write_text("{}")  # another took it over while this process stood still
    spool.tick()
    spool.tick()
    assert spool.append(record(2))
    assert spool.folder != first
    assert steps(spool.folder) == [1, 2]


def test_a_spool_that_is_being_made_is_not_taken_by_who_looks_at_that_moment(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without an owner is empty too: it would be thrown away, and what is written there with it."""
    real, looked = os.link, []

    def link(source: Any, target: Any) -> None:
        if not looked:
            looked.append(target)
            with Client("http://127.0.0.1:9", "t") as client:
                for each in adopt(
                    [tmp_path / "spool"], None, client, lambda: Prepared(said.append, own=False), said.append
                ):
                    each.finish()
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    spool = SpoolWriter([tmp_path / "spool"], said.append)
    spool.tick()
    assert looked
    assert spool.append(record(0))
    assert steps(spool.folder) == [0]
    assert spool.holds()
    spool.close()


def test_a_folder_that_somebody_removes_acknowledges_nothing_and_is_made_anew(
    open_spool: Callable[..., SpoolWriter],
) -> None:
    spool = open_spool()
    first = spool.folder
    assert first is not None
    spool.append({"kind": "start", "key": "k", "step": None})
    assert spool.append(record(1))
    shutil.rmtree(first)
    assert not spool.append(record(2))
    spool.tick()
    spool.tick()
    assert spool.append(record(3))
    assert spool.folder != first
    assert steps(spool.folder) == [None, 1, 2, 3]


def test_every_folder_says_what_opens_its_attempts(
    open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds only the second one must be able to send it."""
    monkeypatch.setattr(tenure, "RENEW_SECONDS", 0.0)
    spool = open_spool()
    first = spool.folder
    assert first is not None
    spool.append({"kind": "start", "key": "k", "step": None})
    spool.append(record(1))
    spool.tick()  # renewed: the next owner has seen these
    (first / "lease-000002").write_text("{}")
    spool.tick()
    spool.tick()
    spool.append(record(2))
    assert steps(spool.folder) == [None, 2]


def test_who_has_stood_still_for_long_acknowledges_nothing_before_looking(
    open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool()
    later = leases.clock() + leases.TRUST_SECONDS + 1
    monkeypatch.setattr(tenure, "clock", lambda: later)
    assert not spool.append(record(0))
    spool.tick()
    assert spool.append(record(1))
    assert steps(spool.folder) == [0, 1]


def test_a_record_that_cannot_be_made_holds_up_none_behind_it(
    open_spool: Callable[..., SpoolWriter], said: list[str]
) -> None:
    spool = open_spool()
    spool.append_later(lambda: record(0, cursor=1 / 0))
    assert not spool.append(record(1))
    spool.tick()
    assert steps(spool.folder) == [1]
    assert spool.lost == 1
    assert any("could not be made" in each for each in said)


def test_a_record_that_is_made_later_is_sent_where_nothing_can_be_written(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "file").write_text("")
    spool = SpoolWriter([tmp_path / "file" / "spool"], said.append)
    spool.tick()
    spool.append_later(lambda: record(0))
    spool.append(record(1))
    assert [each["step"] for _, each in spool.from_memory(5)] == [0, 1]


def test_files_are_only_removed_once_what_is_known_of_their_attempts_is_on_disk(
    open_spool: Callable[..., SpoolWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SEGMENT_BYTES", 500)
    spool = open_spool()
    for step in range(40):
        spool.append(record(step))
        spool.tick()
    assert spool.folder is not None
    backlog = Backlog(spool.folder)
    before = backlog.segments()
    (spool.folder / "done").mkdir()  # cannot be replaced by a file
    backlog.ack("k", backlog.take(100)[-1].number)
    backlog.take(1)
    backlog.prune()
    assert backlog.segments() == before
    (spool.folder / "done").rmdir()
    backlog.prune()
    assert backlog.segments() == before[-2:]
