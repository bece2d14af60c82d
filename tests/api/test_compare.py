"""What POST /compare answers: fields and words on one scale, one sign, and what was not recorded said."""

import re
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.snapshots import DataSpec, SourceSpec
from registry.types import Relation
from tests.factories import make_checkpoint, make_project, make_run


def compared(client: TestClient, baseline: int, candidate: int) -> dict[str, Any]:
    answer = client.post("/api/v1/compare", json={"baseline": to_text(baseline), "candidate": to_text(candidate)})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def score(name: str, value: float) -> NewScore:
    return NewScore(name, value, metric="acc", n_samples=266)


@pytest.mark.parametrize(
    ("name", "old", "new", "direction", "verdict"),
    [
        ("mmlu", 0.60, 0.30, "higher", "regressed"),
        ("mmlu", 0.30, 0.60, "higher", "improved"),
        ("wmdp", 0.60, 0.30, "lower", "improved"),
        ("wmdp", 0.30, 0.60, "lower", "regressed"),
    ],
)
def test_delta_is_candidate_minus_baseline_and_the_words_say_the_same(
    client: TestClient, session: Session, name: str, old: float, new: float, direction: str, verdict: str
) -> None:
    run = make_run(session)
    pair = [make_checkpoint(session, run, step, scores=[score(name, value)]) for step, value in ((1, old), (2, new))]
    (found,) = compared(client, *pair)["scores"]
    assert (found["baseline"], found["candidate"], found["direction"], found["verdict"]) == (
        *(old, new, direction),
        verdict,
    )
    assert found["delta"] == pytest.approx(new - old)
    assert re.search(r"(fell|rose) by [\d.]+", found["why"])[0] == f"{'fell' if new < old else 'rose'} by 0.300"  # type: ignore[index]


def test_the_interval_and_the_least_change_in_the_words_are_those_of_the_fields(
    client: TestClient, session: Session
) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[score("mmlu", 0.551)])
    new = make_checkpoint(session, run, 2, scores=[score("mmlu", 0.502)])
    answer = compared(client, old, new)
    for row in (*answer["scores"], *answer["capabilities"]):
        ends = [row["delta"] + side * 1.645 * row["stderr"] for side in (-1, 1)]
        low, high = (float(each) for each in re.findall(r"[+-]\d+\.\d+", row["why"]))
        assert (low, high) == pytest.approx(ends, abs=6e-4)
        least = re.search(r"only a change of ([\d.]+) would", row["why"])
        assert least is not None
        assert float(least[1]) == pytest.approx(row["minimum_detectable"], abs=6e-4)
    assert "normalised" in answer["capabilities"][0]["why"]
    assert "normalised" not in answer["scores"][0]["why"]


def test_what_one_side_did_not_record_is_said(client: TestClient, session: Session) -> None:
    run = make_run(session)
    whole = {"lr": 1.0, "open_lm": {"beta2": 0.95}}
    old = make_checkpoint(session, run, 1, config=whole, environment={"cuda": "12"}, scores=[score("mmlu", 0.6)])
    part = make_checkpoint(session, run, 2, config={"lr": 1.0}, scores=[score("mmlu", 0.3)])
    bare = make_checkpoint(session, run, 3, scores=[score("mmlu", 0.3)])
    answer = compared(client, old, part)
    assert [(each["path"], each["change"], each["not_recorded_on"]) for each in answer["config_changes"]] == [
        ("open_lm.beta2", "removed", "candidate")
    ]
    assert answer["config_why"] == "the candidate recorded nothing of open_lm (1 value)"
    assert answer["environment_why"] == "no environment is recorded for the candidate"
    assert answer["suspects"] == []
    answer = compared(client, old, bare)
    assert (answer["config_changes"], answer["config_why"]) == ([], "no config is recorded for the candidate")


def test_another_data_set_without_a_mix_has_no_distance(client: TestClient, session: Session) -> None:
    run = make_run(session)
    made = [
        make_checkpoint(session, run, step, data_version=DataSpec(name, {name: SourceSpec(1.0)}))
        for step, name in enumerate(("c4", "pile"), start=1)
    ]
    found = compared(client, *made)["data_changes"]
    assert (found["total_variation"], found["by_lineage"]) == (None, False)
    assert found["why"] == "another data version (c4 → pile); their mixes are not recorded"


def test_how_the_candidate_came_from_the_baseline_is_answered(client: TestClient, session: Session) -> None:
    project = make_project(session)
    old = make_checkpoint(
        session, make_run(session, project), 1, scores=[NewScore("mmlu", 0.6, metric="acc", n_samples=14042)]
    )
    new = make_checkpoint(
        session,
        make_run(session, project),
        1,
        scores=[NewScore("mmlu", 0.5, metric="acc", n_samples=14042)],
        parents=[ParentSpec(old, Relation.QUANTISED)],
    )
    pair = {"baseline": to_text(old), "candidate": to_text(new)}
    found = client.post("/api/v1/compare", json=pair).json()
    edge = {"child": to_text(new), "parent": to_text(old), "relation": "quantised_from", "lossless": False}
    assert (found["lineage"], found["lineage_why"]) == ([edge], "the candidate was quantised from the baseline")
    assert [each["changes"] for each in found["suspects"]] == [["lineage.quantised_from"]]
    itself = client.post("/api/v1/compare", json=pair | {"candidate": pair["baseline"]}).json()
    assert [(each["verdict"], each["why"]) for each in itself["scores"]] == [("unchanged", "the same weights")]
    assert (itself["lineage"], itself["lineage_why"], itself["suspects"]) == ([], "", [])
