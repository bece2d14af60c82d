"""`cairn plan`: the copies of a checkpoint with what a restore from each would take."""

import json
import socket
from typing import Any

import pytest
from cairn import Client
from cairn.types import Run

from tests.client.conftest import Cli

GB = 10**9
PIECES = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
EIGHT = {"world_size": 8, "tp": 2, "pp": 1, "dp": 4, "cp": 1, "ep": 1, "sharding": "fully_reshardable"}
SHARED = {"uri": "/mnt/1000", "tier": "shared", "bytes": 100 * GB}
OBJECT = {"uri": "s3://ckpt/1000", "tier": "object", "bytes": 100 * GB}
LOCAL = {"uri": "/nvme/1000", "tier": "local", "host": "node1", "bytes": 100 * GB}


@pytest.fixture
def run(live: Client, project: str) -> Run:
    return live.create_run(project, "7b")


@pytest.fixture
def checkpoint(live: Client, run: Run) -> str:
    copies = [OBJECT, SHARED, LOCAL]
    known: dict[str, Any] = {"pieces": PIECES, "layout": EIGHT, "replicas": copies}
    live.register_checkpoint(run, 1300, saved_at="2026-11-01T01:00:00Z", **known)
    return live.register_checkpoint(run, 1000, saved_at="2026-11-01T00:00:00Z", **known).id


def test_the_fastest_feasible_copy_comes_first_with_every_term(cli: Cli, run: Run, checkpoint: str) -> None:
    code, out, err = cli("plan", f"{run}@1000")
    assert code == 0, err
    header, *rows = [line.split("\t") for line in out.splitlines() if line.count("\t") > 3]
    assert [row[1] for row in rows] == ["shared", "object", "local"]
    assert rows[0][header.index("expected")] == "8.8 min"
    assert rows[0][header.index("takes")] == "notice and schedule 8.0 min, read 20 s, verify 6.25 s, load 20 s"
    assert rows[2][header.index("feasible")] == "no"
    assert "name the hosts" in rows[2][header.index("why")]
    assert "Restore it from shared storage, /mnt/1000, in about 8.8 min" in err
    assert "Replay: 300 steps, to step 1300, about 60.0 min at 12 s a step." in err
    assert "Proof: no drill has shown yet that it restores." in err
    assert "Assumed: Restore times assume" in err
    code, out, _ = cli("plan", checkpoint, "--host", "node1")
    assert code == 0
    assert out.splitlines()[1].startswith("/nvme/1000\tlocal\tyes")


def test_an_rto_that_no_copy_meets_ends_with_1(cli: Cli, checkpoint: str) -> None:
    assert cli("plan", checkpoint, "--rto", "10m")[0] == 0
    code, out, err = cli("plan", checkpoint, "--rto", "8m")
    assert code == 1
    assert "No copy can be used" in err
    assert "over 8.0 min" in out


def test_json_is_the_services_own_answer(cli: Cli, live: Client, checkpoint: str) -> None:
    code, out, _ = cli("plan", checkpoint, "--layout", "world_size=4,tp=1,dp=4", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["copies"][0]["timed_by"] == "assumed"
    assert (told["restorable"]["proven"], told["replay"]["steps"]) == (False, 300)
    assert {each["degree"] for each in told["compatibility"]["changes"]} >= {"tp"}
    found = live.restore_plan(checkpoint)
    assert found.replay["steps"] == 300
    assert found.copies[0].reliability["evidence"] == "none"


def test_what_the_layout_cannot_load_is_said_piece_by_piece(cli: Cli, checkpoint: str) -> None:
    code, out, _ = cli("plan", checkpoint, "--layout", "tp=4,pp=1,dp=2")
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith(("weights", "optimizer", "random state"))]
    assert [line.partition("\t")[0] for line in lines] == ["weights", "optimizer", "random state"]


def test_without_a_copy_nothing_can_be_restored(cli: Cli, live: Client, run: Run) -> None:
    none = live.register_checkpoint(run, 5)
    code, _, err = cli("plan", none.id)
    assert code == 1
    assert "no copy of it is recorded" in err
    pending = live.register_checkpoint(run, 6, state="pending", replicas=[SHARED])
    code, _, err = cli("plan", pending.id)
    assert code == 1
    assert "it is pending" in err


def test_wrong_words_are_usage_and_what_is_not_there_is_no_result(cli: Cli, checkpoint: str, run: Run) -> None:
    assert cli("plan")[0] == 2
    assert cli("plan", checkpoint, "--rto", "soon")[0] == 2
    assert cli("plan", checkpoint, "--layout", "zz=1")[0] == 2
    assert cli("plan", "not/a/name/at")[0] == 2
    assert cli("plan", f"{run}@77")[0] == 1


def test_a_service_that_is_away_is_3(cli: Cli, checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CAIRN_TOKEN", "x")
    assert cli("plan", checkpoint)[0] == 3


def test_the_host_that_asks_counts_where_it_holds_a_copy(cli: Cli, live: Client, run: Run) -> None:
    here = {"uri": "/nvme/60", "tier": "local", "host": socket.gethostname(), "bytes": GB}
    live.register_checkpoint(run, 60, pieces=PIECES, layout=EIGHT, replicas=[here])
    code, out, err = cli("plan", f"{run}@60")
    assert (code, out.splitlines()[1].split("\t")[:3]) == (0, ["/nvme/60", "local", "yes"]), err


def test_a_copy_on_another_host_is_said_to_be_that_host_s_to_load(cli: Cli, live: Client, run: Run) -> None:
    live.register_checkpoint(run, 60, pieces=PIECES, layout=EIGHT, replicas=[LOCAL])
    code, _, err = cli("plan", f"{run}@60")
    assert code == 1
    assert "Only node1 can load it, from local disk, /nvme/1000. Whether node1 still runs is not known here" in err
