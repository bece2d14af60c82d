"""Which score a name is read as, and that the answer says so."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.queries import CheckpointPage, list_checkpoints
from registry.filters.left_out import LeftOut, asked_instead
from tests.registry.filters.world import World


@pytest.fixture
def world(session: Session) -> World:
    return World(session)


def ask(world: World, filter: str, *others: World) -> CheckpointPage:
    projects = {each.project_id for each in (world, *others)}
    return list_checkpoints(world.session, project_ids=projects, filter=filter, order_by="step")


def steps(page: CheckpointPage) -> list[int]:
    return [row.checkpoint.step for row in page.rows]


STRICT, FLEXIBLE = ("gsm8k", "exact_match", "strict-match"), ("gsm8k", "exact_match", "flexible-extract")


def test_the_benchmark_tables_first_metric_that_occurs_is_taken(world: World) -> None:
    world.checkpoint(1, scores={STRICT: 0.9, ("gsm8k", "other", ""): 0.1})
    world.checkpoint(2, scores={STRICT: 0.2})
    page = ask(world, "scores.gsm8k > 0.5")
    assert steps(page) == [1]
    assert page.resolved == {"scores.gsm8k": "scores.gsm8k.exact_match.strict-match"}
    world.checkpoint(3, scores={FLEXIBLE: 0.3})
    page = ask(world, "scores.gsm8k > 0.1")
    assert steps(page) == [3]  # one choice for the whole query, although two checkpoints lack it
    assert page.resolved == {"scores.gsm8k": "scores.gsm8k.exact_match.flexible-extract"}


def test_an_unknown_benchmark_is_read_by_its_most_frequent_metric_then_by_name(world: World) -> None:
    world.checkpoint(1, scores={("ours", "b", ""): 0.9, ("ours", "a", "x"): 0.1})
    assert ask(world, "scores.ours > 0").resolved == {"scores.ours": "scores.ours.a.x"}
    world.checkpoint(2, scores={("ours", "b", ""): 0.9})
    page = ask(world, "scores.ours > 0")
    assert page.resolved == {"scores.ours": "scores.ours.b.none"}
    assert steps(page) == [1, 2]


def test_a_metric_and_filter_that_are_named_are_taken_as_named(world: World) -> None:
    world.checkpoint(1, scores={STRICT: 0.9, FLEXIBLE: 0.2, ("gsm8k", "acc", ""): 0.5})
    for name, resolved in {
        "scores.gsm8k.exact_match": "scores.gsm8k.exact_match.flexible-extract",
        "scores.gsm8k.exact_match.`strict-match`": "scores.gsm8k.exact_match.strict-match",
        "scores.gsm8k.acc.none": "scores.gsm8k.acc.none",
        "scores.gsm8k.acc": "scores.gsm8k.acc.none",
    }.items():
        (found,) = ask(world, f"{name} > 0").resolved.values()
        assert found == resolved
        (again,) = ask(world, f"{found} > 0").resolved.values()  # what is echoed can be asked
        assert again == found


def test_a_name_that_occurs_nowhere_says_so_and_finds_nothing(world: World) -> None:
    world.checkpoint(1, scores={"gsm8k": 0.9})
    for name in ("scores.gsm9k", "scores.gsm8k.f1", "scores.gsm8k.acc.strict"):
        page = ask(world, f"{name} > 0 or not {name} > 0")
        assert page.rows == ()
        assert page.resolved == {name: None}
        assert steps(ask(world, f"{name} is null")) == [1]


def test_an_alias_means_the_benchmark_and_the_name_in_use_comes_first(world: World) -> None:
    world.checkpoint(1, scores={"gsm8k": 0.9, "hendrycks_math": 0.3})
    assert ask(world, "scores.`gsm-8k` > 0.5").resolved == {"scores.gsm-8k": "scores.gsm8k.acc.none"}
    assert steps(ask(world, "scores.GSM8K > 0.5")) == [1]
    assert ask(world, "scores.math500 > 0").resolved == {"scores.math500": None}  # another benchmark
    world.checkpoint(2, scores={"gsm-8k": 0.8})
    assert steps(ask(world, "scores.gsm-8k > 0.5")) == [2]


def test_each_project_keeps_its_own_metrics_and_one_choice_serves_all(world: World, session: Session) -> None:
    other = World(session, "other")
    world.checkpoint(1, scores={STRICT: 0.9})
    other.checkpoint(2, scores={STRICT: 0.8})
    other.checkpoint(3, scores={FLEXIBLE: 0.7})
    assert steps(ask(world, "scores.gsm8k > 0")) == [1]
    both = ask(world, "scores.gsm8k > 0", other)
    assert steps(both) == [3]
    assert both.resolved == {"scores.gsm8k": "scores.gsm8k.exact_match.flexible-extract"}
    (lab,) = both.left_out["scores.gsm8k"]
    assert (lab.scores, lab.projects) == (("scores.gsm8k.exact_match.strict-match",), ("lab",))
    assert steps(ask(world, "scores.gsm8k > 0 and project = 'lab'", other)) == [1]
    every = ask(world, "scores.gsm8k.exact_match.strict-match > 0", other)
    assert (steps(every), every.left_out) == ([1, 2], {})


def test_what_a_project_that_is_left_out_has_is_said_in_full(world: World, session: Session) -> None:
    other, third = World(session, "other"), World(session, "third")
    bare, acc, counted = ("gsm8k", "", ""), ("gsm8k", "acc", ""), ("gsm8k", "accuracy", "")
    world.checkpoint(1, scores={counted: 0.9, STRICT: 0.1})
    other.checkpoint(2, scores={bare: 0.8, acc: 0.7})
    third.checkpoint(3, scores={acc: 0.7})
    page = ask(world, "scores.gsm8k > 0", other, third)
    assert page.resolved == {"scores.gsm8k": "scores.gsm8k.exact_match.strict-match"}
    assert [(each.scores, each.projects) for each in page.left_out["scores.gsm8k"]] == [
        (("scores.gsm8k.acc.none",), ("third",)),
        (("scores.gsm8k.acc.none", "scores.gsm8k.none.none"), ("other",)),
    ]


def test_what_the_table_does_not_list_is_chosen_by_how_many_have_it_in_the_projects_asked(
    world: World, session: Session
) -> None:
    other = World(session, "other")
    world.checkpoint(1, scores={("gsm8k", "a", ""): 0.9})
    for step in (2, 3):
        other.checkpoint(step, scores={("gsm8k", "b", ""): 0.8})
    assert ask(world, "scores.gsm8k > 0", other).resolved == {"scores.gsm8k": "scores.gsm8k.b.none"}
    alone = ask(world, "scores.gsm8k > 0 and project = 'lab'", other)
    assert (alone.resolved, alone.left_out) == ({"scores.gsm8k": "scores.gsm8k.a.none"}, {})


def test_a_project_that_spells_the_benchmark_otherwise_is_left_out_by_name(world: World, session: Session) -> None:
    other = World(session, "other")
    world.checkpoint(1, scores={("arc_challenge", "acc_norm", ""): 0.4})
    other.checkpoint(2, scores={("ARC-c", "accuracy", ""): 0.5})
    page = ask(world, "scores.arc_challenge > 0", other)
    assert steps(page) == [1]
    assert [(each.scores, each.projects) for each in page.left_out["scores.arc_challenge"]] == [
        (("scores.ARC-c.accuracy.none",), ("other",))
    ]


def test_a_name_keeps_its_meaning_in_filter_order_and_fields(world: World) -> None:
    world.checkpoint(1, scores={STRICT: 0.9, FLEXIBLE: 0.2}, tags={"phase": "sft"}, loss=float("nan"))
    page = list_checkpoints(
        world.session,
        project_ids=None,
        filter="scores.gsm8k > 0.1",
        order_by="scores.gsm8k desc",
        fields="scores.gsm8k.exact_match.`strict-match`, tags.phase, loss, layout.tp",
    )
    assert len(page.resolved) == 2
    (row,) = page.rows
    assert row.values["scores.gsm8k"] == 0.2
    assert row.values["scores.gsm8k.exact_match.strict-match"] == 0.9
    assert row.values["tags.phase"] == "sft"
    assert row.values["layout.tp"] is None
    assert str(row.values["loss"]) == "nan"


def test_the_question_to_those_left_out_names_what_most_of_them_have() -> None:
    parts, acc = LeftOut(("parts of gsm8k",), ("a", "b", "c")), "scores.gsm8k.acc.none"
    left_out = {
        "scores.gsm8k": [parts, LeftOut((acc, "scores.gsm8k.none.none"), ("d",)), LeftOut((acc,), ("e",))],
        "scores.mmlu": [LeftOut(("parts of mmlu",), ("a",))],
    }
    asked = "scores.gsm8k > 0.4 and scores.gsm8k_cot > 0.1 and scores.gsm8k.f1 > 0 and scores.mmlu > 0"
    assert asked_instead(left_out, asked) == asked.replace("scores.gsm8k >", "scores.gsm8k.acc >")
    assert asked_instead(left_out, "gsm8k > 40% 而且数学强", in_words=True) == "gsm8k.acc > 40% 而且数学强"
    assert asked_instead(left_out, "strong math", in_words=True) is None
