"""`cairn incident` against the real service: list, show, open, name a cause, close."""

import json
from pathlib import Path

import pytest
from cairn import Client
from cairn.types import Run

from tests.client.conftest import Cli


@pytest.fixture
def run(live: Client, project: str) -> Run:
    made = live.create_run(project, "r")
    live.start_attempt(made, key="a")
    return made


def test_without_any_the_list_says_how_they_are_recorded_and_ends_with_1(cli: Cli, run: Run) -> None:
    code, out, aside = cli("incident", "list", "--run", str(run))
    assert (code, out) == (1, "")
    assert "cairn exec --run" in aside


def test_an_interruption_is_opened_named_closed_and_listed(cli: Cli, live: Client, run: Run) -> None:
    arguments = ("--node", "node7", "--steps-lost", "240", "--key", "k", "--at", "2026-11-28T10:00:00Z")
    code, out, _ = cli("incident", "open", "--run", str(run), *arguments, "--json")
    made = json.loads(out)
    assert (code, made["state"], made["cause"], made["steps_lost"]) == (0, "open", "unknown", 240)
    assert json.loads(cli("incident", "open", "--run", str(run), *arguments, "--json")[1])["id"] == made["id"]
    code, out, aside = cli("incident", "cause", made["id"], "nccl-timeout", "--note", "switch 3")
    assert (code, out) == (0, "")
    assert "NCCL timeout, open" in aside
    code, out, aside = cli("incident", "list", "--run", str(run), "--open")
    assert code == 0
    head, row = out.splitlines()
    assert head.split("\t")[:4] == ["when", "run", "attempt", "cause"]
    assert row.split("\t")[:4] == ["2026-11-28 10:00", str(run), "1", "nccl-timeout"]
    assert aside == "1 interruption, 1 open; 240 steps lost; last: NCCL timeout on node7, open.\n"
    assert cli("incident", "close", made["id"], "--note", "done")[0] == 0
    assert cli("incident", "list", "--run", str(run), "--open")[0] == 1
    found = live.get_incident(made["id"])
    assert (found.state, found.note, found.node) == ("closed", "done", "node7")


def test_a_cause_that_nobody_knows_is_kept_and_said(cli: Cli, run: Run) -> None:
    from registry.incidents.causes import CAUSES

    made = json.loads(cli("incident", "open", "--run", str(run), "--json")[1])
    code, _, aside = cli("incident", "cause", made["id"], "gpu-eccc")
    assert code == 0
    assert "'gpu-eccc' is no cause that the service knows" in aside
    assert set(aside.rpartition("Known are ")[2].strip().rstrip(".").split(", ")) == set(CAUSES)
    assert "no cause" not in cli("incident", "cause", made["id"], "gpu-ecc")[2]
    assert "cairn incident list" in cli("incident", "cause", "nope", "gpu-ecc")[2]
    assert "Z" in next(line for line in cli("incident", "show", made["id"])[1].splitlines() if "occurred" in line)


