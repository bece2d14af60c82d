"""A copy is whole and verified, or it is not there; what was broken off goes on."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from cairn import Invalid
from cairn.digests import digest_tree
from cairn.errors import Conflict
from cairn.fetch import FetchFailed, fetch
from cairn.fetch import pieces as cut
from cairn.fetch.pieces import files_to_copy, pieces_of, refuse_unsafe
from cairn.formats.checkpoints import File, LocalSource, Unreadable
from cairn.formats.checkpoints.shapes import Problem
from cairn.types import Manifest, ManifestFile

from tests.client.until import until


def checkpoint(folder: Path) -> Path:
    """Files of several sizes, one empty, in folders."""
    for name, size in (("model/a.bin", 3000), ("model/b.bin", 0), ("optim.bin", 2500), (".metadata", 10)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.sha256(name.encode()).digest() * (size // 32) + b"x" * (size % 32))
    (folder / "cairn.json").write_text("{}")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifest_of(folder: Path, algorithm: str = "sha256") -> Manifest:
    found = digest_tree(folder, algorithm)
    files = tuple(ManifestFile(path=each.path, bytes=each.bytes, digest=each.value) for each in found.files)
    return Manifest(replica_id="r", algorithm=algorithm, digest=found.value, files=files)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "PIECE_BYTES", 1000)


class Counting:
    """A source that counts what is read, and fails where it is told to."""

    def __init__(self, folder: Path, fail_after: int | None = None) -> None:
        self._source, self.name = LocalSource(folder), str(folder)
        self.bytes, self.fail_after = 0, fail_after
        self._lock = threading.Lock()

    def listed(self) -> tuple[Sequence[File], Sequence[Problem]]:
        return self._source.listed()

    def read(self, path: str, offset: int, length: int) -> bytes:
        with self._lock:
            if self.fail_after is not None and self.bytes >= self.fail_after:
                raise Unreadable("the connection broke")
            data = self._source.read(path, offset, length)
            self.bytes += len(data)
        return data

    def read_many(self, wanted: Sequence[tuple[str, int, int]]) -> Sequence[bytes | Unreadable]:
        return self._source.read_many(wanted)


def test_a_copy_has_every_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    progress: list[int] = []
    done = fetch(LocalSource(source), tmp_path / "copy", progress=progress.append)
    assert contents(tmp_path / "copy") == contents(source)
    assert (done.files, done.bytes, done.verified_by) == (5, 5512, "size")
    assert sum(progress) == done.bytes == done.bytes_copied
    assert sorted(os.listdir(tmp_path)) == ["copy", "source"]


@pytest.mark.parametrize("algorithm", ["sha256", "blake3"])
def test_digests_of_the_manifest_are_held_against_the_copy(tmp_path: Path, algorithm: str) -> None:
    source = checkpoint(tmp_path / "source")
    manifest = manifest_of(source, algorithm)
    assert fetch(LocalSource(source), tmp_path / "copy", manifest=manifest).verified_by == algorithm
    whole = (algorithm, manifest.digest or "")
    assert fetch(LocalSource(source), tmp_path / "other", digest=whole).verified_by == algorithm


def test_a_source_that_was_corrupted_is_never_named_a_copy(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    manifest = manifest_of(source)
    good = (source / "optim.bin").read_bytes()
    (source / "optim.bin").write_bytes(b"!" + good[1:])
    with pytest.raises(FetchFailed, match=r"optim\.bin has another content") as failed:
        fetch(LocalSource(source), tmp_path / "copy", manifest=manifest)
    assert failed.value.code == "not-verified"
    assert not (tmp_path / "copy").exists()
    with pytest.raises(FetchFailed, match="part of a whole"):
        fetch(LocalSource(source), tmp_path / "other", digest=("sha256", manifest.digest or ""))
    (source / "optim.bin").write_bytes(good)
    assert fetch(LocalSource(source), tmp_path / "copy", manifest=manifest).verified_by == "sha256"


def test_a_broken_fetch_goes_on_where_it_stopped(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    broken = Counting(source, fail_after=2500)
    with pytest.raises(Unreadable, match="broke"):
        fetch(broken, tmp_path / "copy", workers=1)
    assert not (tmp_path / "copy").exists()
    assert (tmp_path / "copy.partial").is_dir()
    again = Counting(source)
    done = fetch(again, tmp_path / "copy", workers=1)
    assert contents(tmp_path / "copy") == contents(source)
    assert again.bytes == done.bytes_copied < done.bytes - 1500
    assert not (tmp_path / "copy.partial").exists()


# Six pieces, and then nothing comes any more.
STUCK_FETCH = """
import sys, threading
from cairn.fetch import fetch, pieces
from cairn.formats.checkpoints import LocalSource
pieces.PIECE_BYTES = 1000
left = threading.Semaphore(6)
class Stuck(LocalSource):
    def read(self, path, offset, length):
        left.acquire()
        return super().read(path, offset, length)
