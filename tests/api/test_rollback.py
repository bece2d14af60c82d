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
