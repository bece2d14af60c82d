"""Searches by single benchmarks: which metric is read, and what high, low, strong and weak mean of it."""

import pytest
from sqlalchemy.orm import Session

from registry.evals.scores import NewScore
from registry.models import Benchmark
from registry.search.conditions import (
    BenchmarkCondition,
    InvalidConditions,
)
from registry.search.draft import UnreadableQuery
from registry.search.query import search_checkpoints
from tests.factories import make_checkpoint, make_project, make_run, make_score
from tests.registry.search.worlds import MATH, found, population, scored, search


def test_a_benchmark_is_compared_and_the_best_comes_first(session: Session) -> None:
    project, ids = population(session)
    answer = search(session, "gsm8k above 0.8", project)
    assert answer.strict
    assert found(answer) == ids[:20:-1]
    assert answer.interpretation.resolved == {"scores.gsm8k": "scores.gsm8k.none.none"}
    assert found(search(session, "gsm8k below 0.1", project)) == ids[:3]


def test_the_metric_that_was_read_is_echoed(session: Session) -> None:
    project = make_project(session)
    both = [NewScore("arc_easy", 0.4, "acc"), NewScore("arc_easy", 0.6, "acc_norm")]
    one = make_checkpoint(session, make_run(session, project), scores=both)
    answer = search(session, "arc_easy >= 0.5", project)
    assert found(answer) == [one]
    assert answer.interpretation.resolved == {"scores.arc_easy": "scores.arc_easy.acc_norm.none"}
    named = [{"benchmark": "arc_easy", "metric": "acc", "relation": ">=", "threshold": 0.5}]
    answer = search_checkpoints(session, project_ids=[project.id], conditions=named)
    assert not answer.strict


def test_strong_at_a_benchmark_is_the_score_that_stands_there(session: Session) -> None:
    project, ids = population(session)
    answer = search(session, "strong gsm8k", project)
    assert answer.interpretation.conditions == (BenchmarkCondition("gsm8k", ">=", 0.8),)
    assert found(answer) == ids[:19:-1]
    answer = search(session, "weak gsm8k", project)
    assert answer.interpretation.conditions == (BenchmarkCondition("gsm8k", "<=", pytest.approx(4 / 25)),)


def test_strong_at_a_benchmark_without_scores_is_not_understood(session: Session) -> None:
    project, _ = population(session)
    answer = search(session, "strong humaneval, strong math", project)
    assert answer.interpretation.unparsed == ("humaneval",)
    assert (answer.strict, answer.results) == (False, ())


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("lowest {}", 0, 0),
        ("{} 最低的", 0, 0),
        ("highest {}", 24, 24),
        ("low {}", 0, 4),
        ("high {}", 20, 24),
        ("not high {}", 0, 12),
    ],
)
@pytest.mark.parametrize("benchmark", ["gsm8k", "wikitext", "harmbench", "xstest"])
def test_high_and_low_speak_of_the_number_whichever_way_is_better(
    session: Session, benchmark: str, words: str, first: int, last: int
) -> None:
    project, ids = scored(session, benchmark)
    answer = search(session, words.format(benchmark), project)
    assert sorted(found(answer)) == ids[first : last + 1]


@pytest.mark.parametrize(
    ("benchmark", "best", "strong", "weak"),
    [
        ("gsm8k", (24, 24), (20, 24), (0, 4)),
        ("wikitext", (0, 0), (0, 4), (20, 24)),
        ("harmbench", (0, 0), (0, 4), (20, 24)),
    ],
)
def test_best_strong_and_weak_speak_of_quality(
    session: Session, benchmark: str, best: tuple[int, int], strong: tuple[int, int], weak: tuple[int, int]
) -> None:
    project, ids = scored(session, benchmark)
    for word, (first, last) in (("best", best), ("strong", strong), ("poor", weak)):
        answer = search(session, f"{word} {benchmark}", project)
        assert answer.strict
        assert sorted(found(answer)) == ids[first : last + 1]


def test_a_perplexity_that_is_named_is_the_metric_that_is_read(session: Session) -> None:
    project = make_project(session)
    ids = []
    for place in range(1, 26):
        named, other = (place, "word_perplexity"), (26 - place, "bits_per_byte")
        scores = [NewScore("wikitext", value, metric) for value, metric in (named, other)]
        ids.append(make_checkpoint(session, make_run(session, project), scores=scores))
    answer = search(session, "low wikitext perplexity", project)
    assert sorted(found(answer)) == ids[:5]
    assert answer.interpretation.conditions == (BenchmarkCondition("wikitext", "<=", 5.0, "word_perplexity"),)
    assert sorted(found(search(session, "low wikitext", project))) == ids[20:]
    assert sorted(found(search(session, "wikitext perplexity below 3", project))) == ids[:2]


