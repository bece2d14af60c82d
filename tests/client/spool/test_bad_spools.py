"""One record, file or spool that cannot be sent is set aside with its reason, and holds up nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from cairn import Client, Retries
from cairn.spool.backlog import Backlog
from cairn.spool.flush import flush, list_refused, list_spools

from tests.client.conftest import Cli, FaultServer, Reply
from tests.client.spool.left import curve, leave, points, saved, start


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def steps_of(live: Client, project: str) -> list[int]:
    return sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'"))


BAD: dict[str, Any] = {
    "no curves": {"kind": "points", "key": "r", "curves": "none"},
    "half a curve": {"kind": "points", "key": "r", "curves": {"loss": {"steps": 3}}},
    "a kind that is a list": {"kind": ["saved"], "key": "r"},
    "a save of no step": {"kind": "saved", "key": "r", "checkpoint_kind": "archive"},
    "a save of a step that is a text": {"kind": "saved", "key": "r", "step": "seven"},
    "scores that are a number": {"kind": "scores", "key": "r", "step": 1, "scores": 5},
    "an end of nothing": {"kind": "finish", "key": "r", "changes": None},
    "a receipt without a body": {"kind": "receipt", "key": "r"},
    "an attempt after nothing": {"kind": "attempt", "key": "r"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_record_that_cannot_be_sent_is_set_aside_and_all_else_goes_on(
    live: Client, project: str, spool: Path, cli: Cli, bad: dict[str, Any]
) -> None:
    leave(spool, start(project), saved(project, 1), bad, saved(project, 7))
    leave(spool, start(project, "other"), saved(project, 8, "other"))
    code, out, err = cli("spool", "flush")
    assert (code, out) == (0, "Sent 5 records of 2 spools.\n"), err
    assert steps_of(live, project) == [1, 7, 8]
    (refused,) = list_refused()
    assert (refused.run, bool(refused.reason)) == (f"{project}/r", True)
    assert err.count("a record (") == 1
    assert list_spools() == []
    assert cli("spool", "flush")[:2] == (0, "Sent 0 records of 0 spools.\n")
    assert len(list_refused()) == 1


@pytest.mark.parametrize("origin", [3.7, [1], True, {"bogus": 1}, {"step": -1}, "nope", "/no/such/path", "other/r@7"])
def test_a_start_that_names_no_checkpoint_is_sent_as_unknown(
    live: Client, project: str, spool: Path, cli: Cli, origin: Any
) -> None:
    leave(spool, start(project, resumed_from=origin), saved(project, 7))
    leave(spool, start(project, "other"), saved(project, 8, "other"))
    code, _, err = cli("spool", "flush")
    assert code == 0, err
    assert "what it loaded is unknown" in err
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert (attempt.raw["resumed_from"], attempt.raw["restart"]) == (None, False)
    assert attempt.raw["reason"].startswith("what it loaded is unknown: resumed_from=")
    assert steps_of(live, project) == [7, 8]
    assert list_refused() == []


def test_what_an_older_client_has_prepared_holds_up_nothing(live: Client, project: str, spool: Path, cli: Cli) -> None:
    """It wrote down what it was about to send, an origin that nobody can send among it."""
    folder = leave(spool, start(project, resumed_from=3.7), saved(project, 7))
    body = {"run": {}, "attempt": {"resumed_from": 3.7}, "facts": {}}
    Backlog(folder).prepare(1, "r", body)
    code, _, err = cli("spool", "flush")
    assert code == 0, err
    assert steps_of(live, project) == [7]
    assert "what it loaded is unknown" in live.list_attempts(live.find_run(project, "r"))[0].raw["reason"]


def test_a_start_that_cannot_be_sent_keeps_its_own_records_only(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    folder = leave(spool, start("no project", "r"), saved("no project", 7))
    leave(spool, start(project, "other"), saved(project, 8, "other"))
    for _ in range(2):
        code, _, err = cli("spool", "flush")
        assert code == 1
        assert f"{folder} waits: its start cannot be sent (" in err
    assert steps_of(live, project) == [8]
    assert list_refused() == []
    assert [each.waiting for each in list_spools()] == [2]


@pytest.mark.parametrize(
    ("pieces", "known"),
    [("all", "present"), ({"optimizer": "present"}, "present"), ({"optimizer": 3}, "unknown"), (7, "unknown")],
)
def test_pieces_of_any_form_cost_no_checkpoint(
    live: Client, project: str, spool: Path, cli: Cli, pieces: Any, known: str
) -> None:
    leave(spool, start(project), saved(project, 7, pieces=pieces))
    assert cli("spool", "flush")[0] == 0
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert live.get_checkpoint(found).raw["pieces"]["optimizer"] == known


def test_of_curves_only_what_is_refused_is_left_out(live: Client, project: str, spool: Path, cli: Cli) -> None:
    steps = list(range(1, 51))
    bad = {"a\0b": curve(steps), "": curve(steps), "half \ud800": curve(steps), "far": curve([1, 2**70, 2**71])}
    leave(spool, start(project), points(loss=curve(steps), **bad), points(loss=curve([51, 2**70])))
    code, _, err = cli("spool", "flush")
    assert code == 0, err
    curves = live.read_series(live.find_run(project, "r"))
    assert {each.name: list(each.steps) for each in curves} == {"loss": [*steps, 51], "far": [1]}
    sent = [json.loads(each.path.read_text())["sent"] for each in list_refused()]
    left_out = [(each["name"], each["steps"]) for body in sent for each in body]
    assert sorted(left_out) == sorted(
        [("a\0b", steps), ("", steps), ("half \ud800", steps), ("far", [2**70, 2**71]), ("loss", [2**70])]
    )


def test_a_field_that_is_refused_does_not_cost_its_checkpoint(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    scores = [{"benchmark": "b", "value": 0.5}, {"benchmark": "c", "value": 0.5, "n_samples": -1}]
    wrong = {"epoch": -1, "layout": {"tp": 0, "pp": 2}, "tags": {"good": "1", "\n": "2"}, "scores": scores}
    leave(spool, start(project), saved(project, 7, loss=2.5, **wrong), saved(project, 8))
    code, _, err = cli("spool", "flush")
    assert code == 0, err
    found = {
        each.step: live.get_checkpoint(each).raw for each in live.iter_checkpoints(filter=f"project = '{project}'")
    }
    assert set(found) == {7, 8}
    kept = found[7]
    assert (kept["loss"], kept["epoch"], kept["tags"]) == (2.5, None, {"good": "1"})
    assert (kept["layout"]["tp"], kept["layout"]["pp"]) == (None, 2)
    assert [each["benchmark"] for each in kept["scores"]] == ["b"]
    assert "part of a record (epoch" in err


def test_a_bad_score_costs_no_other_and_a_bad_exit_code_no_end(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    scores = [{"benchmark": "b", "value": 0.5}, {"benchmark": "c", "value": 0.5, "n_samples": -1}]
    later = {"kind": "scores", "key": "r", "step": 7, "checkpoint_kind": "archive", "scores": scores}
    end = {"kind": "finish", "key": "r", "changes": {"state": "failed", "exit_code": 2**40}}
    leave(spool, start(project), saved(project, 7), later, end)
    assert cli("spool", "flush")[0] == 0
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert [each.benchmark for each in live.list_scores(found)] == ["b"]
    assert live.list_attempts(live.find_run(project, "r"))[0].raw["state"] == "failed"


@pytest.mark.parametrize("name", ["done", "prepared.log", "decision.json", "service", "waits"])
@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[]", b'{"r": {"done": "x"}}', b'{"r": {"done": 0, "facts": {"number": 1}}}']
)
def test_what_a_spool_remembers_may_be_damaged(
    live: Client, project: str, spool: Path, cli: Cli, name: str, content: bytes
) -> None:
    folder = leave(spool, start(project), saved(project, 7))
    leave(spool, start(project, "other"), saved(project, 8, "other"))
    (folder / name).write_bytes(content)
    if name == "service":
        (folder / name).write_bytes(b"\xff\xfe")  # any text would be the address of another service
    assert cli("spool", "list")[0] == 0
    code, _, err = cli("spool", "flush")
    assert code == 0, err
    assert steps_of(live, project) == [7, 8]


def test_files_beside_the_spools_that_nobody_can_read_are_passed_over(
    live: Client, project: str, spool: Path, cli: Cli
) -> None:
    leave(spool, start(project), saved(project, 7))
    for name in ("refused", "unfinished", "exec"):
        (spool / name).mkdir()
        (spool / name / "a.json").write_text("[" * 100_000)
        (spool / name / "b.json").write_text(json.dumps({"record": {"kind": 3}, "problem": [], "service": live.url}))
        said = {"service": live.url, "record": {"paths": 5}, "item": {}, "facts": {}, "problem": {"detail": None}}
        (spool / name / "c.json").write_text(json.dumps(said))
    assert cli("spool", "list")[0] == 0
    code, _, err = cli("spool", "flush")
    assert code == 0, err
    assert steps_of(live, project) == [7]


def test_a_service_that_fails_over_one_spool_is_asked_about_the_next(
    faults: FaultServer, project: str, spool: Path
) -> None:
    folders = {leave(spool, start(project, name), saved(project, 7, name)) for name in ("r", "other")}
    problem = {"type": "/problems/internal-error", "title": "A fault", "status": 500, "detail": "A fault."}
    faults.replies = [Reply(500, problem, {"Content-Type": "application/problem+json"})]
    done = flush(Client(faults.url, "a-token", retries=Retries(count=0)))
    assert {path for path, _ in done.kept} == folders
    assert all("the service fails over a record of it" in why for _, why in done.kept)
    assert list_refused() == []
    assert len(list_spools()) == 2


def test_what_nobody_wants_any_more_is_thrown_away_by_name(project: str, spool: Path, cli: Cli) -> None:
    folder = leave(spool, start(project), saved(project, 7))
    other = leave(spool, start(project, "other"), saved(project, 8, "other"))
    code, _, err = cli("spool", "discard", str(spool))
    assert code != 0
    assert "is no spool" in err
    assert cli("spool", "discard", str(folder))[:2] == (0, f"Threw away {folder} with 2 records.\n")
    assert (folder.exists(), other.exists()) == (False, True)
    code, printed, _ = cli("spool", "discard", str(other), "--json")
    assert (code, json.loads(printed)) == (0, {"discarded": [{"spool": str(other), "records": 2}]})


def test_the_spool_of_a_process_that_runs_is_not_thrown_away(project: str, spool: Path, cli: Cli) -> None:
    from cairn.spool.writer import SpoolWriter

    writer = SpoolWriter([spool], lambda said: None)
    writer.tick()
    assert writer.append(start(project))
    code, _, err = cli("spool", "discard", str(writer.folder))
    assert code != 0
    assert "still runs" in err
    assert writer.folder is not None
    assert writer.folder.exists()
    writer.close()
