"""What a filter finds, on both databases."""

import itertools
import math

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.completeness import resumability_of
from registry.checkpoints.queries import list_checkpoints
from registry.filters.errors import InvalidFilter
from registry.filters.parse import MAX_DEPTH, MAX_TERMS
from registry.ids import to_text
from registry.types import PieceName, Presence
from tests.registry.filters.world import World

NAN, INFINITY = math.nan, math.inf


@pytest.fixture
def world(session: Session) -> World:
    return World(session)


def steps(world: World, filter: str, order_by: str = "step") -> list[int]:
    page = list_checkpoints(world.session, project_ids={world.project_id}, filter=filter, order_by=order_by, limit=1000)
    return [row.checkpoint.step for row in page.rows]


@pytest.fixture
def scored(world: World) -> World:
    """gsm8k 0.5 at step 1, 0.7 at 2, NaN at 3, infinite at 4, missing at 5, -infinite at 6; and all else alike."""
    for step, score in ((1, 0.5), (2, 0.7), (3, NAN), (4, INFINITY), (5, None), (6, -INFINITY)):
        given = {} if score is None else {"gsm8k": score}
        text = {NAN: "NaN", INFINITY: "Infinity", -INFINITY: "-Infinity"}.get(score or 0.0, str(score))
        config = None if score is None else {"x": (score if math.isfinite(score) else None, text)}
        metrics = None if score is None else {"x": score}
        world.checkpoint(step, scores=given, loss=score, lr=score, metrics=metrics, config=config)
    return world


@pytest.mark.parametrize("field", ["scores.gsm8k", "loss", "lr", "metrics.x", "config.x"])
@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("{} > 0.6", [2, 4]),
        ("not {} > 0.6", [1, 6]),
        ("not not {} > 0.6", [2, 4]),
        ("{} != 0.5", [2, 4, 6]),
        ("not {} = 0.5", [2, 4, 6]),
        ("{} = 0.5", [1]),
        ("{} between 0.4 and 0.6", [1]),
        ("{} not between 0.4 and 0.6", [2, 4, 6]),
        ("{} in (0.5, 0.9)", [1]),
        ("{} not in (0.5, 0.9)", [2, 4, 6]),
        ("{} is null", [5]),
        ("{} is not null", [1, 2, 3, 4, 6]),
        ("{} is nan", [3]),
        ("{} is not nan", [1, 2, 4, 5, 6]),
        ("not {} is nan", [1, 2, 4, 5, 6]),
        ("{} > 0.6 or {} <= 0.6", [1, 2, 4, 6]),
        ("{} > 0.6 or step = 3", [2, 3, 4]),
        ("not ({} > 0.6 and step = 3)", [1, 2, 4, 5, 6]),
        ("{} <= 1", [1, 2, 6]),
        ("{} >= 1.7976931348623157e308", [4]),
        ("not {} >= -1.7976931348623157e308", [6]),
    ],
)
def test_only_missing_values_and_nan_are_neither_above_nor_below(
    scored: World, field: str, condition: str, found: list[int]
) -> None:
    assert steps(scored, condition.replace("{}", field)) == found


@pytest.mark.parametrize(
    ("condition", "up", "down"),
    [
        ("{} > 0.1", [1, 2, 4], [2, 1, 4]),
        ("{} < 0.6", [1, 6], [1, 6]),
        ("not {} > 0.6", [1, 6], [1, 6]),
        ("{} is not null", [1, 2, 6, 4, 3], [2, 1, 6, 4, 3]),
    ],
)
def test_an_infinity_that_compares_has_no_place_in_the_order(
    scored: World, condition: str, up: list[int], down: list[int]
) -> None:
    """Page by page as well: the walk over the score's index ends before what it does not hold."""
    for limit in (1, 2, 10):
        for direction, expected in (("", up), (" desc", down)):
            found, after = list[int](), None
            while after or not found:
                page = list_checkpoints(
                    scored.session,
                    project_ids={scored.project_id},
                    filter=condition.replace("{}", "scores.gsm8k"),
                    order_by=f"scores.gsm8k{direction}",
                    limit=limit,
                    after=after,
                )
                found += [row.checkpoint.step for row in page.rows]
                after = page.next_after
            assert found == expected


