"""Two recorded checkpoints compared, on both databases."""

from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.provenance.compare import compare_checkpoints
from registry.resume_points import ResumePoint
from registry.snapshots import CodeSpec, DataSpec, LayoutSpec, SourceSpec
from registry.types import Relation
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run


def mmlu(value: float, **known: Any) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042, **known)


def gsm8k(value: float, **known: Any) -> NewScore:
    return NewScore("gsm8k", value, metric="exact_match", filter="strict-match", n_samples=1319, **known)


def data(name: str, **weights: float) -> DataSpec:
    return DataSpec(name, {source: SourceSpec(weight) for source, weight in weights.items()})


def test_a_fall_in_math_suspects_the_source_of_math_first(session: Session) -> None:
    project = make_project(session)
    config: dict[str, Any] = {"optimizer": {"lr": 3e-4}, "wandb_project": "a", "model": {"num_layers": 32}}
    old = make_checkpoint(
        session,
        make_run(session, project),
        5000,
        config=config,
        data_version=data("v1", web=0.6, code=0.3, math=0.1),
        tokens_seen=400_000_000_000,
        scores=[gsm8k(0.60), mmlu(0.60)],
        environment={"cuda": "12.4"},
        layout=LayoutSpec(world_size=64, tp=8),
    )
    new = make_checkpoint(
        session,
        make_run(session, project),
        5000,
        config=config | {"optimizer": {"lr": 2.9e-4}, "wandb_project": "b"},
        data_version=data("v2", web=0.68, code=0.30, math=0.02),
        tokens_seen=400_000_000_000,
        scores=[gsm8k(0.50), mmlu(0.60)],
        environment={"cuda": "12.6"},
        layout=LayoutSpec(world_size=64, tp=4),
    )
    found = compare_checkpoints(session, old, new)
    assert (found.baseline.id, found.candidate.id) == (old, new)
    assert {each.benchmark: each.verdict for each in found.scores.scores}["gsm8k"] == "regressed"
    assert {(each.path, each.change, each.kind) for each in found.config_changes} == {
        ("optimizer.lr", "changed", "optimiser"),
        ("wandb_project", "changed", "inert"),
        ("layout.tp", "changed", "parallel"),
    }
    assert (found.data_changes.baseline, found.data_changes.candidate) == ("v1", "v2")
    assert found.data_changes.mix.total_variation == pytest.approx(0.08)
    tokens = next(each for each in found.data_changes.mix.sources if each.source == "math")
    assert (tokens.old_tokens, tokens.new_tokens) == pytest.approx((40e9, 8e9))
    assert [(each.path, each.old, each.new) for each in found.environment_changes] == [("cuda", "12.4", "12.6")]
    assert found.suspects[0].changes == ("data.math",)
    assert found.suspects[-1].changes == ("config.wandb_project",)
    assert sum(each.share for each in found.suspects) == pytest.approx(1.0)


def test_where_nothing_fell_nobody_is_suspected(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.5)], config={"lr": 1})
    new = make_checkpoint(session, run, 2, scores=[mmlu(0.5)], config={"lr": 2})
    found = compare_checkpoints(session, old, new)
    assert [each.path for each in found.config_changes] == ["lr"]
    assert found.suspects == ()


def test_a_config_as_text_and_as_a_number_is_no_change(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, config={"lr": "1e-4", "steps": 1000})
    new = make_checkpoint(session, run, 2, config={"lr": 0.0001, "steps": 1000.0})
    assert compare_checkpoints(session, old, new).config_changes == ()


def test_an_unknown_config_is_no_difference_and_is_said(session: Session) -> None:
    project = make_project(session)
    of_run = make_checkpoint(session, make_run(session, project, config={"lr": 1}), 1)
    own = make_checkpoint(session, make_run(session, project), 1, config={"lr": 2})
    bare = make_checkpoint(session, make_run(session, project), 1)
    found = compare_checkpoints(session, of_run, own)
    assert ([each.path for each in found.config_changes], found.config_known) == (["lr"], (True, True))
    unknown = compare_checkpoints(session, of_run, bare)
    assert (unknown.config_changes, unknown.config_known) == ((), (True, False))
    assert unknown.config_why == "no config is recorded for the candidate"
    assert unknown.environment_why == "no environment is recorded for the baseline and the candidate"
    assert (found.config_why, found.environment_known) == ("", (False, False))


