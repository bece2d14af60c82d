"""Scores of two checkpoints compared: which pairs, which test, which verdict."""

import math
import re
from dataclasses import replace

import pytest

from registry.evals.catalogue import catalogue
from registry.provenance.score_changes import EvalResult, PairedCounts, ScoreChanges, ScoreComparison, compare_scores


def row(benchmark: str, value: float, metric: str = "acc", **other: object) -> EvalResult:
    return EvalResult(benchmark, metric, "", value, **other)  # type: ignore[arg-type]


def gsm8k(value: float, **other: object) -> EvalResult:
    return replace(row("gsm8k", value, "exact_match", n_samples=1319, **other), filter="strict-match")


def compare(old: list[EvalResult], new: list[EvalResult]) -> ScoreChanges:
    return compare_scores(old, new, catalogue().for_metric)


def only(found: ScoreChanges) -> ScoreComparison:
    (comparison,) = found.scores
    return comparison


def test_a_fall_of_five_points_on_gsm8k_regressed() -> None:
    found = only(compare([gsm8k(0.60)], [gsm8k(0.55)]))
    assert found.verdict == "regressed"
    assert found.delta == pytest.approx(-0.05)
    assert found.stderr == pytest.approx(0.01923, abs=6e-6)
    assert found.p_value == pytest.approx(0.00466, abs=1e-5)
    assert found.q_value == found.p_value
    assert found.minimum_detectable == pytest.approx(0.0478, abs=2e-4)
    assert found.method == "unpaired z, formula errors"


def test_two_points_are_inconclusive_alone_and_seen_with_shared_samples() -> None:
    old, new = [gsm8k(0.60)], [gsm8k(0.58)]
    assert only(compare(old, new)).verdict == "inconclusive"
    counts = {("gsm8k", "exact_match", "strict-match"): PairedCounts(66, 40, 1319)}
    paired = only(compare_scores(old, new, catalogue().for_metric, counts))
    assert paired.verdict == "regressed"
    assert paired.p_value == pytest.approx(0.0074, abs=5e-5)
    assert paired.method == "paired, McNemar exact"


def test_two_tenths_on_mmlu_are_inconclusive() -> None:
    found = compare([row("mmlu", 0.600, n_samples=14042)], [row("mmlu", 0.598, n_samples=14042)])
    assert only(found).verdict == "inconclusive"
    assert found.capabilities[0].verdict == "inconclusive"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n_shot": 5}, "n_shot differs: 0 for the baseline, 5 for the candidate"),
        ({"version": "2"}, "version differs: 1 for the baseline, 2 for the candidate"),
        ({"harness_version": "0.4"}, "harness_version differs: 0.3 for the baseline, 0.4 for the candidate"),
        ({"harness": None}, "harness differs: lm-eval for the baseline, not recorded for the candidate"),
        ({"n_samples": 100}, "n_samples differs: 1319 for the baseline, 100 for the candidate"),
        ({"comparability": {"template": "b"}}, "template differs: a for the baseline, b for the candidate"),
        ({"comparability": {}}, "template differs: a for the baseline, not recorded for the candidate"),
    ],
)
def test_unequal_keys_are_not_comparable_and_name_both_values(changed: dict[str, object], said: str) -> None:
    old = gsm8k(0.428, n_shot=0, version="1", harness="lm-eval", harness_version="0.3", comparability={"template": "a"})
    found = only(compare([old], [replace(old, value=0.197, **changed)]))  # type: ignore[arg-type]
    assert (found.verdict, found.why) == ("not_comparable", said)
    assert (found.delta, found.p_value) == (None, None)


def test_the_same_checkpoint_under_two_prompt_templates_has_no_regression() -> None:
    old = row("jcommonsenseqa", 0.428, n_samples=1119, version="1.1-0.1", stderr=0.0148)
    found = compare([old], [replace(old, value=0.197, version="1.1-0.2")])
    assert only(found).verdict == "not_comparable"
    assert not found.fell


