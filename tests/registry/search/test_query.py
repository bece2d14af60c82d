"""Searches against the database: what is found, in which order, on what evidence."""

import math

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.queries import list_checkpoints
from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.filters.fields import CATALOGUE, FieldSpec, FieldType
from registry.ids import to_text
from registry.models import Benchmark
from registry.projects import ProjectNotFound, ProjectRow
from registry.resume_points import ResumePoint
from registry.search.answers import SearchAnswer
from registry.search.conditions import (
    BenchmarkCondition,
    CapabilityCondition,
    FieldCondition,
    InvalidConditions,
    read_conditions,
)
from registry.search.draft import UnreadableQuery
from registry.search.query import SearchRefused, capability_resolver, search_checkpoints
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run, make_score

MATH = ("gsm8k", "asdiv")
CHAT = ("arena_hard", "alpaca_eval2")


def skills(math: float | None = None, chat: float | None = None) -> dict[str, float]:
    """Scores in two benchmarks each; chat in percent."""
    scores = {} if math is None else dict.fromkeys(MATH, math)
    return scores | ({} if chat is None else dict.fromkeys(CHAT, chat * 100))


def population(session: Session, count: int = 25) -> tuple[ProjectRow, list[int]]:
    """Checkpoints of a run each: the better at math, the worse at chat."""
    project = make_project(session)
    ids = []
    for place in range(count):
        run = make_run(session, project)
        scores = skills(place / count, 1 - place / count)
        ids.append(make_checkpoint(session, run, scores=scores))
    return project, ids


def scored(session: Session, benchmark: str, count: int = 25) -> tuple[ProjectRow, list[int]]:
    """Checkpoints of a run each, by how high the number is."""
    project = make_project(session)
    runs = [make_run(session, project) for _ in range(count)]
    return project, [
        make_checkpoint(session, run, scores={benchmark: (place + 1) / (count + 1)}) for place, run in enumerate(runs)
    ]


def search(session: Session, query: str, project: ProjectRow | None = None, limit: int = 20) -> SearchAnswer:
    ids = None if project is None else [project.id]
    return search_checkpoints(session, project_ids=ids, query=query, limit=limit, now=at("2026-11-18T10:00"))


def found(answer: SearchAnswer) -> list[int]:
    return [result.checkpoint.id for result in answer.results]


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


def test_a_search_stays_within_the_projects_that_the_caller_may_see(session: Session) -> None:
    project, ids = population(session)
    other, hidden = population(session)
    assert set(found(search(session, "strong math", project))) <= set(ids)
    answer = search_checkpoints(session, project_ids=None, query="strong math", project=other.name)
    assert set(found(answer)) <= set(hidden)
    with pytest.raises(ProjectNotFound):
        search_checkpoints(session, project_ids=[project.id], query="strong math", project=other.name)


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


def test_the_project_may_say_otherwise_than_the_table(session: Session) -> None:
    project, ids = population(session)
    for row in session.query(Benchmark).where(Benchmark.project_id == project.id, Benchmark.name.in_(MATH)):
        row.direction = "lower"
    session.flush()
    assert found(search(session, "strong math", project))[0] == ids[0]


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


def test_top_3_answers_three_and_no_more_than_the_limit(session: Session) -> None:
    project, ids = population(session)
    answer = search(session, "top 3 math", project)
    assert (found(answer), answer.interpretation.at_most) == (ids[:-4:-1], 3)
    assert not answer.strict  # one of 25 stands at the 95th percentile
    assert found(search(session, "newest 2 with step < 5000", project)) == ids[:-3:-1]
    assert len(search(session, "top 30 math", project, limit=4).results) == 4