def test_what_one_side_did_not_record_is_no_change_and_no_suspect(session: Session) -> None:
    run = make_run(session)
    whole = {"lr": 1e-3, "open_lm": {"beta2": 0.95, "workers": 2, "precision": "amp"}}
    part = {"lr": 2e-3}
    old = make_checkpoint(
        session, run, 1, config=whole, environment={"gpu": {"cuda": "12"}, "os": "a"}, scores=[mmlu(0.6)]
    )
    new = make_checkpoint(session, run, 2, config=part, environment={"os": "a"}, scores=[mmlu(0.5)])
    found = compare_checkpoints(session, old, new)
    assert {each.path: each.not_recorded_on for each in found.config_changes} == {
        "lr": None,
        **dict.fromkeys(("open_lm.beta2", "open_lm.workers", "open_lm.precision"), "candidate"),
    }
    assert found.config_why == "the candidate recorded nothing of open_lm (3 values)"
    assert found.environment_why == "the candidate recorded nothing of gpu (1 value)"
    assert [each.changes for each in found.suspects] == [("config.learning_rate",)]
    back = compare_checkpoints(session, new, old)
    assert back.config_why == "the baseline recorded nothing of open_lm (3 values)"


def test_where_only_unrecorded_values_differ_nobody_is_suspected(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, config={"a": 1, "open_lm": {"b": 1}}, scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2, config={"a": 1}, scores=[mmlu(0.5)])
    assert compare_checkpoints(session, old, new).suspects == ()


CLEAN = CodeSpec("a" * 40, dirty=False)


@pytest.mark.parametrize(
    ("old", "new", "status", "why"),
    [
        (CLEAN, CLEAN, "same", "clean tree"),
        (CLEAN, CodeSpec("b" * 40, dirty=False), "unknown", "commits differ"),
        (CLEAN, CodeSpec("a" * 40, dirty=True), "unknown", "uncommitted changes"),
        (CLEAN, CodeSpec("a" * 40), "unknown", "nobody said"),
        (CodeSpec("a" * 40, True, "d1"), CodeSpec("a" * 40, True, "d1"), "same", "same uncommitted"),
        (CodeSpec("a" * 40, True, "d1"), CodeSpec("a" * 40, True, "d2"), "unknown", "not known to be the same"),
        (CLEAN, None, "unknown", "recorded for the candidate"),
    ],
)
def test_code_is_the_same_only_where_that_is_certain(
    session: Session, old: CodeSpec, new: CodeSpec | None, status: str, why: str
) -> None:
    run = make_run(session)
    found = compare_checkpoints(
        session, make_checkpoint(session, run, 1, code=old), make_checkpoint(session, run, 2, code=new)
    ).code_changes
    assert found.status == status
    assert why in found.why
    assert found.commits == (old.commit, new.commit if new else None)
    assert found.files == ()


def test_other_code_is_a_suspect_and_missing_code_is_not(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, code=CLEAN, scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2, code=CodeSpec("b" * 40, dirty=False), scores=[mmlu(0.5)])
    bare = make_checkpoint(session, run, 3, scores=[mmlu(0.5)])
    (suspect,) = compare_checkpoints(session, old, new).suspects
    assert suspect.changes == ("code",)
    assert compare_checkpoints(session, old, bare).suspects == ()


def test_what_the_new_attempt_changed_is_a_suspect(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1000, scores=[mmlu(0.6)])
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=old), changes="doubled the batch size")
    new = make_checkpoint(session, run, 2000, scores=[mmlu(0.5)])
    (suspect,) = compare_checkpoints(session, old, new).suspects
    assert any("doubled the batch size" in reason for reason in suspect.reasons)


def test_an_unknown_mix_has_no_distance_but_another_data_version_is_a_suspect(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, data_version=DataSpec("pile"), scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2, data_version=DataSpec("pile-deduped"), scores=[mmlu(0.5)])
    found = compare_checkpoints(session, old, new)
    assert found.data_changes.mix.total_variation is None
    assert found.data_changes.mix.why == "another data version (pile → pile-deduped); their mixes are not recorded"
    assert [each.changes for each in found.suspects] == [("data_version",)]


def test_an_earlier_step_of_the_same_mix_has_seen_less_and_no_source_is_blamed(session: Session) -> None:
    run = make_run(session)
    mix = data("pile", web=0.7, math=0.3)
    old = make_checkpoint(session, run, 2, data_version=mix, tokens_seen=300 * 10**9, scores=[gsm8k(0.6)])
    new = make_checkpoint(session, run, 1, data_version=mix, tokens_seen=30 * 10**9, scores=[gsm8k(0.3)])
    (suspect,) = compare_checkpoints(session, old, new).suspects
    assert suspect.changes == ("tokens_seen",)
    assert "30B tokens, the baseline on 300B" in suspect.reasons[0]


