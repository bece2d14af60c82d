"""No page is a dead end: empty, unknown, forbidden or without a database, each says what to do next."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.config import Settings
from registry.db import Database, now
from registry.ids import to_text
from registry.incidents.ledger import open_incident
from registry.incidents.shapes import NewIncident
from registry.types import Scope
from tests.application import application
from tests.factories import ALL_PIECES, make_attempt, make_checkpoint, make_project, make_run
from tests.ui.conftest import BROWSER, sign_in
from tests.ui.reading import Page
from tests.ui.test_pages import read, scored

PAGES = {
    "Runs": "/runs",
    "Find": "/find",
    "Compare": "/compare",
    "Roll back": "/rollback",
    "Findings": "/findings",
    "Interruptions": "/incidents",
    "Aliases": "/aliases",
    "Decisions": "/decisions",
    "Benchmarks": "/benchmarks",
    "Jobs": "/jobs",
}


def test_every_page_is_reached_from_the_navigation(browser: TestClient) -> None:
    links = read(browser, "/runs").links
    assert {name: links[name] for name in PAGES} == PAGES
    for name, path in PAGES.items():
        assert f'href="{path}" aria-current="page"' in browser.get(path).text.replace(' class="w"', ""), name


@pytest.mark.parametrize("path", PAGES.values())
def test_an_empty_registry_says_how_to_fill_each_page(browser: TestClient, path: str) -> None:
    page = read(browser, path)
    assert page.answer
    assert 'class="command"' in page.html


@pytest.mark.parametrize("path", [*PAGES.values(), "/runs?project=lang", "/find?mode=filter", "/find?q=strong+math"])
def test_a_project_without_a_run_has_an_answer_on_each_page(browser: TestClient, session: Session, path: str) -> None:
    make_project(session, "lang")
    assert read(browser, path).answer


@pytest.mark.parametrize(
    ("path", "way_on"),
    [
        ("/runs/x", "/runs"),
        ("/checkpoints/x", "/find"),
        ("/checkpoints/x/provenance", "/find"),
        ("/bisects/x", "/compare"),
        ("/decisions/x", "/decisions"),
        ("/incidents/x", "/incidents"),
        ("/jobs/x", "/jobs"),
        ("/aliases/lang/x", "/aliases"),
        ("/nowhere", "/runs"),
    ],
)
def test_an_unknown_id_leads_to_the_list_of_what_exists(
    browser: TestClient, session: Session, path: str, way_on: str
) -> None:
    make_project(session, "lang")
    page = read(browser, path, status=404)
    content = Page(page.html.partition("<main")[2])
    assert way_on in content.links.values()
    assert "/run " not in page.text


def test_an_address_without_a_page_is_named_once_with_what_was_meant(
    browser: TestClient,
) -> None:
    page = read(browser, "/checkpoint/070s988xzkr0y", status=404)
    assert page.answer == "There is no page at ‘/checkpoint/070s988xzkr0y’."
    assert page.text.lower().count("not found") + page.html.count("not-found") == 0
    assert page.links["Did you mean /checkpoints/070s988xzkr0y?"] == "/checkpoints/070s988xzkr0y"
    assert {"All runs", "Find a checkpoint", "Interruptions"} <= page.links.keys()  # the frame, too
    browser.cookies.clear()
    assert "Interruptions" not in read(browser, "/nowhere", status=404).links


def test_who_may_not_see_a_project_is_told_whom_to_ask(
    stranger: TestClient, session: Session, database: Database
) -> None:
    own, other = make_project(session, "own"), make_project(session, "other")
    run = make_run(session, other, "secret-run")
    sign_in(stranger, database, Scope.READ, project_ids=[own.id])
    page = read(stranger, f"/runs/{to_text(run.id)}", status=403)
    assert "ask an administrator for a token that may see this one" in page.text
    assert page.links["Sign in with another token"].startswith("/login?next=")
    assert "secret-run" not in page.html


def test_a_database_that_is_away_says_to_try_again_and_what_is_kept(tmp_path: Path) -> None:
    away = Database("postgresql+psycopg://nobody@127.0.0.1:1/none")
    app = application(away, Settings(tmp_path, str(away.url)))
    with TestClient(app, raise_server_exceptions=False, headers=BROWSER) as client:
        client.cookies.set("cairn_session", "x")
        for path in ("/runs", "/find?q=strong+math", "/login?code=x"):
            page = read(client, path, status=503)
            assert "try again" in page.text
            assert "Nothing that was acknowledged is lost" in page.text
            assert page.links["Try again"] == path
    away.dispose()


def interrupted(session: Session) -> tuple[str, str]:
    """(run, its open interruption)."""
    run = make_run(session, make_project(session, "lang"), "7b")
    make_attempt(session, run, key="a", started_at=now() - timedelta(hours=9))
    for step in (100, 200):
        make_checkpoint(
            session, run, step, pieces=ALL_PIECES, replica=f"/shared/{step}", saved_at=now() - timedelta(hours=8)
        )
    new = NewIncident(
        occurred_at=now() - timedelta(hours=3), cause="nccl-timeout", node="node7", step=250, steps_lost=50, attempt=1
    )
    return to_text(run.id), to_text(open_incident(session, run.id, new, actor="exec")[0].id)


def test_an_open_interruption_is_said_first_on_the_runs_and_on_its_run(browser: TestClient, session: Session) -> None:
    run, incident = interrupted(session)
    page = read(browser, "/runs")
    assert "‘7b’ is interrupted: NCCL timeout on node7, 50 steps lost." in page.text
    assert page.links["Look at it"] == f"/incidents/{incident}"
    assert "interrupted 3 h ago and not recovered" in read(browser, f"/runs/{run}").answer


def test_an_interruption_leads_to_its_rollback_and_back(browser: TestClient, session: Session) -> None:
    run, incident = interrupted(session)
    page = read(browser, f"/incidents/{incident}")
    back = read(browser, page.links["Which checkpoint to go back to"])
    assert "step 200 of 7b (attempt 1) costs the least time" in back.answer
    assert back.links["Interruptions of this run"] == f"/incidents?run={run}"
    assert back.links["the run 7b"] == f"/runs/{run}"
    restored = read(browser, back.links["Where and how to restore it"].partition("#")[0])
    assert "Restore it from shared storage, /shared/200" in restored.text


def test_a_comparison_leads_to_the_rollback_and_to_where_each_comes_from(browser: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "lang"), "7b")
    old, new = (
        to_text(make_checkpoint(session, run, step, scores=[scored("piqa", value)]))
        for step, value in ((100, 0.8), (200, 0.6))
    )
    page = read(browser, f"/compare?baseline={old}&candidate={new}")
    assert page.links["Roll the candidate's run back"] == f"/rollback?run={to_text(run.id)}"
    assert page.links["Where the candidate comes from"] == f"/checkpoints/{new}/provenance"
    assert page.links["After which checkpoint did it fall?"] == "#search"
    assert page.links["Keep this answer"] == "#keep"
    assert 'id="keep"' in page.html


def test_a_kept_rollback_names_its_run_and_links_what_was_asked(browser: TestClient, session: Session) -> None:
    run, _ = interrupted(session)
    csrf = read(browser, f"/rollback?run={run}").fields["csrf"]
    kept = browser.post("/decisions", data={"csrf": csrf, "kind": "rollback", "run": run}, follow_redirects=False)
    page = read(browser, kept.headers["location"])
    assert "Rollback of 7b" in page.text
    assert page.links["7b"] == f"/runs/{run}"


def test_a_project_without_a_run_shows_commands_with_its_own_name(browser: TestClient, session: Session) -> None:
    make_project(session, "own-name")
    page = read(browser, "/runs?project=own-name")
    assert "cairn record --project own-name --run first" in page.text
    assert "create_project" not in page.text