def test_the_cause_is_read_from_a_log_and_shown_with_its_lines(cli: Cli, run: Run, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(
        b"step 5 | loss 2\n\x1b[31mapi_key=sk-aaaaaaaaaaaaaaaaaaaaaaaa\nOSError: [Errno 28] No space left on device\n"
    )
    made = json.loads(cli("incident", "open", "--run", str(run), "--log", str(log), "--json")[1])
    assert (made["cause"], made["cause_said_by"]) == ("disk-full", None)
    code, out, _ = cli("incident", "show", made["id"])
    assert code == 0
    assert "OSError: [Errno 28] No space left on device" in out
    assert "sk-aaaa" not in out
    assert "\x1b" not in out
    assert json.loads(cli("incident", "show", made["id"], "--json")[1])["id"] == made["id"]


@pytest.mark.parametrize(
    ("cause", "said"), [("scheduler", "stopped"), ("user-interrupt", "stopped"), ("gpu-memory", "crashed")]
)
def test_a_job_that_was_told_to_end_is_not_called_crashed(
    cli: Cli, live: Client, run: Run, cause: str, said: str
) -> None:
    live.start_attempt(run, restart=True)
    made = live.open_incident(run, kind="crashed", exit_code=143, cause=cause)
    assert f"kind\t{said}" in cli("incident", "show", made.id)[1]
    assert f"\t{said}\t" in cli("incident", "list", "--run", str(run))[1]


def test_a_suspect_is_told_with_what_to_load_instead(cli: Cli, live: Client, project: str) -> None:
    run = live.create_run(project, "s")
    older, loaded = (live.register_checkpoint(run, step) for step in (100, 200))
    for _ in range(2):
        live.start_attempt(run, resumed_from=loaded)
        made = live.open_incident(run, kind="crashed", exit_code=1, cause="corrupt-checkpoint", evidence=["bad magic"])
    _, _, aside = cli("incident", "show", made.id)
    assert "The checkpoint is suspect: 2 attempts that loaded it failed alike" in aside
    assert older.id in aside


@pytest.mark.parametrize(
    "arguments",
    [
        ("open",),
        ("open", "--run", "no-slash/"),
        ("open", "--run", "R", "--at", "yesterday"),
        ("open", "--run", "R", "--at", "2026-11-01T00:00:00"),
        ("open", "--run", "R", "--signal", "nine"),
        ("open", "--run", "R", "--steps-lost", "-1"),
        ("open", "--run", "R", "--cause", "No Cause"),
        ("open", "--run", "R", "--attempt", "99"),
        ("cause", "ID"),
        ("close", "ID", "--odd"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_ends_with_2(cli: Cli, run: Run, arguments: tuple[str, ...]) -> None:
    assert cli("incident", *(str(run) if each == "R" else each for each in arguments))[0] == 2


def test_what_is_not_there_ends_with_1(cli: Cli, run: Run) -> None:
    assert cli("incident", "show", "0000000000000")[0] == 1
    assert cli("incident", "list", "--run", f"{run.project}/none")[0] == 1


def test_receipts_and_incidents_through_the_client(live: Client, run: Run) -> None:
    loaded = live.register_checkpoint(run, 100)
    live.start_attempt(run, key="b", resumed_from=loaded)
    pieces = {"weights": "restored", "optimizer": "fresh"}
    receipt = live.record_receipt(run, pieces=pieces, checkpoint=loaded, attempt_key="b", restore_seconds=4.5)
    assert (receipt.attempt, receipt.restore_seconds, receipt.pieces["optimizer"]) == (2, 4.5, "fresh")
    by_step = live.record_receipt(run, pieces=pieces, checkpoint={"attempt": 1, "step": 100})
    assert by_step.loaded["checkpoint_id"] == loaded.id
    assert [each.raw["resume"] and each.raw["resume"]["state"] for each in live.list_attempts(run)] == [None, "partial"]
    made = [live.open_incident(run, cause="power") for _ in range(3)]
    assert [each.id for each in live.list_incidents(run=run, cause="power", limit=2)] == [made[2].id, made[1].id]
    assert live.patch_incident(made[0], open=False).state == "closed"


def test_what_a_second_report_says_otherwise_is_said_with_the_way_to_change_it(cli: Cli, run: Run) -> None:
    made = json.loads(cli("incident", "open", "--run", str(run), "--cause", "power", "--key", "k", "--json")[1])
    code, _, aside = cli("incident", "open", "--run", str(run), "--cause", "link-flap", "--key", "k", "--node", "n7")
    assert code == 0
    assert f"Incident {made['id']}" in aside
    assert "says otherwise of: cause, node. That was not changed" in aside
    assert f"`cairn incident cause {made['id']} CAUSE`" in aside
    assert "says otherwise" not in cli("incident", "open", "--run", str(run), "--cause", "power", "--key", "k")[2]