def test_a_data_set_replaced_as_a_whole_is_one_suspect(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, data_version=data("v1", c4=0.5, wiki=0.5), scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2, data_version=data("v2", web=0.7, code=0.3), scores=[mmlu(0.5)])
    found = compare_checkpoints(session, old, new)
    assert found.data_changes.mix.total_variation == pytest.approx(1.0)
    assert [each.changes for each in found.suspects] == [("data_version",)]
    assert "no source in common" in found.suspects[0].reasons[0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (data("pile", pile=1.0), data("deduped", deduped=1.0), "their mixes are not recorded"),
        (data("c4", c4=1.0), data("pile", web=0.7, code=0.3), "the mix of the baseline is not recorded"),
        (data("pile", web=0.7, code=0.3), DataSpec("c4"), "the mix of the candidate is not recorded"),
    ],
)
def test_a_data_set_known_by_its_name_alone_has_no_measured_distance(
    session: Session, old: DataSpec, new: DataSpec, why: str
) -> None:
    run = make_run(session)
    one = make_checkpoint(session, run, 1, data_version=old, scores=[mmlu(0.6)], tokens_seen=10**12)
    two = make_checkpoint(session, run, 2, data_version=new, scores=[mmlu(0.5)], tokens_seen=10**12)
    found = compare_checkpoints(session, one, two)
    mix = found.data_changes.mix
    assert (mix.total_variation, mix.jensen_shannon_bits) == (None, None)
    assert mix.why == f"another data version ({old.name} → {new.name}); {why}"
    assert {share for each in mix.sources for share in (each.old_share, each.new_share)} & {0.0} == set()
    (suspect,) = found.suspects
    assert suspect.changes == ("data_version",)
    assert why in suspect.reasons[0]


def test_a_single_source_that_the_other_mix_has_too_is_measured(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, data_version=data("v1", web=1.0))
    new = make_checkpoint(session, run, 2, data_version=data("v2", web=0.7, code=0.3))
    assert compare_checkpoints(session, old, new).data_changes.mix.total_variation == pytest.approx(0.3)


def test_what_was_seen_before_the_fork_counts_as_it_was(session: Session) -> None:
    project = make_project(session)
    base, child = make_run(session, project), make_run(session, project)
    fork = make_checkpoint(session, base, 900, data_version=data("pile", web=0.8, math=0.2), tokens_seen=90 * 10**9)
    old = make_checkpoint(session, base, 1000, data_version=data("pile", web=0.8, math=0.2), tokens_seen=100 * 10**9)
    make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=fork))
    new = make_checkpoint(session, child, 1000, data_version=data("swapped", swapped=1.0), tokens_seen=100 * 10**9)
    found = compare_checkpoints(session, old, new).data_changes
    tokens = {each.source: (each.old_tokens, each.new_tokens) for each in found.mix.sources}
    assert tokens == {
        "web": pytest.approx((80e9, 72e9)),
        "math": pytest.approx((20e9, 18e9)),
        "swapped": pytest.approx((0, 10e9)),
    }
    assert found.mix.total_variation == pytest.approx(0.10)
    assert (found.by_lineage, found.note) == (True, "")


def test_every_stage_of_the_way_is_counted(session: Session) -> None:
    run = make_run(session)
    versions = [data("a", a=1.0), data("b", b=1.0), data("c", c=1.0)]
    made: list[int] = []
    for place, version in enumerate(versions):
        if made:
            make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=made[-1]))
        step = 100 * (place + 1) * (place + 2) // 2
        made.append(make_checkpoint(session, run, step, data_version=version, tokens_seen=step * 1000))
    found = compare_checkpoints(session, made[1], made[2]).data_changes
    assert {each.source: (each.old_tokens, each.new_tokens) for each in found.mix.sources} == {
        "a": (100_000, 100_000),
        "b": (200_000, 200_000),
        "c": (0, 300_000),
    }
    assert found.mix.total_variation == pytest.approx(0.5)


