"""What a process remembers of the database is what has committed, and is given up where the database says otherwise."""

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from registry import runs, snapshots
from registry.db import Database
from registry.known_ids import MOST, KnownIds
from registry.projects import create_project
from registry.runs import RunNotFound, RunSpec


def project_of(database: Database) -> int:
    with database.write() as session:
        return create_project(session, "llm")[0].id


def kept(session: Session, project_id: int) -> int | None:
    return snapshots.keep_configs(session, project_id, [{"lr": 1}])[0]


def selects(database: Database, project_id: int) -> int:
    """How many statements look for a config that is there."""
    seen: list[str] = []

    def listen(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)

    event.listen(database.writer, "before_cursor_execute", listen)
    with database.write() as session:
        kept(session, project_id)
    event.remove(database.writer, "before_cursor_execute", listen)
    return sum(statement.startswith("SELECT") for statement in seen)


def test_what_has_committed_is_not_looked_up_again(committed_database: Database) -> None:
    project_id = project_of(committed_database)
    with committed_database.write() as session:
        first = kept(session, project_id)
    assert selects(committed_database, project_id) == 0
    with committed_database.write() as session:
        assert kept(session, project_id) == first


def test_what_was_taken_back_is_made_again(committed_database: Database) -> None:
    project_id = project_of(committed_database)
    with committed_database.open_write() as session:
        kept(session, project_id)
        session.rollback()
    with committed_database.write() as session:
        made = kept(session, project_id)
        assert session.execute(text("SELECT count(*) FROM config WHERE id = :id"), {"id": made}).scalar_one() == 1


def test_what_a_savepoint_took_back_is_made_again(committed_database: Database) -> None:
    project_id = project_of(committed_database)
    with committed_database.write() as session:
        savepoint = session.begin_nested()
        kept(session, project_id)
        savepoint.rollback()
        create_project(session, "other")
    assert selects(committed_database, project_id) > 0


def test_what_a_savepoint_kept_counts_only_after_the_commit(committed_database: Database) -> None:
    project_id = project_of(committed_database)
    with committed_database.open_write() as session:
        with session.begin_nested():
            kept(session, project_id)
        session.rollback()
    assert selects(committed_database, project_id) > 0


def test_an_error_of_the_database_makes_it_look_again(committed_database: Database) -> None:
    project_id = project_of(committed_database)
    with committed_database.write() as session:
        kept(session, project_id)
    with pytest.raises(DBAPIError), committed_database.write() as session:
        session.execute(text("SELECT nothing FROM nowhere"))
    assert selects(committed_database, project_id) > 0


def test_a_run_that_was_not_there_is_found_once_it_is(committed_database: Database) -> None:
    project_id = project_of(committed_database)
    with pytest.raises(RunNotFound), committed_database.write() as session:
        runs.get_brief(session, 1)
    with committed_database.write() as session:
        made, _ = runs.start_run(session, project_id, RunSpec("7b"))
    for _ in range(2):
        with committed_database.write() as session:
            assert runs.get_brief(session, made.id).name == "7b"


def test_memory_is_bounded() -> None:
    known = KnownIds()
    for at in range(MOST + 10):
        known.learn({("config", 1, at): at})
    assert len(known.ids) <= MOST
