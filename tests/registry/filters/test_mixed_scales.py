"""A value that its benchmark's scale cannot hold is neither above nor below one that it can, and is ordered last."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.queries import list_checkpoints
from registry.evals.scales import bounds, can_hold
from tests.registry.filters.world import World

EM = ("gsm8k", "exact_match", "")


@pytest.fixture
def world(session: Session) -> World:
    return World(session)


def steps(*worlds: World, filter: str = "", order_by: str = "step", limit: int = 100) -> list[int]:
    found, after = list[int](), None
    while after or not found:
        page = list_checkpoints(
            worlds[0].session,
            project_ids={each.project_id for each in worlds},
            filter=filter,
            order_by=order_by,
            limit=limit,
            after=after,
        )
        found += [row.checkpoint.step for row in page.rows]
        after = page.next_after
        if not after:
            break
    return found


@pytest.fixture
def mixed(world: World) -> World:
    """Fractions at steps 1 and 2, 61.0 at 3, nothing at 4, below 0 at 5."""
    for step, value in ((1, 0.5), (2, 0.7), (3, 61.0), (4, None), (5, -3.0)):
        world.checkpoint(step, scores=None if value is None else {EM: value})
    return world


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_it_comes_after_all_that_rank_in_both_directions(mixed: World, limit: int) -> None:
    name = "scores.gsm8k.exact_match"
    assert steps(mixed, order_by=f"{name} desc", limit=limit) == [2, 1, 5, 4, 3]
    assert steps(mixed, order_by=name, limit=limit) == [1, 2, 5, 4, 3]
    assert steps(mixed, filter=f"{name} is not null", order_by=f"{name} desc", limit=limit) == [2, 1, 5, 3]
    assert steps(mixed, filter=f"{name} > 0.1", order_by=f"{name} desc", limit=limit) == [2, 1]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("{} > 0.6", [2]),
        ("not {} > 0.6", [1]),
        ("{} != 0.5", [2]),
        ("{} = 61", []),
        ("{} in (0.5, 61)", [1]),
        ("{} between -10 and 100", [1, 2]),
        ("{} is null", [4]),
        ("{} is not null", [1, 2, 3, 5]),
        ("{} is nan", []),
    ],
)
def test_it_is_neither_above_nor_below(mixed: World, condition: str, found: list[int]) -> None:
    assert steps(mixed, filter=condition.replace("{}", "scores.gsm8k")) == found


def test_it_is_shown_as_it_came(mixed: World) -> None:
    page = list_checkpoints(mixed.session, project_ids=None, filter="step = 3", fields="scores.gsm8k")
    assert page.rows[0].values["scores.gsm8k"] == 61.0


def test_a_score_that_is_in_another_scale_throughout_keeps_its_order(world: World) -> None:
    for step, value in ((1, 50.0), (2, 61.0)):
        world.checkpoint(step, scores={EM: value})
    assert steps(world, order_by="scores.gsm8k desc") == [2, 1]
    assert steps(world, filter="scores.gsm8k > 55") == [2]


def test_a_percentage_of_one_project_is_not_above_the_fractions_of_another(world: World) -> None:
    other = World(world.session, "other")
    world.checkpoint(1, scores={EM: 0.5})
    other.checkpoint(2, scores={EM: 61.0})
    assert steps(world, other, order_by="scores.gsm8k desc") == [1, 2]
    assert steps(world, other, filter="scores.gsm8k > 0.1") == [1]
    assert steps(other, filter="scores.gsm8k > 0.1") == [2]


def test_a_perplexity_of_nothing_is_not_the_lowest(world: World) -> None:
    for step, value in ((1, 8.0), (2, 0.0), (3, 1e300)):
        world.checkpoint(step, scores={("wikitext", "word_perplexity", ""): value})
    assert steps(world, order_by="scores.wikitext") == [1, 3, 2]


def test_a_benchmark_that_no_table_knows_has_no_limits(world: World) -> None:
    for step, value in ((1, 0.5), (2, 61.0)):
        world.checkpoint(step, scores={("ours", "x", ""): value})
    assert steps(world, order_by="scores.ours desc") == [2, 1]


@pytest.mark.parametrize("scale", ["fraction", "percent", "ten", "log", "none"])
def test_the_bounds_hold_what_the_scale_can(scale: str) -> None:
    low, high = bounds(scale) or (-1e308, 1e308)
    for value in (-101.0, -0.5, 0.0, 1e-300, 0.5, 1.0, 1.5, 10.0, 10.5, 100.0, 101.0, 1e300):
        assert can_hold(scale, value) == (low <= value <= high), value