def test_a_past_of_unknown_length_is_said_and_not_guessed(session: Session) -> None:
    project = make_project(session)
    base, child = make_run(session, project), make_run(session, project)
    fork = make_checkpoint(session, base, 900, data_version=data("pile", web=0.8, math=0.2))
    old = make_checkpoint(session, base, 1000, data_version=data("pile", web=0.8, math=0.2), tokens_seen=10**9)
    make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=fork))
    new = make_checkpoint(session, child, 1000, data_version=data("v2", web=0.9, math=0.1), tokens_seen=10**9)
    found = compare_checkpoints(session, old, new).data_changes
    assert not found.by_lineage
    assert found.note == "candidate: what was seen before it resumed from another checkpoint is not counted"
    assert found.mix.total_variation == pytest.approx(0.10)


def test_a_restart_on_the_same_data_changes_no_figure(session: Session) -> None:
    run = make_run(session)
    mix = data("pile", web=0.8, math=0.2)
    old = make_checkpoint(session, run, 1, data_version=mix, tokens_seen=100)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=old))
    new = make_checkpoint(session, run, 2, data_version=mix, tokens_seen=200)
    found = compare_checkpoints(session, old, new).data_changes
    assert (found.by_lineage, found.note, found.mix.total_variation) == (False, "", 0.0)


def test_evaluations_under_other_conditions_are_not_comparable(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6, n_shot=5)])
    new = make_checkpoint(session, run, 2, scores=[mmlu(0.3, n_shot=0)])
    found = compare_checkpoints(session, old, new)
    assert [each.verdict for each in found.scores.scores] == ["not_comparable"]
    assert "n_shot differs: 5 for the baseline, 0 for the candidate" in found.scores.scores[0].why


def test_an_older_evaluation_under_equal_conditions_is_found(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6, n_shot=0)])
    early, late = at("2026-11-01"), at("2026-11-02")
    both = [mmlu(0.60, n_shot=0, evaluated_at=early), mmlu(0.70, n_shot=5, evaluated_at=late)]
    new = make_checkpoint(session, run, 2, scores=both)
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert (score.candidate, score.verdict) == (0.60, "inconclusive")


def test_the_newest_evaluation_of_a_series_counts(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6)])
    twice = [mmlu(0.61, evaluated_at=at("2026-11-02")), mmlu(0.2, evaluated_at=at("2026-11-01"))]
    new = make_checkpoint(session, run, 2, scores=twice)
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert score.candidate == 0.61


def test_scores_follow_lossless_copies_and_say_so(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2)
    converted = make_checkpoint(
        session,
        make_run(session, project),
        2,
        parents=[ParentSpec(new, Relation.CONVERTED)],
        scores=[mmlu(0.61)],
    )
    make_checkpoint(
        session,
        make_run(session, project),
        2,
        parents=[ParentSpec(new, Relation.QUANTISED)],
        scores=[gsm8k(0.1)],
    )
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert (score.candidate, score.via) == (0.61, (None, converted))
    (back,) = compare_checkpoints(session, converted, old).scores.scores
    assert (back.baseline, back.via) == (0.61, (None, None))


def test_nan_is_shown_and_never_compared(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2, scores=[mmlu(float("nan"))])
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert (score.verdict, score.delta) == ("not_comparable", None)
    assert "NaN" in score.why


def test_a_checkpoint_compared_with_itself_is_unchanged_nowhere_worse(session: Session) -> None:
    one = make_checkpoint(session, step=1, scores=[mmlu(0.6)], config={"lr": 1}, code=CLEAN)
    found = compare_checkpoints(session, one, one)
    assert not found.scores.fell
    assert (found.config_changes, found.code_changes.status) == ((), "same")


def test_an_unknown_checkpoint_is_named(session: Session) -> None:
    one = make_checkpoint(session)
    with pytest.raises(CheckpointNotFound, match="no checkpoint 0000000000001"):
        compare_checkpoints(session, one, 1)


def test_checkpoints_of_two_projects_can_be_compared(session: Session) -> None:
    old = make_checkpoint(session, make_run(session), 1, scores=[mmlu(0.6)], config={"lr": 1})
    new = make_checkpoint(session, make_run(session), 1, scores=[mmlu(0.5)], config={"lr": 2})
    found = compare_checkpoints(session, old, new)
    assert found.scores.scores[0].verdict == "regressed"
    assert [each.path for each in found.config_changes] == ["lr"]