def test_equal_keys_are_found_among_several_evaluations() -> None:
    old = [gsm8k(0.60, n_shot=5), gsm8k(0.30, n_shot=0)]
    found = only(compare(old, [gsm8k(0.29, n_shot=0)]))
    assert found.baseline == 0.30


def test_a_score_on_one_side_only_counts_as_neither_good_nor_bad() -> None:
    found = compare([gsm8k(0.6), row("mmlu", 0.5)], [gsm8k(0.6), row("piqa", 0.7)])
    assert len(found.scores) == 1
    assert found.only_baseline == (("mmlu", "acc", ""),)
    assert found.only_candidate == (("piqa", "acc", ""),)


@pytest.mark.parametrize(("value", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_non_finite_value_is_shown_and_never_compared(value: float, name: str) -> None:
    for pair in ((0.6, value), (value, 0.6)):
        found = only(compare([gsm8k(pair[0])], [gsm8k(pair[1])]))
        assert found.verdict == "not_comparable"
        assert name in found.why
        assert found.delta is None


def test_a_value_outside_its_scale_is_not_read_as_percent() -> None:
    found = only(compare([gsm8k(0.6)], [gsm8k(61.0)]))
    assert found.verdict == "not_comparable"
    assert "outside the fraction scale" in found.why


def test_lower_is_better_comes_from_the_table() -> None:
    old = row("lambada_openai", 8.00, "perplexity", stderr=0.05)
    worse = only(compare([old], [replace(old, value=8.30)]))
    assert worse.verdict == "regressed"
    assert worse.delta == pytest.approx(0.30)
    assert worse.normalised == pytest.approx(-0.0368, abs=5e-5)
    assert only(compare([old], [replace(old, value=7.60)])).verdict == "improved"


def test_a_bad_published_error_is_replaced_and_said() -> None:
    old = row("mmlu", 0.5855, stderr=0.1186, n_samples=14042)
    found = only(compare([old], [replace(old, value=0.50)]))
    assert found.verdict == "regressed"
    assert found.method == "unpaired z, formula errors"
    assert "28.5 times" in found.why


def test_an_unknown_size_is_never_more_than_suspected() -> None:
    found = only(compare([row("our_own", 0.9)], [row("our_own", 0.1)]))
    assert found.verdict == "inconclusive"
    assert "no standard error" in found.why  # the table knows no scale for it either
    sized = only(compare([row("agieval_cn", 0.9)], [row("agieval_cn", 0.2)]))
    assert sized.verdict == "suspected"
    assert "assumed errors" in sized.method


def test_no_test_without_an_error() -> None:
    found = only(compare([row("mt_bench", 8.0, "score")], [row("mt_bench", 7.0, "score")]))
    assert (found.verdict, found.method, found.p_value) == ("inconclusive", "no test", None)
    assert found.delta == pytest.approx(-1.0)


def four_of_math(drop: float) -> tuple[list[EvalResult], list[EvalResult]]:
    names = [("gsm8k", "exact_match"), ("mathqa", "acc"), ("asdiv", "acc"), ("gsm_plus", "exact_match")]
    old = [row(name, 0.5, metric, n_samples=1000) for name, metric in names]
    return old, [replace(each, value=0.5 - drop) for each in old]


def test_a_small_fall_of_a_whole_capability_is_caught_where_no_benchmark_is() -> None:
    old, new = four_of_math(0.03)
    found = compare(old, new)
    (math_,) = found.capabilities
    assert math_.verdict == "regressed"
    assert math_.benchmarks == ("asdiv", "gsm8k", "gsm_plus", "mathqa")
    assert all(each.p_value is not None and each.p_value > 0.05 for each in found.scores)
    assert found.fallen_capabilities() == ("math",)


def test_one_variant_of_a_family_enters_the_composite() -> None:
    old = [gsm8k(0.6), row("gsm8k_cot", 0.6, "exact_match", n_samples=1319)]
    new = [gsm8k(0.5), row("gsm8k_cot", 0.5, "exact_match", n_samples=1319)]
    (capability,) = compare(old, new).capabilities
    assert capability.benchmarks == ("gsm8k",)
    assert capability.delta == pytest.approx(-0.1)


def test_subtasks_stand_for_a_benchmark_that_was_not_summarised() -> None:
    parts = ["mmlu_anatomy", "mmlu_astronomy"]
    old = [row(name, 0.55, n_samples=150) for name in parts]
    found = compare(old, [replace(each, value=0.55) for each in old])
    (capability,) = found.capabilities
    assert capability.benchmarks == ("mmlu_anatomy", "mmlu_astronomy")
    assert capability.baseline == pytest.approx(0.40)  # four choices: chance taken out


def test_one_clear_loss_is_not_hidden_by_noisy_neighbours() -> None:
    noisy = [("arc_easy", 25), ("openbookqa", 25), ("sciq", 25), ("medmcqa", 25), ("triviaqa", 25), ("nq_open", 25)]
    metric = {"triviaqa": "exact_match", "nq_open": "exact_match"}
    old = [row(name, 0.5, metric.get(name, "acc"), n_samples=n) for name, n in noisy]
    old.append(row("mmlu", 0.60, n_samples=14042))
    found = compare(old, [*(replace(each, value=0.5) for each in old[:-1]), replace(old[-1], value=0.56)])
    verdicts = {each.benchmark: each.verdict for each in found.scores}
    assert found.capabilities[0].verdict == "inconclusive"
    assert verdicts["mmlu"] == "regressed"
    assert found.scores[0].benchmark == "mmlu"
    assert found.fallen_capabilities() == ("knowledge",)


def test_many_comparisons_raise_q_above_p() -> None:
    names = ["mmlu", "hellaswag", "piqa", "winogrande", "boolq", "gsm8k"]
    metric = {"gsm8k": "exact_match"}
    old = [row(name, 0.6, metric.get(name, "acc"), n_samples=1319) for name in names]
    new = [replace(each, value=0.565 if each.benchmark == "mmlu" else 0.6) for each in old]
    fallen = next(each for each in compare(old, new).scores if each.benchmark == "mmlu")
    assert fallen.p_value is not None
    assert fallen.p_value < 0.05
    assert fallen.q_value is not None
    assert fallen.q_value > 0.05
    assert fallen.verdict == "suspected"
    assert "after correction" in fallen.why


NUMBER = re.compile(r"[+-]?\d+\.\d+")


def interval_of(found: ScoreComparison) -> list[float]:
    """The ends of the 90 % interval as the words give them."""
    return [float(each) for each in NUMBER.findall(found.why.split(" is ")[-1])[:2]]


def test_the_words_give_the_figures_of_the_fields_beside_them() -> None:
    """Four choices on 266 questions: on the common scale all of these are a third larger."""
    found = only(compare([row("mmlu", 0.551, n_samples=266)], [row("mmlu", 0.502, n_samples=266)]))
    assert found.delta == pytest.approx(-0.049)
    assert found.stderr == pytest.approx(0.0433, abs=1e-4)
    assert found.minimum_detectable == pytest.approx(0.1076, abs=2e-4)
    assert interval_of(found) == pytest.approx([-0.120, 0.022], abs=6e-4)
    assert "the 90 % interval of the difference is -0.120 to +0.022" in found.why
    assert "only a change of 0.108 would be seen reliably" in found.why
    assert "is -12.0 to +2.2 points" in found.why_in_points
    assert "only a change of 10.8 points" in found.why_in_points


@pytest.mark.parametrize(("old", "new"), [(0.551, 0.502), (0.502, 0.551), (0.55, 0.30), (0.30, 0.55)])
@pytest.mark.parametrize("name", ["mmlu", "wmdp", "piqa"])
def test_the_words_have_the_sign_and_the_size_of_delta_whichever_way_is_better(
    name: str, old: float, new: float
) -> None:
    found = only(compare([row(name, old, n_samples=266)], [row(name, new, n_samples=266)]))
    assert found.delta == pytest.approx(new - old)
    assert found.stderr is not None
    moved = re.search(r"(fell|rose) by ([\d.]+) with", found.why)
    if moved is not None:
        assert moved[1] == ("fell" if new < old else "rose")
        assert float(moved[2]) == pytest.approx(abs(new - old), abs=6e-4)
    else:
        ends = [new - old - 1.645 * found.stderr, new - old + 1.645 * found.stderr]
        assert interval_of(found) == pytest.approx(ends, abs=6e-4)
    worse = new > old if name == "wmdp" else new < old
    assert (found.direction, found.why.startswith("lower is better: ")) == (
        ("lower", True) if name == "wmdp" else ("higher", False)
    )
    assert found.normalised is not None
    assert (found.normalised < 0) is worse
    assert found.verdict in (("regressed", "inconclusive") if worse else ("improved", "inconclusive"))


def test_a_perplexity_that_rose_is_said_to_have_risen_by_as_much() -> None:
    old = row("lambada_openai", 8.00, "perplexity", stderr=0.05)
    found = only(compare([old], [replace(old, value=8.30)]))
    assert found.verdict == "regressed"
    assert found.why.startswith("lower is better: rose by 0.300 with q = ")


def test_of_a_score_with_a_target_the_words_give_its_distance() -> None:
    old = row("crows_pairs_english", 0.45, "pct_stereotype", n_samples=1677)
    across = only(compare([old], [replace(old, value=0.55)]))
    assert (across.direction, across.verdict) == ("target", "inconclusive")
    assert across.delta == pytest.approx(0.10)
    assert interval_of(across) == pytest.approx([-0.028, 0.028], abs=6e-4)
    away = only(compare([old], [replace(old, value=0.35)]))
    assert away.verdict == "regressed"
    assert away.why.startswith("its distance from 0.5 rose by 0.100 with q = ")


def test_where_no_possible_change_would_be_seen_the_words_say_so_instead_of_a_size() -> None:
    found = compare([row("boolq", 0.6, n_samples=5)], [row("boolq", 0.6, n_samples=5)])
    least = only(found)
    assert least.minimum_detectable is not None
    assert least.minimum_detectable > 0.6
    assert not least.detects
    (capability,) = found.capabilities
    assert not capability.detects
    for why in (least.why, least.why_in_points, capability.why, capability.why_in_points):
        assert "with so few samples no change that is possible on this scale would be seen" in why
        assert "only a change" not in why


def test_where_only_a_gain_would_be_seen_the_words_say_that() -> None:
    found = only(
        compare(
            [row("triviaqa", 0.2, "exact_match", n_samples=12)], [row("triviaqa", 0.2, "exact_match", n_samples=12)]
        )
    )
    assert found.detects
    assert "only a gain of 0.42 would be seen reliably, and the score has no room for such a loss" in found.why


def test_a_composite_says_that_its_figures_are_normalised() -> None:
    found = compare([row("mmlu", 0.551, n_samples=266)], [row("mmlu", 0.502, n_samples=266)])
    (capability,) = found.capabilities
    ends = [capability.delta + side * 1.645 * capability.stderr for side in (-1, 1)]
    assert ends == pytest.approx([-0.160, 0.0296], abs=1e-3)
    assert "the change of the normalised mean is -0.160 to +0.030" in capability.why
    assert f"only a change of {capability.minimum_detectable:.3f} would be seen" in capability.why
    assert "is -16.0 to +3.0 points" in capability.why_in_points


def test_the_margin_is_given_on_the_scale_of_the_benchmark() -> None:
    sure = [row("mmlu", value, stderr=None, n_samples=2_000_000) for value in (0.6, 0.6002)]
    found = only(compare([sure[0]], [sure[1]]))
    assert found.verdict == "unchanged"
    assert "inside the margin of 0.0075" in found.why
    assert "inside the margin of 0.75 points" in found.why_in_points


def test_nothing_to_compare_is_an_empty_answer() -> None:
    found = compare([], [gsm8k(0.5)])
    assert (found.scores, found.capabilities, found.fell) == ((), (), False)
    assert found.fallen_capabilities() == ()
