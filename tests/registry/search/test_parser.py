"""What questions mean, and which are refused."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from registry.filters.errors import did_you_mean
from registry.search.conditions import (
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
)
from registry.search.draft import UnreadableQuery
from registry.search.parser import read_query
from registry.search.vocabulary import EXAMPLES
from tests.registry.search.probes import PROBES, PROBES_REFUSED
from tests.registry.search.queries import NAMED, REFUSED, UNDERSTOOD
from tests.registry.search.strangers import STRANGERS, STRANGERS_REFUSED
from tests.registry.search.users import USERS, USERS_REFUSED

NOW = datetime(2026, 11, 18, 10, tzinfo=UTC)


def brief(condition: Condition) -> str:
    match condition:
        case CapabilityCondition(name, relation, threshold):
            return f"{name}{'>=' if relation == 'strong' else '<='}{threshold}"
        case StandingCondition(name, relation, threshold, metric, by_value):
            relation = {"strong": "high", "weak": "low"}[relation] if by_value else relation
            return f"{name}{f'.{metric}' if metric else ''}~{relation}{threshold}"
        case BenchmarkCondition(name, relation, threshold, str(metric)):
            return f"{name}.{metric}{relation}{threshold}"
        case BenchmarkCondition(name, relation, threshold) | FieldCondition(name, relation, threshold):
            return f"{name}{relation}{threshold}"


class Names:
    """What a database would know."""

    def __init__(
        self,
        benchmarks: tuple[str, ...] = (),
        runs: tuple[str, ...] = (),
        projects: tuple[str, ...] = (),
        kinds: tuple[str, ...] = (),
        families: tuple[str, ...] = (),
        metrics: tuple[str, ...] = (),
    ) -> None:
        self.benchmarks, self.runs, self.projects = benchmarks, runs, projects
        self.kinds, self.families, self.metrics = kinds, families, metrics

    def run_kind(self, words: Sequence[str]) -> str | None:
        return next((kind for word in words for kind in self.kinds if kind.lower() == word), None)

    def family(self, name: str) -> str | None:
        return next((each for each in self.families if each.lower() == name.lower()), None)

    def is_benchmark(self, name: str) -> bool:
        return name in self.benchmarks

    def is_run(self, name: str) -> bool:
        return name in self.runs

    def metric(self, name: str) -> str | None:
        return next((each for each in self.metrics if each.lower() == name.lower()), None)

    def called(self, word: str) -> Sequence[str]:
        return [name for name in (*self.families, *self.projects, *self.runs) if word in name.lower().split("-")]

    def nearest_project(self, word: str) -> str:
        return did_you_mean(word, self.projects)

    def nearest(self, word: str) -> str:
        return did_you_mean(word, [*self.families, *self.projects, *self.runs, *self.benchmarks])

    def project(self, name: str) -> str | None:
        return next((each for each in self.projects if each.lower() == name.lower()), None)


@pytest.mark.parametrize(("query", "conditions", "unparsed"), UNDERSTOOD, ids=[query for query, _, _ in UNDERSTOOD])
def test_a_question_means_what_it_says(query: str, conditions: str, unparsed: str) -> None:
    reading = read_query(query, now=NOW)
    assert " ".join(map(brief, reading.conditions)) == conditions
    assert " ".join(reading.unparsed) == unparsed


KNOWN = Names(
    benchmarks=("gsm8k", "mmlu", "our_eval"),
    runs=("llama-7b-v2",),
    projects=("pythia",),
    kinds=("SFT", "dpo", "pretraining"),
    families=("Llama", "Qwen2.5", "OLMo"),
)


@pytest.mark.parametrize(
    ("query", "conditions", "unparsed", "order"),
    [*NAMED, *STRANGERS, *PROBES, *USERS],
    ids=[each[0] for each in (*NAMED, *STRANGERS, *PROBES, *USERS)],
)
def test_a_question_is_read_with_what_the_database_knows(
    query: str, conditions: str, unparsed: str, order: str
) -> None:
    reading = read_query(query, now=NOW, known=KNOWN)
    assert " ".join(map(brief, reading.conditions)) == conditions
    assert (" ".join(reading.unparsed), reading.order) == (unparsed, order)


def test_a_third_of_the_questions_are_by_people_who_had_not_read_the_parser() -> None:
    """Those that were put to it in search of mistakes, or by who had seen its tables, are counted with neither side."""
    strangers = {query for query, _ in STRANGERS_REFUSED} | {query for query, *_ in STRANGERS}
    everything = strangers | {query for query, *_ in (*UNDERSTOOD, *NAMED)} | set(REFUSED)
    assert len(strangers) >= 100
    assert len(strangers) * 3 >= len(everything)


@pytest.mark.parametrize(("query", "said"), [*STRANGERS_REFUSED, *PROBES_REFUSED, *USERS_REFUSED])
def test_what_cannot_be_read_is_refused_with_what_can_be_asked_instead(query: str, said: str) -> None:
    with pytest.raises(UnreadableQuery, match=re.escape(said)) as refused:
        read_query(query, now=NOW, known=KNOWN)
    assert refused.value.extras["examples"] == list(EXAMPLES)


@pytest.mark.parametrize("query", REFUSED)
def test_a_question_with_two_readings_or_none_is_refused_with_examples(query: str) -> None:
    with pytest.raises(UnreadableQuery) as refused:
        read_query(query, now=NOW)
    assert refused.value.code == "unreadable-query"
    assert refused.value.extras["examples"] == list(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_can_be_asked(example: str) -> None:
    assert not read_query(example, now=NOW).unparsed


def test_case_width_and_spaces_change_nothing() -> None:
    plain = read_query("strong math weak chat", now=NOW)
    assert read_query("  ＳＴＲＯＮＧ　Math \n weak CHAT ", now=NOW) == plain


def test_a_benchmark_that_only_the_database_knows_can_be_compared() -> None:
    reading = read_query("foo_bench > 0.5", now=NOW, known=Names(benchmarks=("foo_bench",)))
    assert reading.conditions == (BenchmarkCondition("foo_bench", ">", 0.5),)


def test_a_benchmark_called_like_a_capability_is_meant_where_it_exists() -> None:
    reading = read_query("math > 0.5", now=NOW, known=Names(benchmarks=("math",)))
    assert reading.conditions == (BenchmarkCondition("math", ">", 0.5),)


def test_the_name_of_a_run_needs_no_word_before_it() -> None:
    name = "c4_original-open_lm_1b-warm=5000-lr=0p003"
    reading = read_query(f"{name} strong math", now=NOW, known=Names(runs=(name,)))
    assert [brief(each) for each in reading.conditions] == [f"run.name={name}", "math>=0.8"]


def test_a_run_called_strong_does_not_take_the_word_away() -> None:
    reading = read_query("strong math", now=NOW, known=Names(runs=("strong", "math")))
    assert [brief(each) for each in reading.conditions] == ["math>=0.8"]


def test_the_message_says_how_a_number_off_the_scale_is_written() -> None:
    with pytest.raises(UnreadableQuery, match=r"write 60% or 0\.6"):
        read_query("mmlu > 60", now=NOW)


@pytest.mark.parametrize("query", ["x" * 1_001, "strong\0math", "strong \ud800 math", "gsm8k > " + "9" * 40])
def test_what_is_no_question_is_refused(query: str) -> None:
    with pytest.raises(UnreadableQuery):
        read_query(query, now=NOW)


@pytest.mark.parametrize(
    "piece", ["0 ", "强", "a-", "not ", "gsm8k > ", "1,", "step ", "> 1 ", "mmlu 0.1-0.2 ", "\t", "9月"]
)
def test_a_long_query_is_read_or_refused_and_never_fails(piece: str) -> None:
    query = (piece * 1_000)[:1_000]
    with suppress(UnreadableQuery):
        assert read_query(query, now=NOW).conditions


@pytest.mark.parametrize(
    "query",
    [
        "strong reading in project pythia",
        "strong reading in the project called Pythia.",
        "strong reading in Pythia",
        "strong reading in the pythia project",
        "project pythia: strong reading",
        "在项目 pythia 中找一个阅读强的 checkpoint",
        "项目 pythia 里阅读强的",
    ],
)
def test_a_project_that_exists_is_read_as_one(query: str) -> None:
    reading = read_query(query, now=NOW, known=Names(projects=("dclm", "Pythia")))
    assert sorted(map(brief, reading.conditions)) == ["project=Pythia", "reading>=0.8"]
    assert reading.unparsed == ()


def test_a_project_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnreadableQuery, match=r"no project 'dcml' here\. Did you mean dclm\?"):
        read_query("strong reading in project dcml", now=NOW, known=Names(projects=("dclm",)))


PYTHIA = Names(runs=("pythia-1.4b", "pythia-160m-deduped"), benchmarks=("gsm8k", "our_eval"), metrics=("acc", "F1"))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("latest checkpoint of pythia-1b", "is called 'pythia-1b'. Did you mean pythia-1.4b"),
        ("strong math pythia-1b", "is called 'pythia-1b'. Did you mean pythia-1.4b"),
        ("strong our_evel", "is called 'our_evel'. Did you mean our_eval?"),
        ("strong reading zzz_9", "No run, model, project or benchmark here is called 'zzz_9'."),
        ("deduped strong reading", "'deduped' is a part of names, as of 'pythia-160m-deduped'"),
    ],
)
def test_what_looks_like_a_name_and_is_none_is_refused_with_the_nearest(query: str, said: str) -> None:
    with pytest.raises(UnreadableQuery, match=re.escape(said)):
        read_query(query, now=NOW, known=PYTHIA)


@pytest.mark.parametrize(("query", "letters"), [("数学が強い", "が"), ("сильная math", "с"), ("수학 strong", "수")])
def test_another_language_is_refused_by_name(query: str, letters: str) -> None:
    with pytest.raises(UnreadableQuery, match=f"read in English and in Chinese; '{letters}"):
        read_query(query, now=NOW, known=PYTHIA)


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("smallest model with gsm8k > 0.1", "smallest"),
        ("gsm8k 大于 0.1 的最小的模型", "smallest"),
        ("cheapest gsm8k > 0.1", "smallest"),
        ("smallest loss gsm8k > 0.1", "lowest_loss"),
        ("gsm8k > 0.1 最小的 loss", "lowest_loss"),
    ],
)
def test_smallest_is_of_the_model_unless_the_loss_is_meant(query: str, order: str) -> None:
    reading = read_query(query, now=NOW, known=PYTHIA)
    assert (reading.order, reading.unparsed, len(reading.conditions)) == (order, (), 1)


def test_a_plain_word_that_nobody_knows_is_only_not_understood() -> None:
    assert read_query("strong math banana", now=NOW, known=PYTHIA).unparsed == ("banana",)


@pytest.mark.parametrize(
    ("query", "metric", "filter"),
    [
        ("gsm8k.acc > 0.4", "acc", None),
        ("scores.gsm8k.acc > 0.4", "acc", None),
        ("gsm8k acc > 0.4", "acc", None),
        ("gsm8k (acc) 大于 0.4", "acc", None),
        ("gsm8k（acc） > 40%", "acc", None),
        ("0.4 < gsm8k.acc", "acc", None),
        ("acc of gsm8k above 0.4", "acc", None),
        ("our_eval f1 > 0.4", "F1", None),
        ("gsm8k.exact_match.strict-match > 0.4", "exact_match", "strict-match"),
        ("gsm8k.exact_match.`strict-match` > 0.4", "exact_match", "strict-match"),
        ("gsm8k.acc.none > 0.4", "acc", ""),
        ("gsm8k.none > 0.4", "", None),
    ],
)
def test_words_name_a_metric_as_filters_do(query: str, metric: str, filter: str | None) -> None:
    (condition,) = read_query(query, now=NOW, known=PYTHIA).conditions
    name = "our_eval" if query.startswith("our") else "gsm8k"
    assert condition == BenchmarkCondition(name, ">", 0.4, metric, filter)


@pytest.mark.parametrize("query", ["best gsm8k.acc", "best gsm8k acc", "gsm8k.acc 最强"])
def test_a_standing_is_of_the_metric_that_is_named(query: str) -> None:
    assert read_query(query, now=NOW, known=PYTHIA).conditions == (StandingCondition("gsm8k", "strong", 0.95, "acc"),)


@pytest.mark.parametrize(
    ("query", "at_most"),
    [
        ("top 3 math", 3),
        ("best five at math", 5),
        ("数学最强的前 5 个", 5),
        ("数学最强的前三名", 3),
        ("newest 10 checkpoints", 10),
        ("bottom 4 at math", 4),
        ("top 10% at math", None),
        ("best 7B model at math", None),
        ("strong math", None),
    ],
)
def test_a_number_after_top_says_how_many_are_wanted(query: str, at_most: int | None) -> None:
    reading = read_query(query, now=NOW, known=KNOWN)
    assert (reading.at_most, reading.unparsed) == (at_most, ())


def test_a_word_of_the_vocabulary_is_a_project_only_where_the_query_says_so() -> None:
    known = Names(projects=("math",))
    assert list(map(brief, read_query("strong in math", now=NOW, known=known).conditions)) == ["math>=0.8"]
    named = read_query("strong reading in project math", now=NOW, known=known)
    assert list(map(brief, named.conditions)) == ["reading>=0.8", "project=math"]