def test_the_number_of_statements_does_not_grow_with_the_scores(session: Session) -> None:
    run = make_run(session)
    names = ["mmlu", "piqa", "boolq", "hellaswag", "sciq", "winogrande", "arc_easy"]
    pairs = []
    for step, count in ((1, 1), (10, 7)):
        scores = [NewScore(name, 0.5, metric="acc", n_samples=1000) for name in names[:count]]
        known: dict[str, Any] = {"data_version": data("v", web=1.0), "environment": {"cuda": step}}
        pairs.append([make_checkpoint(session, run, step + i, scores=scores, config={"a": i}, **known) for i in (0, 1)])
    session.expire_all()
    counts = []
    for old, new in pairs:
        seen: list[str] = []
        engine = session.get_bind().engine
        listener = lambda *args, seen=seen: seen.append(args[2])  # noqa: E731
        event.listen(engine, "before_cursor_execute", listener)
        compare_checkpoints(session, old, new)
        event.remove(engine, "before_cursor_execute", listener)
        counts.append(len(seen))
    assert counts[0] == counts[1]
    assert 0 < counts[0] <= 9


def test_another_size_of_the_model_is_named_first_with_the_settings_that_make_it(session: Session) -> None:
    """Not the learning rate that was chosen for the size."""
    project = make_project(session)
    sizes = ((6_857_302_016, 4096, 32, 1.2e-4), (70_426_624, 512, 6, 1e-3))
    old, new = (
        make_checkpoint(
            session,
            make_run(session, project, parameter_count=count, model_family="pythia"),
            1000,
            config={"hidden_size": width, "num_layers": layers, "optimizer": {"lr": rate}, "norm": str(width)},
            scores=[gsm8k(0.6 if width == 4096 else 0.1)],
        )
        for count, width, layers, rate in sizes
    )
    found = compare_checkpoints(session, old, new)
    (size,) = [each for each in found.config_changes if each.path.startswith("run.")]
    assert (size.path, size.change, size.kind, size.old, size.new) == (
        *("run.parameter_count", "changed", "model"),
        *(6_857_302_016, 70_426_624),
    )
    first, second, *_ = found.suspects
    assert first.changes == ("run.parameter_count", "config.hidden_size", "config.num_layers")
    assert first.reasons[:3] == (
        "the size of the model went from 6.86B to 70.4M parameters",
        "the same change in the config: hidden_size went from 4096 to 512, num_layers went from 32 to 6",
        "the size of a model reaches every capability (assumed prior 3)",
    )
    assert first.strength == "some"
    assert second.changes == ("config.optimizer.learning_rate",)
    assert sum(each.share for each in found.suspects) == pytest.approx(1.0)


def test_another_family_is_a_change_and_what_a_run_does_not_say_is_none(session: Session) -> None:
    project = make_project(session)
    runs = [
        make_run(session, project, model_family="llama", parameter_count=7_000_000_000),
        make_run(session, project, model_family="pythia"),
    ]
    old, new = (
        make_checkpoint(session, run, 1000, config={"hidden_size": place}, scores=[gsm8k(0.6 - 0.3 * place)])
        for place, run in enumerate(runs)
    )
    found = compare_checkpoints(session, old, new)
    assert [each.path for each in found.config_changes] == ["hidden_size", "run.model_family"]
    assert {each.changes for each in found.suspects} == {("config.hidden_size",), ("run.model_family",)}


def test_a_config_that_the_run_was_given_later_is_compared_and_said(session: Session) -> None:
    project = make_project(session)
    old = make_checkpoint(session, make_run(session, project, "old"), 1, config={"lr": 1}, environment={"cuda": "12"})
    new = make_checkpoint(session, make_run(session, project, "new"), 1)
    assert compare_checkpoints(session, old, new).config_why == "no config is recorded for the candidate"
    make_run(session, project, "new", config={"lr": 2})
    found = compare_checkpoints(session, old, new)
    assert [(each.path, each.old, each.new) for each in found.config_changes] == [("lr", 1, 2)]
    assert found.config_why == ""
    assert found.late_why == "for the candidate the config of its run is taken, which was recorded after it"
    assert found.environment_why == "no environment is recorded for the candidate"


def test_data_that_changed_within_an_attempt_counts_as_it_was_seen(session: Session) -> None:
    run = make_run(session)
    first, second = data("v1", web=1.0), data("v2", web=0.5, math=0.5)
    old = make_checkpoint(session, run, 100, data_version=first, tokens_seen=1000, scores=[mmlu(0.6)])
    make_checkpoint(session, run, 300, data_version=second, tokens_seen=3000)
    new = make_checkpoint(session, run, 500, data_version=second, tokens_seen=5000, scores=[mmlu(0.6)])
    found = compare_checkpoints(session, old, new).data_changes
    assert {each.source: (each.old_tokens, each.new_tokens) for each in found.mix.sources} == {
        "web": (1000, 3000),
        "math": (0, 2000),
    }
    assert found.by_lineage
