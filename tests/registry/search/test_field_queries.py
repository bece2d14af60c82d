"""Searches by what is recorded of a checkpoint beside its scores: loss, times, steps, sizes, every field."""

import math

import pytest
from sqlalchemy.orm import Session

from registry.filters.fields import CATALOGUE, FieldSpec, FieldType
from registry.ids import to_text
from registry.search.conditions import (
    FieldCondition,
    read_conditions,
)
from registry.search.query import search_checkpoints
from tests.factories import at, make_checkpoint, make_project, make_run
from tests.registry.search.worlds import found, scored, search, skills


@pytest.mark.parametrize("query", ["lowest loss", "loss 最低的", "gsm8k > 1%, lowest loss", "step > 1, lowest loss"])
def test_the_lowest_loss_comes_first_and_what_is_not_finite_is_never_ranked(session: Session, query: str) -> None:
    run = make_run(session)
    for step, loss in ((10, 2.5), (20, math.nan), (30, 1.5), (40, None), (50, -math.inf), (60, 2.0)):
        make_checkpoint(session, run, step, loss=loss, scores={"gsm8k": step / 100})
    answer = search_checkpoints(session, project_ids=[run.project_id], query=query)
    assert [each.checkpoint.step for each in answer.results] == [30, 60, 10]
    assert [each.loss for each in answer.results] == [1.5, 2.0, 2.5]
    assert (answer.strict, answer.interpretation.order, answer.population.warnings[-1:]) == (True, "lowest_loss", ())


def test_losses_of_several_runs_are_said_not_to_compare(session: Session) -> None:
    project = make_project(session)
    for loss in (2.0, 1.0):
        make_checkpoint(session, make_run(session, project), 10, loss=loss)
    answer = search(session, "lowest loss", project)
    assert [each.loss for each in answer.results] == [1.0, 2.0]
    assert "losses are of 2 runs" in answer.population.warnings[-1]


def test_no_loss_at_all_is_said_and_the_nearest_keep_their_order(session: Session) -> None:
    project, ids = scored(session, "gsm8k", 3)
    answer = search(session, "gsm8k > 0.1, lowest loss", project)
    assert not answer.strict
    assert answer.population.warnings[-1].startswith("Nothing that meets the other conditions has a finite loss")
    assert found(answer)[0] == ids[-1]
    assert search(session, "lowest loss", project).results == ()
    unmet = search(session, "gsm8k > 0.9, lowest loss", project).population.warnings
    assert not any("finite loss" in each for each in unmet)  # the loss is not why nothing is found
    assert search(session, "step > 999999999, lowest loss", project).population.warnings == ()


def test_a_time_that_nobody_said_is_said_where_the_question_speaks_of_time(session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 1, scores={"gsm8k": 0.5}, saved_at=None)
    make_checkpoint(session, run, 2, scores={"gsm8k": 0.5}, saved_at=at("2026-11-01T00:00:00Z"))
    said = "Of 2 results, 1 does not say when it was saved: the time when the record arrived stands for it."
    for query in ("since 2020-01-01", "gsm8k > 0.1 since 2020-01-01", "newest gsm8k > 0.1"):
        answer = search(session, query)
        assert (len(answer.results), answer.population.warnings[-1:]) == (2, (said,)), query
    assert said not in search(session, "gsm8k > 0.1").population.warnings


def test_steps_and_scores_together(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    early = make_checkpoint(session, run, step=10_000, scores={"mmlu": 0.65})
    make_checkpoint(session, run, step=20_000, scores={"mmlu": 0.55})
    make_checkpoint(session, run, step=60_000, scores={"mmlu": 0.75})
    assert found(search(session, "mmlu 不低于 60% 第5万步之前", project)) == [early]


def test_fields_alone_find_the_newest_first(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project, "the-run.1")
    ids = [make_checkpoint(session, run, step=step, saved_at=at(f"2026-11-0{step}")) for step in (1, 2, 3)]
    answer = search(session, "the-run.1 before step 3", project)
    assert found(answer) == [ids[1], ids[0]]
    assert answer.strict
    assert answer.population.size == 2
    assert search(session, "the-run.1 after step 3", project).strict is False


def test_the_size_that_the_query_names_is_the_population(session: Session) -> None:
    project = make_project(session)
    small, large = [], []
    for place in range(20):
        run = make_run(session, project, parameter_count=1_400_000_000)
        small.append(make_checkpoint(session, run, scores=skills(math=place / 100)))
        run = make_run(session, project, parameter_count=7_000_000_000)
        large.append(make_checkpoint(session, run, scores=skills(math=0.5 + place / 100)))
    assert set(found(search(session, "strong math", project))) <= set(large)
    answer = search(session, "strong math 1.4B models", project)
    assert answer.population.of_size
    assert found(answer) == small[:15:-1]


def a_value_of(kind: FieldType, choices: tuple[str, ...]) -> object:
    match kind:
        case FieldType.INTEGER:
            return 5
        case FieldType.NUMBER:
            return 0.5
        case FieldType.BOOLEAN:
            return True
        case FieldType.CHOICE:
            return choices[0]
        case FieldType.TIME:
            return "2026-11-01T00:00:00Z"
        case FieldType.ID:
            return to_text(7)
        case _:
            return "x"


FIELDS = [spec for spec in CATALOGUE.values() if spec.path[0] not in ("scores", "capabilities")]


@pytest.mark.parametrize("spec", FIELDS, ids=[spec.shown for spec in FIELDS])
def test_every_field_of_the_filter_language_can_be_a_condition(session: Session, spec: FieldSpec) -> None:
    project = make_project(session)
    make_checkpoint(session, make_run(session, project), scores={"gsm8k": 0.5})
    name = ".".join((*spec.path, *(["x"] if spec.further else [])))
    field = {"field": name, "relation": "!=", "threshold": a_value_of(spec.type, spec.choices)}
    score = {"benchmark": "gsm8k", "relation": ">", "threshold": 0.1}
    for conditions in ([field], [field, score]):
        answer = search_checkpoints(session, project_ids=[project.id], conditions=conditions)
        assert answer.interpretation.conditions[0] == FieldCondition(name, "!=", field["threshold"])


@pytest.mark.parametrize("number", [1e22, 1e-7, -0.5, 0, 2**62, 5.0])
def test_a_number_is_compared_as_it_was_sent(number: float) -> None:
    (condition,) = read_conditions([{"field": "loss", "relation": "<", "threshold": number}])
    assert isinstance(condition, FieldCondition)
    assert condition.node().value.value == number


@pytest.mark.parametrize("query", ["smallest with gsm8k > 0.1", "smallest with step < 5000"])
def test_the_smallest_model_comes_first_and_one_of_unknown_size_last(session: Session, query: str) -> None:
    project = make_project(session)
    sizes = (7_000_000_000, None, 160_000_000, 1_400_000_000)
    ids = [
        make_checkpoint(session, make_run(session, project, parameter_count=size), scores={"gsm8k": 0.5})
        for size in sizes
    ]
    answer = search(session, query, project)
    assert answer.strict
    assert found(answer) == [ids[place] for place in (2, 3, 0, 1)]
