"""The forms of the pages read the names that the command line reads."""

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ReplicaSpec
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.runs import RunRow
from tests.factories import ALL_PIECES, at, make_checkpoint, make_project, make_run
from tests.ui.reading import Page


def trained(session: Session) -> tuple[RunRow, dict[int, int]]:
    run = make_run(session, make_project(session, "llm"), "bis")
    scores = {10: 0.613, 160: 0.46}
    ids = {
        step: make_checkpoint(
            session,
            run,
            step,
            pieces=ALL_PIECES,
            saved_at=at("2026-11-01"),
            replicas=(ReplicaSpec(f"/shared/bis/{step}", "shared", bytes=10**9),),
            scores=[NewScore("gsm8k", scores[step], metric="acc", n_samples=1319)] if step in scores else (),
        )
        for step in (10, 90, 160)
    }
    return run, ids


def test_two_checkpoints_are_compared_by_run_and_step(browser: TestClient, session: Session) -> None:
    trained(session)
    page = Page(browser.get("/compare?baseline=llm/bis@10&candidate=llm/bis@1.160").text)
    assert "Math fell 15.3" in page.answer
    wrong = browser.get("/compare?baseline=llm/bis@10&candidate=llm/bis@170")
    assert wrong.status_code == 404
    assert "has no checkpoint at 170" in wrong.text


def test_a_rollback_opens_by_the_name_of_its_run_and_leads_to_the_search(browser: TestClient, session: Session) -> None:
    _, ids = trained(session)
    page = Page(browser.get("/rollback?run=llm/bis").text)
    assert page.answer.startswith("You did not say what got worse, and math fell between steps 10 and 160")
    asked = Page(browser.get(page.links["Go back to before math fell"]).text)
    assert asked.answer.startswith("Go back to step 10 of bis")
    assert "found by two checkpoints compared" in asked.text
    assert asked.links["Compare the two, and search where it fell"] == (
        f"/compare?baseline={to_text(ids[10])}&candidate={to_text(ids[160])}"
    )


def test_a_move_of_an_alias_shows_what_is_named_by_its_step(browser: TestClient, session: Session) -> None:
    _, ids = trained(session)
    page = browser.get("/aliases/llm/production?to=llm/bis@10").text
    assert f"/checkpoints/{to_text(ids[10])}" in page
    assert "llm has no checkpoint ‘llm/bis@20’" in browser.get("/aliases/llm/production?to=llm/bis@20").text
