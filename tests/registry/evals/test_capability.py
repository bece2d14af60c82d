"""Benchmarks rolled up: percentiles, families, coverage, and what too little evidence does."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from registry.evals.capability import Place, Ranking, rank_capability
from registry.evals.catalogue import catalogue
from registry.evals.columns import Column, mean_of_parts, normalised, off_scale, oriented, wholes_of
from registry.evals.percentiles import Booleans, Floats, dense, midranks
from registry.evals.population.table import Ranked

NAN = float("nan")


def column(name: str, metric: str = "", filter: str = "") -> Column:
    return Column(name, metric, filter, catalogue().for_metric(name, metric, filter))


class Table(Ranked):
    """A few checkpoints, all of them in the reference."""

    def __init__(self, columns: list[Column], rows: list[list[float]], runs: list[int] | None = None) -> None:
        super().__init__()
        self.matrix = np.array(rows, dtype=float)
        count = len(rows)
        self.checkpoints = np.arange(1, count + 1, dtype=np.int64)
        self.runs = dense(np.array(runs if runs is not None else range(count), dtype=np.int64))
        self.reference = np.ones(count, dtype=bool)
        self.columns = tuple(columns)

    def values(self, place: int) -> Floats:
        return self.matrix[:, place]

    def via(self, place: int) -> Booleans | None:
        return None


def with_wholes(table: Table) -> Table:
    wholes = wholes_of(table.columns, catalogue().get)
    columns = [*table.columns, *(whole.column for whole in wholes)]
    means = [mean_of_parts(whole, [table.values(place) for place in whole.places]) for whole in wholes]
    return Table(columns, np.column_stack([table.matrix, *means]).tolist(), table.runs.tolist())


class RankedTable(NamedTuple):
    """A ranking with the table that was ranked."""

    table: Table
    ranking: Ranking

    @property
    def percentile(self) -> Floats:
        return self.ranking.standing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ranking, name)

    def at(self, row: int) -> Place:
        return self.ranking.at(self.table, row)

    def evaluated(self, row: int) -> bool:
        return any(np.isfinite(self.table.values(place)[row]) for place in self.ranking.places)


def rank(columns: list[Column], rows: list[list[float]], capability: str = "math", **known: list[int]) -> RankedTable:
    table = Table(columns, rows, **known)
    return RankedTable(table, rank_capability(table, capability))


def test_a_midrank_counts_half_of_its_equals() -> None:
    values = np.array([1.0, 2.0, 2.0, 4.0, NAN])
    ranks = midranks(values, np.arange(5), np.ones(5, dtype=bool))
    assert ranks[:4].tolist() == [0.125, 0.5, 0.5, 0.875]
    assert np.isnan(ranks[4])


def test_every_run_has_the_same_weight() -> None:
    values = np.array([1.0] * 8 + [2.0, 3.0])
    runs = np.array([0] * 8 + [1, 2])
    ranks = midranks(values, runs, np.ones(10, dtype=bool))
    assert ranks[0] == pytest.approx(1 / 6)
    assert ranks[8] == pytest.approx(1 / 2)


def test_a_value_outside_the_reference_is_ranked_and_does_not_count() -> None:
    values = np.array([1.0, 3.0, 2.0])
    ranks = midranks(values, np.arange(3), np.array([True, True, False]))
    assert ranks.tolist() == [0.25, 0.75, 0.5]


def test_a_percentile_is_the_mean_over_benchmarks_of_the_percentile_in_each() -> None:
    rows = [[place / 20, 1 - place / 20] for place in range(20)]
    ranking = rank([column("gsm8k"), column("asdiv")], rows)
    assert ranking.basis == "percentile"
    assert ranking.percentile == pytest.approx(np.full(20, 0.5))


def test_one_of_a_family_counts() -> None:
    rows = [[place / 20, place / 20, 1 - place / 20] for place in range(20)]
    ranking = rank([column("gsm8k"), column("gsm8k_cot"), column("asdiv")], rows)
    assert ranking.percentile == pytest.approx(np.full(20, 0.5))
    assert {len(ranking.at(row).chosen) for row in range(20)} == {2}


def test_the_variant_that_most_were_evaluated_on_stands_for_its_family() -> None:
    rows = [[0.9 if place else NAN, place / 20, 0.1] for place in range(20)]
    ranking = rank([column("gsm8k"), column("gsm8k_cot"), column("asdiv")], rows)
    names = {["gsm8k", "gsm8k_cot", "asdiv"][place] for place in ranking.at(5).chosen}
    assert names == {"gsm8k_cot", "asdiv"}


def test_a_missing_benchmark_does_not_move_the_others() -> None:
    rows = [[place / 20, place / 20] for place in range(20)]
    rows[19] = [NAN, 0.95]
    ranking = rank([column("gsm8k"), column("asdiv")], rows)
    assert ranking.percentile[19] == pytest.approx(0.975)
    assert ranking.at(19).coverage == 0.5


def test_what_was_not_evaluated_has_no_percentile() -> None:
    rows = [[place / 20, place / 20] for place in range(20)] + [[NAN, NAN]]
    ranking = rank([column("gsm8k"), column("asdiv")], rows)
    assert np.isnan(ranking.percentile[20])
    assert np.isnan(ranking.standing[20])
    assert not ranking.evaluated(20)


def test_one_benchmark_of_many_is_too_little() -> None:
    names = ["gsm8k", "asdiv", "mathqa", "aime24"]
    rows = [[place / 20] * 4 for place in range(20)] + [[0.9, NAN, NAN, NAN], [0.9, 0.9, NAN, NAN]]
    ranking = rank([column(name) for name in names], rows)
    assert ranking.evaluated(20)
    assert np.isnan(ranking.percentile[20])
    assert np.isfinite(ranking.percentile[21])


def test_lower_is_better_where_the_table_says_so() -> None:
    rows = [[place / 20, place / 20] for place in range(20)]
    ranking = rank([column("harmbench", "asr"), column("wmdp", "acc")], rows, "safety")
    assert ranking.percentile[0] == pytest.approx(0.975)


def test_a_target_is_best_in_the_middle() -> None:
    rows = [[place / 20] for place in range(21)]
    ranking = rank([column("crows_pairs_english", "pct_stereotype")], rows, "safety")
    assert int(np.argmax(ranking.percentile)) == 10


@pytest.mark.parametrize(("count", "runs"), [(19, list(range(19))), (30, [place % 2 for place in range(30)])])
def test_a_small_population_is_held_against_absolute_values(count: int, runs: list[int]) -> None:
    rows = [[0.6, 0.4] for _ in range(count)]
    ranking = rank([column("gsm8k"), column("asdiv")], rows, runs=runs)
    assert ranking.basis == "absolute"
    assert ranking.standing == pytest.approx(np.full(count, 0.5))
    assert (ranking.size, ranking.runs) == (count, len(set(runs)))


def test_a_benchmark_that_few_were_evaluated_on_does_not_rank() -> None:
    rows = [[place / 25, NAN] for place in range(25)]
    rows[0][1], rows[24][1] = 0.9, 0.1
    ranking = rank([column("gsm8k"), column("asdiv")], rows)
    assert ranking.basis == "percentile"
    assert ranking.percentile[0] == pytest.approx(0.02)


def test_the_population_may_be_narrowed() -> None:
    rows = [[place / 40, place / 40] for place in range(40)]
    narrowed = Table([column("gsm8k"), column("asdiv")], rows)
    narrowed.reference = np.arange(40) < 20
    ranking = rank_capability(narrowed, "math")
    assert ranking.standing[19] == pytest.approx(0.975)
    assert ranking.size == 20


def test_the_composite_is_normalised_for_chance_and_not_clipped() -> None:
    values = np.array([0.55, 0.20, 1.0])
    assert normalised(values, column("mmlu", "acc")) == pytest.approx([0.40, -0.0667, 1.0], abs=1e-4)
    assert normalised(np.array([0.43]), column("mmlu_pro", "exact_match")) == pytest.approx([0.3667], abs=1e-4)
    assert normalised(np.array([5.5]), column("mt_bench", "score")) == pytest.approx([0.5])
    assert normalised(np.array([30.0]), column("arena_hard", "winrate")) == pytest.approx([0.3])
    assert np.isnan(normalised(np.array([12.0]), column("lambada_openai", "ppl"))).all()


def test_a_value_of_another_scale_is_not_rescaled_by_guess() -> None:
    gsm8k = column("gsm8k")
    values = np.array([0.6, 62.5, NAN])
    assert off_scale(values, gsm8k.benchmark).tolist() == [False, True, False]
    assert np.isnan(oriented(values, gsm8k)[1])
    assert np.isnan(normalised(values, gsm8k)[1])


def test_a_column_all_in_another_scale_still_ranks() -> None:
    values = oriented(np.array([62.5, 70.0]), column("gsm8k"))
    assert values.tolist() == [62.5, 70.0]


def subjects() -> list[Column]:
    return [column(f"hendrycksTest-{part.name.removeprefix('mmlu_')}", "acc") for part in catalogue().parts("mmlu")]


def test_the_whole_is_the_mean_of_its_parts_by_their_items() -> None:
    parts = subjects()
    counts = np.array([part.benchmark.sample_count for part in parts], dtype=float)
    values = np.linspace(0.2, 0.4, len(parts))
    whole = with_wholes(Table(parts, [list(values)]))
    added = whole.columns[-1]
    assert (added.name, added.metric, added.parts) == ("mmlu", "acc", 57)
    assert whole.values(len(whole.columns) - 1)[0] == pytest.approx((values * counts).sum() / 14_042)


def test_a_whole_with_too_few_parts_is_missing() -> None:
    parts = subjects()
    row = [0.3 if place < 30 else NAN for place in range(57)]
    assert np.isnan(with_wholes(Table(parts, [row, [0.3] * 57])).values(57)[0])


def test_a_whole_that_was_evaluated_needs_no_mean() -> None:
    parts = [*subjects(), column("mmlu", "acc")]
    assert len(with_wholes(Table(parts, [[0.3] * 58])).columns) == 58


def test_parts_have_one_voice_together() -> None:
    columns = [*subjects(), column("sciq", "acc")]
    rows = [[place / 40] * 57 + [1 - place / 40] for place in range(20)]
    ranking = rank_capability(with_wholes(Table(columns, rows)), "knowledge")
    assert ranking.standing == pytest.approx(np.full(20, 0.5))


def test_nothing_to_rank_is_no_ranking() -> None:
    ranking = rank([column("gsm8k")], [[0.5]], "chat")
    assert ranking.size == 0
    assert not ranking.is_evaluated
