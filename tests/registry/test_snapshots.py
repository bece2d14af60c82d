"""What many checkpoints share is kept once; what a value is, its digest says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import get_checkpoint, read_config
from registry.models import CodeVersion, Config, ConfigEntry, DataSource, DataVersion, Environment, Layout
from registry.snapshots import (
    MAX_PATHS,
    MAX_TEXT,
    NUL,
    CodeSpec,
    ConfigTooLarge,
    DataSpec,
    LayoutSpec,
    SourceSpec,
    flatten,
    keep_code_versions,
    keep_configs,
    keep_data_versions,
    keep_environments,
    keep_layouts,
    refuse_too_many_paths,
)
from tests.factories import make_checkpoint, make_project, make_run

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
CONFIGS = st.dictionaries(
    TEXT,
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(10**30), 10**30),
            st.floats(allow_nan=False, allow_infinity=False),
            TEXT,
        ),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=10,
    ),
    max_size=5,
)


def count(session: Session, table: Any) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def entries(session: Session, config_id: int | None) -> dict[str, tuple[float | None, str]]:
    query = select(ConfigEntry).where(ConfigEntry.config_id == config_id)
    return {row.path: (row.number, row.text) for row in session.scalars(query)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=CONFIGS)
def test_a_config_comes_back_as_it_was_sent(session: Session, config: dict[str, Any]) -> None:
    (kept,) = keep_configs(session, make_project(session).id, [config])
    found = read_config(session, kept)
    assert found == config
    assert strict_json.canonical(found) == strict_json.canonical(config)


def test_numbers_of_a_config_keep_their_text(session: Session) -> None:
    text = '{"a":1.50,"b":1e2,"c":100000000000000000000000,"d":-0.0}'
    (kept,) = keep_configs(session, make_project(session).id, [strict_json.loads(text.encode())])
    assert strict_json.canonical(read_config(session, kept)) == text
    assert entries(session, kept) == {
        "a": (1.5, "1.50"),
        "b": (100.0, "1e2"),
        "c": (1e23, "100000000000000000000000"),
        "d": (0.0, "-0.0"),
    }


SHARED: list[tuple[Callable[..., list[int | None]], Any, Sequence[Any]]] = [
    (keep_configs, Config, [{"a": 1, "b": [1, {"c": "x"}]}, {"a": 2}, {}]),
    (keep_environments, Environment, [{"torch": "2.13"}, {"torch": "2.14"}, {}]),
    (keep_layouts, Layout, [LayoutSpec(8, tp=2), LayoutSpec(8), LayoutSpec(8, extra={"a": 1})]),
    (keep_code_versions, CodeVersion, [CodeSpec("abc"), CodeSpec("abc", dirty=True), CodeSpec("abc", dirty=False)]),
    (
        keep_data_versions,
        DataVersion,
        [DataSpec("v1", {"web": SourceSpec(0.5)}), DataSpec("v1", {"web": SourceSpec(0.6)}), DataSpec("v2")],
    ),
]


@pytest.mark.parametrize(("keep", "table", "values"), SHARED, ids=lambda part: getattr(part, "__name__", ""))
def test_the_same_content_is_one_row_whoever_sends_it(
    session: Session, keep: Callable[..., list[int | None]], table: Any, values: Sequence[Any]
) -> None:
    project = make_project(session)
    first = keep(session, project.id, [*values, None, *values])
    assert first == [*first[:3], None, *first[:3]]
    assert len(set(first[:3])) == 3
    assert keep(session, project.id, values[::-1]) == first[2::-1]
    assert keep(session, project.id, [None]) == [None]
    assert keep(session, project.id, []) == []
    assert count(session, table) == 3


@pytest.mark.parametrize(("keep", "table", "values"), SHARED, ids=lambda part: getattr(part, "__name__", ""))
def test_projects_share_nothing(
    session: Session, keep: Callable[..., list[int | None]], table: Any, values: Sequence[Any]
) -> None:
    one, other = (keep(session, make_project(session).id, values) for _ in range(2))
    assert not set(one) & set(other)


def test_the_order_of_keys_makes_no_other_config(session: Session) -> None:
    project = make_project(session)
    one, other = keep_configs(session, project.id, [{"a": {"x": 1, "y": 2}, "b": 3}, {"b": 3, "a": {"y": 2, "x": 1}}])
    assert one == other
    one, other = keep_configs(session, project.id, [{"a": [1, 2]}, {"a": [2, 1]}])
    assert one != other


def test_checkpoints_and_runs_share_one_config(session: Session) -> None:
    config = {"lr": 3e-4, "layers": 32}
    run = make_run(session, config=config)
    made = [make_checkpoint(session, run, step, config=config) for step in range(5)]
    assert count(session, Config) == 1
    assert count(session, ConfigEntry) == 2
    assert all(get_checkpoint(session, each).config == config for each in made)


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"lr": 1}, {"lr": 1}),
        ({"optimizer": {"betas": [0.9, 0.95]}}, {"optimizer.betas.0": 0.9, "optimizer.betas.1": 0.95}),
        ({"a": {}, "b": [], "c": None}, {"a": {}, "b": [], "c": None}),
        ({"a.b": 1, "c": {"d.e": 2}}, {"a.b": 1, "c.d.e": 2}),
        ({"": 1, "a": {"": 2}}, {"": 1, "a.": 2}),
        ({"a": [[1], [{"b": 2}]]}, {"a.0.0": 1, "a.1.0.b": 2}),
        ({}, {"": {}}),
    ],
)
def test_paths_are_dotted_and_items_numbered(value: Mapping[str, Any], paths: dict[str, Any]) -> None:
    assert dict(flatten(value)) == paths


def test_two_keys_on_one_path_keep_the_first_for_filters_and_both_in_the_config(session: Session) -> None:
    config = {"a": {"b": 1}, "a.b": 2}
    (kept,) = keep_configs(session, make_project(session).id, [config])
    assert entries(session, kept) == {"a.b": (1.0, "1")}
    assert read_config(session, kept) == config


def test_nul_is_kept_in_the_config_and_stands_for_itself_in_filters(session: Session) -> None:
    config = {"a\0b": "x\0y", "plain": "z"}
    (kept,) = keep_configs(session, make_project(session).id, [config])
    assert read_config(session, kept) == config
    assert entries(session, kept) == {f"a{NUL}b": (None, f"x{NUL}y"), "plain": (None, "z")}


def test_a_number_is_a_number_and_its_like_are_text(session: Session) -> None:
    config: dict[str, Any] = {"t": True, "f": False, "n": None, "i": 3, "x": 0.5, "s": "3", "e": [], "big": 10**400}
    (kept,) = keep_configs(session, make_project(session).id, [config])
    found = entries(session, kept)
    numbers = {path: number for path, (number, _) in found.items() if number is not None}
    assert numbers == {"i": 3.0, "x": 0.5}
    assert {path: text for path, (_, text) in found.items() if path not in ("big", *numbers)} == {
        "t": "true",
        "f": "false",
        "n": "null",
        "s": "3",
        "e": "[]",
    }
    assert found["big"][1].startswith("1000")


def test_long_values_are_cut_for_filters_alone(session: Session) -> None:
    config = {"k" * 3000: "v" * 5000}
    (kept,) = keep_configs(session, make_project(session).id, [config])
    assert entries(session, kept) == {"k" * MAX_TEXT: (None, "v" * MAX_TEXT)}
    assert read_config(session, kept) == config


@pytest.mark.parametrize("keep", [keep_configs, keep_environments])
def test_what_is_nested_too_deep_is_refused(session: Session, keep: Callable[..., list[int | None]]) -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(depth):
            value = {"a": value}
        return dict(value)

    project = make_project(session)
    assert keep(session, project.id, [nested(strict_json.MAX_DEPTH)]) != [None]
    for depth in (strict_json.MAX_DEPTH + 1, 5_000):
        with pytest.raises(ConfigTooLarge, match=f"nested {depth} levels deep; at most {strict_json.MAX_DEPTH}"):
            keep(session, project.id, [{"fine": 1}, nested(depth)])


def test_a_config_of_too_many_paths_is_refused_and_nothing_of_it_is_kept(session: Session) -> None:
    project = make_project(session)
    keep_configs(session, project.id, [{str(number): number for number in range(MAX_PATHS)}])
    assert count(session, ConfigEntry) == MAX_PATHS
    with pytest.raises(ConfigTooLarge, match="more than 20000 paths"), session.begin_nested():
        keep_configs(session, project.id, [{"a": list(range(MAX_PATHS + 1))}])
    assert (count(session, Config), count(session, ConfigEntry)) == (1, MAX_PATHS)


def test_a_config_of_too_many_paths_is_refused_before_anything_else_is_done(session: Session) -> None:
    project = make_project(session)
    deep: Any = list(range(MAX_PATHS + 1))
    for _ in range(strict_json.MAX_DEPTH + 1):
        deep = {"a": deep}
    asked: list[str] = []
    engine = session.get_bind().engine
    listener = lambda *args: asked.append(args[2])  # noqa: E731
    event.listen(engine, "before_cursor_execute", listener)
    with pytest.raises(ConfigTooLarge, match="more than 20000 paths"):
        keep_configs(session, project.id, [{"fine": 1}, deep])
    event.remove(engine, "before_cursor_execute", listener)
    assert asked == []


@pytest.mark.parametrize(
    "config",
    [
        {str(number): {} for number in range(MAX_PATHS)},
        {str(number): [[], None] for number in range(MAX_PATHS // 2)},
        {"a": [{"b": [1] * 100}] * (MAX_PATHS // 100)},
    ],
)
def test_as_many_paths_as_are_accepted_are_counted_as_they_are_flattened(config: dict[str, Any]) -> None:
    assert len(list(flatten(config))) == MAX_PATHS
    refuse_too_many_paths(config)
    with pytest.raises(ConfigTooLarge):
        refuse_too_many_paths(config | {"more": None})


# Data versions


def test_a_name_alone_means_the_newest_version_of_that_name(session: Session) -> None:
    project = make_project(session)
    old, new = (DataSpec("mix", {"web": SourceSpec(weight)}) for weight in (0.5, 0.6))
    (first,) = keep_data_versions(session, project.id, [DataSpec("mix")])  # no mix is known yet
    (older,) = keep_data_versions(session, project.id, [old])
    (newer,) = keep_data_versions(session, project.id, [new])
    assert keep_data_versions(session, project.id, [DataSpec("mix"), old, new]) == [newer, older, newer]
    assert first not in (older, newer)


def test_a_mix_keeps_weights_and_tokens_where_they_are_known(session: Session) -> None:
    mix = {"web": SourceSpec(0.7), "code": SourceSpec(None, 10**15), "math": SourceSpec(0.0, 5), "x": SourceSpec()}
    made = make_checkpoint(session, data_version=DataSpec("v", mix, "s3://data/v"))
    assert get_checkpoint(session, made).data_version == DataSpec("v", mix, "s3://data/v")
    assert count(session, DataSource) == 4


def test_another_order_of_sources_is_the_same_mix(session: Session) -> None:
    project = make_project(session)
    mix = {"web": SourceSpec(0.7), "code": SourceSpec(0.3)}
    one, other = keep_data_versions(
        session, project.id, [DataSpec("v", mix), DataSpec("v", dict(reversed(mix.items())))]
    )
    assert one == other


def test_unknown_and_false_are_two_things(session: Session) -> None:
    for dirty in (None, False, True):
        made = make_checkpoint(session, code=CodeSpec("abc", dirty))
        assert get_checkpoint(session, made).code == CodeSpec("abc", dirty)


def test_a_layout_keeps_what_is_unknown_unknown(session: Session) -> None:
    layout = LayoutSpec(64, tp=4, sharding="zero-3", extra={"vpp": 2})
    found = get_checkpoint(session, make_checkpoint(session, layout=layout)).layout
    assert found == layout
    assert found is not None
    assert found.pp is None
