"""What a launch script gets: the path of the newest checkpoint that is whole here, from the real service."""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from cairn import Client, Invalid, Retries
from cairn.client import Client as AnyClient
from cairn.errors import NotFound
from cairn.replicas import replica
from cairn.resume import Choice, NothingToResume, choose, choosing, state
from cairn.resume.choosing import CANDIDATES
from cairn.types import Run

from tests.client.conftest import Cli, FaultServer, Reply

HERE = socket.gethostname()
PIECES = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
CHECKPOINTS = Path(__file__).parents[1] / "fixtures" / "checkpoints"
EIGHT = {"world_size": 8, "tp": 2, "pp": 1, "dp": 4, "cp": 1, "ep": 1, "sharding": "fully_reshardable"}


def files(folder: Path, *sizes: int) -> Path:
    """A checkpoint's folder with one file of each size."""
    folder.mkdir(parents=True)
    for place, size in enumerate(sizes):
        (folder / f"shard-{place}.bin").write_bytes(os.urandom(size))
    return folder


class Saver:
    """Saves and records checkpoints of one run, in a folder of its own."""

    def __init__(self, client: Client, run: Run, root: Path) -> None:
        self.client, self.run, self.root = client, run, root

    def save(self, step: int, *, digest: bool = False, **known: Any) -> Path:
        folder = files(self.root / str(step), 1000, 2000)
        copies = known.pop("replicas", None) or [replica(folder, tier="shared", digest=digest)]
        self.client.register_checkpoint(self.run, step, **{"pieces": PIECES, "replicas": copies, **known})
        return folder

    def choose(self, **known: Any) -> Choice:
        return choose(self.client, self.run, **known)


@pytest.fixture
def saver(live: Client, project: str, tmp_path: Path) -> Saver:
    return Saver(live, live.create_run(project, "7b"), tmp_path / "shared")


def name(saver: Saver) -> str:
    return f"{saver.run.project}/{saver.run.name}"


def test_a_script_reads_the_path_and_nothing_else(cli: Cli, saver: Saver) -> None:
    saver.save(1000)
    newest = saver.save(2000)
    code, out, err = cli("resume", "--run", name(saver))
    assert (code, out) == (0, f"{newest}\n")
    assert "Resuming from 7b · 1 · 2000." in err


def test_everything_about_the_choice_is_there_as_json(cli: Cli, saver: Saver) -> None:
    saver.save(1000)
    newest = saver.save(2000)
    saver.save(3000, pieces={**PIECES, "optimizer": "absent"})
    code, out, err = cli("resume", "--run", saver.run.id, "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["path"], told["step"], told["source"]) == (str(newest), 2000, "registry")
    assert told["checkpoint"]["step"] == 2000
    assert told["replica"]["uri"] == str(newest)
    assert [each["what"] for each in told["fallbacks"]] == ["7b · 1 · 3000"]
    assert "its moments would be forgotten" in told["fallbacks"][0]["why"]
    assert "Passed over 7b · 1 · 3000: pieces" in err


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "shard gone", "one more", "no permission"])
def test_a_copy_that_is_not_whole_here_gives_way_to_the_next_checkpoint(
    saver: Saver, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newest = saver.save(1000), saver.save(2000)
    shard = newest / "shard-1.bin"
    if damage == "missing":
        shutil.rmtree(newest)
    elif damage == "empty":
        shutil.rmtree(newest)
        newest.mkdir()
    elif damage == "cut":
        shard.write_bytes(shard.read_bytes()[:-1])
    elif damage == "shard gone":
        shard.unlink()
    elif damage == "one more":
        (newest / "other").write_bytes(b"x")
    else:
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, mode, **known: path != str(shard) and real(path, mode, **known))
    choice = saver.choose()
    assert choice.path == str(older)
    (passed,) = choice.fallbacks
    assert "7b · 1 · 2000 on shared" in passed.what
    assert passed.why


