"""Many rows at once are the same rows as one by one, whatever their texts hold."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from registry import models
from registry.changes import note_changes
from registry.checkpoints.detail import project_of
from registry.db import now
from registry.grouped_inserts import GROUP
from registry.ids import new_id
from registry.together import TURN, in_turns, together
from registry.upsert import MANY, insert_all, insert_missing, insert_new
from tests.factories import make_checkpoint, make_project

TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=12)
AWKWARD = ["", "NULL", "null", "{}", "{a,b}", '"', "\\", '\\"', "a,b", "'", "\n\t", "数学", "🙂", "%s %(x)s :x", "$1"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, max_size=20))
def test_texts_numbers_bytes_and_times_come_back(session: Session, texts: list[str]) -> None:
    project = make_project(session)
    names = list(dict.fromkeys([*AWKWARD, *texts, *(f"filler {number}" for number in range(MANY))]))
    moment = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)
    rows = [
        {
            "id": new_id(),
            "project_id": project.id,
            "name": name,
            "mix_digest": name.encode(),
            "uri": name if at % 3 else None,
            "created_at": moment,
        }
        for at, name in enumerate(names)
    ]
    insert_missing(session, models.DataVersion, rows)
    insert_missing(session, models.DataVersion, rows)
    query = select(models.DataVersion).where(models.DataVersion.project_id == project.id)
    found = {row.name: (row.id, row.mix_digest, row.uri, row.created_at) for row in session.scalars(query)}
    assert found == {row["name"]: (row["id"], row["mix_digest"], row["uri"], moment) for row in rows}


def test_floats_come_back_to_the_last_bit(session: Session) -> None:
    project = make_project(session)
    (version,) = [new_id()]
    insert_missing(
        session,
        models.DataVersion,
        [{"id": version, "project_id": project.id, "name": "v", "mix_digest": b"", "uri": None, "created_at": now()}],
    )
    weights = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, 1 / 3, 0.0, *(number / 7 for number in range(MANY))]
    rows = [
        {
            "project_id": project.id,
            "data_version_id": version,
            "source": str(at),
            "weight": weight,
            "tokens": 2**63 - 1 if at % 2 else None,
        }
        for at, weight in enumerate(weights)
    ]
    insert_missing(session, models.DataSource, rows)
    query = select(models.DataSource).where(models.DataSource.data_version_id == version)
    assert {row.source: row.weight for row in session.scalars(query)} == {row["source"]: row["weight"] for row in rows}


def test_more_rows_than_one_statement_takes_are_written_once_and_those_inserted_are_named(session: Session) -> None:
    project = make_project(session)
    rows = [
        {"created_at": now(), "name": f"row {number}", "project_id": project.id, "id": new_id(), "mix_digest": b""}
        for number in range(2 * GROUP + MANY)
    ]
    insert_missing(session, models.DataVersion, rows[::2])
    assert insert_new(session, models.DataVersion, rows) == {row["id"] for row in rows[1::2]}
    query = select(models.DataVersion.id, models.DataVersion.name).where(models.DataVersion.project_id == project.id)
    assert dict(session.execute(query).all()) == {row["id"]: row["name"] for row in rows}


def tags(session: Session, checkpoint_id: int) -> dict[str, str]:
    query = select(models.CheckpointTag).where(models.CheckpointTag.checkpoint_id == checkpoint_id)
    return {row.name: row.value for row in session.scalars(query)}


def key_of(session: Session) -> dict[str, int]:
    checkpoint_id = make_checkpoint(session)
    return {"project_id": project_of(session, checkpoint_id), "checkpoint_id": checkpoint_id}


def tag(key: dict[str, int], **named: str) -> list[dict[str, object]]:
    return [{**key, "name": name, "value": value} for name, value in named.items()]


def test_rows_of_several_tables_that_go_together_are_the_same_rows(session: Session) -> None:
    key = key_of(session)
    project_id, checkpoint_id = key.values()
    named = {f"{at} {text}": text for at, text in enumerate(AWKWARD)}
    with together(session):
        insert_all(session, models.CheckpointTag, tag(key, **named))
        insert_all(session, models.CheckpointMetric, [{**key, "name": "loss", "value": 0.1, "special": None}])
        note_changes(session, project_id, [checkpoint_id])
    assert tags(session, checkpoint_id) == named
    metrics = models.CheckpointMetric
    found = session.execute(select(metrics.name, metrics.value).where(metrics.checkpoint_id == checkpoint_id)).all()
    assert [tuple(row) for row in found] == [("loss", 0.1)]
    changed = select(models.PopulationChange.subject_id).where(models.PopulationChange.subject_id == checkpoint_id)
    assert session.scalars(changed).all() == [checkpoint_id]


def test_what_goes_together_is_refused_together(session: Session) -> None:
    key = key_of(session)

    def send() -> None:
        with session.begin_nested(), together(session):
            insert_all(session, models.CheckpointTag, tag(key, phase="sft"))
            insert_all(session, models.CheckpointTag, tag(key | {"checkpoint_id": 1}, phase="sft"))

    with pytest.raises(IntegrityError):
        send()
    assert tags(session, key["checkpoint_id"]) == {}


def test_nothing_of_a_block_that_fails_is_sent_later(session: Session) -> None:
    key = key_of(session)

    def fail() -> None:
        with session.begin_nested(), together(session):
            insert_all(session, models.CheckpointTag, tag(key, phase="sft"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with together(session):
        insert_all(session, models.CheckpointTag, tag(key, host="node-1"))
    assert tags(session, key["checkpoint_id"]) == {"host": "node-1"}


def test_very_many_are_written_in_turns(session: Session) -> None:
    key = key_of(session)
    names = [f"{number:04}" for number in range(3 * TURN + 7)]
    given: list[int] = []

    def write(some: Sequence[str]) -> None:
        given.append(len(some))
        insert_all(session, models.CheckpointTag, tag(key, **dict.fromkeys(some, "here")))

    in_turns(session, names, write)
    assert given == [TURN, TURN, TURN, 7]
    assert sorted(tags(session, key["checkpoint_id"])) == names


def test_a_turn_that_is_refused_refuses_all(session: Session) -> None:
    key = key_of(session)

    def write(some: Sequence[int]) -> None:
        rows = [{**key, "name": f"{number:04}", "value": "here"} for number in some]
        if TURN in some:
            rows[0]["checkpoint_id"] = 1
        insert_all(session, models.CheckpointTag, rows)

    def send() -> None:
        with session.begin_nested():
            in_turns(session, range(3 * TURN), write)

    with pytest.raises(IntegrityError):
        send()
    assert tags(session, key["checkpoint_id"]) == {}


def test_zero_keeps_its_sign_where_the_database_has_one(session: Session) -> None:
    key = key_of(session)
    values = [0.0, -0.0, 0.0, -0.0, 0.0, -0.0]
    rows = [{**key, "name": str(at), "value": value, "special": None} for at, value in enumerate(values)]
    insert_all(session, models.CheckpointMetric, rows)
    query = select(models.CheckpointMetric.value).where(models.CheckpointMetric.checkpoint_id == key["checkpoint_id"])
    found = session.scalars(query.order_by(models.CheckpointMetric.name))
    one_zero = session.get_bind().dialect.name == "sqlite"
    assert [str(value) for value in found] == [str(abs(value) if one_zero else value) for value in values]
