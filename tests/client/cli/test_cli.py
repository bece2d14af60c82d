"""The command line against scripted answers: what is sent, what is shown, how it ends."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cairn.cli.commands.record import pieces
from cairn.cli.commands.rollback import watched

from tests.client.conftest import Cli, FaultServer, Reply

CHECKPOINT = {
    "id": "0c1",
    "project": "llm",
    "run": {"id": "0r1", "name": "7b-a"},
    "attempt": 2,
    "step": 41200,
    "kind": "archive",
    "saved_at": "2026-11-01T00:00:00Z",
}
PAGE = {
    "items": [{"checkpoint": CHECKPOINT, "loss": "NaN", "values": {"scores.gsm8k": 0.25}}],
    "next_cursor": None,
}
EMPTY = {"items": [], "next_cursor": None}
PROBLEM = {"Content-Type": "application/problem+json"}


@pytest.fixture(autouse=True)
def _the_service_is_the_fault_server(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", faults.url)
    monkeypatch.setenv("CAIRN_TOKEN", "secret-token")


def test_find_by_filter_writes_tab_separated_text_into_a_pipe(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body=PAGE)]
    code, out, _ = cli("find", "--filter", "scores.gsm8k > 0.2", "--columns", "scores.gsm8k,loss")
    assert code == 0
    assert out == ("project\tcheckpoint\tscores.gsm8k\tloss\tid\nllm\t7b-a · 2 · 41200\t0.25\tNaN\t0c1\n")
    assert "filter=scores.gsm8k+%3E+0.2" in faults.seen[0].path
    assert "fields=scores.gsm8k%2Closs" in faults.seen[0].path


def test_find_follows_the_cursor_up_to_the_limit(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body={**PAGE, "next_cursor": "abc"}), Reply(body=PAGE)]
    code, out, _ = cli("find", "--limit", "2", "--json")
    assert code == 0
    assert len(json.loads(out)["items"]) == 2
    assert "cursor=abc" in faults.seen[1].path
    faults.replies = [Reply(body={"items": PAGE["items"] * 3, "next_cursor": "abc"})]
    assert len(json.loads(cli("find", "--limit", "2", "--json")[1])["items"]) == 2


def test_find_without_result_ends_with_1_and_says_what_to_do(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body=EMPTY)]
    code, out, err = cli("find", "--filter", "step = 1")
    assert (code, out) == (1, "")
    assert "Loosen the filter" in err


def test_find_by_words_says_how_it_understood(cli: Cli, faults: FaultServer) -> None:
    evidence = [{"capability": "math", "percentile": 0.91, "coverage": 0.5, "benchmarks": []}]
    conditions = [{"capability": "math", "relation": "strong", "threshold": 0.8}]
    answer = {
        "interpretation": {"conditions": conditions, "unparsed": ["purple"], "resolved": {}},
        "population": {"size": 60},
        "strict": True,
        "results": [{"checkpoint": CHECKPOINT, "score": 0.91, "evidence": evidence}],
    }
    faults.replies = [Reply(body=answer)]
    code, out, err = cli("find", "strong math", "purple")
    assert code == 0
    assert faults.seen[0].json == {"query": "strong math purple", "limit": 20}
    assert out.splitlines()[1] == "7b-a · 2 · 41200\t0.91\t91 % (50 % measured)\t0c1"
    assert "Understood: strong math (the 80th percentile or above). Ranked among 60 checkpoints." in err
    assert "Not understood: purple." in err
    faults.replies = [Reply(body={**answer, "strict": False})]
    code, out, err = cli("find", "strong math")
    assert code == 1
    assert "these come nearest" in err
    assert "0c1" in out


def test_find_says_which_metric_a_benchmark_was_read_as(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body={**PAGE, "resolved": {"scores.gsm8k": "scores.gsm8k.acc.none", "scores.x": None}})]
    code, out, err = cli("find", "--filter", "scores.gsm8k > 0.2 or scores.x > 1", "--limit", "1")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "scores.gsm8k is read as scores.gsm8k.acc;" in err
    assert "scores.x: no such score is recorded" in err
    assert "1 is shown; there may be more" in err
    left_out = {"scores.gsm8k": [{"score": "scores.gsm8k.exact_match.none", "projects": ["a", "b"]}]}
    faults.replies = [Reply(body={**PAGE, "resolved": {"scores.gsm8k": "scores.gsm8k.acc.none"}, "left_out": left_out})]
    assert (
        "Left out: a, b, which have scores.gsm8k.exact_match only." in cli("find", "--filter", "scores.gsm8k > 0.2")[2]
    )
    faults.replies = [Reply(body={**PAGE, "resolved": {"scores.gsm8k.acc": "scores.gsm8k.acc.none"}})]
    assert cli("find", "--filter", "scores.gsm8k.acc > 0.2")[2] == ""


def test_an_empty_answer_gives_the_call_that_asks_those_it_left_out(cli: Cli, faults: FaultServer) -> None:
    bare, acc = "scores.gsm8k.none.none", "scores.gsm8k.acc.none"
    left_out = {
        "scores.gsm8k": [
            {"score": acc, "scores": [acc, bare], "projects": ["inf"]},
            {"score": acc, "scores": [acc], "projects": ["llm"]},
        ]
    }
    read_as = {"resolved": {"scores.gsm8k": "scores.gsm8k.accuracy.none"}, "left_out": left_out}
    faults.replies = [Reply(body={**EMPTY, **read_as})]
    code, _, err = cli("find", "--filter", "scores.gsm8k > 0.4 and scores.gsm8k_cot > 0.1")
    assert code == 1
    assert (
        "Left out: inf, which has scores.gsm8k.acc and scores.gsm8k.none only; llm, which has scores.gsm8k.acc only."
        in err
    )
    assert "To ask them: cairn find --filter 'scores.gsm8k.acc > 0.4 and scores.gsm8k_cot > 0.1'" in err
    answer = {
        "interpretation": {"conditions": [], "unparsed": [], **read_as},
        "population": {"size": 0},
        "strict": False,
        "results": [],
    }
    faults.replies = [Reply(body=answer)]
    assert "To ask them: cairn find 'gsm8k.acc > 0.4'" in cli("find", "gsm8k > 0.4")[2]


def test_a_project_that_does_not_exist_is_refused_by_a_filter_too(cli: Cli, faults: FaultServer) -> None:
    projects = {"items": [{"id": "0p1", "name": "nodes"}], "next_cursor": None}
    faults.replies = [Reply(body=EMPTY), Reply(body=projects)]
    code, out, err = cli("find", "--project", "node", "--filter", "step > 1")
    assert (code, out) == (1, "")
    assert "There is no project 'node' that this token can read. Did you mean nodes?" in err
    faults.replies = [Reply(body=EMPTY), Reply(body=projects)]
    assert "No checkpoint matches" in cli("find", "--project", "nodes", "--filter", "step > 1")[2]


def judged(percentile: float | None, relation: str, threshold: float, **more: Any) -> dict[str, Any]:
    condition = {"capability": "math", "relation": relation, "threshold": threshold}
    evidence = [{"condition": condition, "capability": "math", "percentile": percentile, "met": False, **more}]
    return {
        "interpretation": {"conditions": [condition], "unparsed": [], "resolved": {}},
        "population": {"size": 60},
        "strict": False,
        "results": [{"checkpoint": CHECKPOINT, "score": 0.8, "evidence": evidence}],
    }


@pytest.mark.parametrize(
    ("answer", "understood", "said"),
    [
        (
            judged(0.12, "weak", 0.05),
            "weak math (the 5th percentile or below).",
            "The weakest at math comes first, at the 12th percentile; none is at the 5th or below.",
        ),
        (
            judged(0.66, "strong", 0.5),
            "math at the 50th percentile or above.",
            "Nothing meets every condition; these come nearest, the first with math at the 66th percentile.",
        ),
        (
            judged(0.88, "strong", 0.8, basis="absolute", composite=0.53),
            "strong math (the 80th percentile or above).",
            "Nothing meets every condition; these come nearest, the first with math at a normalised score of 0.53.",
        ),
    ],
)
def test_how_near_the_first_comes_is_said_with_the_threshold(
    cli: Cli, faults: FaultServer, answer: dict[str, Any], understood: str, said: str
) -> None:
    faults.replies = [Reply(body=answer)]
    code, _, err = cli("find", "math")
    assert code == 1
    assert f"Understood: {understood}" in err
    assert said in err


def test_of_the_first_three_it_is_said_how_many_meet_the_conditions(cli: Cli, faults: FaultServer) -> None:
    answer = judged(0.97, "strong", 0.95)
    first = answer["results"][0]
    met = {**first, "evidence": [{**first["evidence"][0], "met": True}]}
    answer["interpretation"]["at_most"] = 2
    faults.replies = [Reply(body={**answer, "results": [met, first]})]
    err = cli("find", "top 2 math")[2]
    assert "Understood: strong math (the 95th percentile or above), 2 at most." in err
    assert "1 of these 2 meets every condition; others come near." in err


def test_those_that_lack_a_score_are_listed_as_no_results(cli: Cli, faults: FaultServer) -> None:
    math, chat = ({"capability": name, "relation": "strong", "threshold": 0.8} for name in ("math", "chat"))
    evidence = [
        {"condition": math, "capability": "math", "percentile": 0.91, "met": True, "basis": "percentile"},
        {"condition": chat, "capability": "chat", "percentile": None, "met": False, "benchmarks": []},
    ]
    answer = {
        "interpretation": {"conditions": [math, chat], "unparsed": [], "resolved": {}},
        "population": {"size": 60},
        "strict": False,
        "results": [],
        "incomplete": [{"checkpoint": CHECKPOINT, "score": 0, "evidence": evidence}],
    }
    faults.replies = [Reply(body=answer)]
    code, out, err = cli("find", "strong math strong chat")
    assert (code, out) == (1, "")
    assert "1 checkpoint meets all that could be checked and was never evaluated on the rest" in err
    assert "  7b-a · 2 · 41200  math 91 %, chat not evaluated  0c1" in err


def test_what_was_ranked_by_the_composite_shows_it_and_no_percentile(cli: Cli, faults: FaultServer) -> None:
    known = {"capability": "math", "percentile": 0.96, "composite": 0.4, "coverage": 1.0, "benchmarks": []}
    answer = {
        "interpretation": {"conditions": [], "unparsed": [], "resolved": {}, "order": "newest"},
        "population": {"size": 3},
        "strict": True,
        "results": [{"checkpoint": CHECKPOINT, "score": 0.4, "evidence": [{**known, "basis": "absolute"}]}],
    }
    faults.replies = [Reply(body=answer)]
    code, out, err = cli("find", "the newest")
    assert (code, out.splitlines()[1].split("\t")[2]) == (0, "0.400")
    assert "Understood: the newest first." in err


def test_find_by_the_lowest_loss_shows_the_losses(cli: Cli, faults: FaultServer) -> None:
    answer = {
        "interpretation": {"conditions": [], "unparsed": [], "resolved": {}, "order": "lowest_loss"},
        "population": {"size": 1, "warnings": []},
        "strict": True,
        "results": [{"checkpoint": CHECKPOINT, "score": 1.0, "on_front": False, "evidence": [], "loss": 1.75}],
    }
    faults.replies = [Reply(body=answer)]
    code, out, err = cli("find", "lowest", "loss")
    assert code == 0
    assert "Understood: the lowest loss first." in err
    assert out.splitlines()[0].split("\t") == ["checkpoint", "match", "loss", "id"]
    assert "1.75" in out.splitlines()[1].split("\t")


def test_a_listing_shows_what_is_pending_or_superseded(cli: Cli, faults: FaultServer) -> None:
    states = ({"state": "pending"}, {"state": "committed", "superseded": True}, {"state": "committed"})
    items = [{"checkpoint": CHECKPOINT, **each} for each in states]
    faults.replies = [Reply(body={"items": items, "next_cursor": None})]
    lines = cli("find")[1].splitlines()
    assert [line.split("\t")[4] for line in lines] == ["standing", "pending", "superseded", "committed"]


def test_empty_words_are_a_usage_error(cli: Cli, faults: FaultServer) -> None:
    assert cli("find", " ")[0] == 2
    assert faults.seen == []


def test_words_and_a_filter_at_once_are_a_usage_error(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply()]
    assert cli("find", "math", "--filter", "step > 1")[0] == 2
    assert faults.seen == []


def test_a_mistake_in_a_filter_ends_with_2_and_shows_the_place(cli: Cli, faults: FaultServer) -> None:
    problem = {
        "type": "/problems/invalid-filter",
        "title": "The filter has a mistake",
        "detail": "Character 6: expected a value.",
    }
    faults.replies = [Reply(400, problem, PROBLEM)]
    code, out, err = cli("find", "--filter", "step >")
    assert (code, out) == (2, "")
    assert "cairn: Character 6: expected a value." in err
    assert "400 invalid-filter, GET /api/v1/checkpoints" in err


@pytest.mark.parametrize(("status", "code"), [(401, 3), (403, 3), (404, 1), (409, 3), (422, 2), (500, 3)])
def test_the_exit_code_tells_whose_turn_it_is(cli: Cli, faults: FaultServer, status: int, code: int) -> None:
    faults.replies = [Reply(status, {"type": "/problems/invented", "title": "No", "status": status}, PROBLEM)]
    ended, _, err = cli("compare", "0c1", "0c2")
    assert ended == code
    assert ("cairn login" in err) == (status == 401)
    assert "secret-token" not in err


def test_a_call_that_the_service_does_not_know_is_no_empty_result(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(404, {"type": "/problems/not-found", "detail": "Not Found"}, PROBLEM)]
    code, _, err = cli("compare", "0c1", "0c2")
    assert code == 3
    assert "does not know POST /api/v1/compare. Is it older than this client" in err


def test_control_characters_of_others_do_not_reach_the_terminal(cli: Cli, faults: FaultServer) -> None:
    evil = {**CHECKPOINT, "run": {"id": "0r1", "name": "a\x1b]0;owned\x07\tb\nc"}}
    faults.replies = [Reply(body={"items": [{"checkpoint": evil}], "next_cursor": None})]
    _, out, _ = cli("find")
    assert len(out.splitlines()) == 2
    assert "\x1b" not in out
    assert "\x07" not in out


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


def test_a_checkpoint_is_named_by_project_run_and_step(cli: Cli, faults: FaultServer) -> None:
    older = {**CHECKPOINT, "id": "0c0", "attempt": 1}
    light = {**CHECKPOINT, "id": "0c9", "kind": "light"}
    page = {"items": [{"checkpoint": each} for each in (light, CHECKPOINT, older)], "next_cursor": None}
    faults.replies = [Reply(body=page), Reply(body=page), Reply(body={"scores": []})]
    assert cli("compare", "llm/7b-a@41200", "llm/7b-a@1.41200")[0] == 0
    assert "attempt+%3D+1" in faults.seen[1].path
    assert faults.seen[2].json == {"baseline": "0c1", "candidate": "0c1"}


def test_a_run_may_be_called_anything(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [
        Reply(body={"items": [{"checkpoint": CHECKPOINT}], "next_cursor": None}),
        Reply(body={"scores": []}),
    ]
    assert cli("compare", "llm/it's a/b@c@41200", "0c1")[0] == 0
    asked = parse_qs(urlsplit(faults.seen[0].path).query)["filter"][0]
    assert asked == "project = 'llm' and run.name = 'it''s a/b@c' and step = 41200"


@pytest.mark.parametrize("text", ["llm/a b", "llm/7b-a@", "llm/7b-a@x", "a/b@c", "llm/@1", "x y"])
def test_what_names_no_checkpoint_is_a_usage_error(cli: Cli, faults: FaultServer, text: str) -> None:
    code, _, err = cli("compare", text, "0c1")
    assert code == 2
    assert "does not name a checkpoint" in err
    assert "project/run@step" in err
    assert "project/alias" in err
    assert faults.seen == []


def test_a_checkpoint_is_named_by_an_alias(cli: Cli, faults: FaultServer) -> None:
    alias = {"checkpoint": CHECKPOINT, "project": "llm", "name": "production"}
    faults.replies = [Reply(body=alias), Reply(body={"scores": []})]
    assert cli("compare", "llm/production", "0c2")[0] == 0
    assert faults.seen[0].path == "/api/v1/aliases/llm/production"
    assert faults.seen[1].json == {"baseline": "0c1", "candidate": "0c2"}


def test_rollback_shows_a_few_of_what_each_filter_left_out(cli: Cli, faults: FaultServer) -> None:
    out = [{"checkpoint": {**CHECKPOINT, "step": step}, "filter": "p_bad", "reason": "bad"} for step in range(9)]
    excluded = [*out, {"checkpoint": CHECKPOINT, "filter": "copy", "reason": "none"}]
    counts = {"p_bad": 12, "copy": 1}
    answer = {"mode": "production", "candidates": [], "excluded": excluded, "excluded_counts": counts}
    faults.replies = [Reply(body=answer)]
    code, _, err = cli("rollback", "--alias", "llm/production")
    assert code == 1
    assert err.count(": may be bad: bad") == 5
    assert "and 7 more (may be bad);" in err
    assert "7b-a · 2 · 41200: copy: none" in err


def test_rollback_names_the_option_for_what_fell_unasked_and_for_what_to_loosen(cli: Cli, faults: FaultServer) -> None:
    found = {"rank": 1, "checkpoint": CHECKPOINT, "terms": {}, "reasons": [], "copy": {}}
    fell = {"capability": "math", "sentence": "Fell.", "after_step": 10, "by_step": 20}
    faults.replies = [
        Reply(body={"mode": "production", "candidates": [found], "fallen": [fell], "looked_at": ["math"]}),
        Reply(body={"mode": "production", "candidates": [found], "looked_at": ["math"]}),
        Reply(body={"mode": "production", "candidates": [], "loosen": {"pieces": "or ask in production mode"}}),
        Reply(body={"mode": "production", "candidates": [], "loosen": {"pieces": "record them", "step": "later"}}),
    ]
    said = [cli("rollback", "--alias", "llm/production")[2] for _ in range(4)]
    assert "Here that is: --watch math." in said[0]
    assert "Here that is: --watch NAME" in said[1]
    assert "Here that is: --mode production." in said[2]
    assert "Here that is: a higher --at-or-before-step." in said[3]


def test_compare_shows_what_needs_a_decision_first(cli: Cli, faults: FaultServer) -> None:
    def score(benchmark: str, verdict: str) -> dict[str, Any]:
        sides = {"baseline": 0.6, "candidate": 0.5}
        return {"benchmark": benchmark, "metric": "acc", "delta": -0.1, "verdict": verdict, "why": "q 0.01", **sides}

    answer = {
        "scores": [score("piqa", "unchanged"), score("arc", "improved"), score("gsm8k", "regressed")],
        "capabilities": [{"capability": "math", "delta": -0.1, "verdict": "regressed"}],
        "config_changes": [{"path": "lr", "change": "changed", "class": "optimiser", "old": 1e-4, "new": 2e-4}],
        "data_changes": {"total_variation": 0.14, "sources": [{"source": "web", "old_share": 0.6, "new_share": 0.7}]},
        "code_changes": {"status": "unknown", "why": "the tree was dirty"},
        "suspects": [{"changes": ["lr"], "strength": "some", "share": 0.7}],
    }
    faults.replies = [Reply(body=answer)]
    code, out, err = cli("compare", "0c1", "0c2")
    assert code == 0
    lines = out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["benchmark", "gsm8k", "arc", "setting", "lr"]
    assert lines[1].split("\t")[2:5] == ["0.6", "0.5", "-0.1"]
    assert "1 regressed, 1 improved, 1 unchanged" in err
    assert "1 more are unchanged" in err
    assert "Capability math: regressed, -0.1" in err
    assert "Data: 14.0 % of the mix changed (web 60 % → 70 %)" in err
    assert "Code: unknown: the tree was dirty" in err
    assert "Suspect (some, 70 % of the suspicion): lr" in err
    faults.replies = [Reply(body=answer)]
    assert "Suspect (some, 70 % of the suspicion): lr" in err
    assert "no change stands out" not in err
    assert "piqa" in cli("compare", "0c1", "0c2", "--all")[1]


def test_compare_shows_only_the_few_of_many_unclear_scores_that_are_nearest_to_a_change(
    cli: Cli, faults: FaultServer
) -> None:
    scores = [
        {
            "benchmark": f"b{place:02}",
            "metric": "acc",
            "delta": 0.0,
            "verdict": "inconclusive",
            "q_value": 1 - place / 50,
        }
        for place in range(40)
    ]
    answer = {"scores": [*scores, {"benchmark": "mmlu", "metric": "acc", "delta": -0.1, "verdict": "regressed"}]}
    faults.replies = [Reply(body=answer)]
    _, out, err = cli("compare", "0c1", "0c2")
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == ["mmlu", *(f"b{n}" for n in range(39, 29, -1))]
    assert "30 more are inconclusive; --all shows them." in err
    faults.replies = [Reply(body=answer)]
    assert len(cli("compare", "0c1", "0c2", "--all")[1].splitlines()) == 42


def test_compare_names_no_weak_suspect_first_and_calls_the_unrecorded_so(cli: Cli, faults: FaultServer) -> None:
    change = {"path": "open_lm.beta2", "change": "removed", "class": "optimiser", "old": 0.95, "new": None}
    answer = {
        "scores": [{"benchmark": "mmlu", "metric": "acc", "delta": -0.1, "verdict": "regressed", "why": "fell"}],
        "config_changes": [{**change, "not_recorded_on": "candidate"}],
        "config_why": "the candidate recorded nothing of open_lm (1 value)",
        "environment_why": "no environment is recorded for the candidate",
        "data_changes": {"total_variation": None, "why": "another data version (a → b); their mixes are not recorded"},
        "suspects": [{"changes": ["config.seed"], "strength": "weak", "share": 1.0}],
    }
    faults.replies = [Reply(body=answer)]
    code, out, err = cli("compare", "0c1", "0c2")
    assert code == 0
    assert out.splitlines()[-1].split("\t")[:2] == ["open_lm.beta2", "not recorded on the candidate"]
    assert "Config: the candidate recorded nothing of open_lm (1 value); what is not recorded is not compared." in err
    assert "Environment: no environment is recorded for the candidate" in err
    assert "Data: another data version (a → b); their mixes are not recorded" in err
    assert err.index("Suspects: no change stands out.") < err.index(
        "Weak evidence, 100 % of the suspicion: config.seed"
    )
    faults.replies = [Reply(body={**answer, "suspects": []})]
    assert "Suspects: no change stands out." in cli("compare", "0c1", "0c2")[2]


def test_compare_says_where_shares_are_of_the_tokens_seen(cli: Cli, faults: FaultServer) -> None:
    sources = [{"source": "pile", "old_share": 1.0, "new_share": 0.93}]
    data = {"total_variation": 0.07, "by_lineage": True, "sources": sources, "note": "baseline: its past is unknown"}
    faults.replies = [Reply(body={"scores": [], "data_changes": data})]
    err = cli("compare", "0c1", "0c2")[2]
    assert "Data: 7.0 % of the tokens seen changed (pile 100 % → 93 %); baseline: its past is unknown" in err
    assert "Suspect" not in err


def test_rollback_asks_for_the_run_and_shows_reasons(cli: Cli, faults: FaultServer) -> None:
    answer = {
        "sentence": "Go back to step 41200.",
        "onset": {"watch": "math", "sentence": "It fell after step 40000.", "why": "3 are off the scale"},
        "last_known_good": CHECKPOINT,
        "served": {
            "checkpoint": {**CHECKPOINT, "step": 60000},
            "terms": {"composite": 0.374, "composite_stderr": 0.011, "p_ok": 0.6},
            "sentence": "No difference can be told",
        },
        "candidates": [
            {"checkpoint": CHECKPOINT, "rank": 1, "terms": {"restore_minutes": 8.77}, "reasons": ["near", "safe"]}
        ],
        "excluded": [{"checkpoint": {**CHECKPOINT, "step": 50000}, "filter": "onset", "reason": "after the onset"}],
    }
    faults.replies = [Reply(body={"id": "0r1", "name": "7b-a", "project": "llm"}), Reply(body=answer)]
    code, out, err = cli("rollback", "--run", "0r1", "--watch", "math", "--rto", "600")
    assert code == 0
    assert faults.seen[1].json == {
        "run_id": "0r1",
        "watch": {"capability": "math"},
        "rto_seconds": 600.0,
        "limit": 5,
    }
    assert out.splitlines()[1] == "1\t7b-a · 2 · 41200\t0c1\t8.8 min\t\tnear; safe"
    assert "Last known good: 7b-a · 2 · 41200" in err
    assert "Go back to step 41200." in err
    assert "Watching math: It fell after step 40000." in err
    assert "Not counted: 3 are off the scale" in err
    assert "Served now: 7b-a · 2 · 60000 (score 37.4 ± 1.1, loads in 60 % of cases). No difference can be told." in err
    assert "  7b-a · 2 · 50000: onset: after the onset" in err


def test_rollback_of_an_alias_is_about_production(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body={"candidates": [], "excluded": [], "sentence": "None is left."})]
    code, out, err = cli("rollback", "--alias", "llm/production", "--watch", "gsm8k")
    assert (code, out) == (1, "")
    assert faults.seen[0].json == {"alias": "llm/production", "watch": {"benchmark": "gsm8k"}, "limit": 5}
    assert "None is left." in err
    assert cli("rollback")[0] == 2
    assert cli("rollback", "--run", "a/b", "--alias", "a/b")[0] == 2


def test_a_watched_name_may_say_its_kind() -> None:
    assert watched("benchmark:math") == {"benchmark": "math"}
    assert watched("capability:new") == {"capability": "new"}
    assert watched("a:b") == {"benchmark": "a:b"}


def test_all_pieces_by_one_word() -> None:
    assert pieces("all") == dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")


def test_login_checks_the_token_before_keeping_it(
    cli: Cli, faults: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CAIRN_URL", "CAIRN_TOKEN"):
        monkeypatch.delenv(name)
    login = Path(os.environ["HOME"]) / ".config/cairn/login.json"
    faults.replies = [Reply(401, {"title": "Unknown token"}, PROBLEM)]
    assert cli("login", "--url", faults.url, "--token", "wrong")[0] == 3
    assert not login.exists()
    faults.replies = [Reply(body=EMPTY)]
    code, out, err = cli("login", "--url", faults.url, "--token", "-", stdin="right\n")
    assert code == 0
    assert "right" not in out + err
    assert login.stat().st_mode & 0o777 == 0o600
    faults.seen.clear()
    cli("find")
    assert faults.seen[0].headers["Authorization"] == "Bearer right"


def test_nobody_there_ends_with_3(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    code, _, err = cli("rollback", "--alias", "p/a")
    assert code == 3
    assert "Nobody answers" in err


def test_every_command_takes_json_and_has_help(cli: Cli) -> None:
    for command in ("login", "record", "find", "rollback", "compare", "evals"):
        code, out, _ = cli(command, "--help")
        assert code == 0
        assert "--json" in out
    assert "Exit codes:" in cli("--help")[1]


def test_without_click_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['click'] = None\nimport cairn.cli\ncairn.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "pip install 'cairn-client[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_id_stays_in_one_piece_on_a_narrow_terminal(faults: FaultServer) -> None:
    named = {**CHECKPOINT, "id": "0a1b2c3d4e5f6", "run": {"id": "0r1", "name": "[red]a-run-with-a-long-name[/red]"}}
    faults.replies = [Reply(body={"items": [{"checkpoint": named}], "next_cursor": None})]
    env = {**os.environ, "CAIRN_URL": faults.url, "CAIRN_TOKEN": "t", "COLUMNS": "60", "TERM": "xterm"}
    parent, terminal = pty.openpty()
    code = "from cairn.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, "find"], env=env, stdout=terminal, timeout=60, check=True)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed: everything was read
        while chunk := os.read(parent, 65536):
            shown += chunk
    os.close(parent)
    assert b"0a1b2c3d4e5f6" in shown
    assert b"[red]" in shown, "names are text, never markup"


# Where the output goes

CAIRN = f"{sys.executable} -c 'from cairn.cli import main; main()'"


def at_a_shell(command: str, faults: FaultServer) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "CAIRN_URL": faults.url, "CAIRN_TOKEN": "t"}
    bash = ["bash", "-c", command]
    return subprocess.run(bash, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_reader_that_has_seen_enough_is_no_error(faults: FaultServer) -> None:
    items = [{"checkpoint": {**CHECKPOINT, "id": f"c{index}"}} for index in range(1000)]
    faults.replies = [Reply(body={"items": items * 10, "next_cursor": None})]
    done = at_a_shell(f"{CAIRN} find --limit 1000 | head -1; echo ${{PIPESTATUS[0]}}", faults)
    header, code = done.stdout.splitlines()
    assert header.startswith("project\tcheckpoint")
    assert (code, done.stderr) == ("0", ""), "1 would mean: no result"


def test_output_that_cannot_be_written_is_told_apart_from_a_wrong_option(faults: FaultServer) -> None:
    for command in ("find", "find --json"):
        faults.replies = [Reply(body=PAGE)]
        done = at_a_shell(f"{CAIRN} {command} > /dev/full", faults)
        assert (done.returncode, done.stderr) == (3, "cairn: the output cannot be written: No space left on device.\n")


@pytest.mark.parametrize("streams", [">&-", ">&- <&-"])
def test_closed_output_is_said_and_a_job_ends_with_its_own_code(
    faults: FaultServer, tmp_path: Path, streams: str
) -> None:
    for command in ("find", "find --json", "--version"):
        faults.replies = [Reply(body=PAGE)]
        done = at_a_shell(f"{CAIRN} {command} {streams}", faults)
        said = "cairn: the output cannot be written: it was closed before the command began.\n"
        assert (done.returncode, done.stderr) == (3, said), command
    faults.replies = [Reply(500)]
    job = f"export CAIRN_SPOOL={tmp_path}; {CAIRN} exec --run p/r -- sh -c 'echo lost; echo told >&2; exit 5' {streams}"
    done = at_a_shell(job, faults)
    assert done.returncode == 5
    assert "told\n" in done.stderr
    assert "Traceback" not in done.stderr
