"""Suspects and the evidence of earlier pairs. The worked example's inputs are reconstructed from its printed shares."""

from dataclasses import replace

import pytest

from registry.provenance.association import (
    Counts,
    PastPair,
    associate,
    chance_of_fall,
    change_sets,
    fisher_one_sided,
    likelihood_ratio,
    odds_ratio,
)
from registry.provenance.config_diff import Scalar, diff_configs
from registry.provenance.data_mix import Source, compare_mixes
from registry.provenance.suspects import (
    Change,
    changes_of_config,
    changes_of_mix,
    rank_suspects,
    relative_change,
)

MATH = "data.math"
LOADER = "config.data.loader"
LR = "config.optimizer.learning_rate"
SEED = "config.seed"


def test_nine_three_four_twentyfour() -> None:
    counts = Counts(9, 3, 4, 24)
    ratio, low, high = odds_ratio(counts)
    assert ratio == pytest.approx(14.7778, abs=5e-5)
    assert (low, high) == pytest.approx((3.0284, 72.1106), rel=1e-4)
    assert fisher_one_sided(counts) == pytest.approx(0.0004, abs=5e-5)
    assert chance_of_fall(counts) == pytest.approx((0.714, 0.167), abs=5e-4)
    assert likelihood_ratio(counts) == 4.0  # 5.43, clipped


def forty_pairs() -> list[PastPair]:
    """13 falls, 27 holds, each of its own family: math 9/3/4/24, loader 7/6/6/21, lr 6/9/7/18, seed 8/10/5/17."""
    changed_of_falls = {MATH: range(9), LOADER: range(6, 13), LR: range(3, 9), SEED: range(5, 13)}
    changed_of_holds = {MATH: range(3), LOADER: range(6), LR: range(5, 14), SEED: range(12, 22)}
    pairs = []
    for index in range(40):
        of = changed_of_falls if index < 13 else changed_of_holds
        place = index if index < 13 else index - 13
        changed = frozenset(key for key, places in of.items() if place in places)
        pairs.append(PastPair(f"family-{index}", changed, fell=index < 13))
    return pairs


def four_changes() -> list[Change]:
    return [
        Change(MATH, "data", relative_change(40e9, 9e9), "math went from 40B to 9B tokens", "math"),
        Change(LOADER, "data", 1.0, "loader changed"),
        Change(LR, "optimiser", relative_change(3e-4, 1.5e-4), "lr was halved"),
        Change(SEED, "data", 1.0, "seed changed"),
    ]


def test_shares_of_the_worked_example() -> None:
    suspects = rank_suspects(four_changes(), ["math"], forty_pairs())
    shares = {each.changes[0]: each.share for each in suspects}
    assert list(shares) == [MATH, LOADER, LR, SEED]
    assert [shares[MATH], shares[LOADER], shares[LR]] == pytest.approx([0.709, 0.176, 0.078], abs=5e-4)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_only_an_association_beyond_chance_makes_a_strong_suspect() -> None:
    with_history = rank_suspects(four_changes(), ["math"], forty_pairs())
    assert [each.strength for each in with_history] == ["strong", "some", "weak", "weak"]
    assert any("an association" in reason and "not a cause" in reason for reason in with_history[0].reasons)
    assert any("chance explains that" in reason for reason in with_history[1].reasons)
    without = rank_suspects(four_changes(), ["math"])
    assert without[0].changes == (MATH,)
    assert without[0].strength == "some"
    assert {each.likelihood_ratio for each in without} == {1.0}
    assert any("no earlier pairs" in reason for reason in without[0].reasons)


def test_priors_are_called_assumed() -> None:
    for suspect in rank_suspects(four_changes(), ["math"]):
        assert any("assumed prior" in reason for reason in suspect.reasons)


def test_pairs_of_one_family_count_once() -> None:
    repeated = [PastPair("one", frozenset({LR}), fell=True) for _ in range(30)]
    others = [PastPair(f"o{i}", frozenset(), fell=False) for i in range(10)]
    found = associate([LR], [*repeated, *others])[LR]
    assert found.counts == Counts(1, 0, 0, 10)
    assert not found.is_counted
    (suspect,) = rank_suspects([four_changes()[2]], ["math"], [*repeated, *others])
    assert suspect.likelihood_ratio == 1.0
    assert any("too few" in reason for reason in suspect.reasons)


def test_keys_that_always_change_together_are_one_suspect() -> None:
    pairs = [PastPair(f"f{i}", frozenset({LR, SEED} if i < 10 else {LOADER}), fell=i < 7) for i in range(20)]
    assert change_sets([LR, LOADER, SEED], pairs) == [(LR, SEED), (LOADER,)]
    assert change_sets([LR, LOADER, SEED], []) == [(LR,), (LOADER,), (SEED,)]
    merged = rank_suspects(four_changes()[1:], ["math"], pairs)
    assert {each.changes for each in merged} == {(LR, SEED), (LOADER,)}


def test_a_source_is_tied_to_what_it_teaches() -> None:
    old = {"web": Source(0.6), "openmath": Source(0.2), "code": Source(0.2)}
    new = {"web": Source(0.8), "openmath": Source(0.05), "code": Source(0.15)}
    changes = changes_of_mix(compare_mixes(old, new))
    assert rank_suspects(changes, ["math"])[0].changes == ("data.openmath",)
    assert rank_suspects(changes, ["code"])[0].changes == ("data.code",)


def test_an_unknown_mix_accuses_nobody() -> None:
    assert changes_of_mix(compare_mixes(None, {"web": Source(1.0)})) == []


def test_what_only_concerns_logging_comes_last() -> None:
    old: dict[str, Scalar] = {"wandb_project": "a", "optimizer.lr": 3e-4, "num_layers": 16}
    new: dict[str, Scalar] = {"wandb_project": "b", "optimizer.lr": 1.5e-4, "num_layers": 32}
    suspects = rank_suspects(changes_of_config(diff_configs(old, new)), ["math"])
    assert [each.changes[0] for each in suspects] == [LR, "config.num_layers", "config.wandb_project"]
    assert suspects[-1].strength == "weak"
    assert suspects[0].reasons[0] == "optimizer.lr went from 0.0003 to 0.00015"


def test_a_list_counts_as_one_change() -> None:
    old = {f"data.paths.{i}": f"a{i}" for i in range(50)}
    new = {f"data.paths.{i}": f"b{i}" for i in range(50)}
    assert [each.key for each in changes_of_config(diff_configs(old, new))] == ["config.data.paths"]


def test_no_changes_no_suspects() -> None:
    assert rank_suspects([], ["math"]) == []


def test_how_the_one_was_made_from_the_other_comes_before_all_else() -> None:
    source = Change("data.math", "data", 1.0, "", "math")
    made = Change("lineage.quantised_from", "lineage", 1.0, "", direct=True)
    ranked = rank_suspects([source, made], ["math"])
    assert [each.changes for each in ranked] == [("lineage.quantised_from",), ("data.math",)]
    on_the_way = rank_suspects([source, replace(made, direct=False)], ["math"])
    assert [each.changes for each in on_the_way] == [("data.math",), ("lineage.quantised_from",)]
    assert [each.share for each in on_the_way] == pytest.approx([0.75, 0.25])
