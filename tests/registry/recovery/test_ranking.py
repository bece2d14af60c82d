"""The order of candidates. The worked example's restore times are reconstructed: 10 min fixed, 100 GB at 5 GB/s from
shared storage (20 s) and at 24 GB/s from a local disk (4.2 s)."""

import pytest

from registry.recovery.ranking import (
    ProductionOption,
    TrainingOption,
    choose_fallbacks,
    p_ok,
    rank_for_production,
    rank_for_training,
)

SHARED, LOCAL = 10 + 20 / 60, 10 + 100 / 24 / 60


def worked_example() -> list[TrainingOption]:
    return [
        TrainingOption(14, 14000, SHARED, "verified hash"),
        TrainingOption(135, 13500, LOCAL, "none"),
        TrainingOption(13, 13000, SHARED, "drill"),
        TrainingOption(12, 12000, SHARED, "drill"),
    ]


def test_verified_beats_unverified_and_drilled_by_expected_minutes() -> None:
    ranked = rank_for_training(worked_example(), at_step=20000, seconds_per_step=12)
    assert [each.id for each in ranked] == [14, 135, 13, 12]
    minutes = [each.terms["expected_minutes"] for each in ranked[:3]]
    assert minutes == pytest.approx([1220.8, 1354.2, 1412.4], abs=0.051)
    assert [each.terms["fallback_step"] for each in ranked[:3]] == [13000, 13000, 12000]


def test_what_is_probably_bad_would_be_the_cheapest() -> None:
    """Step 15000, which P(bad) excludes: by minutes alone it would come first."""
    ranked = rank_for_training([TrainingOption(15, 15000, SHARED, "drill"), *worked_example()], 20000, 12)
    assert ranked[0].id == 15
    assert ranked[0].terms["expected_minutes"] == pytest.approx(1014.4, abs=0.051)
    assert ranked[0].terms["fallback_step"] == 13000


@pytest.mark.parametrize(
    ("evidence", "chance"),
    [("drill", 0.99), ("verified hash", 0.95), ("size only", 0.80), ("none", 0.60), ("failed", 0.10)],
)
def test_assumed_chance_of_a_restore(evidence: str, chance: float) -> None:
    assert p_ok(evidence) == pytest.approx(chance)


def test_drills_update_the_assumption() -> None:
    assert p_ok("verified hash", passed=11, failed=1) == pytest.approx(0.9375)


def test_an_unknown_restore_time_is_said_and_never_zero() -> None:
    unknown = TrainingOption(1, 19000, None, "verified hash")
    ranked = rank_for_training([unknown, *worked_example()], 20000, 12)
    assert ranked[-1].id == 1
    assert ranked[-1].terms["expected_minutes"] is None
    assert "unknown" in ranked[-1].reasons[0]


def test_with_nothing_to_fall_back_on_the_run_would_start_again() -> None:
    alone = TrainingOption(1, 14000, 10.0, "verified hash")
    (terms,) = [each.terms for each in rank_for_training([alone], 20000, 12)]
    assert terms["fallback_step"] is None
    assert terms["expected_minutes"] == pytest.approx(10 + 1200 + 0.05 * (10 + 2800))


def test_a_proven_checkpoint_from_the_beginning_is_no_fallback() -> None:
    options = [
        TrainingOption(3, 14000, SHARED, "verified hash"),
        TrainingOption(2, 13500, SHARED, "verified hash"),
        TrainingOption(1, 500, SHARED, "drill"),
    ]
    assert choose_fallbacks(options, 12) == {3: options[1], 2: options[2], 1: None}