def test_no_row_of_a_score_is_missing_like_a_null_one(world: World) -> None:
    world.checkpoint(1)
    assert steps(world, "scores.gsm8k is null and metrics.grad is null and tags.phase is null") == [1]
    assert steps(world, "scores.gsm8k > 0 or not scores.gsm8k > 0 or metrics.grad != 1 or tags.phase != 'x'") == []
    assert steps(world, "code.dirty or not code.dirty or layout.tp != 1 or config.lr != 1") == []
    assert steps(world, "scores.gsm8k is nan or metrics.grad is nan or config.lr is nan") == []


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("like 'llama%'", [1]),
        ("like 'LLaMA%'", [2]),
        ("ilike 'LLAMA%'", [1, 2]),
        ("like '%7b'", [1, 2]),
        ("like 'llama-_b'", [1]),
        ("like '100\\%_'", []),
        ("like '100\\%'", [3]),
        ("like '100%'", [3, 4]),
        ("like 'a\\_b'", [5]),
        ("like 'a_b'", [5, 6]),
        ("like 'c\\\\d'", [7]),
        ("like '[ab]%'", []),
        ("like '*'", []),
        ("like '数_强%'", [8]),
        ("not like '%a%'", [3, 4, 7, 8]),
        ("not ilike 'A_B'", [1, 2, 3, 4, 7, 8]),
    ],
)
def test_like_minds_case_and_backslash_alike_on_both_databases(world: World, pattern: str, found: list[int]) -> None:
    names = ("llama-7b", "LLaMA-7b", "100%", "100x", "a_b", "axb", "c\\d", "数学强")
    for step, name in enumerate(names, 1):
        world.checkpoint(step, run=name, tags={"name": name})
    world.checkpoint(9)  # no tag: neither like nor not like
    assert steps(world, f"tags.name {pattern}") == found
    assert [step for step in steps(world, f"run.name {pattern}") if step != 9] == found


def test_a_run_is_found_by_its_name_however_its_letters_are_composed(world: World) -> None:
    world.checkpoint(1, run="caf\u00e9")
    world.checkpoint(2)
    assert steps(world, "run.name in (' cafe\u0301 ', 'x') and not run.name = ' x'") == [1]
    for typed in ("caf\u00e9", "cafe\u0301"):
        for condition in (f"= '{typed}'", f"in ('{typed}', 'x')", f"like '%{typed[2:]}'", f"between '{typed}' and 'd'"):
            assert steps(world, f"run.name {condition}") == [1], condition


def test_text_compares_by_code_point(world: World) -> None:
    for step, name in enumerate(["a", "B", "é", "z", "Z", "中"], 1):
        world.checkpoint(step, tags={"name": name})
    assert steps(world, "tags.name is not null", "tags.name") == [2, 5, 1, 4, 3, 6]
    assert steps(world, "tags.name > 'Z'") == [1, 3, 4, 6]
    assert steps(world, "tags.name between 'B' and 'a'") == [1, 2, 5]


def test_whole_numbers_and_fractions_compare_as_numbers(world: World) -> None:
    for step in (1, 2, 3, 9_007_199_254_740_993):
        world.checkpoint(step, minutes=step % 100, metrics={"x": step / 2})
    assert steps(world, "step > 1.5 and step < 2.5") == [2]
    assert steps(world, "step = 9007199254740993") == [9_007_199_254_740_993]
    assert steps(world, "step in (1, 2.0, 2.5)") == [1, 2]
    assert steps(world, "step not in (1, 2.5)") == [2, 3, 9_007_199_254_740_993]
    assert steps(world, "metrics.x in (1, 1.5)") == [2, 3]
    assert steps(world, "metrics.x = 1") == [2]


def test_times_are_moments_and_a_date_is_its_midnight_in_utc(world: World) -> None:
    for minutes in (0, 1, 1440):
        world.checkpoint(minutes, minutes=minutes)
    assert steps(world, "saved_at = '2026-11-01'") == [0]
    assert steps(world, "saved_at > '2026-11-01T08:00:00+08:00'") == [1, 1440]
    assert steps(world, "saved_at in ('2026-11-02', '2026-11-01T00:01Z')") == [1, 1440]
    assert steps(world, "saved_at between '2026-11-01T00:00:30Z' and '2026-11-01T23:59:59.999999Z'") == [1]


def test_config_values_compare_by_the_type_of_the_literal(world: World) -> None:
    world.checkpoint(1, config={"lr": (0.0003, "3e-4"), "opt.name": (None, "adamw"), "flash": (None, "true")})
    world.checkpoint(2, config={"lr": (0.001, "1e-3"), "opt.name": (None, "lion"), "flash": (None, "false")})
    world.checkpoint(3, config={"lr": (None, "NaN"), "opt.name": (None, "null")})
    world.checkpoint(4)
    assert steps(world, "config.lr < 5e-4") == [1]
    assert steps(world, "not config.lr < 5e-4") == [2]
    assert steps(world, "config.lr = '3e-4'") == [1]
    assert steps(world, "config.lr in (0.001, '3e-4')") == [1, 2]
    assert steps(world, "config.opt.name like 'a%'") == [1]
    assert steps(world, "config.flash = true") == [1]
    assert steps(world, "config.flash != true") == [2]
    assert steps(world, "config.lr is nan") == [3]
    assert steps(world, "config.opt.name is null") == [3, 4]
    assert steps(world, "", "config.lr desc") == [2, 1, 3, 4]