fetch(Stuck(sys.argv[1]), sys.argv[2], workers=2)
"""


def test_a_fetch_that_is_killed_goes_on_and_is_whole(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    (source / "large.bin").write_bytes(os.urandom(40_000))
    target, journal = tmp_path / "copy", tmp_path / "copy.partial" / "done"
    for kills in range(3):
        process = subprocess.Popen([sys.executable, "-c", STUCK_FETCH, str(source), str(target)])
        try:
            until(lambda: journal.exists() and journal.read_text().count("\n") >= 5 * (kills + 1))  # noqa: B023
            assert process.poll() is None, "it ended before it was killed"
        finally:
            process.kill()
            process.wait()
        assert not target.exists()
    again = Counting(source)
    fetch(again, target)
    assert contents(target) == contents(source)
    assert again.bytes < 40_000


def test_a_journal_that_was_cut_off_is_read_up_to_its_last_line(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    with pytest.raises(Unreadable):
        fetch(Counting(source, fail_after=2500), tmp_path / "copy", workers=1)
    journal = tmp_path / "copy.partial" / "done"
    for text in (journal.read_text()[:-3], "", "garbage"):
        journal.write_text(text)
        with pytest.raises(Unreadable):
            fetch(Counting(source, fail_after=100), tmp_path / "copy", workers=1)
    fetch(LocalSource(source), tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)


def test_what_changed_at_the_source_is_not_mixed_with_what_was_copied_before(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    with pytest.raises(Unreadable):
        fetch(Counting(source, fail_after=4000), tmp_path / "copy", workers=1)
    (source / "model/a.bin").write_bytes(b"new" * 500)
    (source / "more").write_bytes(b"1")
    fetch(LocalSource(source), tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    for place in ("file", "folder", "link"):
        target = tmp_path / place
        if place == "file":
            target.write_text("mine")
        elif place == "folder":
            target.mkdir()
        else:
            target.symlink_to(tmp_path / "nowhere")
        with pytest.raises(Invalid, match="nothing is overwritten"):
            fetch(LocalSource(source), target)
    assert (tmp_path / "file").read_text() == "mine"


def test_what_appears_while_it_is_copied_stays(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    target = tmp_path / "copy"

    def appear(count: int) -> None:
        target.mkdir(exist_ok=True)

    with pytest.raises(Invalid, match="appeared meanwhile"):
        fetch(LocalSource(source), target, progress=appear)
    assert os.listdir(target) == []


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "", ".", "a/./b", "a\0b"])
def test_a_path_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(Unreadable, match="nothing is copied"):
        refuse_unsafe(path)
    with pytest.raises(Unreadable):
        files_to_copy([File(path, 1)], None)
    with pytest.raises(Unreadable):
        files_to_copy([File("a", 1)], Manifest(replica_id="r", files=(ManifestFile(path=path, bytes=1),)))


def test_a_link_in_the_partial_folder_is_not_followed(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(Unreadable):
        fetch(Counting(source, fail_after=0), tmp_path / "copy", workers=1)
    shutil.rmtree(tmp_path / "copy.partial" / "files" / "model")
    (tmp_path / "copy.partial" / "files" / "model").symlink_to(elsewhere)
    with pytest.raises(FetchFailed, match="is a link"):
        fetch(LocalSource(source), tmp_path / "copy")
    assert os.listdir(elsewhere) == []


def test_what_the_manifest_does_not_name_is_left_out_and_what_it_misses_is_an_error(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    manifest = manifest_of(source)
    (source / "scratch.tmp").write_bytes(b"1")
    fetch(LocalSource(source), tmp_path / "copy", manifest=manifest)
    assert "scratch.tmp" not in contents(tmp_path / "copy")
    assert "cairn.json" in contents(tmp_path / "copy")
    (source / "optim.bin").write_bytes(b"short")
    with pytest.raises(Unreadable, match="5 bytes there, and 2,500 are recorded"):
        fetch(LocalSource(source), tmp_path / "other", manifest=manifest)
    (source / "optim.bin").unlink()
    with pytest.raises(Unreadable, match="missing there"):
        fetch(LocalSource(source), tmp_path / "other", manifest=manifest)


def test_two_fetches_do_not_write_into_one_folder(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "source")
    refused: list[str] = []

    def meanwhile(count: int) -> None:
        try:
            fetch(LocalSource(source), tmp_path / "copy")
        except Conflict as fault:
            refused.append(fault.detail)

    fetch(LocalSource(source), tmp_path / "copy", progress=meanwhile)
    assert refused
    assert contents(tmp_path / "copy") == contents(source)


def test_a_disk_that_is_too_small_is_told_before_anything_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Counting(checkpoint(tmp_path / "source"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(FetchFailed, match="1,000 bytes left"):
        fetch(source, tmp_path / "copy")
    assert source.bytes == 0


def test_a_disk_that_fills_up_is_told_and_what_was_copied_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = checkpoint(tmp_path / "source")
    real, written = os.pwrite, [0]

    def full(handle: int, data: memoryview, offset: int) -> int:
        if written[0] >= 2000:
            raise OSError(errno.ENOSPC, "No space left on device")
        written[0] += len(data)
        return real(handle, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(FetchFailed, match=r"No space left on device\. What was copied is kept"):
        fetch(LocalSource(source), tmp_path / "copy", workers=1)
    monkeypatch.setattr(os, "pwrite", real)
    again = Counting(source)
    done = fetch(again, tmp_path / "copy")
    assert done.bytes - again.bytes == 2000
    assert contents(tmp_path / "copy") == contents(source)


def test_pieces_cover_every_byte_once() -> None:
    files = [File("a", 2500), File("b", 0), File("c", 1000)]
    pieces = list(pieces_of(files))
    assert [(each.path, each.offset, each.length) for each in pieces] == [
        ("a", 0, 1000),
        ("a", 1000, 1000),
        ("a", 2000, 500),
        ("c", 0, 1000),
        ("b", 0, 0),
    ]


def test_one_file_is_a_checkpoint_too(tmp_path: Path) -> None:
    (tmp_path / "last.ckpt").write_bytes(b"1234")
    fetch(LocalSource(tmp_path / "last.ckpt"), tmp_path / "copy")
    assert contents(tmp_path / "copy") == {"last.ckpt": b"1234"}


def test_an_empty_source_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(Unreadable, match="holds no file"):
        fetch(LocalSource(tmp_path / "source"), tmp_path / "copy")
    with pytest.raises(Unreadable):
        fetch(LocalSource(tmp_path / "nowhere"), tmp_path / "copy")
    assert json.dumps(sorted(os.listdir(tmp_path))) == '["source"]'
