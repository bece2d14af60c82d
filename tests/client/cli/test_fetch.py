"""`cairn fetch`, `du`, `lineage` and `resume` over copies in folders and in a real object store."""

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.replicas import replica
from cairn.types import Run

from tests.client.conftest import Cli
from tests.client.object_store import BUCKET, ObjectStore, running_object_store
from tests.client.resume.test_resume import PIECES, files


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def store(bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for key, value in bucket.environment.items():
        monkeypatch.setenv(key, value)
    return bucket


@pytest.fixture
def run(live: Client, project: str) -> Run:
    return live.create_run(project, "7b")


def save(live: Client, run: Run, step: int, *copies: dict[str, Any], **known: Any) -> str:
    return live.register_checkpoint(run, step, replicas=list(copies), **{"pieces": PIECES, **known}).id


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_is_fetched_and_verified(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    source = files(tmp_path / "shared", 5000, 3)
    save(live, run, 1000, replica(source, tier="shared", digest=True))
    target = tmp_path / "copy"
    code, out, err = cli("fetch", f"{run}@1000", str(target))
    assert (code, out) == (0, f"{target}\n"), err
    assert "verified by blake3" in err
    assert contents(target) == contents(source)
    code, out, err = cli("fetch", f"{run}@1000", str(target))
    assert (code, out) == (2, "")
    assert "nothing is overwritten" in err
    code, out, _ = cli("fetch", f"{run}@1000", str(tmp_path / "other"), "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["from"], told["tier"], told["verified_by"], told["bytes"]) == (str(source), "shared", "blake3", 5003)


def test_without_digests_sizes_are_compared_and_that_is_said(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    number = save(live, run, 1000, replica(files(tmp_path / "shared", 5), tier="shared"))
    code, _, err = cli("fetch", number, str(tmp_path / "copy"))
    assert code == 0
    assert "only sizes were compared" in err


def test_a_copy_that_is_damaged_gives_way_to_the_next(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    near, far = files(tmp_path / "near", 5000), tmp_path / "far"
    shutil.copytree(near, far)
    copies = (replica(near, tier="local", digest=True), replica(far, tier="shared", digest=True))
    number = save(live, run, 1000, *copies)
    good = (near / "shard-0.bin").read_bytes()
    (near / "shard-0.bin").write_bytes(bytes(5000))  # the same size, another content
    code, out, err = cli("fetch", number, str(tmp_path / "copy"))
    assert code == 0, err
    assert "has another content" in err
    assert contents(Path(out.strip())) == {"shard-0.bin": good}
    shutil.rmtree(far)
    code, out, err = cli("fetch", number, str(tmp_path / "other"))
    assert (code, out) == (3, "")
    assert "not what is recorded" in err
    assert not (tmp_path / "other").exists()
    shutil.rmtree(near)
    code, out, err = cli("fetch", number, str(tmp_path / "third"))
    assert (code, out) == (1, "")
    assert "No copy of it can be read here" in err


def test_what_cannot_be_fetched_says_why(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    none = save(live, run, 1000)
    code, out, err = cli("fetch", none, str(tmp_path / "copy"))
    assert (code, out) == (1, "")
    assert "No copy of it is recorded" in err
    elsewhere = save(live, run, 2000, {"uri": "/nvme/x", "tier": "local", "host": "another", "bytes": 1})
    assert cli("fetch", elsewhere, str(tmp_path / "copy"))[0] == 1
    assert cli("fetch", f"{run}@77", str(tmp_path / "copy"))[0] == 1
    assert cli("fetch", "not/a/name", str(tmp_path / "copy"))[0] == 2
    assert cli("fetch", none, str(tmp_path / "copy"), "--tier", "tape")[0] == 2


def test_an_object_store_is_fetched_from_and_resumed_from(
    cli: Cli, live: Client, run: Run, tmp_path: Path, store: ObjectStore
) -> None:
    source = files(tmp_path / "source", 70_000, 10)
    key = f"fetch/{run.id}"
    store.put_tree(source, key)
    uri = f"s3://{BUCKET}/{key}"
    save(live, run, 1000, replica(uri, digest=True))
    code, out, err = cli("fetch", f"{run}@1000", str(tmp_path / "copy"), "--tier", "object", "--jobs", "4")
    assert code == 0, err
    assert contents(Path(out.strip())) == contents(source)
    assert "verified by blake3" in err
    assert cli("resume", "--run", str(run))[:2] == (0, f"{uri}\n")
    older = files(tmp_path / "older", 5)
    save(live, run, 500, replica(older, tier="shared"))
    save(live, run, 2000, {"uri": f"s3://{BUCKET}/nothing-here", "tier": "object", "bytes": 5})
    save(live, run, 3000, {"uri": uri, "tier": "object", "bytes": 5})
    code, out, err = cli("resume", "--run", str(run))
    assert (code, out) == (0, f"{uri}\n")
    assert "nothing-here" in err
    assert "70,010 bytes, and 5 are recorded" in err
    assert cli("resume", "--run", str(run), "--tier", "shared")[:2] == (0, f"{older}\n")


# du


def test_du_tells_bytes_by_run_tier_and_state(cli: Cli, live: Client, run: Run) -> None:
    save(live, run, 1000, {"uri": "/mnt/1", "tier": "shared", "bytes": 2_000_000})
    save(live, run, 2000, {"uri": "/mnt/2", "tier": "shared", "bytes": 5_000_000})
    live.start_attempt(run, resumed_from={"step": 1000})
    save(live, run, 1500, {"uri": "s3://b/3", "tier": "object"}, state="pending")
    code, out, err = cli("du", "--run", str(run))
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert code == 0
    assert rows == [
        [str(run), "shared", "committed, superseded", "1", "1", "5 MB", "0"],
        [str(run), "shared", "committed", "1", "1", "2 MB", "0"],
        [str(run), "object", "pending", "1", "1", "", "1"],  # unknown is not nothing
    ]
    assert "7 MB in all." in err
    code, out, _ = cli("du", "--project", run.project, "--bytes")
    assert "\t5000000\t" in out
    code, out, _ = cli("du", "--project", run.project, "--json")
    assert json.loads(out)["bytes"] == 7_000_000
    code, out, err = cli("du", "--project", run.project, "--limit", "1")
    assert len(out.splitlines()) == 2
    assert "and 2 more lines" in err


def test_du_of_nothing_is_no_result(cli: Cli, live: Client, run: Run) -> None:
    assert cli("du", "--run", str(run))[:2] == (1, "")
    assert cli("du", "--run", str(run), "--json")[0] == 1
    assert cli("du", "--project", "no-such-project")[0] == 1
    assert cli("du", "--run", str(run), "--project", run.project)[0] == 2


# lineage


def test_lineage_is_a_tree_both_ways(cli: Cli, live: Client, run: Run, project: str) -> None:
    base = save(live, run, 1000)
    sft = live.create_run(project, "sft")
    tuned = save(live, sft, 10, parents=[{"checkpoint_id": base, "relation": "fine_tuned_from"}])
    other = save(live, sft, 20, parents=[{"checkpoint_id": base, "relation": "fine_tuned_from"}])
    merged = [{"checkpoint_id": each, "relation": "merged_from"} for each in (tuned, other)]
    final = save(live, sft, 30, parents=merged)
    hf = [{"checkpoint_id": final, "relation": "converted_from"}]
    save(live, sft, 40, parents=hf)
    code, out, _ = cli("lineage", f"{project}/sft@30")
    assert code == 0
    lines = [line.rstrip().rpartition("  ")[0] if "shown" not in line else line for line in out.splitlines()]
    assert lines[0] == f"{project}/sft · 1 · 30"
    assert sorted(line for line in lines if "merged" in line) == [
        f"  - merged from: {project}/sft · 1 · 10",
        f"  - merged from: {project}/sft · 1 · 20",
    ]
    assert sum("fine-tuned from" in line for line in lines) == 2
    assert sum("(shown above)" in line for line in lines) == 1
    assert lines[-1] == f"  = converted from: {project}/sft · 1 · 40"
    code, out, _ = cli("lineage", base, "--json")
    assert json.loads(out)["checkpoint"]["id"] == base
    code, out, _ = cli("lineage", base)
    assert "came from: nothing recorded" in out
    assert cli("lineage", f"{project}/sft@99")[0] == 1


def test_a_restore_plan_is_asked_for_by_the_client(live: Client, run: Run, tmp_path: Path) -> None:
    folder = files(tmp_path / "nvme", 10)
    layout = {"world_size": 8, "tp": 2, "pp": 1, "dp": 4, "cp": 1, "sharding": "fully_reshardable"}
    number = save(live, run, 1000, replica(folder, tier="local"), {"uri": "/mnt/1", "tier": "shared"}, layout=layout)
    plan = live.restore_plan(number, layout={"world_size": 4}, hosts=[socket.gethostname()], rto_seconds=3600)
    assert plan.chosen is not None
    assert plan.chosen.uri == str(folder)
    assert plan.chosen.terms is not None
    assert plan.compatibility is not None
    assert plan.compatibility.pieces is not None
    assert plan.compatibility.pieces.weights is not None
    assert plan.compatibility.pieces.weights.verdict == "exact"
    assert [each.feasible for each in plan.copies] == [True, False]
    assert os.path.isdir(plan.chosen.uri)
