"""What a rollback makes of little, of odd and of much: each answers with its reason."""

import math

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.commands import BatchItem, register_batch
from registry.checkpoints.registration import Registration, ReplicaSpec
from registry.evals.scores import NewScore
from registry.incidents.suspicion import say_suspect
from registry.models import Checkpoint, CheckpointSuspicion, Replica
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.telling import MAX_EXCLUDED, MAX_POINTS
from registry.recovery.watched import NothingToWatch, Watch
from registry.runs import RunRow
from tests.factories import ALL_PIECES, at, make_project, make_run
from tests.registry.recovery.test_rollback import arc, left_out, mmlu, steps, verify, whole

WATCH = Watch(benchmark="arc_challenge")


def test_one_checkpoint_alone_is_the_candidate_and_nothing_is_established(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000, scores=[arc(0.4)])
    answer = find_rollback_candidates(session, run_id=run.id, watch=WATCH)
    assert steps(answer) == [1000]
    assert "1 evaluated checkpoint, and 4 are needed" in answer.sentence
    assert "the start of the run" in " ".join(answer.candidates[0].reasons)


def test_equal_checkpoints_are_ordered_by_the_step(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000, 3000, 4000, 5000):
        verify(session, whole(session, run, step, scores=[arc(0.4), mmlu(0.5)]))
    answer = find_rollback_candidates(session, run_id=run.id, mode="production")
    assert steps(answer) == [5000, 4000, 3000, 2000, 1000]
    watched = find_rollback_candidates(session, run_id=run.id, watch=WATCH)
    assert watched.sentence.startswith("No fall is established")
    assert set(watched.excluded_counts) == {"p_bad"}


def test_without_any_score_the_watch_is_refused_and_production_says_that_nothing_was_evaluated(
    session: Session,
) -> None:
    run = make_run(session)
    whole(session, run, 1000)
    with pytest.raises(NothingToWatch, match="No score is recorded in this project yet"):
        find_rollback_candidates(session, run_id=run.id, watch=WATCH)
    answer = find_rollback_candidates(session, run_id=run.id, mode="production")
    assert (answer.candidates, left_out(answer)) == ((), {1000: "unscored"})
    assert answer.excluded[0].reason == "no comparable finite score to judge it by"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_all_not_finite_are_no_scores(session: Session, bad: float) -> None:
    run = make_run(session)
    for step in (1000, 2000, 3000, 4000, 5000):
        whole(session, run, step, scores=[arc(bad)])
    answer = find_rollback_candidates(session, run_id=run.id, watch=WATCH)
    assert answer.onset is not None
    assert (answer.onset.onset, answer.onset.points, answer.onset.evaluated) == (None, (), 0)
    assert "cannot be scanned for a fall: no comparable finite score" in answer.sentence
    assert "5 checkpoints with a score that is not finite were left out" in answer.sentence
    assert steps(answer)[0] == 5000


def test_losses_that_are_all_not_finite_leave_no_candidate_and_say_so(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 2000):
        whole(session, run, step, loss=math.nan)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.candidates == ()
    assert "both checkpoints were left out (loss not finite)" in answer.sentence


def test_a_standard_error_of_zero_is_replaced_and_not_believed(session: Session) -> None:
    run = make_run(session)
    for step in range(1000, 9000, 1000):
        value = 0.40 if step < 6000 else 0.39
        whole(session, run, step, scores=[NewScore("arc_challenge", value, metric="acc", stderr=0.0, n_samples=1172)])
    answer = find_rollback_candidates(session, run_id=run.id, watch=WATCH)
    assert answer.onset is not None
    assert answer.onset.onset is not None
    assert not answer.onset.onset.is_established
    expected = math.sqrt(0.4 * 0.6 / 1171) / 0.75
    assert answer.onset.points[0].stderr == pytest.approx(expected)


def test_scores_without_a_known_error_are_not_scanned_and_it_is_said(session: Session) -> None:
    run = make_run(session)
    for step in range(1000, 7000, 1000):
        whole(session, run, step, scores=[NewScore("mt_bench", 6.0, metric="score")])
    answer = find_rollback_candidates(session, run_id=run.id, watch=Watch(benchmark="mt_bench"))
    assert "no standard error is known" in answer.sentence
    assert steps(answer)[0] == 6000


