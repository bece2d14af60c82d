"""Content digests: known values, what they are defined over, and files that will not hold still."""

import base64
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cairn.digests import (
    ALGORITHMS,
    FileDigest,
    LibraryMissing,
    algorithms,
    digest_of_digests,
    digest_tree,
    hasher,
    local,
    mapping,
    same_digest,
    verify_tree,
)
from cairn.formats.checkpoints import File, Unreadable
from cairn.formats.checkpoints.shapes import Problem

# Published test values: of the empty input, and CRC-32C's check value of "123456789".
EMPTY = {
    "blake3": "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "xxh3-128": "99aa06d3014798d86001c324468d497f",
    "crc32c": "00000000",
}


def made(root: Path, **sizes: int) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        (root / name).write_bytes(os.urandom(size))
    return root


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_its_published_value(algorithm: str, tmp_path: Path) -> None:
    assert hasher(algorithm).hexdigest() == EMPTY[algorithm]
    (tmp_path / "empty").touch()
    assert digest_tree(tmp_path, algorithm).files == (FileDigest("empty", 0, EMPTY[algorithm]),)


def test_crc32c_is_castagnolis() -> None:
    made = hasher("crc32c")
    made.update(b"1234")
    made.update(b"56789")
    assert made.hexdigest() == "e3069283"


def test_the_digest_of_the_whole_is_over_the_sorted_lines(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"two")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").write_bytes(b"one")
    digest = {name: hashlib.sha256(data).hexdigest() for name, data in (("a/x", b"one"), ("b", b"two"))}
    lines = b"".join(f"{name}\0{3}\0{digest[name]}\n".encode() for name in ("a/x", "b"))
    found = digest_tree(tmp_path, "sha256")
    assert found.value == hashlib.sha256(lines).hexdigest()
    assert [each.path for each in found.files] == ["a/x", "b"]
    assert found.bytes == 6


def test_a_name_or_a_size_changes_the_whole_as_a_byte_does() -> None:
    one = digest_of_digests([FileDigest("a", 1, "00")])
    others = ([FileDigest("b", 1, "00")], [FileDigest("a", 2, "00")], [FileDigest("a", 1, "01")], [])
    assert len({one, *(digest_of_digests(each) for each in others)}) == 5


def test_what_is_recorded_beside_a_checkpoint_is_no_part_of_it(tmp_path: Path) -> None:
    made(tmp_path, model=100)
    before = digest_tree(tmp_path)
    (tmp_path / "cairn.json").write_text("{}")
    assert digest_tree(tmp_path) == before


def test_one_file_is_digested_by_its_name(tmp_path: Path) -> None:
    made(tmp_path, model=100)
    assert digest_tree(tmp_path / "model") == digest_tree(tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_and_small_files_read_in_pieces_or_mapped_give_the_same(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, large=700_001, exact=65_536, small=10, empty=0)
    expected = {path.name: _whole(algorithm, path.read_bytes()) for path in tmp_path.iterdir()}
    monkeypatch.setattr(local, "LARGE_BYTES", 500_000)
    monkeypatch.setattr(local, "PIECE_BYTES", 65_536)
    assert {each.path: each.value for each in digest_tree(tmp_path, algorithm).files} == expected
    monkeypatch.setattr(local, "TINY_BYTES", -1)
    assert {each.path: each.value for each in digest_tree(tmp_path, algorithm).files} == expected
    monkeypatch.setattr(local, "MAPPED_FROM_BYTES", 0)
    assert {each.path: each.value for each in digest_tree(tmp_path, algorithm).files} == expected


def _whole(algorithm: str, data: bytes) -> str:
    found = hasher(algorithm)
    found.update(data)
    return found.hexdigest()


def test_large_files_are_mapped_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, a=100_000, b=200_000)
    map_from(monkeypatch, 100_000)
    monkeypatch.setattr(local, "_digest_large", pytest.fail)
    assert len(digest_tree(tmp_path).files) == len(digest_tree(tmp_path / "a").files) + 1 == 2


