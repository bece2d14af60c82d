"""Refusals of the real service, as somebody at a shell reads them."""

import json
import re

import pytest
from cairn import Client
from cairn.cli.hints import without_api

from tests.client.conftest import Cli

API_WORDS = re.compile(r"\b(?:POST|PUT|PATCH|GET|DELETE) (?!/api/v1\S*\]$)|Authorization|/baseline|/candidate", re.M)
NO_ID = "0000000000000"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("rollback", "--run", "nope/x"), 1, "`cairn record --project P ...` makes a project"),
        (("find", "math", "--project", "nope"), 1, "`cairn run list`"),
        (("run", "show", NO_ID), 1, "named by its id or as project/run"),
        (("rollback", "--alias", "PROJECT/x"), 1, "An alias is written project/name"),
        (("compare", NO_ID, NO_ID), 1, "project/run@step"),
        (("compare", "a", "b"), 2, "project/run@step or project/run@attempt.step, or by an alias as project/alias"),
        (("compare", "PROJECT/a", NO_ID), 1, "There is no alias 'a' in"),
        (("compare", "nope/a", NO_ID), 1, "no project 'nope'"),
    ],
)
def test_a_refusal_says_what_to_do_at_a_shell(
    cli: Cli, project: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended, out, err = cli(*(word.replace("PROJECT", project) for word in arguments))
    assert (ended, out) == (code, ""), err
    assert said in err
    assert not API_WORDS.search(err), err


def test_compare_calls_its_arguments_what_its_help_calls_them(cli: Cli, live: Client) -> None:
    _, _, err = cli("compare", "a", "b")
    assert "BASELINE: expected an id" in err
    assert "CANDIDATE: expected an id" in err


def test_a_missing_token_is_no_lecture_on_headers(cli: Cli, live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_TOKEN", "cairn_unknown")
    code, _, err = cli("find")
    assert code == 3
    assert "No valid token was sent" in err
    assert "`cairn login`" in err
    assert not API_WORDS.search(err), err


def test_other_content_for_a_recorded_step_is_told_in_options(cli: Cli, project: str) -> None:
    first = ("record", "--project", project, "--run", "r", "--step", "5", "--tokens-seen", "7")
    assert cli(*first, "--loss", "1")[0] == 0
    code, _, err = cli("record", "--project", project, "--run", "r", "--step", "5", "--tokens-seen", "8", "--loss", "2")
    assert code == 3
    assert "stands at attempt 1, step 5 (archive), and differs in" in err
    assert "  --loss: differs" in err
    assert "  --tokens-seen: differs" in err
    assert "then say --attempt" in err
    assert "of the items" not in err
    assert not API_WORDS.search(err), err
    code, _, err = cli("record", "--project", "p p", "--run", "r", "--step", "5")
    assert (code, err.splitlines()[0]) == (
        2,
        "cairn: At --project: expected letters, digits, dots, underscores and hyphens only.",
    )


def test_a_refused_line_is_named_by_its_number(cli: Cli, project: str) -> None:
    lines = [json.dumps({"step": 1}), "", json.dumps({"step": -1})]
    code, _, err = cli("record", "--project", project, "--run", "r", "-", stdin="\n".join(lines))
    assert code == 2
    assert "line 3: step: expected 0 or more" in err


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("There is no project 'x'. POST /api/v1/projects makes one.", "There is no project 'x'."),
        ("It belongs to a new attempt; PATCH amends tags, notes.", "It belongs to a new attempt."),
        ("A run named 'PUT x' is there. It stays.", "A run named 'PUT x' is there. It stays."),
        ("At 6:\n  step >\n       ^", "At 6:\n  step >\n       ^"),
        ("GET /jobs tells. Is the name right?", "Is the name right?"),
        ("POST it.", "POST it."),
        ("", ""),
    ],
)
def test_only_sentences_about_requests_are_left_out(text: str, kept: str) -> None:
    assert without_api(text) == kept
