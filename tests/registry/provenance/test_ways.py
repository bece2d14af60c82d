"""How the candidate came from the baseline: told in the answer, and the first suspect where it made other weights."""

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.projects import ProjectRow
from registry.provenance.compare import Comparison, compare_checkpoints
from registry.resume_points import ResumePoint
from registry.snapshots import DataSpec, SourceSpec
from registry.types import LOSSLESS, Relation
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run

MADE = {
    Relation.QUANTISED: "quantised",
    Relation.MERGED: "merged",
    Relation.DISTILLED: "distilled",
    Relation.FINE_TUNED: "fine-tuned",
}


def mmlu(value: float, **known: object) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042, **known)  # type: ignore[arg-type]


def data(name: str, **weights: float) -> DataSpec:
    return DataSpec(name, {source: SourceSpec(weight) for source, weight in weights.items()})


def made(
    session: Session,
    project: ProjectRow,
    score: float | None = None,
    *parents: tuple[int, Relation],
    name: str | None = None,
    step: int = 1,
    **known: object,
) -> int:
    """A checkpoint of a run of its own, with an mmlu score where one is given."""
    known.setdefault("scores", [mmlu(score)] if score is not None else ())
    return make_checkpoint(
        session,
        make_run(session, project, name),
        step,
        parents=[ParentSpec(parent, relation) for parent, relation in parents],
        **known,  # type: ignore[arg-type]
    )


def verdicts(found: Comparison) -> list[tuple[str, str]]:
    return [(each.verdict, each.why) for each in found.scores.scores]


@pytest.mark.parametrize(("relation", "word"), MADE.items())
def test_how_the_candidate_was_made_is_the_first_suspect(session: Session, relation: Relation, word: str) -> None:
    project = make_project(session)
    old = made(session, project, 0.6, config={"lr": 1.0, "layers": 12})
    new = made(session, project, 0.5, (old, relation), config={"lr": 2.0, "layers": 10})
    found = compare_checkpoints(session, old, new)
    assert found.lineage_why == f"the candidate was {word} from the baseline"
    first, *others = found.suspects
    assert first.changes == (f"lineage.{relation.value}",)
    assert first.reasons[0] == f"the candidate was {word} from the baseline"
    assert {each.changes for each in others} == {("config.learning_rate",), ("config.layers",)}
    assert sum(each.share for each in found.suspects) == pytest.approx(1.0)


def test_without_earlier_pairs_it_is_never_a_strong_suspect(session: Session) -> None:
    project = make_project(session)
    old = made(session, project, 0.6)
    (suspect,) = compare_checkpoints(session, old, made(session, project, 0.5, (old, Relation.QUANTISED))).suspects
    assert (suspect.strength, suspect.share, suspect.likelihood_ratio) == ("some", 1.0, 1.0)
    assert "(assumed prior 3)" in suspect.reasons[1]


def test_earlier_pairs_made_in_the_same_way_are_its_witnesses(session: Session) -> None:
    project = make_project(session)
    for place in range(12):
        source = made(session, project, 0.6, name=f"source-{place}")
        made(session, project, 0.5, (source, Relation.QUANTISED), name=f"made-{place}")
        tuned = made(session, project, 0.6, name=f"other-{place}")
        made(session, project, 0.6, (tuned, Relation.FINE_TUNED), name=f"tuned-{place}")
    old = made(session, project, 0.6)
    (suspect,) = compare_checkpoints(session, old, made(session, project, 0.5, (old, Relation.QUANTISED))).suspects
    assert suspect.association is not None
    assert (suspect.association.changed_pairs, suspect.strength) == (12, "strong")


def test_the_way_is_told_in_either_direction(session: Session) -> None:
    project = make_project(session)
    old = made(session, project, 0.5)
    new = made(session, project, 0.6, (old, Relation.FINE_TUNED))
    found = compare_checkpoints(session, new, old)
    assert found.lineage_why == "the baseline was fine-tuned from the candidate"
    assert found.suspects[0].changes == ("lineage.fine_tuned_from.baseline",)


def test_a_merge_says_how_many_others_went_in(session: Session) -> None:
    project = make_project(session)
    one, two, three = (made(session, project, 0.6) for _ in range(3))
    merged = made(session, project, 0.5, *((each, Relation.MERGED) for each in (one, two, three)))
    found = compare_checkpoints(session, two, merged)
    assert found.lineage_why == "the candidate was merged from the baseline and 2 others"


