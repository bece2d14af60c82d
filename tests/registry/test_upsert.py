"""Many rows at once are the same rows as one by one, whatever their texts hold."""

from datetime import UTC, datetime

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import models
from registry.db import now
from registry.ids import new_id
from registry.upsert import GROUP, MANY, insert_missing, insert_new
from tests.factories import make_project

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
