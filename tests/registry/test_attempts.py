"""Attempts: what they loaded, and what that supersedes."""

from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from registry.attempts import AttemptSpec, AttemptWouldRestart, list_attempts, open_attempt
from registry.checkpoints.commands import BatchItem, register_batch
from registry.checkpoints.detail import get_checkpoint
from registry.checkpoints.registration import Registration
from registry.live_path import live_steps
from registry.models import Attempt
from registry.projects import ProjectRow
from registry.resume_points import ResumePoint
from tests.factories import make_attempt, make_checkpoint, make_project, make_run


def live(session: Session, run_id: int) -> list[int | None]:
    return [attempt.live_through_step for attempt in list_attempts(session, run_id)]


def test_the_same_key_again_is_the_same_attempt(session: Session) -> None:
    run = make_run(session)
    first, made = open_attempt(session, run.id, AttemptSpec(key="slurm-42"))
    again, made_again = open_attempt(session, run.id, AttemptSpec(key="slurm-42"))
    assert (first.id, made, made_again) == (again.id, True, False)


def test_who_opens_it_second_completes_what_the_first_had_not_said(session: Session) -> None:
    run = make_run(session)
    open_attempt(session, run.id, AttemptSpec(key="slurm-42", command="cairn exec"))
    spec = AttemptSpec(key="slurm-42", command="train.py", reason="new data", nodes=["n1"], config={"lr": 1})
    completed, made = open_attempt(session, run.id, spec)
    assert (completed.command, completed.reason, completed.nodes, made) == ("cairn exec", "new data", ("n1",), False)
    assert session.get_one(Attempt, completed.id).config_id is not None


def test_what_the_second_says_otherwise_stays_as_it_was_and_is_named(session: Session) -> None:
    run = make_run(session)
    for step in (100, 200):
        make_checkpoint(session, run, step)
    spec = AttemptSpec(key="k", command="a", config={"lr": 1}, resumed_from=ResumePoint(attempt=1, step=200))
    opened, _ = open_attempt(session, run.id, spec)
    assert open_attempt(session, run.id, spec)[0] == opened
    other = AttemptSpec(key="k", command="b", config={"lr": 2}, resumed_from=ResumePoint(attempt=1, step=100))
    again, _ = open_attempt(session, run.id, other)
    assert sorted(again.not_applied) == ["command", "config", "resumed_from"]
    assert (again.command, again.resumed_from) == ("a", opened.resumed_from)


def test_a_resume_that_names_no_attempt_is_the_same_when_it_is_sent_again(session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 100)
    spec = AttemptSpec(key="k", resumed_from=ResumePoint(step=100))
    opened, _ = open_attempt(session, run.id, spec)
    assert open_attempt(session, run.id, spec) == (opened, False)


def test_what_the_first_did_not_say_was_loaded_or_left_out_the_second_may(session: Session) -> None:
    project = make_project(session)
    base, tuned = make_run(session, project, "base"), make_run(session, project, "tuned")
    source = make_checkpoint(session, base, 500)
    open_attempt(session, tuned.id, AttemptSpec(key="k"))
    spec = AttemptSpec(key="k", resumed_from=ResumePoint(checkpoint_id=source), skip=[(10, 20)])
    completed, made = open_attempt(session, tuned.id, spec)
    assert (made, completed.not_applied, completed.skip) == (False, (), ((10, 20),))
    assert completed.resumed_from is not None
    assert (completed.resumed_from.checkpoint_id, completed.resumed_from.run) == (source, "base")


def test_an_attempt_that_started_over_does_not_become_one_that_loaded_something(session: Session) -> None:
    run = make_run(session)
    kept = make_checkpoint(session, run, 100)
    open_attempt(session, run.id, AttemptSpec(key="k", restart=True))
    again, _ = open_attempt(session, run.id, AttemptSpec(key="k", resumed_from=ResumePoint(checkpoint_id=kept)))
    assert (again.not_applied, again.resumed_from) == (("resumed_from",), None)


def test_a_silent_restart_over_committed_checkpoints_is_refused(session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 4000)
    with pytest.raises(AttemptWouldRestart, match="step 4000"):
        open_attempt(session, run.id, AttemptSpec())
    assert open_attempt(session, run.id, AttemptSpec(restart=True))[0].number == 2


