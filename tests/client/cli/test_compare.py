"""`cairn compare` against scripted answers: what is shown, and in which order."""

from typing import Any

import pytest

from tests.client.conftest import Cli, FaultServer, Reply

pytestmark = pytest.mark.usefixtures("scripted")


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
