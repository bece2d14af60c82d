"""Tokens: who may do what, in which projects, for how long; and what a stolen database would tell."""

import stat
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.audit import list_entries
from registry.db import Base, Database, now
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.models import LoginCode, Token, WebSession
from registry.tokens import (
    PREFIX,
    ScopeMissing,
    TokenNotFound,
    Unauthenticated,
    authenticate,
    authenticate_cookie,
    close_web_session,
    csrf_token,
    ensure_admin_token,
    has_admin,
    is_csrf_token,
    issue_login_code,
    issue_token,
    list_tokens,
    open_web_session,
    redeem_login_code,
    revoke_token,
)
from registry.types import Scope
from registry.watches.look import look_at_due
from tests.api.conftest import client_of
from tests.factories import make_checkpoint, make_project, make_run


def issue(session: Session, scope: Scope = Scope.ADMIN, **known: Any) -> str:
    return issue_token(session, "test", scope, actor="test", **known)


# A token


def test_a_token_can_be_told_and_two_are_never_alike(session: Session) -> None:
    one, other = issue(session), issue(session)
    assert one != other
    assert one.startswith(PREFIX)
    assert len(one) >= len(PREFIX) + 43  # 256 bits
    assert authenticate(session, one).token_id != authenticate(session, other).token_id


@pytest.mark.parametrize("change", [str.upper, str.strip, lambda text: text[:-1], lambda text: text + "a"])
def test_only_the_whole_secret_opens(session: Session, change: Callable[[str], str]) -> None:
    secret = issue(session)
    changed = change(secret)
    if changed == secret:
        assert authenticate(session, changed).name == "test"
        return
    with pytest.raises(Unauthenticated):
        authenticate(session, changed)


@pytest.mark.parametrize("secret", [None, "", PREFIX, "\0", "\ud800", "é" * 500])
def test_what_is_no_token_opens_nothing(session: Session, secret: str | None) -> None:
    with pytest.raises(Unauthenticated):
        authenticate(session, secret)


@pytest.mark.parametrize("scope", list(Scope))
def test_each_scope_includes_those_before_it(session: Session, scope: Scope) -> None:
    caller = authenticate(session, issue(session, scope))
    order = [Scope.READ, Scope.WRITE, Scope.ADMIN]
    for wanted in order:
        if order.index(wanted) <= order.index(scope):
            caller.require(wanted)
        else:
            with pytest.raises(ScopeMissing, match=f"this needs '{wanted}'"):
                caller.require(wanted)


def test_an_expired_token_opens_nothing(session: Session) -> None:
    live = issue(session, expires_at=now() + timedelta(minutes=1))
    past = issue(session, expires_at=now() - timedelta(microseconds=1))
    assert authenticate(session, live).name == "test"
    with pytest.raises(Unauthenticated):
        authenticate(session, past)


def test_a_revoked_token_opens_nothing_and_ends_its_browser_sessions(session: Session) -> None:
    secret = issue(session)
    cookie = open_web_session(session, secret)
    code = issue_login_code(session, secret)
    token_id = authenticate(session, secret).token_id
    revoke_token(session, token_id, actor="test")
    for refused in (
        lambda: authenticate(session, secret),
        lambda: authenticate_cookie(session, cookie),
        lambda: open_web_session(session, secret),
        lambda: issue_login_code(session, secret),
        lambda: authenticate_cookie(session, redeem_login_code(session, code)),
    ):
        with pytest.raises(Unauthenticated):
            refused()
    (row,) = [each for each in list_tokens(session) if each.id == token_id]
    revoke_token(session, token_id, actor="test")
    assert list_tokens(session)[0].revoked_at == row.revoked_at  # the first time stands


def test_revoking_what_is_not_there_says_so(session: Session) -> None:
    with pytest.raises(TokenNotFound, match=to_text(7)):
        revoke_token(session, 7, actor="test")


def test_making_and_revoking_is_audited_without_the_secret(session: Session) -> None:
    secret = issue(session, Scope.WRITE)
    revoke_token(session, authenticate(session, secret).token_id, actor="somebody")
    revoked, made = list_entries(session, limit=2)
    assert (made.action, made.actor) == ("token.create", "test")
    assert (revoked.action, revoked.actor) == ("token.revoke", "somebody")
    assert secret not in f"{made}{revoked}"