def test_a_lossless_copy_stands_for_its_source_on_the_way(session: Session) -> None:
    project = make_project(session)
    trained = made(session, project)
    copies = [made(session, project, 0.6, (trained, Relation.CONVERTED)) for _ in range(2)]
    made_of_it = made(session, project, 0.5, (copies[0], Relation.QUANTISED))
    for baseline in (trained, *copies):
        found = compare_checkpoints(session, baseline, made_of_it)
        assert found.lineage_why.startswith("the candidate was quantised from the baseline")
        assert found.suspects[0].changes == ("lineage.quantised_from",)


def test_a_longer_way_names_each_edge_and_goes_before_nothing(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project, "base")
    old = make_checkpoint(session, run, 100, scores=[mmlu(0.6)], config={"lr": 1.0})
    last = make_checkpoint(session, run, 200, config={"lr": 1.0})
    tuned = made(session, project, None, (last, Relation.FINE_TUNED), name="sft", step=50)
    new = made(session, project, 0.5, (tuned, Relation.QUANTISED), name="q", config={"lr": 4.0})
    found = compare_checkpoints(session, old, new)
    assert found.lineage_why == (
        "on the way from the baseline to the candidate, sft step 50 was fine-tuned from base step 200, "
        "q step 1 was quantised from sft step 50"
    )
    assert [each.changes for each in found.suspects] == [
        ("config.learning_rate",),
        ("lineage.fine_tuned_from",),
        ("lineage.quantised_from",),
    ]


def test_an_edge_recorded_once_for_a_run_counts_for_what_the_run_saved_later(session: Session) -> None:
    project = make_project(session)
    old = made(session, project, 0.6)
    run = make_run(session, project)
    make_checkpoint(session, run, 1, parents=[ParentSpec(old, Relation.FINE_TUNED)])
    new = make_checkpoint(session, run, 9, scores=[mmlu(0.5)])
    assert compare_checkpoints(session, old, new).suspects[0].changes == ("lineage.fine_tuned_from",)


def test_a_mean_of_what_an_attempt_saved_lies_beside_its_way(session: Session) -> None:
    run = make_run(session)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6)])
    mean = make_checkpoint(session, run, 2, scores=[mmlu(0.5)], parents=[ParentSpec(old, Relation.MERGED)])
    later = make_checkpoint(session, run, 3, scores=[mmlu(0.5)])
    assert compare_checkpoints(session, old, mean).lineage_why == "the candidate was merged from the baseline"
    assert compare_checkpoints(session, old, later).suspects == ()


def test_where_training_went_on_or_nothing_is_recorded_there_is_no_such_suspect(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    old = make_checkpoint(session, run, 1, scores=[mmlu(0.6)])
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=old))
    new = make_checkpoint(session, run, 2, scores=[mmlu(0.5)])
    for candidate in (new, made(session, project, 0.5)):
        found = compare_checkpoints(session, old, candidate)
        assert (found.lineage_why, found.suspects) == ("", ())


# ---- the same weights


def test_a_checkpoint_and_itself_are_the_same_weights(session: Session) -> None:
    one = made(session, make_project(session), 0.6)
    found = compare_checkpoints(session, one, one)
    assert verdicts(found) == [("unchanged", "the same weights")]
    assert [(each.verdict, each.why) for each in found.scores.capabilities] == [("unchanged", "the same weights")]
    score = found.scores.scores[0]
    assert (score.delta, score.stderr, score.p_value, score.q_value) == (0.0, None, None, None)


@pytest.mark.parametrize("relation", LOSSLESS)
def test_one_evaluation_of_two_copies_is_the_same_evaluation(session: Session, relation: Relation) -> None:
    project = make_project(session)
    source = made(session, project, 0.6)
    copy = made(session, project, None, (source, relation))
    other = made(session, project, None, (source, relation))
    for pair in ((source, copy), (copy, source), (copy, other)):
        assert verdicts(compare_checkpoints(session, *pair)) == [("unchanged", "the same evaluation")]


@pytest.mark.parametrize("value", [0.4, 0.8])
def test_two_evaluations_of_the_same_weights_are_never_better_or_worse(session: Session, value: float) -> None:
    project = make_project(session)
    source = made(session, project, None, scores=[mmlu(0.6, evaluated_at=at("2026-11-02"))], config={"lr": 1})
    older = [mmlu(value, evaluated_at=at("2026-11-01"))]
    copy = made(session, project, None, (source, Relation.CONVERTED), scores=older, config={"lr": 2})
    found = compare_checkpoints(session, source, copy)
    noise = "evaluation noise or another way of evaluating: the weights are the same"
    assert verdicts(found) == [("inconclusive", noise)]
    assert [(each.verdict, each.why) for each in found.scores.capabilities] == [("inconclusive", noise)]
    assert (found.suspects, found.scores.fell) == ((), False)
    near = made(session, project, 0.601, (source, Relation.CONVERTED))
    assert verdicts(compare_checkpoints(session, source, near)) == [("unchanged", noise)]