def test_a_config_value_of_null_is_missing_in_every_comparison(world: World) -> None:
    world.checkpoint(1, config={"opt": (None, "null")})
    world.checkpoint(2, config={"opt": (None, "adamw")})
    world.checkpoint(3)
    for condition in ("config.opt != 'sgd'", "not config.opt = 'sgd'", "config.opt not in ('sgd')", "config.opt > 'a'"):
        assert steps(world, condition) == [2], condition
    assert steps(world, "config.opt = 'null' or config.opt like 'n%' or config.opt in ('null')") == []
    assert steps(world, "", "config.opt desc, step") == [2, 1, 3]


def test_a_checkpoint_beyond_the_live_part_of_its_attempt_is_superseded(world: World) -> None:
    world.attempt("base", 1, live_through_step=2)
    for step, attempt in ((1, 1), (2, 1), (3, 1), (3, 2)):
        world.checkpoint(step, attempt=attempt)
    assert steps(world, "superseded") == [3]
    assert steps(world, "not superseded") == [1, 2, 3]
    assert steps(world, "superseded = false and attempt = 1") == [1, 2]
    assert steps(world, "superseded in (true) or superseded != false") == [3]


def test_resumability_in_sql_is_the_rule_for_one_checkpoint(world: World) -> None:
    expected: dict[str, list[int]] = {}
    for step, presences in enumerate(itertools.product(Presence, repeat=4)):
        pieces = dict(zip(PieceName, presences, strict=True))
        said = {name.value: presence.value for name, presence in pieces.items()}
        if step % 2:  # nobody speaks of what is unknown
            said = {name: presence for name, presence in said.items() if presence != "unknown"}
        world.checkpoint(step, pieces=said)
        expected.setdefault(resumability_of(pieces).value, []).append(step)
    assert len(expected) == 5
    for word, found in expected.items():
        assert steps(world, f"resumability = '{word}'") == found
    assert len(steps(world, "pieces.optimizer = 'unknown'")) == 27
    assert steps(world, "pieces.optimizer is null") == []


def test_a_condition_on_replicas_asks_for_some_and_its_negation_for_none(world: World) -> None:
    world.checkpoint(1, replicas=[{"tier": "shared"}, {"tier": "object", "uri": "s3://b/1"}])
    world.checkpoint(2, replicas=[{"tier": "local", "host": "n1"}])
    world.checkpoint(3, replicas=[{"tier": "object", "state": "removed"}])
    world.checkpoint(4)
    assert steps(world, "replicas.tier = 'object'") == [1]
    assert steps(world, "replicas.tier != 'object'") == [2, 3, 4]
    assert steps(world, "not replicas.tier = 'object'") == [2, 3, 4]
    assert steps(world, "replicas.tier in ('object', 'local')") == [1, 2]
    assert steps(world, "replicas.tier not in ('object', 'local')") == [3, 4]
    assert steps(world, "replicas.tier is null") == [3, 4]
    assert steps(world, "replicas.host = 'n1' and replicas.tier is not null") == [2]
    assert steps(world, "replicas.uri like 's3:%'") == [1]
    assert steps(world, "replicas.uri not like 's3:%'") == [2, 3, 4]
    assert steps(world, "replicas.state = 'removed'") == [3]


def test_what_belongs_to_run_code_layout_and_data_is_found(world: World) -> None:
    world.run("a", tags={"phase": "sft"}, team="red", parameter_count=7_000_000_000)
    one = world.checkpoint(1, run="a", code={"commit": "c0ffee", "dirty": False}, layout={"tp": 8, "sharding": "fsdp"})
    world.checkpoint(2, data_version="mix-v3", format="dcp", replicas=[{"bytes": 5}, {"bytes": 7}], tokens_seen=10)
    world.checkpoint(3, milestone=True, notes="good", kind="light", state="pending", committed_at=None)
    found = {
        "run.tags.phase = 'sft'": 1,
        "run.team = 'red' and run.parameter_count >= 1e9": 1,
        "not code.dirty and code.commit = 'c0ffee'": 1,
        "layout.tp = 8 and layout.sharding != 'none'": 1,
        f"id = '{to_text(one)}'": 1,
        "data_version = 'mix-v3'": 2,
        "format = 'dcp' and layout.format = 'dcp'": 2,
        "bytes = 7": 2,
        "tokens_seen between 10 and 10": 2,
        "milestone": 3,
        "notes like '%oo%' and kind = 'light'": 3,
        "state = 'pending'": 3,
    }
    for filter, step in found.items():
        assert steps(world, filter) == [step], filter
    assert steps(world, "project = 'lab' and run.name in ('a', 'base')") == [1, 2, 3]
    assert steps(world, "project in ('other') or project = 'lab'") == [1, 2, 3]
    assert steps(world, "project = 'other'") == []
    assert steps(world, "project != 'lab'") == []