def test_the_audit_says_which_projects_a_token_is_bound_to(session: Session) -> None:
    project = make_project(session, "llm")
    issue_token(session, "trainer", Scope.WRITE, project_ids=[project.id], actor="jane")
    entry = next(each for each in list_entries(session) if each.action == "token.create")
    assert '"projects":["llm"]' in (entry.detail or "").replace(" ", "")


def test_an_admin_token_is_left_while_one_lives_that_is_bound_to_nothing(session: Session) -> None:
    project = make_project(session)
    issue_token(session, "bound", Scope.ADMIN, project_ids=[project.id], actor="test")
    issue_token(session, "old", Scope.ADMIN, expires_at=now() - timedelta(seconds=1), actor="test")
    issue_token(session, "writer", Scope.WRITE, actor="test")
    assert not has_admin(session)
    secret = issue_token(session, "admin", Scope.ADMIN, actor="test")
    assert has_admin(session)
    revoke_token(session, authenticate(session, secret).token_id, actor="test")
    assert not has_admin(session)


def test_the_database_holds_no_secret_only_hashes(session: Session) -> None:
    secret = issue(session)
    code = issue_login_code(session, secret)
    cookie = open_web_session(session, secret)
    session.flush()
    for table in Base.metadata.sorted_tables:
        for row in session.execute(select(table)):
            said = "".join(value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in row)
            for hidden in (secret, secret.removeprefix(PREFIX), code, cookie):
                assert hidden not in said, table.name
    assert {len(row.digest) for row in session.scalars(select(Token))} == {32}


# The first start


