"""A spool has one owner at a time, and a dead owner's is taken over exactly once, by however many who try."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cairn.spool import lease as leases
from cairn.spool import owner as owners
from cairn.spool.lease import EXPIRY_SECONDS, begin, claim, is_alive, newest_lease, read_owner
from cairn.spool.owner import RELEASED, Owner

RACE = """
import sys, time
from pathlib import Path
from cairn.spool.lease import claim
folder, begin = Path(sys.argv[1]), float(sys.argv[2])
wins = []
for number in range(40):
    while time.time() < begin + number * 0.02:
        pass
    if claim(folder / str(number)) is not None:
        wins.append(number)
print(*wins, flush=True)
sys.stdin.read()  # who ends is dead, and would be taken over in its turn
"""


def left_by(folder: Path, owner: Owner, age_seconds: float = 0.0) -> None:
    """A lease as that owner wrote it, last renewed so many seconds ago."""
    path = folder / "lease-000001"
    path.write_text(json.dumps(vars(owner)))
    at = leases.file_system_time(folder) - age_seconds
    os.utime(path, (at, at))


def dead_here() -> Owner:
    mine = Owner.of_this_process()
    return Owner(mine.host, mine.pid, mine.boot, mine.namespace, "1")  # the number is used again by another process


def test_a_new_folder_has_one_owner(tmp_path: Path) -> None:
    begin(tmp_path)
    first = leases.Lease(tmp_path, 1)
    assert first.is_held()
    with pytest.raises(FileExistsError):
        begin(tmp_path)
    assert claim(tmp_path) is None
    assert first.renew()
    assert read_owner(tmp_path, 1) == Owner.of_this_process()


def test_a_living_process_of_this_host_is_never_taken_over_however_old_its_lease(tmp_path: Path) -> None:
    left_by(tmp_path, Owner.of_this_process(), age_seconds=10 * EXPIRY_SECONDS)
    assert claim(tmp_path) is None


def test_a_dead_process_of_this_host_is_taken_over_at_once_and_notices_if_it_was_not_dead(tmp_path: Path) -> None:
    left_by(tmp_path, dead_here())
    before = leases.Lease(tmp_path, 1)
    assert before.renew()
    assert claim(tmp_path) is not None
    assert not before.renew()
    assert newest_lease(tmp_path) == 2


@pytest.mark.parametrize("field", ["boot", "namespace"])
def test_another_host_counts_as_dead_only_when_its_lease_is_old(tmp_path: Path, field: str) -> None:
    """The number of a process means nothing elsewhere: neither on another kernel nor in another container."""
    elsewhere = Owner(**{**vars(dead_here()), field: "other"})
    left_by(tmp_path, elsewhere, age_seconds=EXPIRY_SECONDS - 30)
    assert claim(tmp_path) is None
    left_by(tmp_path, elsewhere, age_seconds=EXPIRY_SECONDS + 30)
    assert claim(tmp_path) is not None


def test_an_owner_elsewhere_that_misses_its_renewals_is_silent_before_it_is_dead(tmp_path: Path) -> None:
    elsewhere = Owner("node9", 1, "other", "other", "1")
    for age, silent in ((1, False), (EXPIRY_SECONDS / 2, True), (EXPIRY_SECONDS + 1, False)):
        left_by(tmp_path, elsewhere, age_seconds=age)
        assert leases.is_silent(tmp_path, 1) is silent
    left_by(tmp_path, Owner.of_this_process(), age_seconds=EXPIRY_SECONDS / 2)
    assert not leases.is_silent(tmp_path, 1)  # on this kernel one knows


def test_the_age_is_that_of_the_file_systems_clock(tmp_path: Path) -> None:
    left_by(tmp_path, Owner("node9", 1, "other", "other", "1"))
    ahead = leases.file_system_time(tmp_path) + 2 * EXPIRY_SECONDS
    assert is_alive(tmp_path, 1)
    assert not is_alive(tmp_path, 1, now=lambda folder: ahead)
    assert [each.name for each in tmp_path.iterdir()] == ["lease-000001"]  # the probe is gone


def test_a_lease_that_cannot_be_read_is_held_until_it_is_old(tmp_path: Path) -> None:
    (tmp_path / "lease-000001").write_text("{")
    assert claim(tmp_path) is None
    os.utime(tmp_path / "lease-000001", (1, 1))
    assert claim(tmp_path) is not None


def test_an_owner_that_gives_up_leaves_the_spool_to_the_next(tmp_path: Path) -> None:
    begin(tmp_path)
    leases.Lease(tmp_path, 1).release()
    assert claim(tmp_path) is not None


def test_a_folder_without_a_lease_is_somebodys_until_it_is_old(tmp_path: Path) -> None:
    """Who has just made it is about to say so; taken at that moment, it would be thrown away under its owner."""
    folder = tmp_path / "spool"
    folder.mkdir()
    assert claim(folder) is None
    old = leases.file_system_time(tmp_path) - EXPIRY_SECONDS - 30
    os.utime(folder, (old, old))
    assert claim(folder) is not None


def test_a_kernel_without_a_name_tells_nothing_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hosts without /proc look alike: a number of a process there means nothing here."""
    monkeypatch.setattr(owners, "_boot", lambda: "")
    monkeypatch.setattr(owners, "_namespace", lambda: "")
    left_by(tmp_path, Owner("node9", 2**22 + 1, "", "", ""))
    assert claim(tmp_path) is None


def test_what_an_owner_elsewhere_has_given_up_is_taken_at_once(tmp_path: Path) -> None:
    left_by(tmp_path, Owner("node9", 0, "other", "other", RELEASED))
    assert claim(tmp_path) is not None


def test_where_links_are_not_supported_the_file_is_made_exclusively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    begin(tmp_path)
    left_by(tmp_path, dead_here())
    assert claim(tmp_path) is not None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lease-000001", "lease-000002"]


def test_of_several_who_take_over_at_once_exactly_one_wins(tmp_path: Path) -> None:
    import time

    for number in range(40):
        (tmp_path / str(number)).mkdir()
        left_by(tmp_path / str(number), dead_here())
    begin = str(time.time() + 1.5)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path), begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    try:
        won = [int(word) for each in racers if each.stdout for word in each.stdout.readline().split()]
    finally:
        for each in racers:
            each.kill()
            each.communicate()
    assert sorted(won) == list(range(40))
