"""`cairn record` against scripted answers: what is sent, and what is refused before."""

import json
from pathlib import Path

import pytest
from cairn.cli.recording.options import pieces

from tests.client.cli.answers import PROBLEM
from tests.client.conftest import Cli, FaultServer, Reply

pytestmark = pytest.mark.usefixtures("scripted")


def test_record_sends_what_the_options_say(cli: Cli, faults: FaultServer, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"lr": 3e-4, "clip": NaN}')
    faults.replies = [Reply(body={"accepted": 1, "results": [{"index": 0, "id": "0c1", "status": "created"}]})]
    where = ("--project", "llm", "--run", "7b-a", "--step", "0", "--attempt", "2", "--kind", "light", "--pending")
    what = ("--loss", "nan", "--score", "gsm8k=0.21", "--score", "`a.b`.acc.none=inf", "--tag", "phase=a=b")
    files = ("--path", "/ckpt/1", "--path", "s3://b/1", "--tier", "shared", "--config", str(config))
    code, out, err = cli("record", *where, *what, *files, "--pieces", "weights,random_state=absent")
    assert code == 0
    assert err.splitlines() == [
        "Note: /ckpt/1 is not there on this host. It is recorded all the same, since another host may have it."
    ]
    assert out.splitlines()[1] == "llm\t7b-a\t0\tcreated\t0c1"
    assert faults.seen[0].path == "/api/v1/checkpoints:batch"
    assert faults.seen[0].json == [
        {
            "project": "llm",
            "run": "7b-a",
            "step": 0,
            "attempt": 2,
            "kind": "light",
            "state": "pending",
            "loss": "NaN",
            "scores": [
                {"benchmark": "gsm8k", "value": 0.21},
                {"benchmark": "a.b", "metric": "acc", "filter": "none", "value": "Infinity"},
            ],
            "replicas": [{"uri": "/ckpt/1", "tier": "shared"}, {"uri": "s3://b/1", "tier": "object"}],
            "tags": {"phase": "a=b"},
            "config": {"lr": 3e-4, "clip": "NaN"},
            "pieces": {"weights": "present", "random_state": "absent"},
        }
    ]


def test_numbers_are_sent_as_the_file_and_the_lines_have_them(cli: Cli, faults: FaultServer, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"lr":1.50,"wd":1e2,"betas":[0.90,-0.0],"seed":12345678901234567890,"clip":NaN,"max":1e999}')
    faults.replies = [Reply(body={"accepted": 1, "results": [{"index": 0, "id": "0c1", "status": "created"}]})]
    where = ("record", "--project", "p", "--run", "r")
    assert cli(*where, "--step", "1", "--config", str(config))[0] == 0
    sent = config.read_bytes().replace(b"NaN", b'"NaN"').replace(b"1e999", b'"1e999"')
    assert b'"config":' + sent in faults.seen[0].body
    assert cli(*where, "-", stdin='{"step": 2, "lr": 3E-4, "config": {"lr": 1.50}}')[0] == 0
    assert faults.seen[1].body == b'[{"project":"p","run":"r","step":2,"lr":3E-4,"config":{"lr":1.50}}]'


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--project", "p", "--run", "r"),
        ("--project", "p", "--run", "r", "--step", "-1"),
        ("--project", "p", "--run", "r", "--step", "1.5"),
        ("--project", "p", "--run", "r", "--step", "1", "--path", "/somewhere"),
        ("--project", "p", "--run", "r", "--step", "1", "--score", "gsm8k"),
        ("--project", "p", "--run", "r", "--step", "1", "--score", "=0.5"),
        ("--project", "p", "--run", "r", "--step", "1", "--tag", "phase"),
        ("--project", "p", "--run", "r", "--step", "1", "--pieces", "brain"),
        ("--project", "p", "--run", "r", "--step", "1", "--config", "/no/such/file"),
        ("-", "--step", "1"),
        ("-", "--loss", "0"),
        ("file.json",),
    ],
)
def test_record_refuses_what_it_would_have_to_guess(cli: Cli, faults: FaultServer, wrong: tuple[str, ...]) -> None:
    faults.replies = [Reply()]
    assert cli("record", *wrong)[0] == 2
    assert faults.seen == []


@pytest.mark.parametrize("text", ["[1]", '{"lr": 1, "lr": 2}', "{", ""])
def test_a_config_that_is_none_is_refused(cli: Cli, faults: FaultServer, tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    assert cli("record", "--project", "p", "--run", "r", "--step", "1", "--config", str(path))[0] == 2
    assert faults.seen == []


def test_lines_are_sent_in_batches_and_fill_in_the_run(cli: Cli, faults: FaultServer) -> None:
    def accepted(count: int) -> Reply:
        results = [{"index": index, "id": f"c{index}", "status": "created"} for index in range(count)]
        return Reply(body={"accepted": count, "results": results})

    faults.replies = [accepted(500), accepted(2)]
    lines = "\n".join(json.dumps({"step": step}) for step in range(501)) + '\n\n{"step": 501, "run": "other"}\n'
    code, out, _ = cli("record", "--project", "p", "--run", "r", "-", stdin=lines)
    assert code == 0
    assert [len(seen.json) for seen in faults.seen] == [500, 2]
    assert faults.seen[1].json[1] == {"project": "p", "run": "other", "step": 501}
    assert len(out.splitlines()) == 503


def test_a_refused_batch_says_what_is_recorded_already(cli: Cli, faults: FaultServer) -> None:
    results = [{"index": index, "id": f"c{index}", "status": "created"} for index in range(500)]
    refusal = {"type": "/problems/invalid", "detail": "Refused.", "errors": [{"pointer": "/0/step", "detail": "x"}]}
    faults.replies = [Reply(body={"accepted": 500, "results": results}), Reply(422, refusal, PROBLEM)]
    lines = "\n".join(json.dumps({"step": step}) for step in range(501))
    code, _, err = cli("record", "-", stdin=lines)
    assert code == 2
    assert "500 checkpoints before this batch are recorded; none of this batch is." in err
    assert "line 501: step: x" in err


def test_a_key_that_stands_twice_in_a_line_is_refused_and_nothing_is_sent(cli: Cli, faults: FaultServer) -> None:
    code, _, err = cli("record", "-", stdin='{"step": 1}\n{"step": 2, "config": {"lr": 1, "lr": 2}}')
    assert (code, faults.seen) == (2, [])
    assert "Line 2" in err
    assert "'lr' twice" in err


def test_a_conflict_names_the_options_that_were_left_out_too(cli: Cli, faults: FaultServer) -> None:
    errors = [{"pointer": f"/0/{name}", "detail": "differs"} for name in ("loss", "scores", "data_version", "pieces")]
    refusal = {"type": "/problems/batch-in-conflict", "detail": "1 refused. The first: It differs.", "errors": errors}
    faults.replies = [Reply(409, refusal, PROBLEM)]
    err = cli("record", "--project", "p", "--run", "r", "--step", "1", "--loss", "2")[2]
    for option in ("--loss", "--score", "--data-version", "--pieces"):
        assert f"  {option}: differs" in err


@pytest.mark.parametrize(("line", "place"), [("{", "Line 2"), ("[]", "Line 2"), ("[" * 99999, "Line 2")])
def test_a_line_that_is_no_object_is_named(cli: Cli, faults: FaultServer, line: str, place: str) -> None:
    code, _, err = cli("record", "-", stdin='{"step": 1}\n' + line)
    assert code == 2
    assert place in err
    assert faults.seen == []


def test_all_pieces_by_one_word() -> None:
    assert pieces("all") == dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
