"""What a lead sees of all runs at a glance: which is down, how far each came, when it was last heard."""

import math
import re
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.attempts import amend_attempt
from registry.db import now
from registry.ids import to_text
from registry.incidents.ledger import open_incident
from registry.incidents.shapes import NewIncident
from registry.runs import RunRow
from tests.factories import make_attempt, make_checkpoint, make_project, make_run
from tests.ui.reading import Page
from tests.ui.test_pages import read


@pytest.fixture
def runs(session: Session) -> dict[str, RunRow]:
    project = make_project(session, "atlas")
    made = {}
    for name, loss, minutes in (("hit", math.nan, 90), ("good", 2.25, 1)):
        run = made[name] = make_run(session, project, name)
        make_attempt(session, run, key="one")
        make_checkpoint(session, run, 1000, loss=loss)
        make_checkpoint(session, run, 2000, state="pending")
        amend_attempt(session, run.id, 1, {"heartbeat_at": now() - timedelta(minutes=minutes), "step": 2040})
    return made


def interrupt(session: Session, run: RunRow) -> str:
    new = NewIncident(occurred_at=now() - timedelta(minutes=80), attempt=1, cause="network")
    return to_text(open_incident(session, run.id, new, actor="exec")[0].id)


def names(page: Page) -> list[str]:
    return [text for text in page.links if text in ("hit", "good")]


def test_the_list_says_how_many_are_down_and_leads_to_why(
    browser: TestClient, session: Session, runs: dict[str, RunRow]
) -> None:
    assert "down" not in read(browser, "/runs").answer
    incident = interrupt(session, runs["hit"])
    page = read(browser, "/runs")
    assert page.answer.startswith("2 runs in 1 project, 1 of them down; the newest checkpoint was")
    assert page.links["interrupted"] == f"/incidents/{incident}"
    first = read(browser, page.links["Those that are down first"])
    assert names(first)[0] == "hit"
    assert "Those that are down first" not in first.links
    assert "good atlas running" in page.text


def test_a_row_has_the_last_step_heard_of_the_last_loss_and_the_heartbeat(
    browser: TestClient, runs: dict[str, RunRow]
) -> None:
    page = read(browser, "/runs?sort=name")
    cells = [re.sub(r"\s+", " ", Page(row).text) for row in page.html.split("<tr>")[2:4]]
    assert "running heard 1 min ago 2 040 loss 2.25 2.25 1 min ago" in cells[0]
    assert "running heard 1 h ago 2 040 loss NaN NaN 1 h ago" in cells[1]
    assert 'title="2.25 at step 1\u202f000"' in page.html


@pytest.mark.parametrize(
    ("sort", "first", "direction"),
    [("state", "hit", "ascending"), ("loss", "good", "ascending"), ("heartbeat", "good", "descending")],
)
def test_each_column_orders_and_turns_through_the_address(
    browser: TestClient, session: Session, runs: dict[str, RunRow], sort: str, first: str, direction: str
) -> None:
    interrupt(session, runs["hit"])
    head = {"state": "state", "loss": "last loss", "heartbeat": "heartbeat"}[sort]
    page = read(browser, read(browser, "/runs?project=atlas").links[head])
    assert names(page)[0] == first
    assert f'aria-sort="{direction}"' in page.html
    turned = read(browser, page.links[head])
    assert turned.links[head] == f"/runs?project=atlas&sort={sort}"
    assert f'aria-sort="{direction}"' not in turned.html
    assert names(turned)[0] == ("good" if sort == "loss" else {"hit": "good", "good": "hit"}[first])  # NaN stays last


def test_an_order_that_was_turned_stays_so_on_the_next_page_and_in_the_form(
    browser: TestClient, runs: dict[str, RunRow]
) -> None:
    page = read(browser, "/runs?sort=-name&limit=1")
    assert names(page) == ["hit"]
    assert names(read(browser, page.links["Next rows"] + "&limit=1")) == ["good"]
    assert page.fields["sort"] == "-name"


def test_the_newest_checkpoint_is_named_as_a_name(browser: TestClient, session: Session) -> None:
    make_checkpoint(session, make_run(session, name="watched"), 50)
    page = read(browser, "/runs")
    assert "It is ‘watched’ at step 50." in page.text


def test_a_step_beyond_any_training_widens_no_other_row(browser: TestClient, session: Session) -> None:
    project = make_project(session, "lang")
    for name, step in (("clock", 2**63 - 1), ("plain", 143_000)):
        make_checkpoint(session, make_run(session, project, name), step)
    page = read(browser, "/runs")
    assert "9.22e18" in page.text
    assert '<td class="num" title="9223372036854775807">9.22e18</td>' in page.html
    assert '<td class="num" title="143000">143\u202f000</td>' in page.html


def test_a_long_name_breaks_after_its_underscores(browser: TestClient, session: Session) -> None:
    make_checkpoint(session, make_run(session, name="anthonyrathe__fixed-whisperv2-flemish"))
    page = read(browser, "/runs")
    assert ">anthonyrathe_<wbr>_<wbr>fixed-whisperv2-flemish</a>" in page.html