def test_a_suspect_checkpoint_is_left_out_with_the_reason(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1000)
    bad = session.get_one(Checkpoint, whole(session, run, 2000))
    say_suspect(session, bad, suspect=True, reason="bit flips on node 7", actor="ann")
    answer = find_rollback_candidates(session, run_id=run.id)
    assert (steps(answer), left_out(answer)) == ([1000], {2000: "suspect"})
    assert answer.excluded[0].reason == "it is suspect: bit flips on node 7"
    say_suspect(session, bad, suspect=False, reason="memory was exchanged", actor="ann")
    assert steps(find_rollback_candidates(session, run_id=run.id)) == [2000, 1000]


def suspect_copy(session: Session, run: RunRow, checkpoint: int, uri: str) -> None:
    copy = session.query(Replica).where(Replica.checkpoint_id == checkpoint, Replica.uri == uri).one()
    session.add(
        CheckpointSuspicion(
            id=copy.id,
            project_id=run.project_id,
            checkpoint_id=checkpoint,
            replica_id=copy.id,
            signature="x",
            reason="2 attempts that loaded this copy failed alike",
            incidents=2,
            since=at("2026-11-20"),
        )
    )
    session.flush()


def test_a_suspect_copy_is_not_loaded_while_another_is_there(session: Session) -> None:
    run = make_run(session)
    copies = (ReplicaSpec("/a", "shared", bytes=10**9), ReplicaSpec("s3://b/a", "object", bytes=10**9))
    known = whole(session, run, 1000, replicas=copies)
    alone = whole(session, run, 2000, replicas=(ReplicaSpec("/c", "shared", bytes=10**9),))
    for checkpoint, uri in ((known, "/a"), (alone, "/c")):
        suspect_copy(session, run, checkpoint, uri)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert [(each.checkpoint.step, each.copy.uri) for each in answer.candidates] == [(1000, "s3://b/a")]
    assert left_out(answer) == {2000: "copy"}
    assert "suspect" in answer.excluded[0].reason


def test_of_many_only_some_are_shown_and_all_are_counted(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    count = 1200
    items = [
        BatchItem(
            project.name,
            run.name,
            Registration(
                step * 10,
                saved_at=at("2026-11-01"),
                pieces=ALL_PIECES,
                replicas=(ReplicaSpec(f"/ckpt/{step}", "shared", bytes=10**9),),
                scores=(arc(0.5 if step <= 700 else 0.3),),
            ),
        )
        for step in range(1, count + 1)
    ]
    register_batch(session, items)
    answer = find_rollback_candidates(session, run_id=run.id, watch=WATCH)
    assert answer.excluded_counts == {"p_bad": 500}
    assert len(answer.excluded) == MAX_EXCLUDED
    assert answer.excluded[0].checkpoint.step == 12_000
    assert answer.onset is not None
    assert answer.onset.evaluated == count
    shown = [each.checkpoint.step for each in answer.onset.points]
    assert len(shown) <= MAX_POINTS + 4
    assert {10, 7000, 7010, 12_000} <= set(shown)
    assert answer.last_known_good is not None
    assert answer.last_known_good.step == 7000
    every = find_rollback_candidates(session, run_id=run.id, watch=WATCH, every_point=True)
    assert every.onset is not None
    assert len(every.onset.points) == count


def test_each_candidate_says_its_terms_and_what_would_change_the_order(session: Session) -> None:
    run = make_run(session)
    for step in (1000, 1010, 1020):
        whole(session, run, step, scores=[arc(0.4)])
    for mode, term in (("training", "expected_minutes"), ("production", "lower_bound")):
        answer = find_rollback_candidates(session, run_id=run.id, mode=mode)
        for each in answer.candidates:
            assert each.terms[term] is not None
            assert any("first" in reason or "did not load" in reason for reason in each.reasons)
