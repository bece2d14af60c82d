"""Torn ends, flipped bytes, growing and replaced files: damage costs the records that it touches, and nothing else."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from cairn.formats.wandb_offline import OfflineRun, read_folder
from cairn.formats.wandb_offline.frames import BLOCK_BYTES, HEADER_BYTES, Frames

from tests.client.formats.wandb_offline.conftest import FIXTURE

Copy = Callable[[bytes], Path]
WHOLE = FIXTURE.read_bytes()
ROWS = list(range(1, 87))


def steps(run: OfflineRun) -> list[int]:
    return [row.index for row in run.rows]


def boundaries() -> list[int]:
    with FIXTURE.open("rb") as file:
        return [HEADER_BYTES, *(frame.end for frame in Frames(file))]


def test_a_file_cut_at_any_place_is_read_up_to_its_last_whole_record(copy: Copy) -> None:
    ends = boundaries()
    places = {0, 1, 6, 7, 8, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, *ends, *(end - 1 for end in ends)}
    places |= set(random.Random(7).sample(range(len(WHOLE)), 100))
    for place in places:
        run = read_folder(copy(WHOLE[:place]))
        assert run.offset == max([end for end in ends if end <= place], default=HEADER_BYTES), place
        assert run.problems == (), place
        if place % 5 == 0:
            later = read_folder(copy(WHOLE), run.offset)
            assert steps(run) + steps(later) == ROWS, place
            assert later.offset == len(WHOLE)


def test_a_flipped_byte_costs_the_records_that_it_touches(copy: Copy) -> None:
    for place in random.Random(11).sample(range(HEADER_BYTES, len(WHOLE)), 200):
        flipped = bytearray(WHOLE)
        flipped[place] ^= 1 << (place % 8)
        run = read_folder(copy(bytes(flipped)))
        found = steps(run)
        assert found == sorted(set(found)), place
        assert len(found) >= len(ROWS) - 2, place
        # Either it is said, or the last record cannot be told from one that is still being written.
        assert run.problems or run.offset < len(WHOLE), place


@pytest.mark.parametrize("size", [100, 5_000, BLOCK_BYTES])
def test_a_hole_of_zeros_costs_what_lay_in_it(copy: Copy, size: int) -> None:
    start = 2_000
    run = read_folder(copy(WHOLE[:start] + bytes(size) + WHOLE[start + size :]))
    assert steps(run) == sorted(set(steps(run)))
    assert steps(run)[-1] == 86
    assert run.problems
    assert "damaged" in run.problems[0]


def test_the_header_may_be_damaged_too(copy: Copy) -> None:
    run = read_folder(copy(b"\x00" + WHOLE[1:]))
    assert steps(run) == ROWS
    assert run.problems == ("the file does not begin with W&B's header",)


def test_random_bytes_never_raise_anything_but_a_refusal(copy: Copy) -> None:
    chance = random.Random(3)
    for size in (0, 5, 100, 40_000):
        run = read_folder(copy(WHOLE[:HEADER_BYTES] + chance.randbytes(size)))
        assert (run.rows, run.artifacts) == ((), ())


def test_whole_frames_with_senseless_messages_are_counted(copy: Copy) -> None:
    import struct
    import zlib

    chance = random.Random(5)
    frames = b""
    for size in range(1, 200):
        data = b"\x12" + bytes([min(size, 127)]) + chance.randbytes(size)  # says that it is a line of the history
        frames += struct.pack("<IHB", zlib.crc32(b"\x01" + data), len(data), 1) + data
    run = read_folder(copy(WHOLE[:HEADER_BYTES] + frames[:30_000]))
    assert any("could not be understood" in problem for problem in run.problems)


def test_a_file_that_grows_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    path, offset, seen = tmp_path / "run-growing.wandb", 0, []
    chance = random.Random(13)
    written = 0
    while written < len(WHOLE):
        written = min(len(WHOLE), written + chance.randrange(1, 900))
        path.write_bytes(WHOLE[:written])
        run = read_folder(path, offset)
        assert run.problems == ()
        seen += steps(run)
        offset = run.offset
    assert seen == ROWS
    assert read_folder(path, offset).rows == ()


def test_damage_that_was_passed_over_is_not_met_again(copy: Copy) -> None:
    flipped = bytearray(WHOLE)
    flipped[10_000] ^= 1
    first = read_folder(copy(bytes(flipped[:20_000])))
    later = read_folder(copy(bytes(flipped)), first.offset)
    assert first.problems
    assert later.problems == ()
    assert len(steps(first) + steps(later)) >= len(ROWS) - 2


def test_a_file_that_became_shorter_is_read_from_its_beginning(copy: Copy) -> None:
    run = read_folder(copy(WHOLE[:9_000]), len(WHOLE))
    assert steps(run)[0] == 1
    assert "shorter than what was read of it before" in run.problems[0]


def test_a_record_beyond_the_limit_is_left_out_and_said(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixture has one record over two blocks."""
    with FIXTURE.open("rb") as file:
        longest = max(Frames(file), key=lambda frame: frame.end // BLOCK_BYTES != (frame.end - 1) // BLOCK_BYTES)
    assert longest.data
    monkeypatch.setattr("cairn.formats.wandb_offline.frames.MAX_RECORD_BYTES", 10)
    run = read_folder(copy(WHOLE))
    assert run.offset == len(WHOLE)
    assert run.problems == ("1 records are too long to be read",)