def test_what_was_evaluated_and_what_was_not_can_be_asked_for(world: World) -> None:
    world.checkpoint(1, scores={"gsm8k": float("nan")})  # a result, though none that ranks
    world.checkpoint(2)
    assert steps(world, "scored") == [1]
    assert steps(world, "not scored") == [2]
    page = list_checkpoints(world.session, project_ids=None, order_by="scored desc, step", fields="scored")
    assert [(row.checkpoint.step, row.values["scored"]) for row in page.rows] == [(1, True), (2, False)]


def test_deleted_checkpoints_are_left_out_unless_the_filter_speaks_of_state(world: World) -> None:
    world.checkpoint(1)
    world.checkpoint(2, state="deleted")
    assert steps(world, "") == [1]
    assert steps(world, "state in ('deleted', 'committed')") == [1, 2]


def test_capabilities_compare_by_percentile_and_the_unranked_neither_way(world: World) -> None:
    ids = [world.checkpoint(step) for step in range(1, 5)]
    percentiles = {"math": {ids[0]: 0.95, ids[1]: 0.5, ids[2]: 0.05}, "chat": {ids[1]: 0.1}}

    def found(filter: str, order_by: str = "step") -> list[int]:
        page = list_checkpoints(
            world.session,
            project_ids=None,
            filter=filter,
            order_by=order_by,
            capabilities=lambda name, _: percentiles.get(name),
        )
        return [row.checkpoint.step for row in page.rows]

    assert found("capabilities.math >= 0.8") == [1]
    assert found("not capabilities.math >= 0.8") == [2, 3]
    assert found("capabilities.math is null") == [4]
    assert found("capabilities.math > 0.2 and capabilities.chat < 0.2") == [2]
    assert found("not capabilities.math > 0.8 and capabilities.math != 0.05") == [2]
    assert found("capabilities.math > 0.8 or capabilities.chat < 0.2") == [1, 2]
    assert found("", "capabilities.math desc") == [1, 2, 3, 4]
    assert found("", "capabilities.math") == [3, 2, 1, 4]
    for filter, why in {
        "step > 0 and capabilities.mth > 0.8": "there is no capability 'mth'.*Did you mean math",
        "step > 0 and capabilities.code > 0.8": "too few scored checkpoints",
    }.items():
        with pytest.raises(InvalidFilter, match=why) as caught:
            found(filter)
        assert caught.value.extras["position"] == len("step > 0 and capabilities.")
    with pytest.raises(InvalidFilter):
        list_checkpoints(world.session, project_ids=None, filter="capabilities.math > 0.8")


def test_texts_are_parameters_and_never_sql(world: World) -> None:
    world.checkpoint(1, tags={"x'; --": "1' or '1'='1"}, config={"a'b": (1.0, "1")})
    assert steps(world, "tags.`x'; --` = '1'' or ''1''=''1'") == [1]
    assert steps(world, "tags.`x'; --` = '1'") == []
    assert steps(world, "config.`a'b` = 1 and scores.`a'); drop table run; --`.`%s`.`:x` is null") == [1]


def test_the_largest_filter_that_is_read_also_runs(world: World) -> None:
    world.checkpoint(1, scores={"gsm8k": 0.5})
    terms = " and ".join(["step >= 0"] * (MAX_TERMS - 1))
    assert steps(world, f"scores.gsm8k > 0.1 and {terms}") == [1]
    assert steps(world, " or ".join(f"tags.t{place} = 'x'" for place in range(MAX_TERMS))) == []
    for inner in ("resumability = 'unknown'", "replicas.tier != 'shared'", "scores.gsm8k between 0.4 and 0.6"):
        deep = "(step = 1 and (step = 2 or " * (MAX_DEPTH // 2) + inner + "))" * (MAX_DEPTH // 2)
        assert steps(world, deep, "scores.gsm8k desc") == [1]
        inverse = "not (step = 2 or not (step = 1 and " * (MAX_DEPTH // 4) + inner + "))" * (MAX_DEPTH // 4)
        assert steps(world, inverse) == [1]
    assert steps(world, f"step in ({','.join(['1'] * 1000)}) and step not in ({','.join(['2'] * 1000)})") == [1]
