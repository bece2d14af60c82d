"""`cairn find` against scripted answers: what is sent, what is shown, how it ends."""

import json
from typing import Any

import pytest

from tests.client.cli.answers import CHECKPOINT, EMPTY, PAGE, PROBLEM
from tests.client.conftest import Cli, FaultServer, Reply

pytestmark = pytest.mark.usefixtures("scripted")


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
