"""Two recorded checkpoints compared, on both databases."""

from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from registry.attempts import ResumePoint
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.provenance.compare import compare_checkpoints
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
    assert found.data_changes.mix.why == "neither side has a recorded mix"
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
    old = make_checkpoint(session, run, 1, data_version=data("c4", c4=1.0), scores=[mmlu(0.6)])
    new = make_checkpoint(session, run, 2, data_version=data("pile", web=0.7, code=0.3), scores=[mmlu(0.5)])
    found = compare_checkpoints(session, old, new)
    assert found.data_changes.mix.total_variation == pytest.approx(1.0)
    assert [each.changes for each in found.suspects] == [("data_version",)]
    assert "no source in common" in found.suspects[0].reasons[0]


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