def test_what_lies_beyond_the_resume_point_is_superseded(session: Session) -> None:
    run = make_run(session)
    kept, beyond = (make_checkpoint(session, run, step) for step in (1000, 2000))
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=kept))
    repeated = make_checkpoint(session, run, 2000)
    assert repeated != beyond
    states = [get_checkpoint(session, each).superseded for each in (kept, beyond, repeated)]
    assert states == [False, True, False]


def test_late_records_of_an_older_attempt_are_accepted_and_superseded(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run)
    kept = make_checkpoint(session, run, 1000)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=kept))
    late = make_checkpoint(session, run, 1500, attempt=1)
    assert get_checkpoint(session, late).superseded


def test_a_resume_point_is_kept_until_its_record_arrives(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run)
    second = make_attempt(session, run, resumed_from=ResumePoint(run=run.name, attempt=1, step=500))
    assert second.resumed_from == ResumePoint(None, None, 1, 500, None)
    arrived = make_checkpoint(session, run, 500, attempt=1)
    point = list_attempts(session, run.id)[1].resumed_from
    assert point is not None
    assert point.checkpoint_id == arrived


def test_the_record_of_an_older_attempt_may_arrive_after_its_successor_s(session: Session) -> None:
    run = make_run(session)
    second = make_attempt(session, run, key="second", resumed_from=ResumePoint(attempt=1, step=500))
    make_checkpoint(session, run, 600)
    first, _ = open_attempt(session, run.id, AttemptSpec(key="first"))
    assert (first.number, second.number) == (1, 2)
    assert live(session, run.id) == [500, None]


def test_a_fork_into_another_run_supersedes_nothing(session: Session) -> None:
    run = make_run(session)
    source, later = (make_checkpoint(session, run, step) for step in (1000, 2000))
    fork = make_run(session, ProjectRow(run.project_id, run.project))
    attempt = make_attempt(session, fork, resumed_from=ResumePoint(checkpoint_id=source))
    assert attempt.resumed_from == ResumePoint(source, run.name, 1, 1000, "archive")
    assert not get_checkpoint(session, later).superseded


def test_a_backfilled_attempt_goes_on_from_before_its_first_step(session: Session) -> None:
    from registry.checkpoints.commands import BatchItem, register_batch
    from registry.checkpoints.registration import Registration

    run = make_run(session)
    items = [
        BatchItem(run.project, run.name, Registration(step, attempt=attempt))
        for attempt, step in [(1, 100), (1, 200), (1, 300), (2, 250), (2, 350)]
    ]
    register_batch(session, items)
    assert live(session, run.id) == [249, None]


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({}, {}),
        ({1: None}, {1: None}),
        ({1: None, 2: (1, 100)}, {1: 100, 2: None}),
        ({1: None, 2: (1, 1000), 3: (1, 500)}, {1: 500, 2: -1, 3: None}),
        ({1: None, 2: (1, 1000), 3: (2, 1200)}, {1: 1000, 2: 1200, 3: None}),
        ({1: None, 2: None}, {1: -1, 2: None}),
        ({1: None, 2: (None, 99)}, {1: 99, 2: None}),
        ({1: None, 2: (1, 1000), 3: (2, 900)}, {1: 900, 2: 900, 3: None}),
    ],
)
def test_live_steps_follow_the_newest_path(
    parents: dict[int, tuple[int | None, int] | None], expected: dict[int, int | None]
) -> None:
    assert live_steps(parents) == expected


def test_an_attempt_costs_as_many_statements_in_a_run_of_hundreds_as_in_a_run_of_three(session: Session) -> None:
    run = make_run(session)
    counts: list[int] = []
    seen: list[str] = []

    def listen(*known: Any) -> None:
        seen.append(known[2])

    event.listen(session.get_bind(), "before_cursor_execute", listen)
    try:
        for number in range(1, 201):
            seen.clear()
            make_attempt(session, run, key=str(number))
            make_checkpoint(session, run, step=number)
            counts.append(len(seen))
    finally:
        event.remove(session.get_bind(), "before_cursor_execute", listen)
    assert counts[-1] <= counts[4]


def test_attempts_that_nobody_opened_are_on_the_path_that_their_files_tell(session: Session) -> None:
    run = make_run(session)
    saves = [(attempt, step) for attempt in range(1, 8) for step in (attempt * 10, attempt * 10 + 15)]
    register_batch(
        session, [BatchItem(run.project, run.name, Registration(step, attempt=attempt)) for attempt, step in saves]
    )
    assert live(session, run.id) == [19, 29, 39, 49, 59, 69, None]