def test_ten_thousand_options_are_ranked_as_by_trying_all() -> None:
    evidence = ["drill", "verified hash", "size only", "none", "failed"]
    options = [TrainingOption(i, 10 * (i // 2), 5.0 + i % 7, evidence[i * i % 5]) for i in range(10_000)]
    ranked = rank_for_training(options, 60_000, 12, limit=5)
    assert len(ranked) == 5
    few = options[:60]
    for option in few:
        older = [each for each in few if each.step < option.step]
        lost = {
            each.id: (1 - p_ok(each.evidence)) * ((each.restore_minutes or 0) + (option.step - each.step) / 5)
            for each in older
        }
        chosen = choose_fallbacks(few, 12)[option.id]
        assert (chosen is None) == (not older)
        assert chosen is None or lost[chosen.id] == pytest.approx(min(lost.values()))


def test_each_candidate_says_what_would_change_the_order() -> None:
    ranked = {each.id: each for each in rank_for_training(worked_example(), 20000, 12)}
    assert "would take the first place from it" in ranked[14].reasons[-1]
    assert "no evidence of its own" in ranked[13].reasons[-1]
    near = [TrainingOption(2, 14000, SHARED, "verified hash"), TrainingOption(3, 13990, LOCAL, "none")]
    behind = TrainingOption(1, 13000, SHARED, "drill")
    told = {each.id: each for each in rank_for_training([*near, behind], 20000, 12)}
    assert told[3].reasons[-1].startswith("A passed drill would put it first")


def test_what_is_the_same_for_all_candidates_is_a_sentence_of_its_own() -> None:
    alike = [TrainingOption(each, 1000 * each, 8.0, "verified hash") for each in (12, 13, 14)]
    told = [set(each.reasons) for each in rank_for_training(alike, 20000, 12)]
    assert set.intersection(*told) == {"A restore is assumed to work in 95% of cases (evidence: verified hash)"}
    assert len({each.reasons[0] for each in rank_for_training(alike, 20000, 12)}) == 3


def production(id: int, composite: float | None, stderr: float | None, **other: object) -> ProductionOption:
    fields = {"step": id, "restore_minutes": 8.0, "evidence": "verified hash"} | other
    return ProductionOption(id=id, composite=composite, composite_stderr=stderr, **fields)  # type: ignore[arg-type]


def test_production_takes_what_is_sure_not_what_is_highest() -> None:
    ranked, refused = rank_for_production([production(1, 0.50, 0.030), production(2, 0.48, 0.010)])
    assert refused == {}
    assert [each.id for each in ranked] == [2, 1]
    assert ranked[0].terms["lower_bound"] == pytest.approx(0.48 - 1.645 * 0.010, abs=1e-5)
    assert "More evaluation samples" in ranked[1].reasons[1]
    assert ranked[0].reasons[0] == "46.4 points or more with a confidence of 95%: its score is 48.0 ± 1.0"


def test_production_ties_go_to_the_newest() -> None:
    ranked, _ = rank_for_production([production(1, 0.5, 0.01), production(2, 0.5, 0.01)])
    assert [each.id for each in ranked] == [2, 1]


def test_production_puts_what_is_proven_before_what_only_scores_higher() -> None:
    options = [
        production(1, 0.9, 0.01, evidence="size only"),
        production(2, 0.4, 0.01, evidence="drill"),
        production(3, 0.5, 0.01),
    ]
    ranked, _ = rank_for_production(options)
    assert [each.id for each in ranked] == [3, 2, 1]
    unproven = "Not proven. A restore is assumed to work in 80% of cases"
    assert any(reason.startswith(unproven) for reason in ranked[2].reasons)
    assert ranked[2].reasons[-1] == "A verified copy would put it first"
    assert not any("Not proven" in reason for reason in (*ranked[0].reasons, *ranked[1].reasons))


def test_production_never_takes_a_missing_score_as_low() -> None:
    ranked, refused = rank_for_production([production(4, None, None), production(5, 0.1, None)])
    assert [each.id for each in ranked] == [5]
    assert "whose error is unknown" in ranked[0].reasons[0]
    assert refused == {4: "no comparable finite score to judge it by"}


def test_nothing_to_rank_is_an_empty_list() -> None:
    assert rank_for_training([], 20000, 12) == []
    assert rank_for_production([]) == ([], {})


def test_the_expected_minutes_add_up_as_they_are_read() -> None:
    options = [TrainingOption(1, 900, 8.3, "none"), TrainingOption(2, 1000, 8.3, "none")]
    newest, older = rank_for_training(options, 1000, 12.0)
    assert (
        newest.reasons[0] == "19.6 min expected: 8.3 to restore, 0 to replay, 11.3 for the risk that it does not load"
    )
    assert older.reasons[0].startswith("103.6 min expected: 8.3 to restore, 20 to replay, 75.3 for the risk")


def test_a_copy_of_unknown_size_is_there_to_fall_back_on() -> None:
    options = [TrainingOption(1, 2000, None, "none"), TrainingOption(2, 3000, 10.0, "none")]
    assert choose_fallbacks(options, 10.0)[2] == options[0]
    first = next(each for each in rank_for_training(options, 3000, 10.0) if each.id == 2)
    assert first.terms["fallback_step"] == 2000.0
    assert first.terms["fallback_restore_minutes"] is None
    assert "If it does not load, at least 175 min more, from step 2000" in first.reasons  # 8.3 + 1000 steps


def test_where_no_size_is_known_an_older_copy_still_comes_before_the_start_of_the_run() -> None:
    options = [TrainingOption(1, 2000, None, "none"), TrainingOption(2, 3000, None, "none")]
    newest, oldest = rank_for_training(options, 3000, 10.0)
    assert "If it does not load, at least 175 min more, from step 2000" in newest.reasons
    assert "If it does not load, at least 342 min more, from the start of the run" in oldest.reasons
