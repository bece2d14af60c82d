"""Without the service, what spools and folders say is read in every form in which it may stand there."""

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import cairn_json
from cairn.resume import NothingToResume, choose

from tests.client.resume.test_resume import away
from tests.client.spool.left import leave, saved, start

WORDS = dict.fromkeys(("weights", "optimizer", "random_state", "data_position"), "present")


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "spool"


def folder(tmp_path: Path, step: int) -> str:
    """Files of no format that anybody knows: what they hold, only the record says."""
    path = tmp_path / "ckpt" / str(step)
    path.mkdir(parents=True)
    (path / "m.bin").write_bytes(b"x" * 100)
    return str(path)


def test_pieces_said_as_words_are_taken(spool: Path, tmp_path: Path) -> None:
    path = folder(tmp_path, 30)
    leave(spool, start("llm"), saved("llm", 30, host=socket.gethostname(), paths=[path], pieces=WORDS))
    with away() as client:
        choice = choose(client, "llm/r")
    assert (choice.path, choice.step) == (path, 30)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pieces": "none"},
        {"pieces": {"weights": 3}},
        {"pieces": ["weights", 5]},
        {"paths": 5},
        {"paths": [5]},
        {"layout": "tp2", "pieces": 7},
        {"loss": [], "pieces": None},
        {"saved_at": 5, "host": 7, "pieces": None},
        {"step": "forty"},
        {"step": None},
    ],
)
def test_a_save_that_nobody_can_read_gives_way_to_the_one_before(
    spool: Path, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    here = socket.gethostname()
    good, bad = folder(tmp_path, 30), folder(tmp_path, 40)
    known = saved("llm", 30, host=here, paths=[good], pieces=WORDS)
    leave(spool, start("llm"), known, saved("llm", **{"step": 40, "host": here, "paths": [bad], **wrong}))
    with away() as client:
        choice = choose(client, "llm/r")
    assert choice.path == good
    if "step" not in wrong:
        (passed,) = choice.fallbacks
        assert passed.why


def test_a_folder_whose_cairn_json_says_words_is_read(spool: Path, tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "hf_trainer" / "checkpoint-4"
    path = shutil.copytree(source, tmp_path / "ckpt" / "checkpoint-4")
    identity = {"id": "0000000000000", "project": "llm", "run": {"id": "0000000000001", "name": "r"}}
    said = {**identity, "attempt": 1, "step": 4, "kind": "archive", "pieces": WORDS, "layout": {"tp": 1}}
    cairn_json.write(path, said)
    broken = tmp_path / "ckpt" / "checkpoint-5"
    broken.mkdir()
    (broken / "cairn.json").write_text('{"cairn": 1, "pieces": "all"}')
    with away() as client:
        choice = choose(client, "llm/r", local_roots=[str(tmp_path / "ckpt")])
    assert choice.path == str(path)


def test_where_no_save_can_be_read_that_is_said(spool: Path, tmp_path: Path) -> None:
    leave(spool, start("llm"), saved("llm", 40, host=socket.gethostname(), paths=5, pieces=7))
    with away() as client, pytest.raises(NothingToResume) as told:
        choose(client, "llm/r")
    assert "Passed over: " in str(told.value)
