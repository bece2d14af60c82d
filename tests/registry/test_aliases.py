"""Aliases: one committed checkpoint each, moved atomically, never forgotten."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import (
    AliasMoved,
    AliasNotFound,
    BadAliasName,
    ForceWithoutReason,
    NotCommitted,
    NothingToRollBackTo,
    SuspectTarget,
    alias_history,
    get_alias,
    list_aliases,
    move_alias,
    not_the_last,
    roll_back_alias,
)
from registry.audit import list_entries
from registry.checkpoints.detail import get_checkpoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.db import Database
from registry.errors import Conflict
from registry.ids import to_text
from registry.incidents.suspicion import say_suspect
from registry.models import Checkpoint, OutboxEvent
from registry.projects import ProjectRow
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from tests.api.conftest import client_of
from tests.factories import make_attempt, make_checkpoint, make_project, make_run


@pytest.fixture
def run(session: Session) -> RunRow:
    return make_run(session)


def point(session: Session, run: RunRow, target: int, name: str = "production", **known: Any) -> int:
    return move_alias(session, run.project_id, name, target, actor="ann", **known).checkpoint_id


def moves(session: Session, run: RunRow, name: str = "production") -> list[tuple[int | None, int]]:
    return [(each.previous_id, each.checkpoint_id) for each in alias_history(session, run.project_id, name)]


def test_an_alias_is_made_moved_and_remembers(session: Session, run: RunRow) -> None:
    one, two = (make_checkpoint(session, run, step) for step in (1, 2))
    point(session, run, one, reason="first")
    point(session, run, two, reason="better")
    assert get_alias(session, run.project_id, "production").checkpoint_id == two
    assert moves(session, run) == [(one, two), (None, one)]
    newest, oldest = alias_history(session, run.project_id, "production")
    assert (newest.reason, newest.moved_by, oldest.reason) == ("better", "ann", "first")
    assert newest.moved_at >= oldest.moved_at
    assert get_checkpoint(session, two).aliases == ["production"]
    assert get_checkpoint(session, one).aliases == []


def test_pointing_where_it_points_already_is_no_move(session: Session, run: RunRow) -> None:
    one = make_checkpoint(session, run, 1)
    moved_at = move_alias(session, run.project_id, "a", one, actor="ann").moved_at
    assert move_alias(session, run.project_id, "a", one, actor="ann", expected=one).moved_at == moved_at
    assert moves(session, run, "a") == [(None, one)]


def test_compare_and_set_moves_only_what_still_points_there(session: Session, run: RunRow) -> None:
    one, two, three = (make_checkpoint(session, run, step) for step in (1, 2, 3))
    with pytest.raises(AliasMoved, match="no alias"):
        point(session, run, one, expected=two)
    point(session, run, one)
    with pytest.raises(AliasMoved) as refused:
        point(session, run, three, expected=two)
    assert refused.value.extras["current"] == to_text(one)
    assert point(session, run, three, expected=one) == three
    assert moves(session, run) == [(one, three), (None, one)]


def test_rolling_back_is_one_more_move_and_pointing_forward_again_undoes_it(session: Session, run: RunRow) -> None:
    one, two = (make_checkpoint(session, run, step) for step in (1, 2))
    point(session, run, one)
    with pytest.raises(NothingToRollBackTo, match="with which its history begins"):
        back(session, run)
    point(session, run, two)
    assert back(session, run, reason="worse") == one
    assert point(session, run, two) == two
    assert moves(session, run) == [(one, two), (two, one), (one, two), (None, one)]
    assert [each.is_rollback for each in alias_history(session, run.project_id, "production")] == [
        *(False, True, False, False)
    ]


def back(session: Session, run: RunRow, **known: Any) -> int:
    return roll_back_alias(session, run.project_id, "production", actor="ann", **known).checkpoint_id


def test_rolling_back_twice_goes_two_steps_back_in_the_history(session: Session, run: RunRow) -> None:
    one, two, three, four = (make_checkpoint(session, run, step) for step in (1, 2, 3, 4))
    for target in (one, two, three):
        point(session, run, target)
    assert [back(session, run), back(session, run)] == [two, one]
    with pytest.raises(NothingToRollBackTo, match="PUT points it"):
        back(session, run)
    assert get_alias(session, run.project_id, "production").checkpoint_id == one
    point(session, run, four)  # from here on, what it went back to is what came before
    assert back(session, run) == one
    point(session, run, three)
    point(session, run, two)
    assert [back(session, run) for _ in range(2)] == [three, one]


def test_a_rollback_that_is_sent_twice_goes_back_once_where_it_says_from_where(session: Session, run: RunRow) -> None:
    one, two, three = (make_checkpoint(session, run, step) for step in (1, 2, 3))
    for target in (one, two, three):
        point(session, run, target)
    assert back(session, run, expected=three) == two
    with pytest.raises(AliasMoved) as refused:
        back(session, run, expected=three)
    assert refused.value.extras["current"] == to_text(two)
    assert get_alias(session, run.project_id, "production").checkpoint_id == two


def suspect(session: Session, run: RunRow, checkpoint: int) -> None:
    say_suspect(session, session.get_one(Checkpoint, checkpoint), suspect=True, reason="bad memory", actor="ann")


def test_a_suspect_checkpoint_is_refused_unless_it_is_forced_with_a_reason(session: Session, run: RunRow) -> None:
    good, nan = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2, loss=float("nan"))
    tagged, told = make_checkpoint(session, run, 3, tags={"quarantine": "sdc"}), make_checkpoint(session, run, 4)
    suspect(session, run, told)
    point(session, run, good)
    for target, why in ((nan, "its loss is NaN"), (tagged, "tagged as quarantined"), (told, "bad memory")):
        with pytest.raises(SuspectTarget, match=why):
            point(session, run, target)
        for reason in (None, "  "):
            with pytest.raises(ForceWithoutReason) as refused:
                point(session, run, target, force=True, reason=reason)
            assert refused.value.errors[0].pointer == "/reason"
        assert point(session, run, target, force=True, reason="the eval of it is fine") == target
    assert alias_history(session, run.project_id, "production")[0].reason == "the eval of it is fine"


def test_a_rollback_to_what_became_suspect_is_refused_unless_forced(session: Session, run: RunRow) -> None:
    one, two = (make_checkpoint(session, run, step) for step in (1, 2))
    point(session, run, one)
    point(session, run, two)
    suspect(session, run, one)
    with pytest.raises(SuspectTarget):
        back(session, run)
    assert back(session, run, force=True, reason="two is worse") == one


def test_an_alias_never_rolls_back_to_what_was_deleted(session: Session, run: RunRow) -> None:
    one, two = (make_checkpoint(session, run, step) for step in (1, 2))
    point(session, run, one)
    point(session, run, two)
    session.execute(update(Checkpoint).where(Checkpoint.id == one).values(state="deleted"))
    with pytest.raises(NotCommitted, match="is deleted"):
        roll_back_alias(session, run.project_id, "production", actor="ann")
    assert get_alias(session, run.project_id, "production").checkpoint_id == two


@pytest.mark.parametrize("name", ["", "a/b", "a b", "é", "a\0", "a\n", "x" * 129, "../a", "٣"])
def test_a_name_outside_the_letters_is_refused(session: Session, run: RunRow, name: str) -> None:
    one = make_checkpoint(session, run, 1)
    with pytest.raises(BadAliasName) as refused:
        point(session, run, one, name)
    assert refused.value.errors[0].pointer == "/name"
    for missing in (get_alias, alias_history):
        with pytest.raises(AliasNotFound):
            missing(session, run.project_id, name)
    with pytest.raises(AliasNotFound):
        roll_back_alias(session, run.project_id, name, actor="ann")
    assert list_aliases(session, [run.project_id]) == []


def test_an_alias_stays_within_its_project(session: Session, run: RunRow) -> None:
    other = make_run(session)
    theirs = make_checkpoint(session, other, 1)
    with pytest.raises(CheckpointNotFound, match="This project has no checkpoint"):
        point(session, run, theirs)
    point(session, other, theirs)
    point(session, run, make_checkpoint(session, run, 1))
    assert [each.project_id for each in list_aliases(session, [run.project_id])] == [run.project_id]
    assert len(list_aliases(session, [run.project_id, other.project_id])) == 2
    assert list_aliases(session, []) == []


def test_every_move_is_audited_and_announced(session: Session, run: RunRow) -> None:
    one, two = (make_checkpoint(session, run, step) for step in (1, 2))
    point(session, run, one)
    point(session, run, two, reason="better")
    entry = list_entries(session, limit=1)[0]
    assert (entry.actor, entry.action) == ("ann", "alias.move")
    for said in ("better", to_text(one), to_text(two)):
        assert said in (entry.detail or "")
    events = [each for each in session.query(OutboxEvent) if each.topic == "alias.moved"]
    assert sorted(each.subject_id for each in events) == [one, two]


def test_of_many_that_move_from_the_same_place_one_wins(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        start, *targets = (make_checkpoint(session, run, step) for step in range(9))
        point(session, run, start)

    def move(target: int) -> bool:
        try:
            with committed_database.write() as session:
                point(session, run, target, expected=start)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(move, targets)) == [False] * 7 + [True]
    with committed_database.read() as session:
        assert len(moves(session, run)) == 2


def test_of_many_that_make_an_alias_each_move_is_remembered(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        targets = [make_checkpoint(session, run, step) for step in range(8)]

    def move(target: int) -> None:
        with committed_database.write() as session:
            point(session, run, target)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(move, targets))
    with committed_database.read() as session:
        chain = moves(session, run)
        assert {now for _, now in chain} == set(targets)
        assert [before for before, _ in chain] == [now for _, now in chain[1:]] + [None]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, True) for name in ("final", "Final", "7b-final", "final.v2", "last", "latest_ok", "newest")),
        *((name, False) for name in ("production", "finalist", "blast", "semifinal")),
    ],
)
def test_a_final_below_the_highest_step_is_told(session: Session, run: RunRow, name: str, told: bool) -> None:
    final = make_checkpoint(session, run, 90_000)
    make_checkpoint(session, run, 90_000, kind="light")
    make_checkpoint(session, run, 500_000, state="pending")
    make_checkpoint(session, make_run(session, ProjectRow(run.project_id, run.project)), 600_000)
    point(session, run, final, name)
    rows = list_aliases(session, [run.project_id])
    assert not_the_last(session, rows) == {}  # no later one of its run is durable
    make_checkpoint(session, run, 400_000)
    message = f"not the last of run {run.name!r}: step 90000 of attempt 1, where step 400000 of attempt 1 is committed"
    assert not_the_last(session, rows) == ({(run.project_id, name): message} if told else {})


def test_the_last_is_that_of_the_newest_attempt_and_not_the_highest_number(session: Session, run: RunRow) -> None:
    source, left = (make_checkpoint(session, run, step) for step in (1_000, 9_000))
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=source))
    newest = make_checkpoint(session, run, 2_000)
    for name, target in (("last", newest), ("last-left", left)):
        point(session, run, target, name)
    said = not_the_last(session, list_aliases(session, [run.project_id]))
    assert list(said) == [(run.project_id, "last-left")]
    assert "step 2000 of attempt 2 is committed" in said[run.project_id, "last-left"]


# Over the API


@pytest.fixture
def client(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(database, tmp_path) as client:
        yield client


@pytest.fixture
def ids(database: Database) -> list[str]:
    with database.write() as session:
        run = make_run(session, make_project(session, "p"), "r")
        return [to_text(make_checkpoint(session, run, step)) for step in (1, 2)]


def test_over_the_api_an_alias_is_put_read_listed_and_rolled_back(client: TestClient, ids: list[str]) -> None:
    at = "/api/v1/aliases/p/production"
    assert client.get(at).status_code == 404
    put = client.put(at, json={"checkpoint_id": ids[0], "reason": "first"}).json()
    assert (put["project"], put["name"], put["checkpoint"]["id"]) == ("p", "production", ids[0])
    assert put["checkpoint"]["run"]["name"] == "r"
    moved = client.put(at, json={"checkpoint_id": ids[1], "expected": ids[0]})
    assert moved.json()["checkpoint"]["step"] == 2
    late = client.put(at, json={"checkpoint_id": ids[1], "expected": ids[0]})
    assert (late.status_code, late.json()["type"], late.json()["current"]) == (409, "/problems/alias-moved", ids[1])
    assert [each["checkpoint"]["id"] for each in client.get("/api/v1/aliases").json()["items"]] == [ids[1]]
    back = client.post(f"{at}/rollback", json={"reason": "worse"}).json()
    assert back["checkpoint"]["id"] == ids[0]
    assert client.get(at).json() == back
    history = client.get(f"{at}/history").json()
    assert history["next_cursor"] is None
    assert [each["checkpoint"]["id"] for each in history["items"]] == [ids[0], ids[1], ids[0]]
    assert [each["previous"] and each["previous"]["id"] for each in history["items"]] == [ids[1], ids[0], None]
    assert history["items"][0]["reason"] == "worse"
    assert history["items"][0]["moved_by"] == "test-admin"
    assert client.get(f"/api/v1/checkpoints/{ids[0]}").json()["aliases"] == ["production"]


def test_over_the_api_a_final_that_is_none_is_told_with_every_answer(client: TestClient, ids: list[str]) -> None:
    first, last = ids
    final = "/api/v1/aliases/p/final"
    (told,) = client.put(final, json={"checkpoint_id": first}).json()["warnings"]
    assert "step 1 of attempt 1, where step 2 of attempt 1 is committed" in told
    assert client.get(final).json()["warnings"] == [told]
    client.put("/api/v1/aliases/p/production", json={"checkpoint_id": first})
    listed = client.get("/api/v1/aliases").json()["items"]
    assert [(each["name"], each["warnings"]) for each in listed] == [("final", [told]), ("production", [])]
    assert client.put(final, json={"checkpoint_id": last}).json()["warnings"] == []
    assert client.post(f"{final}/rollback").json()["warnings"] == [told]


def test_over_the_api_an_alias_is_refused_what_is_not_committed(client: TestClient, ids: list[str]) -> None:
    run = client.get(f"/api/v1/checkpoints/{ids[0]}").json()["checkpoint"]["run"]["id"]
    pending = client.post(f"/api/v1/runs/{run}/checkpoints", json={"step": 3, "state": "pending"}).json()["id"]
    refused = client.put("/api/v1/aliases/p/production", json={"checkpoint_id": pending})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/alias-target-not-committed")
    missing = client.put("/api/v1/aliases/p/production", json={"checkpoint_id": "0" * 13})
    assert (missing.status_code, missing.json()["type"]) == (404, "/problems/checkpoint-not-found")
    nowhere = client.put("/api/v1/aliases/q/production", json={"checkpoint_id": ids[0]})
    assert (nowhere.status_code, nowhere.json()["type"]) == (404, "/problems/project-not-found")
    named = client.put("/api/v1/aliases/p/a%20b", json={"checkpoint_id": ids[0]})
    assert (named.status_code, named.json()["errors"][0]["pointer"]) == (422, "/name")
    assert client.get("/api/v1/aliases").json()["items"] == []
