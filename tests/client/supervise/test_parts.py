"""The parts of the supervisor on their own: the end of a log, what of it is sent, formations, what is kept."""

import json
from pathlib import Path

import pytest
from cairn.supervise.excerpt import MAX_BYTES, clean, excerpt
from cairn.supervise.job import _world_size
from cairn.supervise.kept import Kept, Request
from cairn.supervise.reform import Formation, Formations
from cairn.supervise.restarts import Origin, told, wants_a_path
from cairn.supervise.tail import Tail


def test_the_tail_keeps_whole_lines_of_both_streams_in_the_order_in_which_they_ended() -> None:
    tail = Tail()
    tail.add(1, b"one ")
    tail.add(2, b"aside\n")
    tail.add(1, b"line\nrest")
    assert tail.lines() == ["aside", "one line", "rest"]


def test_the_tail_is_bounded_whatever_is_written() -> None:
    tail = Tail(limit=1000)
    for number in range(1000):
        tail.add(1, f"line {number}\n".encode())
    tail.add(1, b"x" * 200_000)
    assert sum(len(line) for line in tail.lines()) < 70_000
    tail.add(2, b"\xff\xfe bad \x00\n")
    assert any("bad" in line for line in tail.lines())


def test_a_progress_bar_is_lines_of_its_own() -> None:
    tail = Tail()
    tail.add(1, b"10%\r20%\r\n30%\r")
    assert tail.lines() == ["10%", "20%", "30%"]


def test_what_came_since_is_read_once_and_what_was_dropped_is_not_read() -> None:
    tail = Tail(limit=20)
    tail.add(1, b"a\nb\n")
    position, lines = tail.after(0)
    assert (position, lines) == (2, ["a", "b"])
    assert tail.after(position) == (2, [])
    for number in range(50):
        tail.add(1, f"{number}\n".encode())
    position, lines = tail.after(position)
    assert position == 52
    assert lines == [line for line in tail.lines() if line]


def test_an_excerpt_is_the_end_within_64_kib_without_colours_controls_and_secrets() -> None:
    lines = [f"line {number} é" * 10 for number in range(10_000)]
    sent = excerpt(lines)
    assert len(sent.encode()) <= MAX_BYTES
    assert sent.endswith("line 9999 é" * 10)
    assert (
        clean("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 \x9b")
        == "red bell\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"
    )
    assert "hunter2" not in clean("connect postgres://me:hunter2@db/x password=hunter2")
    assert clean("tokenizer=llama max_tokens=4096") == "tokenizer=llama max_tokens=4096"
    assert excerpt([]) == ""
    assert excerpt(["\ud800 half"]).isprintable()


LINES = """Rendezvous complete for workers. Result:
  restart_count={}
  group_world_size={}
  global_world_sizes=[{}, 4]"""


def test_the_first_formation_is_no_change_and_another_is() -> None:
    formations = Formations()
    assert [formations.read(line) for line in LINES.format(0, 2, 4).splitlines()] == [None] * 4
    assert formations.now == Formation(0, 2, 4)
    *_, changed = [formations.read(line) for line in LINES.format(1, 1, 2).splitlines()]
    assert changed == Formation(1, 1, 2)
    *_, same = [formations.read(line) for line in LINES.format(1, 1, 2).splitlines()]
    assert same is None
    assert formations.read("restart_count=7 global_world_sizes=[9]") is None


def test_the_path_goes_where_the_command_has_a_place_for_it() -> None:
    origin = Origin("/c/step-5")
    assert told(["t", "--load={resume}"], (), origin) == ["t", "--load=/c/step-5"]
    assert told(["t"], ("--load", "--from="), origin) == ["t", "--load", "/c/step-5", "--from=/c/step-5"]
    assert told(["t", "{resume}"], ("--load",), Origin()) == ["t", ""]
    assert [wants_a_path(["t"], ()), wants_a_path(["{resume}"], ()), wants_a_path(["t"], ("-l",))] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("command", "size"),
    [
        ("torchrun --nnodes 2 --nproc-per-node=8 t.py", 16),
        ("torchrun --nproc_per_node 8 t.py", 8),
        ("python -m torch.distributed.run --nnodes=4 --nproc-per-node=2 t.py", 8),
        ("torchrun --nnodes 1:4 --nproc-per-node 8 t.py", None),
        ("torchrun --nproc-per-node gpu t.py", None),
        ("python t.py --nproc-per-node 8", None),
    ],
)
def test_the_world_size_is_told_only_by_plain_numbers(command: str, size: int | None) -> None:
    assert _world_size(command.split()) == size


def test_what_is_kept_is_found_by_the_next_and_a_damaged_file_is_left_alone(tmp_path: Path) -> None:
    kept = Kept("p/r", tmp_path / "deep" / "folder")
    assert kept.save([Request("open", "k", {"command": "x"})])
    (tmp_path / "deep/folder/damaged.json").write_text("{")
    (tmp_path / "deep/folder/odd.json").write_text(json.dumps({"run": "p/r", "requests": [{"what": 5}]}))
    other = Kept("p/s", tmp_path / "deep" / "folder")
    (left,) = other.others()
    assert (left.run, left.requests) == ("p/r", [Request("open", "k", {"command": "x"})])
    assert list(kept.others()) == []
    assert kept.save([])
    assert not left.path.exists()


def test_a_place_that_cannot_be_written_is_told_and_raises_nothing() -> None:
    kept = Kept("p/r", Path("/proc/none"))
    assert kept.save([Request("open", "k", {})]) is False
    assert list(kept.others()) == []