def test_the_next_copy_is_taken_before_an_older_checkpoint(saver: Saver, tmp_path: Path) -> None:
    saver.save(1000)
    near, far = files(tmp_path / "near", 1000), files(tmp_path / "far", 1000)
    copies = [replica(near, tier="local"), replica(far, tier="shared")]
    saver.save(2000, replicas=copies)
    assert saver.choose().path == str(near)
    assert saver.choose(tiers=("shared",)).path == str(far)
    shutil.rmtree(near)
    choice = saver.choose()
    assert (choice.path, choice.step) == (str(far), 2000)
    assert "cannot be read here" in choice.fallbacks[0].why


def test_however_many_are_gone_the_newest_that_can_be_read_is_found(
    cli: Cli, saver: Saver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the service proposes at once."""
    oldest = saver.save(1)
    gone = [
        {"project": saver.run.project, "run": saver.run.name, "step": step, "pieces": PIECES}
        | {"replicas": [{"uri": str(tmp_path / "gone" / str(step)), "tier": "shared"}]}
        for step in range(2, 2 * CANDIDATES + 3)
    ]
    saver.client.register_batch(gone)
    choice = saver.choose()
    assert (choice.path, len(choice.fallbacks)) == (str(oldest), len(gone))
    assert [each.what.partition(" on ")[0] for each in choice.fallbacks[:2]] == ["7b · 1 · 22", "7b · 1 · 21"]
    code, out, err = cli("resume", "--run", name(saver))
    assert (code, out) == (0, f"{oldest}\n")
    assert err.count("Passed over") == 1
    assert f"and {len(gone) - 1} more for the same reason." in err
    shutil.rmtree(oldest)
    with pytest.raises(NothingToResume, match=r"No copy of 22 checkpoints can be read .* 7b · 1 · 22 on shared"):
        saver.choose()
    monkeypatch.setattr(choosing, "LOOK_SECONDS", -1.0)
    with pytest.raises(NothingToResume, match=r"No copy of 10 checkpoints .*older ones were not looked at any more"):
        saver.choose()


def test_of_several_nodes_none_takes_what_lies_on_its_own_disk(
    saver: Saver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would load another checkpoint than the nodes beside it."""
    older = saver.save(1000)
    own = files(tmp_path / "nvme", 1000)
    saver.save(2000, replicas=[replica(own, tier="local")])
    assert saver.choose().path == str(own)
    monkeypatch.setenv("SLURM_NNODES", "4")
    choice = saver.choose()
    assert choice.path == str(older)
    assert "name the hosts that are there" in choice.fallbacks[0].why
    assert saver.choose(hosts=[HERE]).path == str(own)
    monkeypatch.setenv("SLURM_NNODES", "1")
    assert saver.choose().path == str(own)


def test_a_manifest_names_the_shard_that_is_cut(saver: Saver) -> None:
    older, newest = saver.save(1000), saver.save(2000, digest=True)
    (newest / "shard-0.bin").write_bytes(b"")
    choice = saver.choose()
    assert choice.path == str(older)
    assert choice.fallbacks[0].why == "shard-0.bin has 0 bytes, and 1,000 are recorded"


def test_where_no_size_is_recorded_the_files_speak_for_themselves(saver: Saver, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(CHECKPOINTS / "hf_trainer" / "checkpoint-4", whole)
    saver.save(1000, replicas=[{"uri": str(whole), "tier": "shared"}])
    choice = saver.choose()
    assert choice.path == str(whole)
    assert any("size is not recorded" in reason for reason in choice.reasons)
    odd = files(tmp_path / "odd", 5)
    saver.save(2000, replicas=[{"uri": str(odd), "tier": "shared"}])
    assert any("was not checked" in reason for reason in saver.choose().reasons)


@pytest.mark.parametrize("uri", ["relative/path", "/mnt/a\nb"])
def test_a_path_that_a_script_cannot_use_is_never_printed(cli: Cli, saver: Saver, uri: str) -> None:
    saver.save(1000, replicas=[{"uri": uri, "tier": "shared"}])
    code, out, err = cli("resume", "--run", name(saver))
    assert (code, out) == (1, "")
    assert "path" in err


def test_a_cairn_json_beside_it_is_no_damage_whether_it_was_counted_or_not(saver: Saver) -> None:
    folder = saver.save(1000)
    (folder / "cairn.json").write_text("{}")
    assert saver.choose().path == str(folder)
    counted = files(saver.root / "counted", 10)
    (counted / "cairn.json").write_text("{}")
    saver.save(2000, replicas=[{"uri": str(counted), "tier": "shared", "bytes": 12, "file_count": 2}])
    assert saver.choose().path == str(counted)


def test_a_link_that_led_out_when_it_was_recorded_is_no_damage(saver: Saver, tmp_path: Path) -> None:
    folder = files(tmp_path / "linked", 10, 20)
    (folder / "tokenizer.json").symlink_to("/etc/hostname")
    saver.save(1000, replicas=[replica(folder, tier="shared")])
    assert saver.choose().path == str(folder)
    (folder / "shard-1.bin").unlink()
    (folder / "shard-1.bin").symlink_to("/etc/hostname")
    with pytest.raises(NothingToResume, match=r"1 files, and 2 are recorded; .*leads out"):
        saver.choose()


def test_a_file_url_is_a_path(saver: Saver, tmp_path: Path) -> None:
    folder = files(tmp_path / "with space", 10)
    saver.save(1000, replicas=[{"uri": folder.as_uri(), "tier": "shared", "bytes": 10}])
    assert saver.choose().path == str(folder)


def test_a_spread_copy_is_read_by_each_host_in_its_own_part(saver: Saver, tmp_path: Path) -> None:
    own = files(tmp_path / "own", 10)
    parts = [
        {"host": HERE, "ranks": "0-3", "uri": str(own), "bytes": 10, "save_id": "s"},
        {"host": "other", "ranks": "4-7", "uri": "/nvme/other", "bytes": 10, "save_id": "s"},
    ]
    saver.save(1000, replicas=[{"uri": "/nvme", "tier": "local", "parts": parts}], layout=EIGHT)
    with pytest.raises(NothingToResume, match="other is not among"):
        saver.choose()
    assert saver.choose(hosts=[HERE, "other"]).path == str(own)


def test_nothing_is_printed_where_nothing_can_be_resumed(cli: Cli, saver: Saver) -> None:
    code, out, err = cli("resume", "--run", name(saver))
    assert (code, out) == (1, "")
    assert "no checkpoint yet" in err
    saver.save(1000, pieces={"weights": "present"})
    for more in ((), ("--require", "optimizer")):
        code, out, err = cli("resume", "--run", name(saver), *more)
        assert (code, out) == (1, "")
        assert "none can be resumed from" in err
    code, out, _ = cli("resume", "--run", name(saver), "--require", "weights")
    assert (code, out) == (0, f"{saver.root / '1000'}\n")


def test_starting_afresh_is_said_only_of_a_run_without_checkpoints(cli: Cli, saver: Saver) -> None:
    """A script that took every failure for a fresh start would train over what is there."""
    assert cli("resume", "--run", name(saver), "--or-fresh")[:2] == (0, "")
    assert cli("resume", "--run", f"{saver.run.project}/never-heard-of", "--or-fresh")[:2] == (0, "")
    assert cli("resume", "--run", "never-heard-of/r", "--or-fresh")[:2] == (0, "")
    shutil.rmtree(saver.save(1000))
    code, out, _ = cli("resume", "--run", name(saver), "--or-fresh")
    assert (code, out) == (1, "")
    code, out, _ = cli("resume", "--run", name(saver), "--or-fresh", "--json")
    assert code == 1
    assert json.loads(out)["path"] is None


def test_the_layout_of_today_decides(cli: Cli, saver: Saver) -> None:
    older = saver.save(1000, layout=EIGHT)
    saver.save(2000, layout={**EIGHT, "sharding": "dp_reshardable"})
    code, out, err = cli("resume", "--run", name(saver), "--layout", "tp=4,world_size=8", "--require", "optimizer")
    assert (code, out) == (0, f"{older}\n")
    assert "layout: the optimizer cannot be loaded" in err
    code, out, err = cli("resume", "--run", name(saver), "--layout", "tp=3,pp=2,dp=1,cp=1,world_size=8")
    assert (code, out) == (2, "")
    assert "contradicts itself" in err


def test_a_config_that_breaks_the_counter_is_held_against_it(cli: Cli, saver: Saver, tmp_path: Path) -> None:
    counted = {**PIECES, "data_position": {"state": "present", "position_evidence": "counter"}}
    saver.save(1000, pieces=counted, config={"seed": 1, "data": {"path": "/data/v1"}})
    config = tmp_path / "config.yaml"
    config.write_text("seed: 1\ndata: {path: /data/v1}\n")
    assert cli("resume", "--run", name(saver), "--config", str(config))[0] == 0
    config.write_text("seed: 2\ndata: {path: /data/v1}\n")
    code, out, err = cli("resume", "--run", name(saver), "--config", str(config))
    assert (code, out) == (1, "")
    assert "seed 1 to 2" in err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--layout", "tp=four"),
        ("--layout", "xp=4"),
        ("--layout", "tp=4,tp=4"),
        ("--rto", "soon"),
        ("--rto", "0"),
        ("--require", "moments"),
        ("--agree", "k"),
        ("--hosts", "2"),
        ("--config", "/no/such/file"),
        ("--tier", "tape"),
    ],
)
def test_bad_options_are_usage_errors(cli: Cli, saver: Saver, wrong: tuple[str, ...]) -> None:
    code, out, err = cli("resume", "--run", name(saver), *wrong)
    assert (code, out) == (2, "")
    assert err


