"""`cairn inspect`."""

import json
from pathlib import Path

import pytest

from tests.client.conftest import Cli
from tests.client.formats.checkpoints.sources import FIXTURES, files_of


def test_the_answer_comes_first_then_the_evidence(cli: Cli) -> None:
    code, out, err = cli("inspect", str(FIXTURES / "hf_trainer_two_ranks" / "checkpoint-4"))
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Resumable: all four pieces, step 4, 2 ranks"
    assert "optimizer\tpresent\t\toptimizer.pt, scheduler.pt" in lines
    assert "step\t4 (from trainer_state.json global_step)" in lines
    assert "size\t78.5 kB in 9 files" in lines
    assert err == ""


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("safetensors_single", "Weights only: good to fine-tune or evaluate, not to go on; step unknown"),
        ("lightning_ckpt/epoch-end", "Resumable: weights, optimizer and data position; random state absent, step 4"),
        (
            "lightning_ckpt/mid-epoch",
            "Not resumable: no data position, so data would be repeated or left out; step 3",
        ),
        ("accelerate_state", "Unknown whether it can be resumed: data position cannot be told; step unknown; 1 rank"),
    ],
)
def test_the_first_line_says_what_it_is_good_for(cli: Cli, place: str, first: str) -> None:
    assert cli("inspect", str(FIXTURES / place))[1].splitlines()[0] == first


def test_what_is_missing_or_disagrees_is_said_aside(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-7"
    folder.mkdir()
    for name, data in files_of("hf_trainer/checkpoint-4").items():
        (folder / name).write_bytes(data)
    (folder / "optimizer.pt").write_bytes(b"")
    code, out, err = cli("inspect", str(folder))
    assert code == 0
    assert out.startswith("Incomplete: files are cut short or disagree; step 4; 1 rank")
    assert "disagreement: trainer_state.json global_step says step 4, name checkpoint-7 says 7" in err
    assert "optimizer.pt: is empty" in err


def test_json_carries_the_pieces_in_the_words_of_the_api(cli: Cli) -> None:
    code, out, _ = cli("inspect", str(FIXTURES / "hf_trainer" / "checkpoint-4"), "--json", "--tensors")
    answer = json.loads(out)
    assert code == 0
    assert answer["pieces"]["data_position"]["position_evidence"] == "counter"
    assert answer["resumability"] == "exact"
    assert answer["layout"] == {"world_size": 1, "dp": 1}
    assert answer["tensors"][0]["dtype"] == "f32"
    assert len(answer["tensors"]) == answer["tensor_count"] == 21


def test_nothing_recognised_is_no_result_and_says_what_was_looked_for(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    code, out, err = cli("inspect", str(tmp_path))
    assert (code, out) == (1, "")
    assert "holds 1 files (notes.txt, ...) of no known format. Looked for:" in err
    assert "hf-trainer (trainer_state.json of Trainer" in err
    code, out, _ = cli("inspect", str(tmp_path), "--json")
    assert (code, json.loads(out)["recognised"]) == (1, False)


def test_a_place_that_is_not_there_is_said_without_a_traceback(cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("inspect", str(tmp_path / "missing"))
    assert code == 2
    assert "No such file" in err


def test_digests_are_named_with_their_algorithm(cli: Cli) -> None:
    place = str(FIXTURES / "safetensors_single")
    code, out, _ = cli("inspect", place, "--digest", "--algorithm", "sha256", "--json")
    digest = json.loads(out)["digest"]
    assert (code, digest["algorithm"], digest["problems"]) == (0, "sha256", [])
    import hashlib

    expected = hashlib.sha256((FIXTURES / "safetensors_single" / "model.safetensors").read_bytes()).hexdigest()
    assert {each["path"]: each["digest"] for each in digest["files"]}["model.safetensors"] == expected
    code, out, _ = cli("inspect", place, "--digest")
    assert "file\tsize\tblake3" in out
    assert any(line.startswith("whole\tblake3\t") for line in out.splitlines())


def test_an_unknown_algorithm_is_a_mistake_in_the_call(cli: Cli) -> None:
    code, _, err = cli("inspect", str(FIXTURES / "safetensors_single"), "--digest", "--algorithm", "md5")
    assert code == 2
    assert "md5" in err


def test_names_that_are_no_text_reach_neither_terminal_nor_json_as_they_are(cli: Cli, tmp_path: Path) -> None:
    import os

    for name, data in files_of("safetensors_single").items():
        (tmp_path / name).write_bytes(data)
    with open(os.path.join(os.fsencode(tmp_path), b"more-\xff\x1b[31m.safetensors"), "wb") as file:
        file.write(b"")
    code, out, err = cli("inspect", str(tmp_path), "--digest")
    assert code == 0
    assert "\x1b" not in out + err
    code, out, _ = cli("inspect", str(tmp_path), "--digest", "--json")
    assert "more-\\\\xff" in out


def test_a_cache_of_links_is_read_where_its_folder_is_named(cli: Cli, tmp_path: Path) -> None:
    """As Hugging Face's cache is laid out: a snapshot of links into a folder of blobs beside it."""
    blobs, snapshot = tmp_path / "model" / "blobs", tmp_path / "model" / "snapshots" / "1f"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, (name, data) in enumerate(files_of("safetensors_single").items()):
        (blobs / str(number)).write_bytes(data)
        (snapshot / name).symlink_to(f"../../blobs/{number}")
    code, _, err = cli("inspect", str(snapshot))
    assert code == 1
    assert "the link leads out" in err
    code, out, _ = cli("inspect", str(snapshot), "--links-below", str(tmp_path / "model"))
    assert (code, out.splitlines()[0].split(":")[0]) == (0, "Weights only")
