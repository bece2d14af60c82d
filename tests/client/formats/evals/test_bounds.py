"""Files that are too large, packed to burst, broken or no files at all: refused in a short time, with little memory."""

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cairn.formats import Refused, read_evals
from cairn.formats.evals import archive, read_eval_path
from cairn.formats.evals.content import open_file
from cairn.formats.jsonfile import MAX_BYTES

from tests.client.formats.evals import samples

MEGABYTE = 1024 * 1024


pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured through /proc")


def read_with_little_memory(path: Path, megabytes: int = 300) -> str:
    """What a fresh interpreter says of the file; its peak of memory is held against the limit."""
    code = (
        "import re, sys\n"
        "from cairn.formats import Refused\n"
        "from cairn.formats.evals import read_eval_path\n"
        "try: print(len(read_eval_path(sys.argv[1]).scores))\n"
        "except Refused as refusal: print(refusal)\n"
        # Of this program alone: ru_maxrss would still count what its parent had before.
        "print(int(re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1]) // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    said, _, peak = done.stdout.strip().rpartition("\n")
    assert int(peak) < megabytes, f"{peak} MB for {path.name}"
    return said


def test_two_gigabytes_that_call_themselves_json_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with path.open("wb") as file:
        file.write(b'{\n "results": {')
        file.truncate(2 * 1024 * MEGABYTE)
    assert "2,147,483,648 bytes; a result file has at most 33,554,432" in read_with_little_memory(path, 100)
    with path.open("r+b") as file:
        file.write(b'{"a": "')
    assert "2,147,483,648 bytes" in read_with_little_memory(path, 200), "one line without an end"


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (b"[],", "values; a result file has at most"),
        (b'{"a":0},', "values; a result file has at most"),
        (b'"\xf0\x9f\x98\x80' + b"a" * 200 + b'",', "JSON array"),
        (b"[" * 200, "nested more than 64 deep"),
    ],
)
def test_what_grows_while_it_is_read_stays_below_300_megabytes(tmp_path: Path, part: bytes, reason: str) -> None:
    path = tmp_path / "results.json"
    count = (MAX_BYTES - 10) // len(part)
    if part.startswith(b"[["):
        count = 1_000_000 // len(part)
    path.write_bytes(b"[" + part * count + b"0]")
    assert reason in read_with_little_memory(path)


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.eval"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made,
        made.open("header.json", "w", force_zip64=True) as file,
    ):
        for _ in range(500):
            file.write(b" " * MEGABYTE)
    assert path.stat().st_size < MEGABYTE
    assert "unpacks to more than 33,554,432 bytes" in read_with_little_memory(path)


def test_an_archive_that_lies_about_its_size_is_cut_off() -> None:
    data = bytearray(samples.archive({"header.json": b" " * (33 * MEGABYTE)}))
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 10)  # the size after unpacking, as its directory says
    with pytest.raises(Refused, match=r"header\.json in the archive (is broken|unpacks)"):
        read_evals(bytes(data))


def test_a_directory_of_millions_of_entries_is_refused_by_its_size() -> None:
    data = bytearray(samples.inspect_archive())
    at = data.rfind(b"PK\x05\x06")
    data[at + 12 : at + 16] = struct.pack("<L", 200 * MEGABYTE)
    with pytest.raises(Refused, match="a directory of more than 8,388,608 bytes"):
        read_evals(bytes(data))


@pytest.mark.parametrize("cut", [10, 60, 400])
def test_an_archive_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(Refused, match="archive"):
        read_evals(samples.inspect_archive()[:-cut])


def test_an_encrypted_archive_is_refused() -> None:
    data = bytearray(samples.archive({"header.json": b"{}"}))
    for sign, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.find(sign) + offset] |= 1
    with pytest.raises(Refused, match="cannot be unpacked"):
        read_evals(bytes(data))


def test_only_the_header_of_an_archive_is_opened() -> None:
    names = archive.names(io.BytesIO(samples.archive({"../../escape": b"x", "header.json": b"{}"})))
    assert names == ["../../escape", "header.json"]
    with pytest.raises(Refused, match="is no log of inspect-ai"):
        read_evals(samples.archive({"../../escape": b"x", "header.json": b"{}"}))
    assert not Path("../../escape").exists()


def test_large_logs_and_lists_of_samples_are_read_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "large.eval"
    noise = os.urandom(MEGABYTE)
    with zipfile.ZipFile(log, "w", zipfile.ZIP_STORED) as made:
        for index in range(40):
            made.writestr(f"samples/{index}_epoch_1.json", noise)
        made.writestr("header.json", json.dumps(samples.inspect_log()))
    assert log.stat().st_size > MAX_BYTES
    assert read_with_little_memory(log, 100) == "1"
    listed = tmp_path / "samples_gsm8k.jsonl"
    row = samples.sample(0, 1.0, filtered_resps=["x" * 200_000])
    listed.write_bytes(samples.lines([{**row, "doc_id": doc, "acc": float(doc % 4 > 0)} for doc in range(200)]))
    assert listed.stat().st_size > MAX_BYTES
    assert read_with_little_memory(listed, 100) == "1"
    score = read_eval_path(listed).scores[0]
    assert (score.benchmark, score.value, score.n_samples) == ("gsm8k", 0.75, 200)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(Refused, match="no regular file"):
        read_eval_path(pipe)
    with pytest.raises(Refused, match="no regular file"):
        read_eval_path("/dev/zero")
    with pytest.raises(IsADirectoryError):
        read_eval_path(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_eval_path(tmp_path / "absent")


def test_a_name_that_is_no_utf8_is_no_reason_to_fail(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"r\xff.json")
    Path(os.fsdecode(path)).write_bytes(json.dumps(samples.lm_eval_v04()).encode())
    assert read_eval_path(os.fsdecode(path)).format == "lm-eval-v04"


@pytest.mark.parametrize("sign", [b"\x1f\x8b\x08", b"\x80\x04\x95", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0"])
def test_other_kinds_of_files_are_named(sign: bytes) -> None:
    with pytest.raises(Refused, match=r"The file is (compressed|a pickle|an SQLite)"):
        read_evals(sign + b"\0" * 50)


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(json.dumps(samples.lm_eval_v04()).encode())
    with path.open("rb", buffering=0) as file:
        shrinking = Shrinking(file, path)
        with pytest.raises(Refused, match="The file shrank while it was read"):
            open_file(shrinking)  # type: ignore[arg-type]


class Shrinking:
    """An open file that somebody cuts short after its first bytes were read."""

    def __init__(self, file: io.FileIO, path: Path) -> None:
        self._file, self._path = file, path

    def read(self, count: int) -> bytes:
        found = self._file.read(count)
        os.truncate(self._path, 100)
        return found

    def fileno(self) -> int:
        return self._file.fileno()

    def seek(self, place: int) -> int:
        return self._file.seek(place)
