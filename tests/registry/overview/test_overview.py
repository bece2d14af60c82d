"""Runs with their newest checkpoint, checkpoints in brief, the scores of a run."""

import math

from sqlalchemy.orm import Session

from registry.attempts import plain_attempts
from registry.checkpoints.registration import ReplicaSpec
from registry.ids import new_id
from registry.models import Checkpoint, Replica
from registry.overview.attempts import Progress, progress_by_attempt
from registry.overview.briefs import read_briefs
from registry.overview.run_order import SORTS
from registry.overview.runs import count_registry, get_run_overview, list_run_overviews, neighbours, saved_steps
from registry.overview.scores import count_scores, metrics_of_run, scores_of_run
from registry.overview.starts import TO_SERVE, TO_TRAIN, has_way_back, newest_pair
from registry.resume_points import ResumePoint
from registry.types import PieceName, Presence
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run, make_score


def test_the_newest_checkpoint_is_the_last_of_attempt_and_step_whenever_it_arrived(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run)
    make_checkpoint(session, run, 5000, saved_at=at("2026-11-05"))
    make_attempt(session, run, resumed_from=ResumePoint(step=5000, attempt=1))
    newest = make_checkpoint(session, run, 2000, attempt=2, saved_at=at("2026-11-02"))
    make_checkpoint(session, run, 4000, attempt=1, saved_at=at("2026-11-09"))
    overview = get_run_overview(session, run.id)
    assert overview is not None
    assert (overview.newest_id, overview.attempts, overview.checkpoints) == (newest, 2, 3)
    assert overview.saved_at == at("2026-11-09")


def test_deleted_checkpoints_are_neither_counted_nor_newest(session: Session) -> None:
    run = make_run(session)
    kept, gone = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    session.get_one(Checkpoint, gone).state = "deleted"
    session.flush()
    (row,) = list_run_overviews(session, project_ids=None).rows
    assert (row.newest_id, row.checkpoints) == (kept, 1)
    assert [each.checkpoint_id for each in saved_steps(session, run.project_id, run.id)] == [kept]
    assert count_registry(session, None).newest_id == kept


def test_pages_of_runs_meet_every_run_once_also_those_without_checkpoints(session: Session) -> None:
    project = make_project(session)
    runs = [make_run(session, project, parameter_count=None if n % 2 else n + 1) for n in range(9)]
    for number, run in enumerate(runs[:6]):
        make_checkpoint(session, run, 1, saved_at=at(f"2026-11-0{number // 2 + 1}"))  # two of each time
    for sort in (sign + name for name in SORTS for sign in ("", "-")):
        seen: list[int] = []
        after = None
        while True:
            page = list_run_overviews(session, project_ids=[project.id], sort=sort, after=after, limit=2)
            seen += [row.id for row in page.rows]
            after = page.next_after
            if after is None:
                break
        assert sorted(seen) == sorted(run.id for run in runs), sort
    without = [row.id for row in list_run_overviews(session, project_ids=[project.id]).rows][-3:]
    assert set(without) == {run.id for run in runs[6:]}


def test_only_the_projects_asked_for_are_seen(session: Session) -> None:
    mine, other = make_run(session), make_run(session)
    make_checkpoint(session, other, 1)
    rows = list_run_overviews(session, project_ids=[mine.project_id]).rows
    assert [row.id for row in rows] == [mine.id]
    totals = count_registry(session, [mine.project_id])
    assert (totals.runs, totals.projects, totals.newest_id) == (1, 1, None)
    assert list_run_overviews(session, project_ids=[]).rows == ()


def test_a_percent_sign_in_a_search_is_no_wildcard(session: Session) -> None:
    run = make_run(session, name="mix-50%-web")
    make_run(session, name="mix-50-web")
    assert [row.id for row in list_run_overviews(session, project_ids=None, contains="50%").rows] == [run.id]


def test_a_brief_names_the_copy_that_every_host_can_read(session: Session) -> None:
    copies = (
        ReplicaSpec("s3://bucket/1", "object", bytes=10),
        ReplicaSpec("/local/1", "local"),
        ReplicaSpec("/shared/1", "shared"),
    )
    checkpoint = make_checkpoint(session, replicas=copies, pieces=["weights"], loss=math.nan)
    brief = read_briefs(session, [checkpoint])[checkpoint]
    assert brief.copies.uri == "/shared/1"
    assert brief.copies.tiers == ("shared", "local", "object")
    assert brief.copies.bytes == 10
    assert brief.loss is not None
    assert math.isnan(brief.loss)
    assert brief.pieces[PieceName.WEIGHTS] is Presence.PRESENT
    assert brief.pieces[PieceName.OPTIMIZER] is Presence.UNKNOWN
    for replica in session.query(Replica).where(Replica.tier == "shared"):
        replica.state = "removed_elsewhere"
    session.flush()
    assert read_briefs(session, [checkpoint])[checkpoint].copies.uri == "/local/1"


