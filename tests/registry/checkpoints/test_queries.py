"""Listings: order, pages that stay right while rows arrive, and plans that stop after a page."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event, insert, text
from sqlalchemy.orm import Session

from registry.checkpoints.queries import (
    CheckpointPage,
    driven_select,
    driving_score,
    list_checkpoints,
    page_select,
)
from registry.db import Database
from registry.filters.errors import InvalidFilter
from registry.filters.query import prepare
from registry.ids import to_text
from registry.keyset import InvalidCursor
from tests.factories import at, make_checkpoint, make_run
from tests.registry.filters.world import World

NAN, INFINITY = math.nan, math.inf


@pytest.fixture
def world(session: Session) -> World:
    return World(session)


def page(world: World, order_by: str = "", **options: Any) -> CheckpointPage:
    options.setdefault("project_ids", {world.project_id})
    return list_checkpoints(world.session, order_by=order_by, **options)


def ids(found: CheckpointPage) -> list[int]:
    return [row.checkpoint.id for row in found.rows]


def walk(world: World, order_by: str, limit: int, **options: Any) -> list[int]:
    """Every id, page by page."""
    found, after = [], None
    while True:
        next_page = page(world, order_by, limit=limit, after=after, **options)
        found += ids(next_page)
        after = next_page.next_after
        if after is None:
            return found
        assert len(next_page.rows) == limit


def test_the_newest_save_comes_first_and_arrival_decides_nothing(world: World) -> None:
    late = world.checkpoint(1, minutes=30)
    early = world.checkpoint(2, minutes=10)
    tied = world.checkpoint(3, minutes=30)
    assert ids(page(world)) == [tied, late, early]


def test_every_row_names_its_checkpoint_in_full(world: World) -> None:
    world.checkpoint(7, attempt=2, kind="light", pieces={"weights": "present"}, loss=INFINITY, data_version="v1")
    (row,) = page(world).rows
    named = row.checkpoint
    assert (named.project, named.run.name, named.attempt, named.step, named.kind) == ("lab", "base", 2, 7, "light")
    assert named.saved_at.isoformat() == "2026-11-01T00:07:00+00:00"
    assert row.loss == INFINITY
    assert row.pieces == {
        "weights": "present",
        "optimizer": "unknown",
        "data_position": "unknown",
        "random_state": "unknown",
    }
    assert (row.resumability, row.superseded, row.state, row.data_version) == ("unknown", False, "committed", "v1")


@pytest.mark.parametrize("field", ["scores.gsm8k", "loss", "metrics.grad"])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_missing_and_non_finite_values_come_last_in_both_directions(world: World, field: str, limit: int) -> None:
    values = [0.5, NAN, 0.7, None, -INFINITY, 0.6, INFINITY, 0.6, None, NAN]
    made = []
    for step, value in enumerate(values):
        given = {} if value is None else {"gsm8k": value}
        named = {} if value is None else {"grad": value}
        made.append(world.checkpoint(step, scores=given, metrics=named, loss=value))
    finite_up, unranked = [0, 7, 5, 2], [9, 8, 6, 4, 3, 1]
    assert walk(world, field, limit) == [made[place] for place in finite_up + unranked]
    down = [2, 7, 5, 0]  # of a tie the newest comes first, in both directions
    assert walk(world, f"{field} desc", limit) == [made[place] for place in down + unranked]


ORDERS = (
    ["scores.a desc", "loss"],
    ["scores.a", "scores.b desc", "step desc"],
    ["loss desc", "tags.t", "config.c desc"],
    ["run.name", "attempt desc", "step"],
    ["saved_at"],
    ["saved_at desc", "id"],
    ["superseded desc", "kind", "metrics.m"],
    ["tags.t desc", "saved_at"],
    ["id"],
    ["resumability", "bytes desc", "data_version"],
)


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_pages_of_any_order_join_up_to_the_whole_list(world: World, order: list[str]) -> None:
    dice = random.Random(7)

    def maybe(value: Any) -> Any:
        return value if dice.random() < 0.7 else None

    def named(name: str, *values: Any) -> dict[str, Any]:
        value = maybe(dice.choice(values))
        return {} if value is None else {name: value}

    world.attempt("base", 1, live_through_step=5)
    for step in range(40):
        world.checkpoint(
            step,
            run=dice.choice(["base", "b"]),
            attempt=dice.choice([1, 2]),
            minutes=dice.randrange(6),
            scores=named("a", 0.1, 0.2, 0.3, NAN) | named("b", 0.1, INFINITY),
            metrics=named("m", 1.0, 2.0),
            tags=named("t", "x", "Y", "é"),
            config=maybe({"c": (maybe(1.5), "1.5")}),
            pieces=named("weights", "present", "absent"),
            replicas=[{"bytes": maybe(dice.randrange(3))}],
            data_version=maybe("v"),
            loss=maybe(dice.choice([1.0, 2.0, NAN])),
        )
    whole = ids(page(world, ", ".join(order), limit=1000))
    assert len(set(whole)) == 40
    assert walk(world, ", ".join(order), 3) == whole
    assert walk(world, ", ".join(order), 7, project_ids=None) == whole


@pytest.mark.parametrize("order", ["", "scores.gsm8k desc"])
def test_a_page_stays_right_while_rows_arrive(world: World, order: str) -> None:
    old = [world.checkpoint(step, minutes=100 + step, scores={"gsm8k": (step + 1) / 100}) for step in range(10)]
    first = page(world, order, limit=4)
    assert ids(first) == old[:5:-1]
    world.checkpoint(900, minutes=900, scores={"gsm8k": 0.99})  # before the first page in either order
    behind = world.checkpoint(800, minutes=0, scores={"gsm8k": 0.001})
    second = page(world, order, limit=4, after=first.next_after)
    assert ids(second) == old[5:1:-1]
    assert ids(page(world, order, limit=4, after=second.next_after)) == [old[1], old[0], behind]


def test_scores_of_several_projects_are_merged_in_order(world: World, session: Session) -> None:
    other, third = World(session, "other"), World(session, "third")
    made = []
    for step in range(12):
        where = (world, other, third)[step % 3]
        made.append(where.checkpoint(step, scores={"gsm8k": step / 20} if step != 6 else {}))
    everything = {each.project_id for each in (world, other, third)}
    down = [made[step] for step in (11, 10, 9, 8, 7, 5, 4, 3, 2, 1, 0, 6)]
    for scope in (None, everything):
        assert walk(world, "scores.gsm8k desc", 5, project_ids=scope) == down
        assert walk(world, "scores.gsm8k desc", 5, project_ids=scope, filter="scores.gsm8k > 0.11") == down[:8]
    assert walk(world, "", 5, project_ids={world.project_id, other.project_id}) == [
        made[step] for step in (10, 9, 7, 6, 4, 3, 1, 0)
    ]


def test_only_allowed_projects_are_listed(world: World, session: Session) -> None:
    other = World(session, "other")
    mine, theirs = world.checkpoint(1, scores={"gsm8k": 0.1}), other.checkpoint(2, scores={"gsm8k": 0.9})
    for order in ("", "scores.gsm8k desc", "step"):
        assert ids(page(world, order)) == [mine]
        assert ids(page(world, order, filter="project = 'other' or project = 'lab'")) == [mine]
        assert ids(page(world, order, filter="project = 'other'")) == []
        assert ids(page(world, order, filter="run.name = 'base'")) == [mine]
        assert ids(page(world, order, project_ids=set())) == []
        assert set(ids(page(world, order, project_ids=None))) == {mine, theirs}


def test_a_cursor_that_was_changed_is_refused_and_never_a_crash(world: World) -> None:
    for step in range(3):
        world.checkpoint(step, scores={"gsm8k": 0.5})
    good = page(world, "scores.gsm8k desc, step", limit=1).next_after
    assert good is not None
    assert len(good) == 4
    for wrong in (
        [],
        good[:-1],
        [*good, 1],
        ["0.5", *good[1:]],
        [True, *good[1:]],
        [NAN, *good[1:]],
        [INFINITY, *good[1:]],
        [good[0], None, *good[2:]],
        [good[0], 1.5, *good[2:]],
        [good[0], 2**63, *good[2:]],
        [*good[:2], 10**18, good[3]],
        [*good[:2], "2026-11-01T00:00:00Z", good[3]],
        [*good[:3], {"id": 1}],
    ):
        with pytest.raises(InvalidCursor):
            page(world, "scores.gsm8k desc, step", limit=1, after=wrong)
    for text_value in ("\0", "\ud800", 5):
        with pytest.raises(InvalidCursor):
            page(world, "tags.t", limit=1, after=[text_value, *good[2:]])


def test_a_mistake_says_in_which_text_it_stands(world: World) -> None:
    for parameter in ("filter", "order_by", "fields"):
        with pytest.raises(InvalidFilter) as caught:
            list_checkpoints(world.session, project_ids=None, **{parameter: "stpe"})
        assert caught.value.extras["parameter"] == parameter
        assert caught.value.title == f"The {parameter} could not be read"
        assert caught.value.extras["position"] == 0
        where = "At" if parameter == "filter" else f"In {parameter}, at"
        assert caught.value.message.startswith(f"{where} character 1: unknown field 'stpe'.")
        assert str(caught.value) == caught.value.message


def test_an_unranked_capability_says_in_which_text_it_stands(world: World) -> None:
    with pytest.raises(InvalidFilter) as caught:
        list_checkpoints(world.session, project_ids=None, order_by="capabilities.math")
    assert caught.value.message.startswith("In order_by, at character 14: there are too few")
    assert caught.value.extras["parameter"] == "order_by"


def test_an_id_among_the_values_is_text(world: World) -> None:
    made = to_text(world.checkpoint(1))
    (row,) = page(world, "id", filter=f"id = '{made}'", fields="id, run.id, run.name").rows
    assert row.values["id"] == made
    assert row.values["run.id"] == to_text(row.checkpoint.run.id)
    assert row.values["run.name"] == row.checkpoint.run.name


def test_a_time_of_arrival_is_told_from_a_time_that_was_said(session: Session) -> None:
    run = make_run(session)
    said = make_checkpoint(session, run, 1, saved_at=at("2026-11-01"))
    arrived = make_checkpoint(session, run, 2)

    def found(filter: str) -> list[tuple[int, bool]]:
        rows = list_checkpoints(session, project_ids={run.project_id}, filter=filter, order_by="step").rows
        return [(row.checkpoint.id, row.saved_at_assumed) for row in rows]

    assert found("") == [(said, False), (arrived, True)]
    assert found("saved_at_assumed") == [(arrived, True)]
    assert found("not saved_at_assumed") == found("saved_at_assumed = false") == [(said, False)]
    ordered = list_checkpoints(session, project_ids={run.project_id}, order_by="saved_at_assumed desc", limit=1)
    assert [row.checkpoint.id for row in ordered.rows] == [arrived]
    further = list_checkpoints(
        session, project_ids={run.project_id}, order_by="saved_at_assumed desc", after=ordered.next_after
    )
    assert [row.checkpoint.id for row in further.rows] == [said]


def test_a_page_takes_the_same_number_of_statements_whatever_its_length(world: World) -> None:
    for step in range(30):
        world.checkpoint(step, scores={"gsm8k": step / 30}, pieces={"weights": "present"}, tags={"t": "x"})
    bind = world.session.get_bind()
    counts = []
    for limit in (2, 25):
        statements: list[str] = []

        def count(*details: Any, seen: list[str] = statements) -> None:
            seen.append(details[2])

        event.listen(bind, "before_cursor_execute", count)
        page(world, "scores.gsm8k desc", limit=limit, filter="scores.gsm8k > 0 and tags.t = 'x'", fields="metrics.m")
        event.remove(bind, "before_cursor_execute", count)
        counts.append(len(statements))
    assert counts == [5, 5]  # the project's table, the choice of the score, its scale, the ids of the page, the rows


def plan_of(world: World, statement: Any) -> str:
    connection = world.session.connection()
    compiled = statement.compile(connection, compile_kwargs={"literal_binds": True})
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    literal = f"{explain} {compiled}".replace(":", "\\:")
    return "\n".join(str(row[-1]) for row in world.session.execute(text(literal)))


@pytest.fixture
def crowd(committed_database: Database) -> Iterator[World]:
    """3,000 checkpoints with two scores each, so that a scan would show.

    In a database of their own: the plans of PostgreSQL depend on what earlier tests left on the pages of a table.
    """
    with committed_database.write() as session:
        yield _crowded(World(session))


def _crowded(world: World) -> World:
    from registry.models import Checkpoint, CurrentScore

    first = world.checkpoint(0, scores={"gsm8k": 0.0, "mt_bench": 0.0})
    template = {c.name: v for c, v in zip(Checkpoint.__table__.columns, _row(world, Checkpoint, first), strict=True)}
    rows, scores = [], []
    for step in range(1, 3000):
        own = template | {"id": first + step, "step": step}
        own["saved_at"] = template["saved_at"].replace(minute=step % 60, hour=step // 60 % 24, day=1 + step // 1440)
        rows.append(own)
        for (metric_id, series_id), value in zip(world.metrics.values(), (step / 3000, step % 7 / 7), strict=True):
            here = {"project_id": world.project_id, "checkpoint_id": own["id"], "score_metric_id": metric_id}
            scores.append(here | {"series_id": series_id, "value": value, "evaluated_micros": 0, "arrival": step})
    world.session.execute(insert(Checkpoint), rows)
    world.session.execute(insert(CurrentScore), scores)
    if world.session.get_bind().dialect.name == "postgresql":
        world.session.execute(text("ANALYZE checkpoint, current_score"))
    return world


def _row(world: World, table: Any, identity: int) -> Any:
    columns = table.__table__
    return world.session.execute(columns.select().where(columns.c.id == identity)).one()


def test_a_list_ordered_by_a_score_walks_that_scores_index(crowd: World) -> None:
    prepared = prepare(
        crowd.session,
        project_ids={crowd.project_id},
        filter="scores.gsm8k > 0.6 and scores.mt_bench < 0.5",
        order_by="scores.gsm8k desc",
    )
    choice = driving_score(prepared)
    assert choice is not None
    plan = plan_of(crowd, driven_select(prepared, 21, None, choice))
    assert "ix_current_score_project_id_score_metric_id_value_checkpoint_id" in plan
    assert "SCAN checkpoint" not in plan
    assert "Seq Scan" not in plan


def test_the_newest_list_and_its_next_page_walk_the_index_of_times(crowd: World) -> None:
    prepared = prepare(crowd.session, project_ids={crowd.project_id}, filter="scores.gsm8k > 0.1")
    first = page(crowd, limit=20)
    for after in (None, first.next_after):
        plan = plan_of(crowd, page_select(prepared, 21, after))
        assert "saved_at_id" in plan  # led by the project or not: of one project, PostgreSQL takes either
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan
        assert "Seq Scan" not in plan


def test_a_list_over_the_crowd_is_right(crowd: World) -> None:
    found = page(crowd, "scores.gsm8k desc", limit=5, filter="scores.gsm8k < 0.5 and scores.mt_bench < 0.2")
    expected = [step for step in range(1499, 0, -1) if step % 7 / 7 < 0.2][:5]
    assert [row.checkpoint.step for row in found.rows] == expected
    assert found.rows[0].values["scores.mt_bench"] == expected[0] % 7 / 7


def test_a_database_of_its_own_gives_the_same_list(committed_database: Database) -> None:
    with committed_database.write() as session:
        world = World(session)
        made = [world.checkpoint(step, scores={"gsm8k": step / 10}, tags={"t": f"A{step}"}) for step in range(5)]
    with committed_database.read() as session:
        found = list_checkpoints(
            session, project_ids=None, filter="tags.t like 'A%' and not tags.t like 'a%'", order_by="scores.gsm8k desc"
        )
    assert ids(found) == made[::-1]