def test_a_quantised_copy_has_other_weights(session: Session) -> None:
    project = make_project(session)
    source = made(session, project, 0.6)
    assert verdicts(
        compare_checkpoints(session, source, made(session, project, 0.5, (source, Relation.QUANTISED)))
    ) != [("unchanged", "the same weights")]


def test_what_trained_on_after_a_copy_was_loaded_has_other_weights(session: Session) -> None:
    project = make_project(session)
    source = made(session, project, 0.6)
    run = make_run(session, project)
    make_checkpoint(session, run, 1, parents=[ParentSpec(source, Relation.CONVERTED)])
    new = make_checkpoint(session, run, 9, scores=[mmlu(0.5)])
    assert verdicts(compare_checkpoints(session, source, new))[0][0] == "regressed"


# ---- tokens and data over an edge


def tuned(session: Session, **known: object) -> tuple[int, int]:
    project = make_project(session)
    old = made(session, project, 0.6, data_version=data("pile", web=0.8, math=0.2), tokens_seen=500_000)
    known.setdefault("data_version", data("sft", chat=1.0))
    return old, made(session, project, 0.5, (old, Relation.FINE_TUNED), **known)


def test_a_fine_tuned_child_has_seen_its_parents_tokens_and_its_own(session: Session) -> None:
    found = compare_checkpoints(session, *tuned(session, tokens_seen=50_000)).data_changes
    assert {each.source: (each.old_tokens, each.new_tokens) for each in found.mix.sources} == {
        "web": pytest.approx((400_000, 400_000)),
        "math": pytest.approx((100_000, 100_000)),
        "chat": pytest.approx((0, 50_000)),
    }
    assert (found.by_lineage, found.note, found.mix.why) == (True, "", "")
    assert found.mix.total_variation == pytest.approx(50 / 550)


def test_no_one_is_blamed_for_few_tokens_where_counting_began_anew(session: Session) -> None:
    found = compare_checkpoints(session, *tuned(session, tokens_seen=50_000))
    assert [each.changes for each in found.suspects] == [("lineage.fine_tuned_from",), ("data.chat",)]
    assert found.suspects[1].reasons[0] == "data source chat went from 0 tokens to 50k tokens"


def test_a_fine_tuning_on_one_source_of_unknown_length_is_compared_as_recorded(session: Session) -> None:
    found = compare_checkpoints(session, *tuned(session))
    assert found.data_changes.mix.total_variation == pytest.approx(1.0)
    assert found.data_changes.note == (
        "candidate: what was seen before it was fine-tuned from another checkpoint is not counted"
    )
    said = next(each.reasons[0] for each in found.suspects if each.changes == ("data_version",))
    assert said == "data version went from pile to sft (one source, chat), which have no source in common"


def test_a_copy_has_seen_what_its_source_saw(session: Session) -> None:
    project = make_project(session)
    old = made(session, project, 0.6, data_version=data("pile", web=0.8, math=0.2), tokens_seen=500)
    found = compare_checkpoints(session, old, made(session, project, 0.5, (old, Relation.QUANTISED)))
    assert (found.data_changes.candidate, found.data_changes.mix.total_variation) == ("pile", 0.0)


def test_a_merge_says_that_its_parents_data_is_not_counted(session: Session) -> None:
    project = make_project(session)
    old = made(session, project, 0.6, data_version=data("pile", web=0.8, math=0.2), tokens_seen=500)
    found = compare_checkpoints(session, old, made(session, project, 0.5, (old, Relation.MERGED), tokens_seen=1))
    assert found.data_changes.note == "candidate: it merges weights, and what its parents saw is not counted"
    assert [each.changes for each in found.suspects] == [("lineage.merged_from",)]


def test_a_chain_of_parents_within_an_attempt_is_training_and_is_not_followed_one_by_one(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    chain: list[int] = []
    for step in range(1, 80):
        parents = [ParentSpec(chain[-1], Relation.RESUMED)] if chain else []
        chain.append(make_checkpoint(session, run, step, parents=parents, scores=[mmlu(0.6)] if step == 1 else ()))
    made_of_it = made(session, project, 0.5, (chain[-1], Relation.QUANTISED), name="q")
    seen: list[str] = []
    listener = lambda *args: seen.append(args[2])  # noqa: E731
    engine = session.get_bind().engine
    event.listen(engine, "before_cursor_execute", listener)
    found = compare_checkpoints(session, chain[0], made_of_it)
    event.remove(engine, "before_cursor_execute", listener)
    assert found.lineage_why.endswith("q step 1 was quantised from " + f"{run.name} step 79")
    assert len(seen) < 30