def test_bad_names_are_told_apart(cli: Cli, saver: Saver) -> None:
    assert cli("resume", "--run", "no-such-project/x")[:2] == (1, "")
    assert cli("resume", "--run", f"{saver.run.project}/nothing")[:2] == (1, "")
    with pytest.raises(Invalid, match="no piece"):
        saver.choose(require=("moments",))


# Without the registry.


def away() -> AnyClient:
    return Client("http://127.0.0.1:9", "token", timeout=1, retries=Retries(count=0))


def trainer_checkpoint(folder: Path, step: int) -> Path:
    """A real folder of the HF Trainer, whose files say step and pieces."""
    shutil.copytree(CHECKPOINTS / "hf_trainer" / "checkpoint-4", folder)
    path = folder / "trainer_state.json"
    state_ = json.loads(path.read_text())
    path.write_text(json.dumps({**state_, "global_step": step}))
    old = os.stat(folder).st_mtime - 3600
    for each in folder.rglob("*"):
        os.utime(each, (old + step, old + step))
    return folder


def test_without_the_registry_the_folder_of_the_last_success_is_scanned(
    saver: Saver, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "ckpt" / "7b"
    first = trainer_checkpoint(root / "checkpoint-4", 4)
    saver.save(4, replicas=[replica(first, tier="shared")])
    assert saver.choose().path == str(first)
    newer = trainer_checkpoint(root / "checkpoint-8", 8)  # recorded nowhere yet
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CAIRN_TOKEN", "t")
    code, out, err = cli("resume", "--run", name(saver))
    assert (code, out) == (0, f"{newer}\n"), err
    assert err.count("The registry cannot be reached") == 1
    assert "is CAIRN_URL right?).\n" in err
    assert "superseded or suspect is not known" in err
    code, out, _ = cli("resume", "--run", saver.run.id, "--json")
    told = json.loads(out)
    assert (told["source"], told["path"], told["checkpoint"]) == ("scan", str(newer), None)


def test_a_local_root_serves_where_there_was_no_success_yet(tmp_path: Path) -> None:
    path = trainer_checkpoint(tmp_path / "7b" / "checkpoint-4", 4)
    with away() as client:
        choice = choose(client, "llm/7b", local_roots=[str(tmp_path / "7b")])
        assert (choice.path, choice.step, choice.source) == (str(path), 4, "scan")
        with pytest.raises(NothingToResume, match="--local-root"):
            choose(client, "llm/other")
        with pytest.raises(NothingToResume, match="cannot be scanned"):
            choose(client, "llm/7b", local_roots=[str(tmp_path / "nowhere")])


def test_without_the_registry_what_is_not_whole_or_lacks_a_piece_is_passed_over(tmp_path: Path) -> None:
    root = tmp_path / "7b"
    whole = trainer_checkpoint(root / "checkpoint-4", 4)
    broken = trainer_checkpoint(root / "checkpoint-8", 8)
    (broken / "optimizer.pt").unlink()
    with away() as client:
        said: list[str] = []
        choice = choose(client, "llm/7b", local_roots=[str(root)], say=said.append)
        assert choice.path == str(whole)
        assert any("optimizer" in each.why for each in choice.fallbacks)
        (whole / "optimizer.pt").unlink()
        with pytest.raises(NothingToResume) as failed:
            choose(client, "llm/7b", local_roots=[str(root)])
        assert not failed.value.has_none


def test_without_the_registry_another_layout_is_not_guessed_at(tmp_path: Path) -> None:
    root = tmp_path / "7b"
    trainer_checkpoint(root / "checkpoint-4", 4)
    with away() as client:
        choice = choose(client, "llm/7b", local_roots=[str(root)], layout={"tp": 4})
        assert any("With which tp" in reason for reason in choice.reasons)


def test_a_service_that_fails_counts_as_away_and_one_that_refuses_does_not(
    faults: FaultServer, client: Client, tmp_path: Path
) -> None:
    path = trainer_checkpoint(tmp_path / "7b" / "checkpoint-4", 4)
    for status in (401, 403, 404, 500, 503):  # not in the service's own words
        faults.replies = [Reply(status)]
        assert choose(client, "llm/7b", local_roots=[str(path.parent)]).source == "scan"
    for status in (401, 403):
        faults.replies = [Reply(status, {"type": "/problems/invented", "title": "No", "status": status})]
        with pytest.raises(Exception, match=str(status)):
            choose(client, "llm/7b", local_roots=[str(path.parent)])


def test_a_service_that_never_answers_is_given_up_on(faults: FaultServer, tmp_path: Path) -> None:
    path = trainer_checkpoint(tmp_path / "7b" / "checkpoint-4", 4)
    faults.replies = [Reply(wait_seconds=600.0)]
    with Client(faults.url, "t", timeout=0.2, retries=Retries(count=1, wait_seconds=0.5)) as client:
        choice = choose(client, "llm/7b", local_roots=[str(path.parent)])
    assert (choice.source, choice.path) == ("scan", str(path))


def test_without_the_registry_a_save_of_a_moment_ago_is_taken_where_all_of_it_is_there(
    faults: FaultServer, client: Client, tmp_path: Path
) -> None:
    path = trainer_checkpoint(tmp_path / "7b" / "checkpoint-4", 4)
    (path / "README.md").write_text("newer than the file that ends the save, so a scan would wait")
    faults.replies = [Reply(503)]
    assert choose(client, "llm/7b", local_roots=[str(path.parent)]).path == str(path)


def test_the_state_file_never_stands_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saver: Saver) -> None:
    saver.save(1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for content in (b"", b"[", b'{"runs": 1}', b'{"runs": [1, {"project": 3}]}', b"\xff"):
        path = state.state_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        assert state.last_success(name(saver)) is None
        saver.choose()
        kept = state.last_success(name(saver))
        assert kept is not None
        assert kept.root == str(saver.root)
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    said: list[str] = []
    assert saver.choose(say=said.append).step == 1000
    assert any("could not be kept" in each for each in said)


def test_nothing_to_resume_is_a_not_found() -> None:
    assert issubclass(NothingToResume, NotFound)
