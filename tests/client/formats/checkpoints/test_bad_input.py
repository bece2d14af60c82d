"""Files that are broken, hostile or too large: a word about each, and the rest goes on."""

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import READERS, LocalSource, Unreadable, Unrecognised, find_format, inspect
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.formats.checkpoints.sources import (
    FIXTURES,
    MemorySource,
    files_of,
    inspect_files,
    reasons,
    safetensors_bytes,
    states,
)

FOLDERS = [
    *("accelerate_state", "bin_sharded", "gguf_file", "hf_trainer/checkpoint-4", "lora", "safetensors_sharded"),
    *("torch_save/two_files", "lightning_ckpt/mid-epoch"),
]


class Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.path}",)


def torch_zip(pkl: bytes, compression: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("archive/data.pkl", pkl)
        for name, data in more.items():
            archive.writestr(f"archive/data/{name}", data)
    return out.getvalue()


def hostile(tmp_path: Path) -> bytes:
    return torch_zip(pickle.dumps({"state": {}, "param_groups": [], "x": Touch(tmp_path / "PWNED")}, 2))


def test_a_hostile_file_is_refused_executes_nothing_and_spoils_only_its_piece(tmp_path: Path) -> None:
    files = {**files_of("hf_trainer/checkpoint-4"), "optimizer.pt": hostile(tmp_path)}
    found = inspect_files(files)
    assert "would call posix.system when loaded: refused, nothing of it was run" in reasons(found)
    assert states(found) == {
        "weights": "present",
        "optimizer": "absent",
        "data_position": "present",
        "random_state": "present",
    }
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("name", ["model.pt", "last.ckpt", "pytorch_model.bin", "old.pt"])
def test_a_hostile_file_alone_is_refused_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    data = hostile(tmp_path)
    if name == "old.pt":
        magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
        data = magic + pickle.dumps({"x": Touch(tmp_path / "PWNED")}, 2)
    found = inspect_files({name: data})
    assert "nothing of it was run" in reasons(found)
    assert str(found.resumability) == "incomplete"
    assert list(tmp_path.iterdir()) == []


def test_a_zip_bomb_is_unpacked_no_further_than_its_limit() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("archive/data.pkl", "w") as entry:
        for _ in range(200):
            entry.write(b"]" * 1_000_000)
    bomb = out.getvalue()
    assert len(bomb) < 1_000_000
    with _memory_below(120_000_000):
        found = inspect_files({"model.pt": bomb})
    assert "more than 33,554,432 bytes" in reasons(found)


def test_a_zip_with_a_gigantic_directory_is_refused_before_it_is_read() -> None:
    whole = bytearray(torch_zip(b"\x80\x02}."))
    struct.pack_into("<L", whole, len(whole) - 10, 900_000_000)
    source = MemorySource({"model.pt": bytes(whole)})
    assert "directory of 900,000,000 bytes" in reasons(inspect(source))


class _memory_below:
    """Fails where Python's own allocations grow beyond a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __enter__(self) -> None:
        import tracemalloc

        tracemalloc.start()

    def __exit__(self, *_: object) -> None:
        import tracemalloc

        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < self.limit, f"{peak:,} bytes"


def test_documents_of_gigabytes_are_not_read() -> None:
    files = {**files_of("hf_trainer/checkpoint-4"), "trainer_state.json": b"{" + b" " * 70_000}
    source = MemorySource(files, sizes={"trainer_state.json": 2 * 1024**3})
    found = inspect(source)
    assert "at most 33,554,432 are read" in reasons(found)
    assert source.read_bytes < 2_000_000


@pytest.mark.parametrize("part", [b"{},", b'"name":0,'])
def test_a_header_of_millions_of_values_is_refused_before_it_is_parsed(part: bytes) -> None:
    header = b'{"a":[' + part * 2_000_000 + b"0]}"
    with _memory_below(80_000_000):
        found = inspect_files({"model.safetensors": struct.pack("<Q", len(header)) + header})
    assert "has a header of more than 1,500,000 values" in reasons(found)


def test_headers_of_many_shards_are_held_a_few_at_a_time() -> None:
    header = b'{"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]}' + b" " * 8_000_000 + b"}"
    shard = struct.pack("<Q", len(header)) + header + bytes(4)
    source = MemorySource({f"model-{each:05d}-of-00012.safetensors": shard for each in range(1, 13)})
    with _memory_below(75_000_000):
        found = inspect(source)
    assert (found.tensor_count, found.missing) == (12, ())


@pytest.mark.parametrize("folder", FOLDERS)
def test_permission_denied_in_the_middle_is_said_and_the_rest_goes_on(folder: str) -> None:
    """As root nothing is denied, so the source says it."""
    files = files_of(folder)
    for name in files:
        denied = {**files, name: Unreadable(f"{name} cannot be read: Permission denied.")}
        try:
            found = inspect_files(denied)
        except Unrecognised:
            continue  # the one file that would have told what it is
        assert found.files == len(files)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_every_format_may_be_cut_anywhere(folder: str) -> None:
    files = files_of(folder)
    for name, data in files.items():
        for part in (0, 1, 9, len(data) // 3, len(data) // 2, len(data) - 1):
            try:
                found = inspect_files({**files, name: data[:part]})
            except Unreadable:
                continue
            assert found.bytes == sum(map(len, files.values())) - len(data) + part


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(folder=st.sampled_from(FOLDERS), data=st.data())
def test_flipped_bytes_never_end_in_anything_but_an_answer(folder: str, data: st.DataObject) -> None:
    files = files_of(folder)
    name = data.draw(st.sampled_from(sorted(files)))
    changed = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        inspect_files({**files, name: bytes(changed)})
    except Unreadable:
        return


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(
        [
            *("a.safetensors", "model.safetensors", "a.pt", "a.ckpt", "a.gguf", "trainer_state.json", "cairn.json"),
            *("adapter_config.json", "random_states_0.pkl", "rng_state.pth", "pytorch_model.bin.index.json", "latest"),
        ]
    ),
    head=st.sampled_from([b"", b"GGUF\x03\0\0\0", b"PK\x03\x04", b"\x10\0\0\0\0\0\0\0{", b"\x80\x02", b"{"]),
    rest=st.binary(max_size=300),
)
def test_any_content_under_a_known_name_ends_in_an_answer(name: str, head: bytes, rest: bytes) -> None:
    for files in ({name: head + rest}, {**files_of("lora"), name: head + rest}):
        try:
            inspect_files(files)
        except Unreadable:
            continue


def test_ten_thousand_files_are_read_whole(tmp_path: Path) -> None:
    shard = safetensors_bytes({f"layer.{n}.weight": ("BF16", [4, 4], 32) for n in range(4)})
    total = 10_000
    for number in range(total):
        name = f"model-{number + 1:05d}-of-{total:05d}.safetensors"
        (tmp_path / name).write_bytes(shard.replace(b"layer.", b"%05d." % number))
    found = inspect(LocalSource(tmp_path))
    assert (found.files, found.tensor_count, found.complete) == (total, 4 * total, True)


def test_every_reader_says_what_it_looks_for() -> None:
    with pytest.raises(Unreadable) as refusal:
        inspect_files({"README.md": b"# Hello"})
    for reader in READERS:
        assert f"{reader.NAME} ({reader.LOOKS_FOR})" in str(refusal.value)


def test_formats_are_found_without_reading_them_whole() -> None:
    assert find_format(LocalSource(FIXTURES / "gguf_file")) == "gguf"
    assert find_format(MemorySource({"a.txt": b"x"})) is None
