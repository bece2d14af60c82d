"""Signing in and out: the link works once, the cookie is out of scripts' reach, every form is checked."""

from pathlib import Path

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import get_alias
from registry.config import Settings
from registry.db import Database
from registry.ids import to_text
from registry.tokens import issue_login_code, issue_token
from registry.types import Scope
from tests.application import application
from tests.factories import make_checkpoint, make_project, make_run
from tests.ui.conftest import sign_in
from tests.ui.reading import Page


@pytest.fixture
def token(session: Session) -> str:
    return issue_token(session, "maria", Scope.WRITE, actor="test")


def form_token(client: TestClient, path: str = "/login") -> str:
    return Page(client.get(path).text).fields["csrf"]


def test_the_printed_link_signs_in_once(stranger: TestClient, session: Session, token: str) -> None:
    code = issue_login_code(session, token)
    answer = stranger.get("/login", params={"code": code, "next": "/aliases"}, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/aliases"
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith("cairn_session=")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie  # plain http on loopback
    assert "maria" in Page(stranger.get("/aliases").text).text
    stranger.cookies.clear()
    again = stranger.get("/login", params={"code": code})
    assert again.status_code == 401
    assert "used before" in Page(again.text).text
    assert "cairn_session" not in again.cookies


def test_a_used_link_does_no_harm_to_who_is_signed_in(stranger: TestClient, session: Session, token: str) -> None:
    code = issue_login_code(session, token)
    assert stranger.get("/login", params={"code": code}).status_code == 200
    assert Page(stranger.get("/login", params={"code": code}).text).answer.startswith("No run yet")


def test_a_pasted_token_signs_in_and_leads_back(stranger: TestClient, token: str) -> None:
    fields = {"token": f" {token} ", "csrf": form_token(stranger), "next": "/find?q=math"}
    answer = stranger.post("/login", data=fields, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/find?q=math"
    assert token not in answer.headers["set-cookie"]
    assert stranger.get("/runs").status_code == 200


def test_a_wrong_token_says_what_one_looks_like(stranger: TestClient) -> None:
    answer = stranger.post("/login", data={"token": "guess", "csrf": form_token(stranger)})
    assert answer.status_code == 401
    assert "starts with cairn_" in Page(answer.text).text
    assert "guess" not in answer.text


def test_the_sign_in_form_is_checked_too(stranger: TestClient, token: str) -> None:
    for forged in ({}, {"csrf": "0" * 64}):
        answer = stranger.post("/login", data={"token": token, **forged}, follow_redirects=False)
        assert answer.status_code == 403
        assert "cairn_session" not in answer.cookies


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "/\\evil.example", "/login?next=/x", "javascript:alert(1)"]
)
def test_signing_in_never_leads_to_another_site(
    stranger: TestClient, session: Session, token: str, elsewhere: str
) -> None:
    code = issue_login_code(session, token)
    answer = stranger.get("/login", params={"code": code, "next": elsewhere}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_behind_https_the_cookie_never_travels_in_clear(database: Database, session: Session, token: str) -> None:
    settings = Settings(Path("/nonexistent"), str(database.url), public_url="https://cairn.example")
    client = TestClient(application(database, settings), headers={"Accept": "text/html"})
    code = issue_login_code(session, token)
    answer = client.get("/login", params={"code": code}, follow_redirects=False)
    assert "secure" in answer.headers["set-cookie"].lower()


def test_signing_out_ends_the_session_and_needs_its_form(browser: TestClient) -> None:
    assert browser.post("/logout").status_code == 403
    page = Page(browser.get("/runs").text)
    cookie = browser.cookies["cairn_session"]
    answer = browser.post("/logout", data={"csrf": page.fields["csrf"]}, follow_redirects=False)
    assert answer.headers["location"] == "/login"
    browser.cookies.clear()
    browser.cookies.set("cairn_session", cookie)  # the old cookie is worth nothing
    assert browser.get("/runs", follow_redirects=False).status_code == 303


def test_the_session_cookie_is_no_key_to_the_api(browser: TestClient) -> None:
    assert browser.get("/api/v1/projects").status_code == 401


# ---- moving an alias


def make_two(session: Session) -> tuple[int, str, str]:
    run = make_run(session, make_project(session, "lang"), "base")
    one, two = make_checkpoint(session, run, 1000), make_checkpoint(session, run, 2000)
    return run.project_id, to_text(one), to_text(two)


def test_an_alias_is_made_moved_and_moved_back(browser: TestClient, session: Session) -> None:
    project_id, one, two = make_two(session)
    path = "/aliases/lang/production"
    assert browser.get(path).status_code == 404
    page = Page(browser.get(path, params={"to": one}).text)
    assert page.answer == "lang/production does not exist yet; the first move makes it."
    made = browser.post(path, data={"csrf": page.fields["csrf"], "to": one, "expected": "", "reason": "first"})
    assert "Moved. The move can be undone below." in Page(made.text).text
    page = Page(browser.get(path, params={"to": two}).text)
    assert "gets step 2 000 of base, 1 000 steps later than now." in page.text
    moved = browser.post(path, data={"csrf": page.fields["csrf"], "to": two, "expected": one, "reason": "better math"})
    page = Page(moved.text)
    assert page.answer == "lang/production points at step 2 000 of base."
    assert "better math" in page.text
    assert "Go one step back" in page.text
    assert page.links["Show what going back would do…"] == f"{path}?to={one}&back=1"
    assert to_text(get_alias(session, project_id, "production").checkpoint_id) == two


def test_an_alias_that_somebody_else_moved_is_not_moved_again(browser: TestClient, session: Session) -> None:
    project_id, one, two = make_two(session)
    path = "/aliases/lang/production"
    csrf = Page(browser.get(path, params={"to": one}).text).fields["csrf"]
    browser.post(path, data={"csrf": csrf, "to": two, "expected": ""})
    late = browser.post(path, data={"csrf": csrf, "to": one, "expected": one})
    assert late.status_code == 409
    assert "points at" in Page(late.text).text
    assert to_text(get_alias(session, project_id, "production").checkpoint_id) == two


def test_a_forged_or_read_only_form_moves_nothing(stranger: TestClient, session: Session, database: Database) -> None:
    _, one, two = make_two(session)
    sign_in(stranger, database, Scope.READ)
    path = "/aliases/lang/production"
    page = Page(stranger.get(path, params={"to": one}).text)
    assert "Move it?" not in page.text
    for csrf in ("", "0" * 64, page.fields["csrf"]):
        answer = stranger.post(path, data={"csrf": csrf, "to": two, "expected": ""})
        assert answer.status_code == 403
    assert stranger.get(path).status_code == 404


def test_a_pending_checkpoint_cannot_be_pointed_at(browser: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "lang"))
    pending = to_text(make_checkpoint(session, run, 10, state="pending"))
    path = "/aliases/lang/production"
    csrf = Page(browser.get(path, params={"to": pending}).text).fields["csrf"]
    answer = browser.post(path, data={"csrf": csrf, "to": pending, "expected": ""})
    assert answer.status_code == 409
    assert "commit it first" in Page(answer.text).text


def test_the_sign_in_page_tells_nobody_where_the_data_folder_is(stranger: TestClient, tmp_path: Path) -> None:
    page = stranger.get("/login").text
    assert "$CAIRN_HOME/admin-token" in page
    assert str(tmp_path) not in page
