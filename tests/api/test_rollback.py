"""What POST /rollback answers beside its candidates: whose scores do not count, and what is served now."""

from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import move_alias
from registry.evals.scores import NewScore
from registry.ids import to_text
from tests.factories import make_run
from tests.registry.recovery.test_rollback import whole


def test_the_onset_says_whose_scores_do_not_count_and_the_alias_stands_beside(
    client: TestClient, session: Session
) -> None:
    run = make_run(session)
    values = [*(0.3 if place == 10 else 0.6 for place in range(1, 20)), 60.0]
    ids = [
        whole(session, run, 1000 * place, scores=[NewScore("mmlu", value, metric="acc", n_samples=14042)])
        for place, value in enumerate(values, 1)
    ]
    move_alias(session, run.project_id, "production", ids[-2], actor="ann")
    session.commit()
    asked = {"alias": f"{run.project}/production", "watch": {"benchmark": "mmlu"}}
    answer = client.post("/api/v1/rollback", json=asked).json()
    assert answer["onset"]["why"] == "1 checkpoint with a score off the scale was left out"
    assert (answer["onset"]["alone"], len(answer["onset"]["points"])) == ([10000], 19)
    assert answer["served"]["checkpoint"]["id"] == to_text(ids[-2])
    assert answer["served"]["terms"]["evidence"] == "none"
    assert answer["served"]["sentence"].startswith("No difference can be told between")
    alone = client.post("/api/v1/rollback", json={"run_id": to_text(run.id)}).json()
    assert (alone["served"], alone["onset"]) == (None, None)


def test_a_rollback_says_what_fell_unasked_how_a_fall_was_found_and_what_to_loosen(
    client: TestClient, session: Session
) -> None:
    run = make_run(session)
    scores = {10: 0.613, 160: 0.46}
    for step in range(10, 170, 10):
        found = [NewScore("gsm8k", scores[step], metric="acc", n_samples=1319)] if step in scores else []
        whole(session, run, step, scores=found)
    session.commit()
    unasked = client.post("/api/v1/rollback", json={"run_id": to_text(run.id)}).json()
    assert unasked["looked_at"] == ["math"]
    (fallen,) = unasked["fallen"]
    assert (fallen["capability"], fallen["after_step"], fallen["by_step"]) == ("math", 10, 160)
    asked = {"run_id": to_text(run.id), "watch": {"capability": fallen["capability"]}}
    onset = client.post("/api/v1/rollback", json=asked).json()["onset"]
    assert (onset["established"], onset["found_by"], onset["bisect_id"]) == (True, "comparison", None)
    assert (onset["p_no_change"], onset["q_value"] < 1e-10) == (None, True)
    none = client.post("/api/v1/rollback", json=asked | {"at_or_before_step": 5}).json()
    assert (none["candidates"], list(none["loosen"])) == ([], ["step"])


def test_names_in_the_place_of_ids_are_refused_with_the_way_to_the_id(client: TestClient, session: Session) -> None:
    for body in ({"run": "llm/bis"}, {"run_id": "llm/bis"}):
        answer = client.post("/api/v1/rollback", json=body)
        assert answer.status_code == 422
        assert "the id of the run: GET /api/v1/runs?project=llm&name=7b gives that of llm/7b" in answer.text
    answer = client.post("/api/v1/compare", json={"baseline": "llm/bis@10", "candidate": "llm/bis@160"})
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/baseline", "/candidate"]
    assert "expected the id of a checkpoint, and this is a name: GET /api/v1/checkpoints?filter=" in answer.text