def map_from(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(local, "LARGE_BYTES", size)
    monkeypatch.setattr(local, "MAPPED_FROM_BYTES", size)


def test_a_mapping_process_that_dies_is_replaced_by_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does by SIGBUS where a mapped file shrinks."""
    made(tmp_path, a=100_000, b=200_000)
    expected = digest_tree(tmp_path)
    killer = tmp_path.parent / "dies.py"
    killer.write_text("import os, signal, sys\nsys.stdin.buffer.read()\nos.kill(os.getpid(), signal.SIGBUS)\n")
    monkeypatch.setattr(mapping, "CHILD", killer)
    map_from(monkeypatch, 100_000)
    assert digest_tree(tmp_path) == expected


def test_a_mapped_file_that_shrinks_is_an_error_of_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, steady=200_000, shrinks=4_000_000)
    map_from(monkeypatch, 100_000)
    start = mapping._start

    def shrink_first() -> Any:
        os.truncate(tmp_path / "shrinks", 10)
        return start()

    monkeypatch.setattr(mapping, "_start", shrink_first)
    found = digest_tree(tmp_path)
    assert [each.path for each in found.files] == ["steady"]
    assert [each.path for each in found.problems] == ["shrinks"]


def test_a_tiny_file_that_changed_since_it_was_listed_is_read_with_care(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, steady=100, longer=1000, rewritten=1000, piped=1000, gone=1000)
    listed = local._digest_tiny_files

    def after_listing(*given: Any) -> Any:
        (tmp_path / "longer").write_bytes(bytes(1001))
        (tmp_path / "rewritten").write_bytes(bytes(1000))
        (tmp_path / "gone").unlink()
        (tmp_path / "piped").unlink()
        os.mkfifo(tmp_path / "piped")
        return listed(*given)

    monkeypatch.setattr(local, "_digest_tiny_files", after_listing)
    found = digest_tree(tmp_path)
    assert [each.path for each in found.files] == ["rewritten", "steady"]
    assert found.files[0].value == _whole("blake3", bytes(1000))
    assert {each.path: each.reason for each in found.problems} == {
        "longer": "changed: it was listed with 1,000 bytes and has 1,001",
        "piped": "is no regular file",
        "gone": "cannot be read: No such file or directory",
    }


@pytest.mark.parametrize("change", ["shrink", "grow", "touch"])
def test_a_file_that_changes_while_it_is_read_is_an_error_of_that_file(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, steady=100, moving=10_000)
    monkeypatch.setattr(local, "PIECE_BYTES", 4096)
    monkeypatch.setattr(local, "TINY_BYTES", 0)

    def disturb() -> None:
        if change == "shrink":
            os.truncate(tmp_path / "moving", 5000)
        elif change == "grow":
            with (tmp_path / "moving").open("ab") as file:
                file.write(b"more")
        else:
            os.utime(tmp_path / "moving", (1, 1))

    _between_reads(monkeypatch, disturb)
    found = digest_tree(tmp_path)
    assert found.value is None
    assert [each.path for each in found.files] == ["steady"]
    (problem,) = found.problems
    assert problem.path == "moving"
    assert problem.reason.startswith("changed while it was read")
    with pytest.raises(Unreadable, match="moving changed while it was read"):
        found.replica_fields()


def _between_reads(monkeypatch: pytest.MonkeyPatch, disturb: Callable[[], None]) -> None:
    """`disturb` happens once, after the first piece of the file `moving`."""
    read_at = local._Opened.read_at
    once = threading.Lock()

    def reading(opened: local._Opened, buffer: memoryview, offset: int) -> int:
        length = read_at(opened, buffer, offset)
        if opened._path == "moving" and once.acquire(blocking=False):
            disturb()
        return length

    monkeypatch.setattr(local._Opened, "read_at", reading)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    made(tmp_path / "ckpt", model=10)
    made(tmp_path, secret=10)
    (tmp_path / "ckpt/inside").symlink_to("model")
    (tmp_path / "ckpt/outside").symlink_to(tmp_path / "secret")
    found = digest_tree(tmp_path / "ckpt")
    assert [each.path for each in found.files] == ["inside", "model"]
    assert found.files[0].value == found.files[1].value
    assert [each.path for each in found.problems] == ["outside"]
    assert found.value is None


def test_a_library_that_is_missing_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    algorithms._library.cache_clear()
    monkeypatch.setattr(algorithms, "import_module", refuse)
    with pytest.raises(LibraryMissing, match=r"pip install 'cairn-client\[digests\]'"):
        digest_tree(tmp_path)
    with pytest.raises(ValueError, match="md5"):
        digest_tree(tmp_path, "md5")
    assert digest_tree(tmp_path, "sha256").files == ()


def test_progress_counts_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, a=100_000, b=5, c=3_000_000)
    monkeypatch.setattr(local, "LARGE_BYTES", 1_000_000)
    seen: list[int] = []
    digest_tree(tmp_path, progress=seen.append)
    assert sum(seen) == 3_100_005


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_a_producer_said_is_verified(algorithm: str, tmp_path: Path) -> None:
    made(tmp_path, good=10, flipped=10, longer=10, spare=3)
    expected = [*digest_tree(tmp_path, algorithm).files[:-1], FileDigest("missing", 1, EMPTY[algorithm])]
    assert [each.path for each in expected] == ["flipped", "good", "longer", "missing"]
    data = (tmp_path / "flipped").read_bytes()
    (tmp_path / "flipped").write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with (tmp_path / "longer").open("ab") as file:
        file.write(b"x")
    found = {each.path: each.reason for each in verify_tree(tmp_path, expected, algorithm)}
    assert set(found) == {"flipped", "longer", "missing"}
    assert found["flipped"].startswith("has another content")
    assert found["longer"] == "has 11 bytes, not 10"
    assert found["missing"] == "is missing"


def test_digests_are_the_same_in_hexadecimal_of_either_case_and_base64() -> None:
    value = "e3069283"
    assert same_digest("crc32c", value, base64.b64encode(bytes.fromhex(value)).decode())
    assert same_digest("crc32c", value, "crc32c:E3069283")
    assert not same_digest("crc32c", value, "e3069284")
    with pytest.raises(ValueError, match="no crc32c digest"):
        same_digest("crc32c", value, "e30692")


def test_a_name_that_is_no_utf8_has_a_digest_and_no_manifest(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff", "wb") as file:
        file.write(b"x")
    found = digest_tree(tmp_path)
    assert found.value is not None
    with pytest.raises(Unreadable, match=r"\\xff is no UTF-8"):
        found.replica_fields()


def test_another_source_is_read_through_and_a_change_shows_in_its_second_listing() -> None:
    source = _Memory({"a": b"one", "b": b"two" * 1000})
    assert {each.path: each.value for each in digest_tree(source).files} == {
        name: _whole("blake3", data) for name, data in source.contents.items()
    }
    source.appears = "b"
    found = digest_tree(source)
    assert [(each.path, each.reason) for each in found.problems] == [("b", "changed while it was read")]


class _Memory:
    """A source that is neither a folder nor a store. `appears`: the file that is another in the second listing."""

    name = "memory"

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents, self.appears, self._listings = contents, "", 0

    def listed(self) -> tuple[Sequence[File], Sequence[Problem]]:
        self._listings += 1
        again = self.appears if self._listings % 2 == 0 else ""
        return [File(each, len(data), 2.0 if each == again else 1.0) for each, data in self.contents.items()], []

    def read(self, path: str, offset: int, length: int) -> bytes:
        return self.contents[path][offset : offset + length]

    def read_many(self, wanted: Sequence[tuple[str, int, int]]) -> Sequence[bytes | Unreadable]:
        return [self.read(*each) for each in wanted]