def test_briefs_of_what_does_not_exist_are_left_out(session: Session) -> None:
    checkpoint = make_checkpoint(session)
    assert set(read_briefs(session, [checkpoint, new_id()])) == {checkpoint}
    assert read_briefs(session, []) == {}


def test_neighbours_follow_attempt_then_step(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run)
    first = make_checkpoint(session, run, 1000)
    second = make_checkpoint(session, run, 2000)
    make_attempt(session, run, resumed_from=ResumePoint(step=1000, attempt=1))
    third = make_checkpoint(session, run, 2000)
    make_checkpoint(session, make_run(session), 1500)  # another run's
    before, after = neighbours(session, second)
    assert before is not None
    assert after is not None
    assert (before.checkpoint_id, after.checkpoint_id) == (first, third)
    assert neighbours(session, first)[0] is None
    assert neighbours(session, third)[1] is None
    assert [each.superseded for each in saved_steps(session, run.project_id, run.id)] == [False, True, False]


def test_scores_of_a_run_come_in_its_order_with_the_superseded_marked(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run)
    for step in (1000, 2000):
        make_checkpoint(session, run, step, scores={"piqa": step / 10_000, "boolq": math.nan})
    make_attempt(session, run, resumed_from=ResumePoint(step=1000, attempt=1))
    late = make_checkpoint(session, run, 2000)
    make_score(session, late, "piqa", 0.9, stderr=0.01)
    metrics = metrics_of_run(session, run.project_id, run.id)
    assert [(metric.benchmark, metric.count) for metric in metrics] == [("piqa", 3), ("boolq", 2)]
    piqa = scores_of_run(session, run.project_id, run.id, [metrics[0].id])
    assert [(score.attempt, score.step, score.value, score.superseded) for score in piqa] == [
        (1, 1000, 0.1, False),
        (1, 2000, 0.2, True),
        (2, 2000, 0.9, False),
    ]
    boolq = scores_of_run(session, run.project_id, run.id, [metrics[1].id])
    assert all(score.value is not None and math.isnan(score.value) for score in boolq)
    assert count_scores(session, run.project_id, [late]) == {late: 1}


def test_attempts_are_counted_though_their_numbers_have_gaps(session: Session) -> None:
    run = make_run(session)
    plain_attempts(session, run.project_id, [(run.id, 1), (run.id, 7)])
    for number in (1, 7):
        make_checkpoint(session, run, 10, attempt=number)
    overview = get_run_overview(session, run.id)
    assert overview is not None
    assert (overview.attempts, overview.attempt) == (2, 7)
    assert [(row.attempts, row.attempt) for row in list_run_overviews(session, project_ids=None).rows] == [(2, 7)]


def test_each_attempt_knows_what_it_saved(session: Session) -> None:
    run = make_run(session)
    plain_attempts(session, run.project_id, [(run.id, 1), (run.id, 4)])
    for step in (10, 20, 30):
        last = make_checkpoint(session, run, step, attempt=1)
    make_checkpoint(session, run, 15, attempt=4)
    make_checkpoint(session, make_run(session), 99)
    session.get_one(Checkpoint, last).state = "deleted"
    session.flush()
    progress = progress_by_attempt(session, run.project_id, run.id)
    assert (progress[1], progress[4]) == (Progress(2, 30, 30), Progress(1, 15, 15))


def test_a_way_back_has_the_pieces_a_copy_and_is_not_where_one_stands(session: Session) -> None:
    run = make_run(session)
    copy = ReplicaSpec("/shared/1", "shared")
    whole = make_checkpoint(session, run, 1, pieces=["weights", "optimizer"], replicas=(copy,))
    make_checkpoint(session, run, 2, pieces=["weights", "optimizer", "data_position"])  # no copy of it
    assert has_way_back(session, run.project_id, run.id, TO_SERVE)
    assert not has_way_back(session, run.project_id, run.id, TO_SERVE, besides=whole)
    assert not has_way_back(session, run.project_id, run.id, TO_TRAIN)


def test_the_newest_pair_is_of_the_newest_attempt_and_committed(session: Session) -> None:
    run = make_run(session)
    plain_attempts(session, run.project_id, [(run.id, 1), (run.id, 2)])
    make_checkpoint(session, run, 9, attempt=1)
    first = make_checkpoint(session, run, 2, attempt=2)
    assert newest_pair(session, run.project_id, run.id) is None
    second = make_checkpoint(session, run, 5, attempt=2)
    make_checkpoint(session, run, 7, attempt=2, state="pending")
    assert newest_pair(session, run.project_id, run.id) == (first, second)
