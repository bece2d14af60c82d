"""What a lead reads of findings, watches and loss spikes, and what the forms do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from registry.aliases import alias_history, get_alias, move_alias
from registry.db import Database
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.models import WatchDue
from registry.runs import RunRow
from registry.series import Points, record_series
from registry.types import Scope
from registry.watches.findings import list_findings
from registry.watches.look import close_look, look
from registry.watches.standing import WatchSpec, list_watches, stand_watch
from tests.factories import ALL_PIECES, at, make_checkpoint, make_project, make_run
from tests.registry.recovery.test_rollback import whole
from tests.ui.conftest import browser_of, sign_in
from tests.ui.reading import Page


@pytest.fixture
def run(database: Database) -> RunRow:
    """A run whose gsm8k falls at its end, watched, with the finding that this leaves."""
    with database.write() as session:
        run = make_run(session, make_project(session, "p"), "r")
        stand_watch(session, run.project_id, WatchSpec(run_id=run.id, benchmark="gsm8k"), actor="ann")
        for step, value in enumerate([0.6] * 6 + [0.5], 1):
            score = NewScore("gsm8k", value, metric="exact_match", n_samples=1319)
            make_checkpoint(session, run, 1000 * step, scores=[score], saved_at=at("2026-11-01"), pieces=[*ALL_PIECES])
        for watch_id in session.scalars(select(WatchDue.watch_id).distinct()).all():
            close_look(session, look(session, watch_id))
        return run


def read(browser: TestClient, path: str) -> Page:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return Page(answer.text)


def send(browser: TestClient, path: str, form: dict[str, str], page: str = "/findings") -> int:
    csrf = read(browser, page).fields["csrf"]
    return browser.post(path, data={"csrf": csrf, **form}, follow_redirects=False).status_code


def test_the_page_says_what_was_found_and_opens_the_rollback(browser: TestClient, run: RunRow) -> None:
    page = read(browser, "/findings")
    assert page.answer.startswith("1 finding that nobody has acknowledged. The newest: Gsm8k fell by 10.0 ±")
    assert page.links["Roll back…"] == f"/rollback?run={to_text(run.id)}&watch=gsm8k"
    rolled = read(browser, page.links["Roll back…"])
    assert "gsm8k" in rolled.text
    assert page.links["r"] == f"/runs/{to_text(run.id)}"


@pytest.mark.parametrize("path", ["/runs", "/runs/{run}"])
def test_the_pages_of_runs_show_the_finding(browser: TestClient, run: RunRow, path: str) -> None:
    page = read(browser, path.format(run=to_text(run.id)))
    named = "‘r’: " if path == "/runs" else ""  # among several runs, of which it is
    assert f"Finding: {named}Gsm8k fell by 10.0" in page.text
    assert page.links["Roll back…"] == f"/rollback?run={to_text(run.id)}&watch=gsm8k"


def test_acknowledging_takes_it_from_the_pages_and_names_who(
    browser: TestClient, database: Database, run: RunRow
) -> None:
    with database.read() as session:
        (found,) = list_findings(session, None)
    assert send(browser, f"/findings/{to_text(found.id)}", {"state": "acknowledged"}) == 303
    assert "Finding:" not in read(browser, "/runs").text
    page = read(browser, "/findings?state=acknowledged")
    assert "by maria" in page.text
    assert page.answer == "Nothing is open; 1 watch stands."
    assert send(browser, f"/findings/{to_text(found.id)}", {"state": "open"}, "/findings?state=acknowledged") == 303
    assert "1 finding" in read(browser, "/findings").answer


def test_a_state_that_is_none_is_refused_and_one_in_the_address_left_out(
    browser: TestClient, database: Database, run: RunRow
) -> None:
    with database.read() as session:
        (found,) = list_findings(session, None)
    assert send(browser, f"/findings/{to_text(found.id)}", {"state": "withdrawn"}) == 422
    assert "‘odd’ is no state of a finding" in read(browser, "/findings?state=odd").text


def test_the_rollback_page_stands_a_watch_and_the_findings_page_ends_it(
    browser: TestClient, database: Database, run: RunRow
) -> None:
    asked = f"/rollback?run={to_text(run.id)}&watch=math"
    assert "Watch math from now on" in read(browser, asked).text
    assert send(browser, "/findings/watch", {"run": to_text(run.id), "watch": "math"}, asked) == 303
    assert send(browser, "/findings/watch", {"run": to_text(run.id), "watch": "the loss"}, asked) == 303
    with database.read() as session:
        made = list_watches(session, None)
    assert [(each.kind, each.words) for each in made] == [("loss", "the loss"), ("score", "math"), ("score", "gsm8k")]
    assert send(browser, f"/findings/watches/{to_text(made[0].id)}/end", {}) == 303
    with database.read() as session:
        assert [each.words for each in list_watches(session, None) if each.ended_at is None] == ["math", "gsm8k"]


def test_without_a_watch_the_page_says_how_to_make_one(browser: TestClient) -> None:
    page = read(browser, "/findings")
    assert page.answer == "No watch stands, so nothing is looked for."
    assert "/api/v1/watches" in page.text


@pytest.fixture
def reader(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with browser_of(database, tmp_path) as client:
        sign_in(client, database, Scope.READ)
        yield client


def test_who_may_only_read_is_offered_no_change_and_can_make_none(reader: TestClient, run: RunRow) -> None:
    page = read(reader, "/findings")
    assert "Acknowledge" not in page.text
    assert "Watch gsm8k" not in read(reader, page.links["Roll back…"]).text
    csrf = page.fields["csrf"]
    answer = reader.post("/findings/watch", data={"csrf": csrf, "run": to_text(run.id)})
    assert answer.status_code == 403


def test_a_form_from_elsewhere_changes_nothing(browser: TestClient, database: Database, run: RunRow) -> None:
    answer = browser.post("/findings/watch", data={"csrf": "x", "run": to_text(run.id), "watch": "math"})
    assert answer.status_code == 403
    with database.read() as session:
        assert len(list_watches(session, None)) == 1


def test_a_loss_spike_is_told_with_the_command_of_the_new_attempt(browser: TestClient, database: Database) -> None:
    with database.write() as session:
        run = make_run(session, make_project(session, "q"), "spiked")
        for step in (100, 300, 400):
            whole(session, run, step)
        values = [2.0 + 0.01 * (step % 5) for step in range(1, 451)]
        values[429:] = [6.0] * 21
        record_series(session, run.id, [Points("loss", list(range(1, 451)), values)])
    page = read(browser, f"/rollback?run={to_text(run.id)}")
    assert "rewind to step 300 and skip the data of steps 330 to 450" in page.answer
    assert "The spike of the loss" in page.text
    for said in ('"skip"', '"from": 330', '"to": 450', "loss spike at steps 430 to 450", f"/runs/{to_text(run.id)}"):
        assert said in page.text, said


def test_going_back_twice_on_the_page_goes_two_steps_back(browser: TestClient, database: Database) -> None:
    with database.write() as session:
        run = make_run(session, make_project(session, "q"), "r")
        ids = [make_checkpoint(session, run, step) for step in (1, 2, 3)]
        for each in ids:
            move_alias(session, run.project_id, "production", each, actor="ann")
    for wanted in (ids[1], ids[0]):
        page = read(browser, "/aliases/q/production")
        shown = read(browser, page.links["Show what going back would do…"])
        assert f"to={to_text(wanted)}" in page.links["Show what going back would do…"]
        form = {"to": to_text(wanted)} | {name: shown.fields[name] for name in ("expected", "back")}
        assert send(browser, "/aliases/q/production", {**form, "reason": "worse"}, "/aliases/q/production") == 303
        with database.read() as session:
            assert get_alias(session, run.project_id, "production").checkpoint_id == wanted
    with database.read() as session:
        assert [each.is_rollback for each in alias_history(session, run.project_id, "production")][:2] == [True, True]
    assert "Go one step back" not in read(browser, "/aliases/q/production").text


def test_a_suspect_target_is_refused_on_the_page_until_it_is_forced_with_a_reason(
    browser: TestClient, database: Database
) -> None:
    with database.write() as session:
        run = make_run(session, make_project(session, "q"), "r")
        good, bad = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2, loss=float("nan"))
        move_alias(session, run.project_id, "production", good, actor="ann")
    at_page = f"/aliases/q/production?to={to_text(bad)}"
    form = {"to": to_text(bad), "expected": to_text(good)}
    csrf = read(browser, at_page).fields["csrf"]
    refused = browser.post("/aliases/q/production", data={"csrf": csrf, **form})
    assert refused.status_code == 409
    assert "its loss is NaN" in Page(refused.text).text
    assert "force" in Page(refused.text).fields
    assert send(browser, "/aliases/q/production", {**form, "force": "1"}, at_page) == 422
    assert send(browser, "/aliases/q/production", {**form, "force": "1", "reason": "logged late"}, at_page) == 303
