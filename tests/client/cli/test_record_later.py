"""`cairn record CHECKPOINT`: what was learnt after a checkpoint was recorded; and on whose disk a copy lies."""

import json
import socket
from pathlib import Path

import pytest
from cairn import Client

from tests.client.conftest import Cli

HERE = socket.gethostname()


@pytest.fixture
def first(cli: Cli, project: str) -> str:
    """A checkpoint that was recorded with more than anybody will say again."""
    said = ("--loss", "2.5", "--lr", "0.1", "--pieces", "all", "--path", "/ckpt/1", "--tier", "shared")
    assert cli("record", "--project", project, "--run", "r", "--step", "1", *said)[0] == 0
    return f"{project}/r@1"


def copies(live: Client, named: str) -> dict[str, str | None]:
    project, _, rest = named.partition("/")
    found = live.iter_checkpoints(filter=f"project = '{project}' and step = {rest.rpartition('@')[2]}")
    return {each["uri"]: each["host"] for one in found for each in live.get_checkpoint(one).replicas}


def test_a_further_copy_is_added_to_a_recorded_checkpoint(cli: Cli, live: Client, first: str) -> None:
    more = ("record", first, "--path", "s3://b/1")
    assert cli(*more)[1].splitlines()[1].split("\t")[3] == "amended"
    assert set(copies(live, first)) == {"/ckpt/1", "s3://b/1"}
    assert cli(*more)[1].splitlines()[1].split("\t")[3] == "unchanged"


def test_scores_tags_and_another_loss_are_added_too(cli: Cli, live: Client, first: str, project: str) -> None:
    said = ("--score", "gsm8k=0.5", "--tag", "phase=sft", "--loss", "nan")
    code, out, err = cli("record", first, *said, "--json")
    assert code == 0, err
    (row,) = json.loads(out)["items"]
    assert (row["project"], row["run"], row["step"], row["status"]) == (project, "r", 1, "amended")
    now = live.get_checkpoint(row["id"])
    assert [(each.benchmark, each.value) for each in now.scores] == [("gsm8k", 0.5)]
    assert now.tags == {"phase": "sft"}
    assert now.loss != now.loss
    assert now.lr == 0.1


def test_whoever_records_less_a_second_time_is_told_how_to_add(cli: Cli, first: str, project: str) -> None:
    code, _, err = cli("record", "--project", project, "--run", "r", "--step", "1", "--path", "s3://b/1")
    assert code == 3
    assert "`cairn record PROJECT/RUN@STEP --path ...` adds a copy to it" in err


def test_a_copy_that_contradicts_what_is_recorded_is_refused(
    cli: Cli, live: Client, first: str, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.bin").write_text(name)
    added = ("record", first, "--tier", "shared", "--digest", "--path")
    assert cli(*added, str(tmp_path / "one"))[0] == 0
    code, _, err = cli(*added, str(tmp_path / "other"), "--loss", "9")
    assert (code, "No copy: its blake3 digest" in err) == (3, True), err
    assert str(tmp_path / "other") not in copies(live, first)


@pytest.mark.parametrize(
    "wrong",
    [(), ("--lr", "1"), ("--project", "p", "--loss", "1"), ("--tier", "local"), ("--path", "/x"), ("--pending",)],
)
def test_what_cannot_be_added_is_a_usage_error(cli: Cli, first: str, wrong: tuple[str, ...]) -> None:
    assert cli("record", first, *wrong)[:2] == (2, "")


def test_nothing_is_added_to_a_checkpoint_that_is_not_there(cli: Cli, first: str) -> None:
    assert cli("record", first.replace("@1", "@2"), "--loss", "1")[:2] == (1, "")


def test_a_local_copy_lies_on_the_disk_of_the_host_that_records_it(
    cli: Cli, live: Client, project: str, tmp_path: Path
) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.bin").write_text("x")
    said = ("--pieces", "all", "--path", str(tmp_path / "1"), "--tier", "local")
    assert cli("record", "--project", project, "--run", "r", "--step", "1", *said)[::2] == (0, "")
    assert copies(live, f"{project}/r@1") == {str(tmp_path / "1"): HERE}
    assert cli("resume", "--run", f"{project}/r")[:2] == (0, f"{tmp_path / '1'}\n")


def test_a_copy_on_the_disk_of_another_host_needs_its_name(cli: Cli, live: Client, project: str) -> None:
    said = (
        "--project",
        project,
        "--run",
        "r",
        "--step",
        "1",
        "--pieces",
        "all",
        "--path",
        "/scratch/1",
        "--tier",
        "local",
    )
    code, _, err = cli("record", *said)
    assert code == 0
    assert "nobody resumes from /scratch/1 before it is known on whose disk it lies: --host HOST" in err
    assert cli("record", f"{project}/r@1", *said[-4:], "--host", "node-7")[0] == 0
    assert copies(live, f"{project}/r@1") == {"/scratch/1": "node-7"}
    code, out, err = cli("resume", "--run", f"{project}/r")
    assert (code, out) == (1, "")
    assert "node-7" in err


def test_a_path_is_recorded_whole(
    cli: Cli, live: Client, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host, and the service, have another working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1").mkdir()
    said = ("--path", "1", "--path", "./1/../2", "--path", "s3://b/1", "--tier", "shared")
    assert cli("record", "--project", project, "--run", "r", "--step", "1", *said)[0] == 0
    assert set(copies(live, f"{project}/r@1")) == {str(tmp_path / "1"), str(tmp_path / "2"), "s3://b/1"}
