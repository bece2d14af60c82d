"""The shipped benchmark table: every name finds its row, and every row reads as its figures are meant."""

from collections import Counter

import pytest

from registry.evals.catalogue import CAPABILITIES, Benchmark, catalogue, key_of
from registry.types import Direction

TABLE = catalogue()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("gsm8k", "gsm8k"),
        ("GSM-8K", "gsm8k"),
        ("MATH-500", "hendrycks_math500"),
        ("math500", "hendrycks_math500"),
        ("hendrycksTest-anatomy", "mmlu_anatomy"),
        ("harness|hendrycksTest-anatomy|5", "mmlu_anatomy"),
        ("harness|arc:challenge|25", "arc_challenge"),
        ("math_qa", "mathqa"),
        ("pubmed_qa_labeled", "pubmedqa"),
        ("openbook_qa", "openbookqa"),
        ("HumanEval+", "humaneval_plus"),
        ("jcommonsenseqa-1.1-0.2", "jcommonsenseqa"),
        ("jaqket_v2-0.1-0.1", "jaqket_v2"),
        ("ceval", "ceval-valid"),
    ],
)
def test_a_benchmark_is_found_under_its_other_names(written: str, name: str) -> None:
    found = TABLE.get(written)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", ["", "loss", "foo_bench", "gsm8", "mmlu_5shot", "12"])
def test_what_the_table_does_not_know_is_not_guessed(name: str) -> None:
    assert TABLE.get(name) is None


def test_a_subtask_that_is_not_listed_is_known_by_the_start_of_its_name() -> None:
    part = TABLE.get("ceval-computer_network")
    assert part is not None
    assert (part.name, part.part_of, part.capability) == ("ceval-computer_network", "ceval-valid", "chinese")


def test_no_two_benchmarks_answer_to_one_name() -> None:
    owners: dict[str, set[str]] = {}
    for row in TABLE.benchmarks:
        for name in (row.name, *row.aliases):
            owners.setdefault(key_of(name), set()).add(row.name)
    assert {key: names for key, names in owners.items() if len(names) > 1} == {}


def test_rows_of_one_name_share_no_metric() -> None:
    pairs = Counter((row.name, pair) for row in TABLE.benchmarks for pair in row.metrics)
    assert [pair for pair, count in pairs.items() if count > 1] == []


def test_every_row_is_consistent() -> None:
    names = {capability.name for capability in CAPABILITIES}
    wholes = {row.name for row in TABLE.benchmarks}
    for row in TABLE.benchmarks:
        assert row.metrics, row
        assert row.capability is None or row.capability in names, row
        assert row.scale in {"fraction", "percent", "ten", "raw", "log"}, row
        assert row.part_of is None or row.part_of in wholes, row
        assert (row.chance is None) == (row.scale == "log" or (row.name.startswith("crows") and row.scale == "raw")), (
            row
        )
        assert row.scale != "fraction" or 0 <= (row.chance or 0) < 1, row
        assert row.sample_count is None or row.sample_count > 0, row


def test_the_twelve_capabilities_and_the_health_of_the_model_have_benchmarks() -> None:
    assert len(CAPABILITIES) == 13
    for capability in CAPABILITIES:
        wholes = [row for row in TABLE.of_capability(capability.name) if row.part_of is None]
        assert len({row.family for row in wholes}) >= 2, capability.name


def test_the_subjects_of_mmlu_are_its_14042_questions() -> None:
    subjects = TABLE.parts("mmlu")
    assert len(subjects) == 57
    assert sum(subject.sample_count or 0 for subject in subjects) == 14_042
    assert {subject.chance for subject in subjects} == {0.25}


