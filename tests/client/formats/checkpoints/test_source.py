"""Listing and reading folders of this machine."""

import os
import socket
from pathlib import Path

import pytest
from cairn.formats.checkpoints import LocalSource, Unreadable, inspect
from cairn.formats.checkpoints.source import Listing

from tests.client.formats.checkpoints.sources import FIXTURES, files_of, reasons


def written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def listed(folder: Path) -> tuple[list[str], dict[str, str]]:
    files, problems = LocalSource(folder).listed()
    return sorted(each.path for each in files), {each.path: each.reason for each in problems}


def test_links_that_leave_the_root_are_reported_and_never_read(tmp_path: Path) -> None:
    secret = written(tmp_path / "outside", {"secret": b"s"}) / "secret"
    root = written(tmp_path / "root", {"a": b"1"})
    (root / "out").symlink_to(secret)
    (root / "folder_out").symlink_to(tmp_path / "outside")
    (root / "relative").symlink_to("../outside/secret")
    files, problems = listed(root)
    assert files == ["a"]
    assert all("leads out" in problems[name] for name in ("out", "folder_out", "relative"))
    with pytest.raises(Unreadable, match="leads out"):
        LocalSource(root).read("out", 0, 1)
    with pytest.raises(Unreadable, match="leads out"):
        LocalSource(root).read("../outside/secret", 0, 1)


def test_links_inside_are_followed_to_files_and_not_into_folders(tmp_path: Path) -> None:
    root = written(tmp_path, {"blobs/abc": b"data", "snapshot/b": b"1"})
    (root / "snapshot" / "model").symlink_to("../blobs/abc")
    (root / "latest").symlink_to("snapshot")
    files, problems = listed(root)
    assert files == ["blobs/abc", "snapshot/b", "snapshot/model"]
    assert problems == {}
    assert LocalSource(root).read("snapshot/model", 1, 2) == b"at"


def test_links_in_a_circle_and_into_nothing_end(tmp_path: Path) -> None:
    root = written(tmp_path, {"a": b"1"})
    (root / "loop").symlink_to("loop")
    (root / "self").symlink_to(".")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "gone").symlink_to("missing")
    files, problems = listed(root)
    assert files == ["a"]
    assert problems.keys() == {"loop", "one", "two", "gone"}


def test_a_file_exchanged_for_a_link_after_the_listing_is_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", {"secret": b"s"})
    root = written(tmp_path / "root", {"a": b"1"})
    source = LocalSource(root)
    listing = Listing.of(source)
    (root / "a").unlink()
    (root / "a").symlink_to(outside / "secret")
    with pytest.raises(Unreadable):
        listing.head("a")


def test_a_pipe_a_socket_and_a_device_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(tmp_path, {"a": b"1"})
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        files, problems = listed(root)
    assert files == ["a"]
    assert all("no regular file" in problems[name] for name in ("pipe", "socket"))
    with pytest.raises(Unreadable, match="no regular file"):
        LocalSource(root).read("pipe", 0, 1)  # and it does not wait for a writer


def test_names_that_are_no_utf_8_survive(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    with open(os.path.join(root, b"model-\xff\xfe.bin"), "wb") as file:
        file.write(b"abc")
    listing = Listing.of(LocalSource(tmp_path))
    (name,) = listing
    assert listing.head(name, 2) == b"ab"
    with pytest.raises(Unreadable, match=r"model-\\xff\\xfe.bin"):
        inspect(LocalSource(tmp_path))


def test_a_checkpoint_is_read_beside_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    written(tmp_path, files_of("hf_trainer/checkpoint-4"))
    with open(os.path.join(os.fsencode(tmp_path), b"notes-\xe4.txt"), "wb"):
        pass
    assert inspect(LocalSource(tmp_path)).step == 4


def test_a_file_that_shrinks_between_listing_and_reading_is_told(tmp_path: Path) -> None:
    root = written(tmp_path, files_of("safetensors_single"))
    listing = Listing.of(LocalSource(root))
    os.truncate(root / "model.safetensors", 100)
    from cairn.formats.checkpoints import inspect_listing

    found = inspect_listing(listing)
    assert "cut short" in reasons(found)
    assert found.complete is False


def test_a_file_that_disappears_between_listing_and_reading_is_told(tmp_path: Path) -> None:
    root = written(tmp_path, files_of("hf_trainer/checkpoint-4"))
    listing = Listing.of(LocalSource(root))
    (root / "optimizer.pt").unlink()
    from cairn.formats.checkpoints import inspect_listing

    found = inspect_listing(listing)
    assert "optimizer.pt" in reasons(found)
    assert str(found.pieces.optimizer.state) == "absent"


def test_more_files_than_any_checkpoint_has_are_cut_with_a_word(tmp_path: Path) -> None:
    written(tmp_path, {f"f{number}": b"" for number in range(30)})
    files, problems = LocalSource(tmp_path, max_files=10).listed()
    assert len(files) == 10
    assert "only the first 10 files" in problems[0].reason


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be listed: No such file"):
        inspect(LocalSource(tmp_path / "missing"))


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="holds no file"):
        inspect(LocalSource(tmp_path))


def test_a_single_file_is_a_place_too() -> None:
    source = LocalSource(FIXTURES / "safetensors_single" / "model.safetensors")
    assert inspect(source).parameter_count == 1704


def test_a_part_of_a_listing_reads_from_the_same_place() -> None:
    listing = Listing.of(LocalSource(FIXTURES / "hf_trainer"))
    below = listing.below("checkpoint-4")
    assert below.name == "checkpoint-4"
    assert below.root.endswith("hf_trainer/checkpoint-4")
    assert below.exact("trainer_state.json", 0, 1) == b"{"
    assert listing.folders() == ["checkpoint-2", "checkpoint-4"]


def test_what_is_asked_for_at_once_is_bounded() -> None:
    listing = Listing.of(LocalSource(FIXTURES / "safetensors_single"))
    with pytest.raises(Unreadable, match="at most"):
        listing.exact("model.safetensors", 0, 2**40)
    with pytest.raises(Unreadable, match="at most 10 are read"):
        listing.all_of("model.safetensors", 10)
