"""Searches that name a project, a run or a benchmark: who is asked, who is left out, and what nobody is called."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.queries import list_checkpoints
from registry.evals.scores import NewScore
from registry.projects import ProjectNotFound
from registry.search.conditions import FieldCondition, InvalidConditions
from registry.search.draft import UnreadableQuery
from registry.search.query import capability_resolver, search_checkpoints
from tests.factories import make_checkpoint, make_project, make_run
from tests.registry.search.worlds import found, population, search, skills


def test_a_benchmark_that_nobody_knows_is_refused_with_the_nearest_names(session: Session) -> None:
    project = make_project(session)
    make_checkpoint(session, make_run(session, project), scores={"our-suite": 0.5})
    asked = [
        {"benchmark": name, "relation": ">", "threshold": 0.1} for name in ("our-suite", "mmlu", "our-suit", "zzz")
    ]
    with pytest.raises(InvalidConditions, match=r"unknown benchmark 'our-suit'.* Did you mean our-suite") as refused:
        search_checkpoints(session, project_ids=[project.id], conditions=asked)
    assert [each.pointer for each in refused.value.errors] == ["/conditions/2/benchmark", "/conditions/3/benchmark"]
    answer = search_checkpoints(session, project_ids=[project.id], conditions=asked[:2])
    assert answer.population.warnings == ("No checkpoint has a score of mmlu: that is unknown, not low.",)


def test_a_search_over_projects_names_those_that_measured_otherwise(session: Session) -> None:
    here, there = make_project(session), make_project(session, "elsewhere")
    for project, metric in ((here, "exact_match"), (there, "ours")):
        make_checkpoint(session, make_run(session, project), scores=[NewScore("gsm8k", 0.5, metric=metric)])
    answer = search_checkpoints(session, project_ids=[here.id, there.id], query="gsm8k > 0.1")
    assert len(answer.results) == 1
    (left_out,) = answer.interpretation.left_out["scores.gsm8k"]
    assert (left_out.scores, left_out.projects) == (("scores.gsm8k.ours.none",), ("elsewhere",))


def test_a_search_over_projects_names_those_that_measured_parts_only(session: Session) -> None:
    here, there, other = make_project(session), make_project(session, "in-parts"), make_project(session)
    make_checkpoint(session, make_run(session, here), scores={"mmlu": 0.5})
    make_checkpoint(session, make_run(session, there), scores={"hendrycksTest-anatomy": 0.5})
    make_checkpoint(session, make_run(session, other), scores={"gsm8k": 0.5})
    every = [here.id, there.id, other.id]
    answer = search_checkpoints(session, project_ids=every, query="mmlu > 0.1")
    (left_out,) = answer.interpretation.left_out["scores.mmlu"]
    assert (left_out.scores, left_out.projects) == (("parts of mmlu",), ("in-parts",))
    alone = search_checkpoints(session, project_ids=[there.id], query="mmlu > 0.1")
    assert not alone.interpretation.left_out


def test_a_search_stays_within_the_projects_that_the_caller_may_see(session: Session) -> None:
    project, ids = population(session)
    other, hidden = population(session)
    assert set(found(search(session, "strong math", project))) <= set(ids)
    answer = search_checkpoints(session, project_ids=None, query="strong math", project=other.name)
    assert set(found(answer)) <= set(hidden)
    with pytest.raises(ProjectNotFound):
        search_checkpoints(session, project_ids=[project.id], query="strong math", project=other.name)


def test_a_project_that_the_question_names_is_whom_percentiles_are_among(session: Session) -> None:
    """Its best would be nobody beside those of another project that are all better."""
    project, ids = population(session)
    other = make_project(session)
    for place in range(25):
        make_checkpoint(session, make_run(session, other), scores=skills(2 + place, 0.5))
    answer = search(session, f"strong math in project {project.name}")
    assert answer.strict
    assert found(answer) == ids[:19:-1]
    chosen = search_checkpoints(session, project_ids=None, query="strong math", project=project.name)
    assert found(chosen) == found(answer)


def test_who_is_not_ranked_beside_another_project_is_counted_and_found_by_its_run(session: Session) -> None:
    """One benchmark, of many that the other project has: too little to be ranked among those, enough at home."""
    own, other = make_project(session), make_project(session)
    for place in range(25):
        run = make_run(session, own, name=f"own-{place}")
        make_checkpoint(session, run, scores={"lambada_openai": place / 25})
        others = dict.fromkeys(("squad_v2", "coqa", "drop", "boolq"), place / 25)
        make_checkpoint(session, make_run(session, other), scores=others)
    both = search(session, "strong reading")
    assert {result.checkpoint.project for result in both.results} == {other.name}
    (warning,) = both.population.warnings
    assert warning.startswith("25 of 50 checkpoints were evaluated on too few of the benchmarks of reading")
    by_run = search(session, "strong reading own-24")
    assert [result.checkpoint.run.name for result in by_run.results] == ["own-24"]
    assert (by_run.strict, by_run.population.size, by_run.population.warnings) == (True, 25, ())
    resolver = capability_resolver(session, None)
    for filter in (f"project = '{own.name}' and capabilities.reading > 0.9", "capabilities.reading > 0.9"):
        page = list_checkpoints(session, project_ids=None, filter=filter, capabilities=resolver)
        names = {row.checkpoint.project for row in page.rows}
        assert names == {own.name if "project" in filter else other.name}


def test_a_project_outside_of_what_may_be_seen_is_none(session: Session) -> None:
    project, _ = population(session)
    make_project(session, "secret")
    for name in ("secret", "nowhere"):
        with pytest.raises(UnreadableQuery, match=f"There is no project '{name}' here. Examples"):
            search(session, f"strong math in project {name}", project)


def test_a_name_that_nobody_has_is_refused_with_the_nearest_run(session: Session) -> None:
    project = make_project(session)
    for name in ("pythia-1.4b-deduped", "Pythia-6.9b"):
        make_checkpoint(session, make_run(session, project, name))
    with pytest.raises(UnreadableQuery, match=r"called 'pythia-1b'. Did you mean .*Pythia-6.9b"):
        search(session, "latest checkpoint of pythia-1b", project)
    with pytest.raises(UnreadableQuery, match=r"'deduped' is a part of names, as of 'pythia-1.4b-deduped'"):
        search(session, "strong deduped reading", project)
    with pytest.raises(UnreadableQuery, match=r"No run, model, project or benchmark here is called 'pythia-1b'. Ex"):
        search(session, "latest checkpoint of pythia-1b", make_project(session))


def test_the_whole_name_of_a_project_needs_no_word_before_it(session: Session) -> None:
    project = make_project(session, "dclm")
    other, _ = population(session)
    make_checkpoint(session, make_run(session, project, "dclm-1b"), scores={"gsm8k": 0.5})
    everywhere = [project.id, other.id]
    for query in ("gsm8k > 0.1 dclm", "dclm gsm8k > 0.1", "gsm8k > 0.1 in DCLM"):
        answer = search_checkpoints(session, project_ids=everywhere, query=query)
        assert [each.checkpoint.project for each in answer.results] == ["dclm"], query
        assert FieldCondition("project", "=", "dclm") in answer.interpretation.conditions


def test_a_word_of_three_letters_is_a_project_only_where_it_is_introduced(session: Session) -> None:
    project = make_project(session, "lab")
    make_checkpoint(session, make_run(session, project), scores={"gsm8k": 0.5})
    answer = search_checkpoints(session, project_ids=[project.id], query="gsm8k > 0.1 lab")
    assert answer.interpretation.unparsed == ("lab",)
    assert not search_checkpoints(session, project_ids=[project.id], query="gsm8k > 0.1 in lab").interpretation.unparsed
