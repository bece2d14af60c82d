"""One line a record: whatever a crash leaves behind, whole records are read and torn ones are passed over."""

import random

import pytest
from cairn.spool.frames import frame, payload, read_frames

RECORDS = [{"kind": "saved", "step": step, "note": "ü\n\0 " * (step % 3)} for step in range(20)]
LINES = [frame(number, payload(record)) for number, record in enumerate(RECORDS, start=1)]


def test_records_come_back_in_order_with_their_numbers() -> None:
    found = list(read_frames(b"".join(LINES)))
    assert [each.record for each in found] == RECORDS
    assert [each.number for each in found] == list(range(1, 21))
    assert found[-1].end == len(b"".join(LINES))


@pytest.mark.parametrize("cut", range(1, len(LINES[-1])))
def test_a_record_cut_short_anywhere_is_no_record(cut: int) -> None:
    content = b"".join(LINES)
    assert [each.record for each in read_frames(content[:-cut])] == RECORDS[:-1]


def test_what_follows_a_torn_line_is_read() -> None:
    torn = LINES[0] + LINES[1][:10] + b"\n" + LINES[2]
    assert [each.number for each in read_frames(torn)] == [1, 3]


def test_any_damage_loses_no_other_record() -> None:
    chance = random.Random(7)
    for _ in range(300):
        at = chance.randrange(len(LINES))
        line = bytearray(LINES[at])
        place = chance.randrange(len(line) - 1)
        line[place] ^= chance.randrange(1, 256)
        if b"\n" in bytes(line[:-1]):
            continue  # a break in the middle makes two lines of it, both unsound
        found = [each.number for each in read_frames(b"".join([*LINES[:at], bytes(line), *LINES[at + 1 :]]))]
        assert found == [number for number in range(1, 21) if number != at + 1]


def test_only_plain_json_becomes_a_record() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        payload({"loss": float("nan")})
    with pytest.raises(TypeError):
        payload({"loss": object()})
    assert list(read_frames(frame(1, b"[1]"))) == []