@pytest.mark.parametrize(
    ("name", "metric", "direction", "capability"),
    [
        ("lambada_openai", "acc", Direction.HIGHER, "reading"),
        ("lambada_openai", "ppl", Direction.LOWER, "lm"),
        ("lambada_openai", "perplexity", Direction.LOWER, "lm"),
        ("wikitext", "bits_per_byte", Direction.LOWER, "lm"),
        ("crows_pairs_english", "pct_stereotype", Direction.TARGET, "safety"),
        ("crows_pairs_english_age", "likelihood_difference", Direction.LOWER, None),
        ("wmdp", "acc", Direction.LOWER, "safety"),
        ("harmbench", "asr", Direction.LOWER, "safety"),
        ("xstest", "over_refusal", Direction.LOWER, "safety"),
        ("hellaswag", "word_perplexity", Direction.LOWER, None),
        ("whisper_test", "wer", Direction.LOWER, None),
        ("foo_bench", "score", Direction.HIGHER, None),
        ("gsm8k", "", Direction.HIGHER, "math"),
    ],
)
def test_the_direction_is_that_of_the_metric(
    name: str, metric: str, direction: Direction, capability: str | None
) -> None:
    found = TABLE.for_metric(name, metric)
    assert (found.direction, found.capability) == (direction, capability)


@pytest.mark.parametrize(
    ("name", "metric", "chance"),
    [
        ("mmlu", "acc", 0.25),
        ("mmlu_pro", "exact_match", 0.1),
        ("gsm8k_cot", "accuracy", 0.0),
        ("mathqa", "acc", 0.2),
        ("winogrande", "acc", 0.5),
        ("commonsense_qa", "acc", 0.2),
        ("bbq", "acc", 0.3333),
        ("bbq", "accuracy", 0.5),
        ("social_iqa", "acc", 0.3333),
        ("siqa", "accuracy", 0.5),
        ("mt_bench", "score", 1.0),
        ("blimp_adjunct_island", "acc", 0.5),
        ("lambada_openai", "acc", 0.0),
    ],
)
def test_chance_is_what_guessing_earns_in_the_form_that_was_asked(name: str, metric: str, chance: float) -> None:
    assert TABLE.for_metric(name, metric).chance == chance


def test_the_preferred_metric_is_the_first_of_the_table_that_occurs() -> None:
    assert TABLE.preferred_metric("arc_easy", [("acc", ""), ("acc_norm", "")]) == ("acc_norm", "")
    assert TABLE.preferred_metric("arc_easy", [("acc", ""), ("accuracy", "")]) == ("acc", "")


def test_the_preferred_metric_of_an_unknown_benchmark_is_the_most_frequent_then_by_name() -> None:
    assert TABLE.preferred_metric("foo", {("b", ""): 3, ("a", ""): 2}) == ("b", "")
    assert TABLE.preferred_metric("foo", {("b", ""): 2, ("a", "x"): 2, ("a", ""): 2}) == ("a", "")
    assert TABLE.preferred_metric("arc_easy", {("other", ""): 1}) == ("other", "")
    assert TABLE.preferred_metric("foo", []) is None


def test_capabilities_have_names_in_both_languages() -> None:
    assert {TABLE.capability(word) for word in ("math", "Maths", "数学", " ＭＡＴＨ ")} == {TABLE.capability("math")}
    assert TABLE.capability("对话") == TABLE.capability("chat")
    assert TABLE.capability("cooking") is None


def every_figure_of_the_demo() -> set[tuple[str, str]]:
    from demo import tables

    return {(score["benchmark"], score.get("metric", "")) for body in tables.checkpoints() for score in body["scores"]}


def test_every_task_of_the_published_tables_is_known_with_its_metric() -> None:
    unknown = {
        (name, metric)
        for name, metric in every_figure_of_the_demo()
        if metric not in {listed for listed, _ in TABLE.for_metric(name, metric).metrics}
    }
    assert unknown == set()


def test_a_benchmark_is_a_value() -> None:
    first, second = TABLE.get("gsm8k"), TABLE.get("gsm-8k")
    assert isinstance(first, Benchmark)
    assert first == second
    assert hash(first) == hash(second)
