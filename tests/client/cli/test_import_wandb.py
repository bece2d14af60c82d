"""`cairn import wandb`."""

import json
import shutil
from pathlib import Path

import pytest
from cairn import Client

from tests.client.conftest import Cli
from tests.client.formats.wandb_offline.conftest import FIXTURE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "wandb" / "offline-run-20261129_120000-fixture"
    place.mkdir(parents=True)
    shutil.copy(FIXTURE, place)
    return tmp_path / "wandb"


def test_folders_are_read_here_and_the_table_says_what_came_of_it(
    live: Client, cli: Cli, project: str, folder: Path
) -> None:
    code, out, err = cli("import", "wandb", str(folder), "--into", project)
    assert (code, err) == (0, "")
    header, row = out.splitlines()
    assert header.split("\t") == ["file", "run", "attempt", "state", "checkpoints", "known", "scores", "points"]
    assert row.split("\t")[1:] == [f"{project}/tiny", "1", "finished", "1", "0", "1", "176"]
    code, out, _ = cli("import", "wandb", str(folder), "--into", project)
    assert code == 0
    assert out.splitlines()[1].split("\t")[3:] == ["unchanged", "0", "0", "0", "0"]


def test_json_has_every_file_with_what_was_left_out(live: Client, cli: Cli, project: str, folder: Path) -> None:
    (folder / "broken.wandb").write_bytes(b"something else altogether")
    code, out, _ = cli("import", "wandb", str(folder), "--into", project, "--json")
    files = {each["file"].rpartition("/")[2]: each for each in json.loads(out)["files"]}
    assert code == 0
    assert files["run-fixture.wandb"]["checkpoints"] == 1
    assert "no file of W&B" in files["broken.wandb"]["skipped"][0]["reason"]


def test_the_project_is_named_like_that_of_wandb(live: Client, cli: Cli, folder: Path) -> None:
    code, out, _ = cli("import", "wandb", str(folder))
    assert (code, out.splitlines()[1].split("\t")[1]) == (0, "llm/tiny")


def test_a_service_is_asked_through_a_durable_job(live: Client, cli: Cli, project: str) -> None:
    options = ("--base-url", "https://wandb.example.org", "--no-wait", "--json")
    code, out, _ = cli("import", "wandb", "--project", "team/llm", "--into", project, *options)
    job = json.loads(out)
    assert code == 0
    assert (job["kind"], job["state"]) == ("tracker.import", "waiting")
    assert live.get_job(job["id"]).raw["arguments"] == {
        "kind": "wandb",
        "uri": "https://wandb.example.org",
        "entity": "team",
        "project": "llm",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name folders"),
        (("--project", "llm"), "expected entity/project"),
        (("--project", "a/b/c"), "expected entity/project"),
        (("/no/such/place",), "does not exist"),
        ((".", "--project", "a/b"), "Name folders"),
    ],
)
def test_a_mistake_in_the_call_says_what_was_expected(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = cli("import", "wandb", *arguments)
    assert code == 2
    assert said in err


def test_a_folder_without_runs_is_no_result(live: Client, cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("import", "wandb", str(tmp_path))
    assert code == 1
    assert "Holds no .wandb file" in err
