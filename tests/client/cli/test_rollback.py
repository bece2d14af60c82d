"""`cairn rollback` against scripted answers: what is sent, what is shown."""

import pytest
from cairn.cli.commands.rollback import watched

from tests.client.cli.answers import CHECKPOINT
from tests.client.conftest import Cli, FaultServer, Reply

pytestmark = pytest.mark.usefixtures("scripted")


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
        Reply(body={"mode": "production", "candidates": [], "loosen": {"size": "record the sizes of the copies"}}),
    ]
    said = [cli("rollback", "--alias", "llm/production")[2] for _ in range(5)]
    assert "Here that is: --watch math." in said[0]
    assert "Here that is: --watch NAME" in said[1]
    assert "Here that is: --mode production." in said[2]
    assert "Here that is: a higher --at-or-before-step." in said[3]
    assert "Here that is: no --rto." in said[4]


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
