"""Columns of scores are read by the rules of single ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.evals.catalogue import catalogue
from registry.evals.columns import off_scale
from registry.evals.normalise import orient
from registry.evals.standard_error import choose_standard_error
from registry.recovery.figures import orient_all, standard_errors

NAMES = (
    *("gsm8k", "mmlu", "wmdp", "squadv2", "mt_bench", "wikitext", "crows_pairs_english", "ruler", "alpaca_eval2"),
    *("lambada_openai", "harmbench", "no-such-benchmark"),
)
VALUES = st.floats(0.01, 10, allow_nan=False) | st.sampled_from([0.0, 0.5, 1.0, 55.0, 100.0])
ERRORS = st.none() | st.floats(-0.1, 0.2) | st.sampled_from([0.0, math.inf, 1e-9])


@given(
    name=st.sampled_from(NAMES),
    metric=st.sampled_from(["acc", "exact_match", "f1", "score", "word_perplexity", ""]),
    scores=st.lists(st.tuples(VALUES, ERRORS), min_size=1, max_size=8),
    samples=st.none() | st.sampled_from([1, 2, 30, 1319]),
)
@settings(max_examples=300, deadline=None)
def test_a_column_of_scores_is_read_as_each_of_them_is(
    name: str, metric: str, scores: list[tuple[float, float | None]], samples: int | None
) -> None:
    benchmark = catalogue().for_metric(name, metric, "")
    values = np.array([value for value, _ in scores])
    kept = ~off_scale(values, benchmark)
    scores = [score for score, inside in zip(scores, kept, strict=True) if inside]
    values = values[kept]
    published = np.array([math.nan if error is None else error for _, error in scores])
    errors, assumed = standard_errors(values, published, samples, benchmark, metric)
    singles = [choose_standard_error(value, error, samples, benchmark, metric) for value, error in scores]
    wanted = [math.nan if each is None else each.value for each in singles]
    assert errors.tolist() == pytest.approx(wanted, nan_ok=True, rel=1e-12)
    assert assumed == any(each is not None and each.is_assumed for each in singles)
    placed, spread = orient_all(values, errors, benchmark, metric)
    alone = [
        orient(value, None if math.isnan(error) else error, benchmark, metric)
        for (value, _), error in zip(scores, errors.tolist(), strict=True)
    ]
    assert placed.tolist() == pytest.approx([each.value for each in alone], rel=1e-9, abs=1e-12)
    told = [math.nan if each.stderr is None else each.stderr for each in alone]
    assert spread.tolist() == pytest.approx(told, nan_ok=True, rel=1e-9)