def test_the_first_start_writes_the_admin_token_for_its_owner_alone(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "home" / "admin-token"
    ensure_admin_token(session, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = file.read_text().strip()
    caller = authenticate(session, secret)
    assert (caller.name, caller.scope, caller.project_ids) == ("admin", Scope.ADMIN, None)
    assert [each.name for each in file.parent.iterdir()] == ["admin-token"]


def test_a_later_start_makes_no_second_admin_token_even_where_the_file_is_gone(
    session: Session, tmp_path: Path
) -> None:
    file = tmp_path / "admin-token"
    ensure_admin_token(session, file)
    secret = file.read_text()
    ensure_admin_token(session, file)
    assert file.read_text() == secret
    file.unlink()
    ensure_admin_token(session, file)
    assert not file.exists()
    assert len(list_tokens(session)) == 1


def test_an_older_file_with_a_wider_mode_is_replaced(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "admin-token"
    file.write_text("old")
    file.chmod(0o644)
    ensure_admin_token(session, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert authenticate(session, file.read_text().strip()).name == "admin"


# Login links and browser sessions


def test_a_login_code_is_good_once(session: Session) -> None:
    code = issue_login_code(session, issue(session))
    cookie = redeem_login_code(session, code)
    assert authenticate_cookie(session, cookie).name == "test"
    for again in (code, "", code + "x", cookie):
        with pytest.raises(Unauthenticated, match="used before, or is too old"):
            redeem_login_code(session, again)
    assert authenticate_cookie(session, cookie).name == "test"


def test_a_login_code_ends_after_its_hour(session: Session) -> None:
    code = issue_login_code(session, issue(session))
    session.execute(update(LoginCode).values(expires_at=now()))
    with pytest.raises(Unauthenticated, match="too old"):
        redeem_login_code(session, code)


def test_a_login_code_takes_a_valid_token(session: Session) -> None:
    with pytest.raises(Unauthenticated):
        issue_login_code(session, "cairn_no")


def test_a_browser_session_ends_by_time_by_closing_and_with_its_token(session: Session) -> None:
    secret = issue(session, Scope.READ, expires_at=now() + timedelta(hours=1))
    first, second, third = (open_web_session(session, f" {secret}\n") for _ in range(3))
    assert authenticate_cookie(session, first).scope is Scope.READ
    close_web_session(session, first)
    with pytest.raises(Unauthenticated):
        authenticate_cookie(session, first)
    assert authenticate_cookie(session, second).name == "test"
    session.execute(update(Token).values(expires_at=now()))
    with pytest.raises(Unauthenticated):
        authenticate_cookie(session, second)
    session.execute(update(Token).values(expires_at=None))
    session.execute(update(WebSession).values(expires_at=now()))
    with pytest.raises(Unauthenticated):
        authenticate_cookie(session, third)


@pytest.mark.parametrize("cookie", [None, "", "x", "\ud800"])
def test_what_is_no_cookie_is_nobody(session: Session, cookie: str | None) -> None:
    with pytest.raises(Unauthenticated):
        authenticate_cookie(session, cookie)


def test_the_mark_of_a_form_belongs_to_one_session() -> None:
    assert is_csrf_token("cookie", csrf_token("cookie"))
    for other in ("", csrf_token("other"), csrf_token("cookie")[:-1], "é", "cookie"):
        assert not is_csrf_token("cookie", other)


# Over the API


@pytest.fixture
def world(database: Database) -> dict[str, Any]:
    """Two projects, mine and theirs, each with a run, two checkpoints and an alias."""
    from registry.aliases import move_alias

    found: dict[str, Any] = {}
    with database.write() as session:
        for name in ("mine", "theirs"):
            project = make_project(session, name)
            run = make_run(session, project, "r")
            first = make_checkpoint(session, run, 1, scores=[NewScore("gsm8k", 0.6, "acc", n_samples=1319)])
            second = make_checkpoint(session, run, 2, scores=[NewScore("gsm8k", 0.5, "acc", n_samples=1319)])
            move_alias(session, project.id, "production", first, actor="test")
            found[name] = {
                "project_id": project.id,
                "run": to_text(run.id),
                "first": to_text(first),
                "second": to_text(second),
            }
    return found


def made(admin: TestClient, path: str, body: Any) -> str:
    answer = admin.post(f"/api/v1{path}", json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    return str(answer.json()["id"])


def linked(admin: TestClient, own: dict[str, Any]) -> str:
    body = {"kind": "mlflow", "uri": "http://127.0.0.1:9", "run_id": f"abc{own['name']}"}
    return made(admin, f"/runs/{own['run']}/trackers", body)


def copied(admin: TestClient, own: dict[str, Any]) -> str:
    place = f"/api/v1/checkpoints/{own['first']}"
    copy = {"uri": f"/mnt/{own['name']}", "tier": "shared", "manifest": [{"path": "a", "bytes": 1}]}
    admin.post(f"{place}/replicas", json=[copy])
    return str(admin.get(place).json()["replicas"][0]["id"])


def found_spike(admin: TestClient, own: dict[str, Any]) -> str:
    made(admin, "/watches", {"run_id": own["run"], "kind": "loss"})
    series = [{"name": "loss", "steps": [1, 2, 3], "values": [2.0, "NaN", 2.0]}]
    admin.post(f"/api/v1/runs/{own['run']}/series", json=series)
    look_at_due(admin.app.state.database)  # type: ignore[attr-defined]
    return str(admin.get("/api/v1/findings", params={"project": own["name"]}).json()["items"][0]["id"])


def compared(own: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "compare", "request": {"baseline": own["first"], "candidate": own["second"]}}


def drilled(checkpoint: str) -> dict[str, Any]:
    times = {"started_at": "2026-11-20T10:00:00Z", "ended_at": "2026-11-20T10:03:00Z"}
    return {"checkpoint_id": checkpoint, "key": checkpoint, "host": "node-1", "verdict": "passed", **times}


# How to make one of what else a project may hold.
MAKERS: dict[str, Callable[[TestClient, dict[str, Any]], str]] = {
    "replica": copied,
    "finding": found_spike,
    "link": linked,
    "job": lambda admin, own: made(admin, f"/runs/{own['run']}/trackers/{linked(admin, own)}/refresh", {}),
    "watch": lambda admin, own: made(admin, "/watches", {"run_id": own["run"], "kind": "loss"}),
    "incident": lambda admin, own: made(admin, "/incidents", {"run_id": own["run"]}),
    "decision": lambda admin, own: made(admin, "/decisions", compared(own)),
    "drill": lambda admin, own: made(admin, "/drills", drilled(own["first"])),
    "bisect": lambda admin, own: made(
        admin, "/bisects", {"good": own["first"], "bad": own["second"], "benchmark": "gsm8k"}
    ),
}


def named(database: Database, folder: Path, own: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    """The names of a project, with the ids that a path asks for."""
    names = own | {"name": name}
    wanted = [each for each in MAKERS if f"{{{each}}}" in path]
    if wanted:
        with client_of(database, folder) as admin:
            names |= {each: MAKERS[each](admin, names) for each in wanted}
    return names


@pytest.fixture
def bound(database: Database, world: dict[str, Any], tmp_path: Path) -> Iterator[TestClient]:
    """A client whose token may write in the project mine alone."""
    with database.write() as session:
        secret = issue(session, Scope.WRITE, project_ids=[world["mine"]["project_id"]])
    with client_of(database, tmp_path) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        yield client


# Every call that names a project, a run or a checkpoint: (method, path, body, form).
NAMING: list[tuple[str, str, Any, dict[str, str] | None]] = [
    ("POST", "/projects", {"name": "{name}"}, None),
    ("POST", "/runs", {"project": "{name}", "name": "r"}, None),
    ("GET", "/runs?project={name}", None, None),
    ("GET", "/runs/{run}", None, None),
    ("POST", "/runs/{run}/attempts", {"restart": True}, None),
    ("GET", "/runs/{run}/attempts", None, None),
    ("PATCH", "/runs/{run}/attempts/1", {"state": "finished"}, None),
    ("POST", "/runs/{run}/series", [{"name": "loss", "steps": [1], "values": [1]}], None),
    ("GET", "/runs/{run}/series", None, None),
    ("POST", "/runs/{run}/checkpoints", {"step": 5}, None),
    ("POST", "/checkpoints:batch", [{"project": "{name}", "run": "r", "step": 6}], None),
    ("GET", "/checkpoints/{first}", None, None),
    ("GET", "/checkpoints/{first}/scores", None, None),
    ("GET", "/checkpoints/{first}/lineage", None, None),
    ("GET", "/checkpoints/{first}/profile", None, None),
    ("POST", "/checkpoints/{first}/commit", {}, None),
    ("PATCH", "/checkpoints/{first}", {"notes": "seen"}, None),
    ("POST", "/checkpoints/{first}/scores", [{"benchmark": "b", "value": 1}], None),
    ("POST", "/imports", None, {"checkpoint_id": "{first}"}),
    ("POST", "/imports", None, {"project": "{name}", "run": "r", "step": "1"}),
    ("POST", "/search", {"query": "gsm8k > 0", "project": "{name}"}, None),
    ("POST", "/rollback", {"run_id": "{run}"}, None),
    ("POST", "/rollback", {"alias": "{name}/production"}, None),
    ("POST", "/compare", {"baseline": "{first}", "candidate": "{second}"}, None),
    ("GET", "/aliases/{name}/production", None, None),
    ("PUT", "/aliases/{name}/production", {"checkpoint_id": "{first}"}, None),
    ("GET", "/aliases/{name}/production/history", None, None),
    ("POST", "/aliases/{name}/production/rollback", {}, None),
    ("POST", "/checkpoints/{first}/replicas", [{"uri": "/mnt/x", "tier": "shared"}], None),
    ("GET", "/replicas/{replica}/manifest", None, None),
    ("POST", "/replicas/{replica}/gone", {}, None),
    ("GET", "/storage/usage?project={name}", None, None),
    ("GET", "/projects/{name}/benchmarks", None, None),
    ("GET", "/projects/{name}/benchmarks/gsm8k", None, None),
    ("PUT", "/projects/{name}/benchmarks/gsm8k", {"capability": "math"}, None),
    ("PATCH", "/projects/{name}/benchmarks/gsm8k", {"note": "x"}, None),
    ("POST", "/incidents", {"run_id": "{run}"}, None),
    ("GET", "/incidents?project={name}", None, None),
    ("GET", "/incidents/{incident}", None, None),
    ("PATCH", "/incidents/{incident}", {"note": "x"}, None),
    ("POST", "/resume-receipts", {"checkpoint_id": "{first}", "pieces": {"weights": "restored"}}, None),
    ("GET", "/runs/{run}/resume-receipts", None, None),
    ("GET", "/checkpoints/{first}/suspicion", None, None),
    ("PUT", "/checkpoints/{first}/suspicion", {"suspect": True, "reason": "x"}, None),
    ("GET", "/checkpoints/{first}/restore-plan", None, None),
    ("POST", "/runs/{run}/resume-plan", {}, None),
    ("POST", "/runs/{run}/resume-agreements", {"key": "k", "host": "a", "hosts": 1, "checkpoint_id": "{first}"}, None),
    ("GET", "/runs/{run}/trackers", None, None),
    ("POST", "/runs/{run}/trackers", {"kind": "mlflow", "uri": "http://127.0.0.1:9", "run_id": "def"}, None),
    ("DELETE", "/runs/{run}/trackers/{link}", None, None),
    ("POST", "/runs/{run}/trackers/{link}/refresh", {}, None),
    ("GET", "/projects/{name}/tracking", None, None),
    ("PATCH", "/projects/{name}/tracking", {}, None),
    ("POST", "/imports/tracker", {"kind": "mlflow", "project": "{name}", "experiment": "e"}, None),
    ("GET", "/jobs?project={name}", None, None),
    ("GET", "/jobs/{job}", None, None),
    ("POST", "/jobs/{job}/cancel", {}, None),
    ("POST", "/bisects", {"good": "{first}", "bad": "{second}", "benchmark": "gsm8k"}, None),
    ("POST", "/drills", drilled("{first}"), None),
    ("GET", "/drills?project={name}", None, None),
    ("GET", "/drills?run={run}", None, None),
    ("GET", "/drills?checkpoint={first}", None, None),
    ("GET", "/drills/{drill}", None, None),
    ("GET", "/bisects/{bisect}", None, None),
    ("POST", "/bisects/{bisect}/observations", {"checkpoint": "{first}", "value": 0.5, "n_samples": 100}, None),
    ("GET", "/checkpoints/{first}/provenance", None, None),
    (
        "POST",
        "/suspects",
        {"baseline": "{first}", "candidate": "{second}", "changes": ["lr"], "verdict": "cleared"},
        None,
    ),
    ("POST", "/decisions", {"kind": "compare", "request": {"baseline": "{first}", "candidate": "{second}"}}, None),
    ("GET", "/decisions/{decision}", None, None),
    ("POST", "/watches", {"run_id": "{run}", "kind": "loss"}, None),
    ("GET", "/watches?project={name}", None, None),
    ("PATCH", "/watches/{watch}", {"state": "ended"}, None),
    ("GET", "/findings?project={name}", None, None),
    ("GET", "/findings/{finding}", None, None),
    ("PATCH", "/findings/{finding}", {"state": "acknowledged"}, None),
]

EVALS = b'{"results": {"gsm8k": {"acc": 0.5}}, "versions": {"gsm8k": 0}, "config": {"model": "m", "num_fewshot": 0}}'


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return value.format(**names)
    if isinstance(value, list):
        return [filled(each, names) for each in value]
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    return value


def call(client: TestClient, method: str, path: str, body: Any, form: Any, names: dict[str, str]) -> Any:
    sent: dict[str, Any] = {} if body is None else {"json": filled(body, names)}
    if form is not None:
        sent = {"data": filled(form, names), "files": {"file": ("results.json", EVALS)}}
    return client.request(method, "/api/v1" + filled(path, names), **sent)


def test_every_call_that_names_something_is_in_the_list(bound: TestClient) -> None:
    """So that a new route cannot be forgotten here."""
    paths = bound.get("/api/v1/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods} - {
        ("GET", "/api/v1/projects"),
        ("GET", "/api/v1/runs"),
        ("GET", "/api/v1/checkpoints"),
        ("GET", "/api/v1/aliases"),
        ("GET", "/api/v1/decisions"),
        ("GET", "/api/v1/workers"),
    }
    ids = ("run", "replica", "incident", "link", "job", "bisect", "decision", "watch", "finding", "drill")
    names = {"name": "{project}", "first": "{checkpoint_id}", **{each: f"{{{each}_id}}" for each in ids}}
    listed = {
        (
            method,
            "/api/v1"
            + filled(path, names)
            .partition("?")[0]
            .replace("production", "{name}")
            .replace("attempts/1", "attempts/{number}")
            .replace("benchmarks/gsm8k", "benchmarks/{name}"),
        )
        for method, path, _, _ in NAMING
    }
    assert described <= listed


@pytest.mark.parametrize(("method", "path", "body", "form"), NAMING, ids=lambda part: str(part)[:40])
def test_a_bound_token_touches_its_own_projects_and_no_others(
    database: Database,
    bound: TestClient,
    world: dict[str, Any],
    tmp_path: Path,
    method: str,
    path: str,
    body: Any,
    form: Any,
) -> None:
    names = {name: named(database, tmp_path, world[name], name, path) for name in ("mine", "theirs")}
    refused = call(bound, method, path, body, form, names["theirs"])
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/project-forbidden"), refused.text
    allowed = call(bound, method, path, body, form, names["mine"])
    assert allowed.status_code in (200, 201, 202, 204, 409), allowed.text


def test_a_bound_token_cannot_reach_over_in_one_request(bound: TestClient, world: dict[str, Any]) -> None:
    mine, theirs = world["mine"], world["theirs"]
    mixed = [{"project": "mine", "run": "r", "step": 7}, {"project": "theirs", "run": "r", "step": 7}]
    assert bound.post("/api/v1/checkpoints:batch", json=mixed).status_code == 403
    for pair in ((mine["first"], theirs["first"]), (theirs["first"], mine["first"])):
        body = dict(zip(("baseline", "candidate"), pair, strict=True))
        assert bound.post("/api/v1/compare", json=body).status_code == 403
    foreign = {"checkpoint_id": theirs["first"]}
    assert bound.put("/api/v1/aliases/mine/production", json=foreign).status_code == 404
    parent = {"step": 8, "parents": [{"checkpoint_id": theirs["first"], "relation": "merged_from"}]}
    assert bound.post(f"/api/v1/runs/{mine['run']}/checkpoints", json=parent).status_code == 422
    resumed = {"resumed_from": theirs["first"]}
    assert bound.post(f"/api/v1/runs/{mine['run']}/attempts", json=resumed).status_code == 422
    assert [item["step"] for item in bound.get("/api/v1/checkpoints").json()["items"]] == [2, 1]


def test_lists_and_searches_of_a_bound_token_show_its_own_alone(bound: TestClient, world: dict[str, Any]) -> None:
    assert [each["name"] for each in bound.get("/api/v1/projects").json()["items"]] == ["mine"]
    assert [each["id"] for each in bound.get("/api/v1/runs").json()["items"]] == [world["mine"]["run"]]
    assert [each["project"] for each in bound.get("/api/v1/aliases").json()["items"]] == ["mine"]
    own = {world["mine"]["first"], world["mine"]["second"]}
    for filter in ("", "step > 0", "project = 'theirs' or project = 'mine'", "not (project = 'mine') or step > 0"):
        listed = bound.get("/api/v1/checkpoints", params={"filter": filter}).json()["items"]
        assert {each["id"] for each in listed} == own
    theirs = bound.get("/api/v1/checkpoints", params={"filter": "project = 'theirs'"}).json()["items"]
    assert theirs == []
    found = bound.post("/api/v1/search", json={"query": "gsm8k > 0"}).json()
    assert {each["checkpoint"]["id"] for each in found["results"]} == own
    assert found["population"]["size"] == 2


def test_a_bound_token_makes_no_projects(bound: TestClient) -> None:
    assert bound.post("/api/v1/projects", json={"name": "new"}).status_code in (403, 404)
    new = [{"project": "new", "run": "r", "step": 1}]
    assert bound.post("/api/v1/checkpoints:batch", json=new).status_code in (403, 404)
    form = {"project": "new", "run": "r", "step": "1"}
    imported = bound.post("/api/v1/imports", data=form, files={"file": ("results.json", EVALS)})
    assert imported.status_code in (403, 404)
    assert [each["name"] for each in bound.get("/api/v1/projects").json()["items"]] == ["mine"]


def test_a_cursor_of_one_caller_is_no_use_to_another(database: Database, bound: TestClient, tmp_path: Path) -> None:
    with client_of(database, tmp_path) as admin:
        cursor = admin.get("/api/v1/checkpoints", params={"limit": 1}).json()["next_cursor"]
        assert admin.get("/api/v1/checkpoints", params={"limit": 1, "cursor": cursor}).status_code == 200
    refused = bound.get("/api/v1/checkpoints", params={"limit": 1, "cursor": cursor})
    assert (refused.status_code, refused.json()["type"]) == (400, "/problems/invalid-cursor")


@pytest.mark.parametrize(("method", "path", "body", "form"), NAMING, ids=lambda part: str(part)[:40])
def test_a_token_that_may_only_read_writes_nothing(
    database: Database, world: dict[str, Any], tmp_path: Path, method: str, path: str, body: Any, form: Any
) -> None:
    reads = method == "GET" or path in ("/search", "/rollback", "/compare", "/runs/{run}/resume-plan")
    names = named(database, tmp_path, world["mine"], "mine", path)
    with client_of(database, tmp_path, Scope.READ) as client:
        answer = call(client, method, path, body, form, names)
    if reads:
        assert answer.status_code == 200, answer.text
    else:
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/scope-missing")
