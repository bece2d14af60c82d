"""`cairn reproduce`: what a checkpoint was made with, as files that nothing runs by accident."""

import json
import stat
from pathlib import Path

from cairn import Client

from tests.client.conftest import Cli


def made(live: Client, project: str) -> None:
    run = live.create_run(project, "7b", config={"lr": 0.001})
    live.register_checkpoint(run, 100, tokens_seen=1000, data_version={"name": "v1", "mix": {"web": 1.0}})
    live.start_attempt(
        run,
        key="two",
        resumed_from={"attempt": 1, "step": 100, "kind": "archive"},
        command="torchrun train.py; rm -rf /",
    )
    live.register_checkpoint(
        run,
        200,
        tokens_seen=3000,
        data_version={"name": "v2", "mix": {"web": 0.5, "code": 0.5}},
        config={"lr": 0.002},
        code={"commit": "a" * 40, "dirty": True, "diff_digest": "sha256:abc", "remote": "https://example.org/a/b"},
        environment={"cuda": "12.4"},
    )


def test_everything_is_written_and_nothing_is_executable(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    made(live, project)
    folder = tmp_path / "new" / "folder"
    code, _, err = cli("reproduce", f"{project}/7b@200", str(folder))
    assert code == 0, err
    names = {each.name for each in folder.iterdir()}
    assert names == {
        *("README.md", "code.json", "command.txt", "config.json", "data.json", "environment.json", "provenance.json"),
    }
    assert json.loads((folder / "config.json").read_text()) == {"lr": 0.002}
    assert json.loads((folder / "code.json").read_text())["diff_digest"] == "sha256:abc"
    data = json.loads((folder / "data.json").read_text())
    assert data["tokens_by_source"] == {"web": 2000.0, "code": 1000.0}
    stages = data["stages_newest_first"]
    assert [(each["data_version"], each["first_step"], each["last_step"]) for each in stages] == [
        ("v2", 101, 200),
        ("v1", 1, 100),
    ]
    assert (folder / "command.txt").read_text() == "torchrun train.py; rm -rf /\n"
    readme = (folder / "README.md").read_text()
    assert "uncommitted changes of digest sha256:abc" in readme
    assert "3. Data: v2, before it v1 (" in readme
    for each in folder.iterdir():
        assert not each.stat().st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def test_nothing_is_written_over(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    made(live, project)
    (tmp_path / "mine").write_text("kept")
    code, _, err = cli("reproduce", f"{project}/7b@200", str(tmp_path))
    assert (code, "not empty" in err) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
    assert cli("reproduce", f"{project}/7b@200", str(tmp_path / "mine"))[0] == 2
    assert (tmp_path / "mine").read_text() == "kept"


def test_what_is_not_recorded_is_named(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    live.register_checkpoint(live.create_run(project, "bare"), 5)
    code, out, err = cli("reproduce", f"{project}/bare@5", str(tmp_path / "x"), "--json")
    assert code == 0, err
    assert json.loads(out)["files"] == ["README.md", "data.json", "provenance.json"]
    assert json.loads(out)["unknown"] == ["tokens seen are not recorded for bare step 5"]
    assert "no commit is recorded" in (tmp_path / "x" / "README.md").read_text()


def test_an_unknown_checkpoint_ends_with_1(live: Client, cli: Cli, tmp_path: Path) -> None:
    assert cli("reproduce", "0000000000001", str(tmp_path / "x"))[0] == 1
    assert not (tmp_path / "x").exists()


def test_of_a_copy_it_is_what_its_source_was_trained_with(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    made(live, project)
    source = find(live, project, "7b", 200)
    hf = live.register_checkpoint(
        live.create_run(project, "hf"), 1, parents=[{"checkpoint_id": source, "relation": "converted_from"}]
    )
    live.register_checkpoint(
        live.create_run(project, "int4"),
        1,
        config={"bits": 4},
        parents=[{"checkpoint_id": hf.id, "relation": "quantised_from"}],
    )
    folder = tmp_path / "copy"
    code, _, err = cli("reproduce", f"{project}/int4@1", str(folder))
    assert code == 0, err
    names = {each.name for each in folder.iterdir()}
    assert names == {
        *("README.md", "code.json", "command.txt", "config.json", "conversion.json", "data.json", "environment.json"),
        "provenance.json",
    }
    assert json.loads((folder / "config.json").read_text()) == {"lr": 0.002}
    assert json.loads((folder / "environment.json").read_text()) == {"cuda": "12.4"}
    conversion = json.loads((folder / "conversion.json").read_text())
    assert conversion["config"] == {"bits": 4}
    assert [(each["relation"], each["parent"]) for each in conversion["steps_newest_first"]] == [
        ("quantised_from", hf.id),
        ("converted_from", source),
    ]
    readme = (folder / "README.md").read_text()
    assert f"was quantised from hf · 1 · 1 (id {hf.id})" in readme
    assert f"was converted from 7b · 2 · 200 (id {source})" in readme
    assert "3. Data: v2" in readme


def test_it_names_only_what_the_checkpoint_itself_came_from(
    live: Client, project: str, cli: Cli, tmp_path: Path
) -> None:
    made(live, project)
    base = find(live, project, "7b", 200)
    live.register_checkpoint(
        live.create_run(project, "sft"), 5, parents=[{"checkpoint_id": base, "relation": "fine_tuned_from"}]
    )
    assert cli("reproduce", f"{project}/sft@5", str(tmp_path / "sft"))[0] == 0
    began = [each for each in (tmp_path / "sft" / "README.md").read_text().splitlines() if each.startswith("6. ")]
    assert began == [f"6. It began from: 7b · 2 · 200 (id {base}) (fine tuned from)"]


def find(live: Client, project: str, run: str, step: int) -> str:
    wanted = f"project = '{project}' and run.name = '{run}' and step = {step}"
    return next(iter(live.iter_checkpoints(filter=wanted))).id


def test_a_config_that_came_after_the_checkpoint_is_written_and_said(
    live: Client, project: str, cli: Cli, tmp_path: Path
) -> None:
    run = live.create_run(project, "late")
    live.register_checkpoint(run, 100)
    live.create_run(project, "late", config={"lr": 0.001})
    code, _, err = cli("reproduce", f"{project}/late@100", str(tmp_path / "new"))
    assert code == 0, err
    assert json.loads((tmp_path / "new" / "config.json").read_text()) == {"lr": 0.001}
    note = "The config of its run is taken, which was recorded after it."
    assert note in err
    readme = (tmp_path / "new" / "README.md").read_text()
    assert "2. Config: config.json\n" in readme
    assert note in readme
