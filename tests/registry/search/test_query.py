"""Searches against the database: what is found, in which order, on what evidence."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ParentSpec
from registry.resume_points import ResumePoint
from registry.search.conditions import (
    CapabilityCondition,
    InvalidConditions,
)
from registry.search.draft import UnreadableQuery
from registry.search.query import SearchRefused, capability_resolver, search_checkpoints
from tests.factories import make_attempt, make_checkpoint, make_project, make_run, make_score
from tests.registry.search.worlds import MATH, found, population, search, skills


@pytest.mark.parametrize("query", ["strong math but weak chat", "找一个数学强但对话弱的 checkpoint"])
def test_strong_math_weak_chat_finds_those_that_are_both(session: Session, query: str) -> None:
    project, ids = population(session)
    answer = search(session, query, project)
    assert answer.strict
    assert found(answer) == ids[:19:-1]
    assert answer.population.size == 25
    assert answer.interpretation.conditions == (
        CapabilityCondition("math", "strong", 0.8),
        CapabilityCondition("chat", "weak", 0.2),
    )
    math, chat = answer.results[0].evidence
    assert (math.capability, math.percentile, math.coverage, math.met) == ("math", pytest.approx(0.98), 1.0, True)
    assert chat.percentile == pytest.approx(0.02)
    assert {each.benchmark for each in math.benchmarks} == set(MATH)


def test_a_missing_score_is_never_weak(session: Session) -> None:
    project, ids = population(session)
    best = make_checkpoint(session, make_run(session, project), scores=skills(math=0.99))
    answer = search(session, "strong math, weak chat", project)
    assert best not in found(answer)
    assert found(answer)[0] == ids[-1]


def test_where_nobody_was_evaluated_nothing_is_weak(session: Session) -> None:
    project = make_project(session)
    for place in range(25):
        make_checkpoint(session, make_run(session, project), scores=skills(math=place / 25))
    answer = search(session, "数学强但对话弱", project)
    assert not answer.strict
    assert answer.results == ()
    assert answer.population.warnings == ("No checkpoint was evaluated on chat: that is unknown, not weak.",)
    assert len(answer.incomplete) == 5
    assert [each.percentile for each in answer.incomplete[0].evidence] == [pytest.approx(0.98), None]


def test_where_nothing_is_strict_the_nearest_is_shown_and_says_so(session: Session) -> None:
    project = make_project(session)
    ids = [
        make_checkpoint(session, make_run(session, project), scores=skills(place / 25, place / 25))
        for place in range(25)
    ]
    answer = search(session, "strong math, weak chat", project, limit=3)
    assert not answer.strict
    assert found(answer)[0] == ids[12]
    assert answer.results[0].score == pytest.approx(0.5)


def test_a_small_population_is_compared_by_absolute_values_and_says_so(session: Session) -> None:
    project = make_project(session)
    good = make_checkpoint(session, make_run(session, project), scores=skills(0.9, 0.1))
    make_checkpoint(session, make_run(session, project), scores=skills(0.5, 0.5))
    answer = search(session, "strong math, weak chat", project)
    assert found(answer) == [good]
    assert [each.basis for each in answer.population.capabilities] == ["absolute", "absolute"]
    assert "too few for percentiles" in answer.population.warnings[0]


def test_only_live_committed_checkpoints_are_found(session: Session) -> None:
    project, _ = population(session)
    run = make_run(session, project)
    kept = make_checkpoint(session, run, step=100, scores=skills(0.999, 0.001))
    superseded = make_checkpoint(session, run, step=300, scores=skills(0.9999, 0.0001))
    pending = make_checkpoint(session, make_run(session, project), scores=skills(0.9999, 0.0001), state="pending")
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=kept))
    make_checkpoint(session, run, step=200, attempt=2)
    assert found(search(session, "strong math, weak chat", project))[0] == kept
    assert not {superseded, pending} & set(found(search(session, "strong math", project)))


@pytest.mark.parametrize("relation", ["converted_from", "resharded_from"])
def test_a_score_of_a_lossless_copy_counts_and_says_so(session: Session, relation: str) -> None:
    project, _ = population(session)
    trained = make_checkpoint(session, make_run(session, project))
    parents = (ParentSpec(trained, relation),)
    copy = make_checkpoint(session, make_run(session, project), parents=parents, scores=skills(0.99, 0.001))
    answer = search(session, "strong math, weak chat", project)
    assert found(answer)[:2] == [trained, copy]
    via = [{each.via for evidence in result.evidence for each in evidence.benchmarks} for result in answer.results[:2]]
    assert via == [{True}, {False}]
    assert answer.population.capabilities[0].size == 26


def test_a_score_never_follows_a_lossy_edge(session: Session) -> None:
    project, _ = population(session)
    trained = make_checkpoint(session, make_run(session, project))
    parents = (ParentSpec(trained, "quantised_from"),)
    make_checkpoint(session, make_run(session, project), parents=parents, scores=skills(0.99, 0.001))
    assert trained not in found(search(session, "strong math, weak chat", project))


def test_a_new_score_counts_at_once(session: Session) -> None:
    project, ids = population(session)
    for name in MATH:
        make_score(session, ids[0], name, 0.999)
    assert found(search(session, "strong math", project))[0] == ids[0]


def test_a_score_that_is_not_finite_is_missing(session: Session) -> None:
    project, ids = population(session)
    broken = make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, float("inf")))
    assert broken not in found(search(session, "strong math", project))
    answer = search(session, "weak math", project)
    assert broken not in found(answer)
    assert found(answer)[0] == ids[0]


def test_results_of_one_run_name_each_other(session: Session) -> None:
    project, _ = population(session)
    run = make_run(session, project)
    first, second = (make_checkpoint(session, run, step=step, scores=skills(0.99)) for step in (1, 2))
    named = {result.checkpoint.id: result.same_run for result in search(session, "strong math", project).results}
    assert named[first] == (second,)
    assert named[second] == (first,)


def test_either_words_or_conditions(session: Session) -> None:
    with pytest.raises(SearchRefused):
        search_checkpoints(session, project_ids=None)
    with pytest.raises(SearchRefused):
        search_checkpoints(session, project_ids=None, query="strong math", conditions=[])
    with pytest.raises(SearchRefused):
        search_checkpoints(session, project_ids=None, query="strong math", limit=0)
    with pytest.raises(InvalidConditions):
        search_checkpoints(session, project_ids=None, conditions=[])
    with pytest.raises(UnreadableQuery):
        search_checkpoints(session, project_ids=None, query="hello")


def test_an_empty_registry_answers(session: Session) -> None:
    project = make_project(session)
    for query in ("strong math, weak chat", "mmlu > 60%", "step > 5", "strong gsm8k"):
        answer = search(session, query, project)
        assert (answer.strict, answer.results, answer.population.size) == (False, (), 0)


def test_percentiles_of_a_capability_serve_the_filter_language(session: Session) -> None:
    project, ids = population(session)
    percentiles = capability_resolver(session, [project.id])("math")
    assert percentiles is not None
    assert percentiles[ids[-1]] == pytest.approx(0.98)
    assert capability_resolver(session, [project.id])("code") is None
    assert capability_resolver(session, [project.id])("cooking") is None


def test_top_3_answers_three_and_no_more_than_the_limit(session: Session) -> None:
    project, ids = population(session)
    answer = search(session, "top 3 math", project)
    assert (found(answer), answer.interpretation.at_most) == (ids[:-4:-1], 3)
    assert not answer.strict  # one of 25 stands at the 95th percentile
    assert found(search(session, "newest 2 with step < 5000", project)) == ids[:-3:-1]
    assert len(search(session, "top 30 math", project, limit=4).results) == 4
