"""The schema goes up, down and up again, and is what the models say."""

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import func, inspect, select, text

import migrations
from registry import models
from registry.db import Base, Database, now
from registry.ids import new_id


def test_the_schema_is_what_the_models_say(committed_database: Database) -> None:
    command.check(migrations.alembic_config(committed_database))  # raises where anything differs


def test_down_and_up_again_on_filled_tables(committed_database: Database) -> None:
    with committed_database.write() as session:
        session.add(models.Project(id=new_id(), name="kept-until-down", created_at=now()))
    migrations.downgrade(committed_database, "base")
    assert set(inspect(committed_database.writer).get_table_names()) <= {"alembic_version"}
    migrations.upgrade(committed_database)
    with committed_database.read() as session:
        assert session.scalar(select(func.count()).select_from(models.Project)) == 0


def test_an_upgrade_of_an_upgraded_database_changes_nothing(committed_database: Database) -> None:
    before = migrations.current_revision(committed_database)
    migrations.upgrade(committed_database)
    assert migrations.current_revision(committed_database) == before == migrations.HEAD


def test_there_is_one_head_and_the_code_knows_it() -> None:
    script = ScriptDirectory(str(migrations.FOLDER))
    assert script.get_heads() == [migrations.HEAD]


def test_every_constraint_is_named() -> None:
    for table in Base.metadata.tables.values():
        for constraint in table.constraints:
            assert constraint.name, f"{table.name}: {constraint}"


def test_every_foreign_key_is_indexed() -> None:
    for table in Base.metadata.tables.values():
        indexed = [tuple(c.name for c in index.columns) for index in table.indexes]
        indexed += [
            tuple(c.name for c in k.columns)
            for k in table.constraints
            if hasattr(k, "columns") and type(k).__name__ in ("UniqueConstraint", "PrimaryKeyConstraint")
        ]
        for key in table.foreign_key_constraints:
            wanted = tuple(key.column_keys)
            assert any(columns[: len(wanted)] == wanted for columns in indexed), f"{table.name}{wanted}"


def test_text_orders_by_code_point(committed_database: Database) -> None:
    with committed_database.write() as session:
        for name in ("b", "B", "a", "é", "Z"):
            session.add(models.Project(id=new_id(), name=name, created_at=now()))
    with committed_database.read() as session:
        names = session.scalars(select(models.Project.name).order_by(models.Project.name)).all()
    assert names == ["B", "Z", "a", "b", "é"]


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_score_is_a_number_or_a_marker_never_both(committed_database: Database, value: str) -> None:
    with (
        pytest.raises(Exception, match=r"ck_current_score_value_or_special|CHECK|foreign|FOREIGN"),
        committed_database.write() as session,
    ):
        session.execute(
            text(
                "INSERT INTO current_score (project_id, checkpoint_id, score_metric_id, series_id, value, special,"
                " evaluated_micros, arrival) VALUES (1, 1, 1, 1, 0.5, :value, 0, 1)"
            ),
            {"value": value},
        )
