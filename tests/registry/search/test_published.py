"""Searches over the published figures of the 89 DCLM models, checked against a plain reading of the tables."""

from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session

from demo import dclm
from registry.evals.scores import NewScore
from registry.projects import ProjectRow
from registry.search.answers import SearchAnswer
from registry.search.query import search_checkpoints
from tests.databases import BACKENDS, fresh_database
from tests.factories import make_checkpoint, make_project, make_run

# What a reader of the tables would look at for math; every model but four has all of them.
MATH = (
    *("gsm8k_cot", "svamp_cot", "aqua_cot", "agi_eval_sat_math_cot", "math_qa", "bigbench_elementary_math_qa"),
    *("simple_arithmetic_withspaces", "simple_arithmetic_nospaces"),
)


@pytest.fixture(scope="module", params=BACKENDS)
def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Session, ProjectRow]]:
    server = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with (
        fresh_database(request.param, tmp_path_factory.mktemp("dclm"), server) as database,
        database.write() as session,
    ):
        project = make_project(session, "dclm")
        sizes = {body["name"]: body["parameter_count"] for body in dclm.runs()}
        for body in dclm.checkpoints():
            run = make_run(session, project, body["run"], parameter_count=sizes[body["run"]])
            scores = [NewScore(each["benchmark"], each["value"], each["metric"]) for each in body["scores"]]
            make_checkpoint(session, run, body["step"], scores=scores)
        yield session, project


def search(published: tuple[Session, ProjectRow], query: str) -> SearchAnswer:
    session, project = published
    return search_checkpoints(session, project_ids=[project.id], query=query, limit=89)


def names(answer: SearchAnswer) -> list[str]:
    return [result.checkpoint.run.name for result in answer.results]


def by_plain_mean() -> list[str]:
    """The models that have every math figure, in the order of their plain mean, best first."""
    means = {}
    for body in dclm.checkpoints():
        figures = {score["benchmark"]: score["value"] for score in body["scores"]}
        if set(MATH) <= set(figures):
            means[body["run"]] = sum(figures[name] for name in MATH) / len(MATH)
    return sorted(means, key=lambda name: -means[name])


def test_strong_math_names_models_that_a_reader_of_the_tables_would_name(
    published: tuple[Session, ProjectRow],
) -> None:
    answer = search(published, "strong math")
    readers = by_plain_mean()
    assert answer.strict
    assert set(readers[:3]) <= set(names(answer)[:5])
    assert {name for name in names(answer) if name in readers} <= set(readers[:12])
    assert not set(names(answer)) & set(readers[-5:])
    assert answer.population.size == 89


def test_the_weakest_at_math_are_found_as_weak(published: tuple[Session, ProjectRow]) -> None:
    weak = set(names(search(published, "weak math")))
    assert weak
    assert not weak & set(by_plain_mean()[:30])


def test_chat_was_never_evaluated_and_is_not_called_weak(published: tuple[Session, ProjectRow]) -> None:
    answer = search(published, "找一个数学强但对话弱的 checkpoint")
    assert (answer.strict, answer.results) == (False, ())
    assert "not weak" in answer.population.warnings[0]
    assert {result.checkpoint.run.name for result in answer.incomplete} == set(names(search(published, "strong math")))


def test_a_small_model_is_strong_among_its_size(published: tuple[Session, ProjectRow]) -> None:
    answer = search(published, "fairly strong math 1.4B models")
    assert answer.population.of_size
    assert answer.population.capabilities[0].size == 56
    assert answer.strict
    assert names(answer)[0].startswith("rw_v2_fasttext_openhermes_wo_metamath")


def test_a_figure_of_the_table_is_the_evidence(published: tuple[Session, ProjectRow]) -> None:
    answer = search(published, "gsm8k_cot > 5%")
    published_values = {
        body["run"]: score["value"]
        for body in dclm.checkpoints()
        for score in body["scores"]
        if score["benchmark"] == "gsm8k_cot" and score["value"] > 0.05
    }
    shown = {each.checkpoint.run.name: each.evidence[0].benchmarks[0].value for each in answer.results}
    assert shown == published_values
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