def test_strong_at_what_nobody_evaluated_says_so_and_few_scores_say_otherwise(session: Session) -> None:
    project, _ = population(session)
    make_checkpoint(session, make_run(session, project), scores={"humaneval": 0.5})
    (said,) = search(session, "high wikitext", project).population.warnings
    assert said == "No checkpoint has a score of wikitext: it was not evaluated, which is neither strong nor weak."
    answer = search(session, "best humaneval", project)
    assert answer.population.warnings == (
        "humaneval: 1 score is too few, or too alike, for one to stand as far apart as was asked; "
        "the nearest are shown.",
    )
    assert (len(answer.results), answer.strict) == (1, False)


@pytest.mark.parametrize(("benchmark", "best", "worst"), [("gsm8k", -1, 0), ("wikitext", 0, -1)])
@pytest.mark.parametrize("count", [2, 9])
def test_the_best_of_few_comes_first_and_is_not_said_to_stand_apart(
    session: Session, benchmark: str, best: int, worst: int, count: int
) -> None:
    project, ids = scored(session, benchmark, count)
    for words, first in (("best {}", best), ("worst {}", worst)):
        answer = search(session, words.format(benchmark), project)
        assert not answer.strict
        assert found(answer)[0] == ids[first]
        assert "too few, or too alike" in answer.population.warnings[-1]
        assert answer.interpretation.unparsed == ()


def test_the_best_of_ten_stands_apart(session: Session) -> None:
    project, ids = scored(session, "gsm8k", 10)
    answer = search(session, "best gsm8k", project)
    assert (answer.strict, found(answer)) == (True, ids[-1:])


def test_a_number_off_the_scale_is_refused_in_words_and_as_a_condition(session: Session) -> None:
    project, _ = population(session)
    asked = [
        {"benchmark": name, "relation": ">", "threshold": threshold}
        for name, threshold in (("gsm8k", 60), ("gsm8k", 0.6), ("mt_bench", 11), ("squadv2", 50), ("wikitext", 12))
    ]
    with pytest.raises(InvalidConditions, match="gsm8k runs from 0 to 1, so 60 is none") as refused:
        search_checkpoints(session, project_ids=[project.id], conditions=asked)
    assert [each.pointer for each in refused.value.errors] == ["/conditions/0/threshold", "/conditions/2/threshold"]
    for query in ("gsm8k > 60", "mt_bench > 11"):
        with pytest.raises(UnreadableQuery, match="runs from 0 to"):
            search(session, query, project)


def test_a_project_whose_table_counts_in_percent_may_ask_in_percent(session: Session) -> None:
    project, ids = population(session)
    for row in session.query(Benchmark).where(Benchmark.project_id == project.id, Benchmark.name == "gsm8k"):
        row.scale = "percent"
    session.flush()
    asked = [{"benchmark": "gsm8k", "relation": "<", "threshold": 60}]
    assert search_checkpoints(session, project_ids=[project.id], conditions=asked, limit=30).strict
    assert len(ids) == 25


def test_the_project_may_say_otherwise_than_the_table(session: Session) -> None:
    project, ids = population(session)
    for row in session.query(Benchmark).where(Benchmark.project_id == project.id, Benchmark.name.in_(MATH)):
        row.direction = "lower"
    session.flush()
    assert found(search(session, "strong math", project))[0] == ids[0]


def test_a_percent_among_shares_meets_no_comparison_and_that_is_said(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    ids = [make_checkpoint(session, run, step, scores={"gsm8k": score}) for step, score in ((1, 0.5), (2, 52.0))]
    answer = search(session, "gsm8k > 0.4", project)
    assert found(answer) == ids[:1]
    assert "1 score of gsm8k is off its scale and not counted: it runs from 0 to 1." in answer.population.warnings
    percents = make_run(session, make_project(session))
    whole = make_checkpoint(session, percents, 1, scores={"gsm8k": 52.0})
    answer = search_checkpoints(session, project_ids=[percents.project_id], query="gsm8k > 0.4")
    assert (found(answer), answer.population.warnings) == ([whole], ())


def test_words_name_a_metric_that_only_results_have(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    ours, bare = (make_checkpoint(session, run, step) for step in (1, 2))
    make_score(session, ours, "gsm8k", 0.9, metric="Ours")
    make_score(session, bare, "gsm8k", 0.9)
    for query, one in (("gsm8k ours > 0.4", ours), ("gsm8k.Ours > 0.4", ours), ("gsm8k.none > 0.4", bare)):
        answer = search(session, query, project)
        assert (answer.strict, found(answer)) == (True, [one]), query
    assert answer.interpretation.resolved == {"scores.gsm8k.none": "scores.gsm8k.none.none"}
