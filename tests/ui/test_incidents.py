"""What a lead reads of interruptions: the answer first, each one whole, and no log that rearranges the page."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.db import Database, now
from registry.ids import to_text
from registry.incidents.ledger import open_incident
from registry.incidents.queries import get_incident
from registry.incidents.receipts import NewReceipt, record_receipt
from registry.incidents.shapes import IncidentRow, NewIncident
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.types import PieceName, Scope
from tests.factories import make_attempt, make_checkpoint, make_project, make_run
from tests.ui.conftest import browser_of, sign_in
from tests.ui.test_pages import HOSTILE, read


def struck(session: Session, run: RunRow, hours: float = 0, **known: object) -> IncidentRow:
    new = NewIncident(**{"occurred_at": now() - timedelta(hours=hours), **known})  # type: ignore[arg-type]
    return open_incident(session, run.id, new, actor="exec")[0]


def two_interruptions(session: Session) -> tuple[RunRow, IncidentRow]:
    run = make_run(session, make_project(session, "llm"), "7b-a")
    make_attempt(session, run, key="a")
    struck(session, run, 60, cause="gpu-ecc", steps_lost=1000, recovered_at=now() - timedelta(hours=59))
    at = now() - timedelta(hours=5)
    known: dict[str, Any] = {
        "cause": "nccl-timeout",
        "node": "node7",
        "steps_lost": 240,
        "recovered_at": at + timedelta(minutes=14),
    }
    return run, struck(session, run, occurred_at=at, **known)


def test_the_page_answers_in_one_sentence(browser: TestClient, session: Session) -> None:
    two_interruptions(session)
    page = read(browser, "/incidents")
    assert page.answer == (
        "2 interruptions in 3 days, 1 240 steps lost; last: NCCL timeout on node7, recovered in 14 min."
    )
    assert "GPU memory error (ECC)" in page.text


def test_without_any_it_says_how_they_are_recorded(browser: TestClient) -> None:
    page = read(browser, "/incidents")
    assert page.answer == "No interruption is recorded."
    assert "cairn exec --run PROJECT/RUN" in page.text


def test_what_is_not_known_is_said_and_not_counted(browser: TestClient, session: Session) -> None:
    run, _ = two_interruptions(session)
    struck(session, run, 1, kind="crashed", attempt=1)
    page = read(browser, "/incidents")
    assert page.answer == (
        "3 interruptions in 3 days, 1 240 steps lost (not known of 1); 1 open; last: unknown cause, still open."
    )


def test_every_filter_is_in_the_address_and_can_be_taken_out(browser: TestClient, session: Session) -> None:
    run, _ = two_interruptions(session)
    other = struck(session, make_run(session, make_project(session, "other")), 2, cause="power")
    assert "1 interruption in" in read(browser, f"/incidents?run={to_text(other.run_id)}").answer
    assert "2 interruptions in" in read(browser, "/incidents?project=llm").answer
    assert "1 interruption in" in read(browser, "/incidents?cause=power").answer
    page = read(browser, f"/incidents?run={to_text(run.id)}&state=closed&cause=gpu-ecc")
    assert page.links["×"].startswith("/incidents?")
    assert read(browser, "/incidents?state=odd").text.count("‘odd’ is no state") == 1
    read(browser, "/incidents?run=nothing", 404)
    read(browser, "/incidents?project=nothing", 404)
    read(browser, "/incidents?cause=%00", 200)


def test_rows_go_on_where_the_page_before_ended(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    for hours in range(60):
        struck(session, run, hours + 1, cause="power")
    page = read(browser, "/incidents")
    assert page.text.count("power") >= 50
    second = read(browser, page.links["Next rows"])
    assert second.links["From the start"] == "/incidents"
    assert second.answer == page.answer


def test_one_interruption_shows_its_evidence_its_log_and_what_it_had_loaded(
    browser: TestClient, session: Session
) -> None:
    run = make_run(session, name=HOSTILE)
    loaded = make_checkpoint(session, run, 100)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    made = struck(
        session,
        run,
        1,
        kind="crashed",
        attempt=2,
        cause="gpu-ecc",
        evidence=[HOSTILE],
        log_excerpt=f"before\x1b[31m \u202e{HOSTILE}\nlast",
        step=130,
        node=HOSTILE,
        exit_code=134,
    )
    page = read(browser, f"/incidents/{to_text(made.id)}")
    assert page.answer.startswith("GPU memory error (ECC) on <script>")
    assert "30 steps lost; still open" in page.answer
    assert "<script>alert" not in page.html
    assert "\x1b" not in page.html
    assert "\u202e" not in page.html
    assert "before\N{REPLACEMENT CHARACTER}[31m" in page.text
    assert "read from the log" in page.text


def test_the_cause_is_named_and_the_interruption_closed_on_its_page(browser: TestClient, session: Session) -> None:
    made = struck(session, make_run(session), 1)
    path = f"/incidents/{to_text(made.id)}"
    form = read(browser, path).fields
    sent = {"csrf": form["csrf"], "cause": "power", "note": "rack 4", "close": "1"}
    assert browser.post(path, data=sent, follow_redirects=False).status_code == 303
    row = get_incident(session, made.id)
    assert (row.cause, row.cause_said_by, row.note, row.ending) == ("power", "maria", "rack 4", "closed")
    browser.post(path, data={**sent, "note": ""})
    row = get_incident(session, made.id)
    assert (row.note, row.closed_at) == (None, None)
    assert browser.post(path, data={"cause": "power"}).status_code == 403
    assert browser.post(path, data={**sent, "cause": "No Cause"}).status_code == 422


def test_a_reader_sees_no_form_and_a_stranger_nothing(database: Database, session: Session, tmp_path: Path) -> None:
    project = make_project(session, "ours")
    made = struck(session, make_run(session), 1)
    with browser_of(database, tmp_path) as reader:
        sign_in(reader, database, Scope.READ)
        page = read(reader, f"/incidents/{to_text(made.id)}")
        assert "Say what it was" not in page.text
    with browser_of(database, tmp_path) as bound:
        sign_in(bound, database, Scope.READ, project_ids=[project.id])
        assert read(bound, "/incidents").answer == "No interruption is recorded."
        read(bound, f"/incidents/{to_text(made.id)}", 403)


def test_the_table_is_a_file_too(browser: TestClient, session: Session) -> None:
    run, _ = two_interruptions(session)
    answer = browser.get(f"/incidents.csv?run={to_text(run.id)}")
    head, first, *_ = answer.text.splitlines()
    assert head.startswith("incident,project,run,attempt,occurred_at,kind,cause,node")
    assert ",llm,7b-a,1," in first.replace(",,", ",1,", 1)
    assert len(answer.text.splitlines()) == 3


def test_the_page_of_a_run_tells_its_interruptions_and_marks_them_on_the_plots(
    browser: TestClient, session: Session
) -> None:
    run = make_run(session)
    for step in (100, 200, 300):
        make_checkpoint(session, run, step, loss=2.0)
    made = struck(session, run, 2.5, attempt=1, cause="disk-full", step=290)
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "1 interruption in 3 hours" in page.text
    assert f"/incidents/{to_text(made.id)}" in page.html
    assert 'class="mark incident"' in page.html
    assert page.links["All of this run"] == f"/incidents?run={to_text(run.id)}"


def test_a_run_without_any_shows_nothing_of_them(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 100)
    assert 'id="interruptions"' not in read(browser, f"/runs/{to_text(run.id)}").html


def test_a_resumed_attempt_is_unconfirmed_until_its_receipt_says_what_was_restored(
    browser: TestClient, session: Session
) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 100)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
    path = f"/runs/{to_text(run.id)}"
    assert "unconfirmed" in read(browser, path).text
    pieces = dict.fromkeys(PieceName, "restored")
    record_receipt(session, run.id, NewReceipt(pieces=pieces))
    page = read(browser, path)
    assert "confirmed" in page.text
    assert "unconfirmed" not in page.text
    record_receipt(session, run.id, NewReceipt(pieces=pieces | {PieceName.OPTIMIZER: "fresh"}))
    assert "optimizer fresh" in read(browser, path).text
