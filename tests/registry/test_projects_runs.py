"""Projects and runs: made once, found by name, read back whole."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.orm import Session

from registry.attempts import AttemptNotFound, AttemptSpec, amend_attempt, get_attempt, list_attempts, open_attempt
from registry.checkpoints.detail import read_config
from registry.db import Database
from registry.ids import new_id, to_text
from registry.projects import BadProjectName, ProjectNotFound, create_project, find_project, list_projects
from registry.resume_points import BadResumePoint, ResumePoint
from registry.runs import (
    RunNotFound,
    RunSpec,
    TrackerSpec,
    find_run,
    get_brief,
    get_run,
    list_runs,
    run_ids_by_name,
    start_run,
)
from registry.snapshots import LayoutSpec
from registry.types import MAX_ATTEMPT
from tests.factories import at, make_attempt, make_checkpoint, make_project, make_run

FULL = RunSpec(
    "llama-7b-a",
    kind="pretrain",
    owner="ann",
    team="core",
    model_family="llama",
    parameter_count=6_738_415_616,
    config={"lr": 3e-4},
    tags={"phase": "one", "ü": "雪"},
    trackers=[TrackerSpec("mlflow", "abc", "https://mlflow.example"), TrackerSpec("wandb", "x", "", "team", "proj")],
    started_at=at("2026-11-01T10:00"),
)


def test_a_project_is_made_once(session: Session) -> None:
    row, made = create_project(session, "llm")
    again, made_again = create_project(session, "llm")
    assert (row, made, made_again) == (again, True, False)
    assert find_project(session, "llm") == row
    assert create_project(session, "LLM")[0].id != row.id


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a\0", "é", "a\n", "x" * 129, "٣"])
def test_a_name_outside_the_letters_is_no_project(session: Session, name: str) -> None:
    with pytest.raises(BadProjectName) as refused:
        create_project(session, name)
    assert refused.value.errors[0].pointer == "/name"
    with pytest.raises(ProjectNotFound):
        find_project(session, name)
    assert list_projects(session) == []


def test_projects_are_listed_by_name_and_only_those_allowed(session: Session) -> None:
    rows = {name: make_project(session, name) for name in ("b", "a.b", "A", "a-b", "x" * 128)}
    assert [row.name for row in list_projects(session)] == sorted(rows)  # by code point on both databases
    assert list_projects(session, {rows["b"].id}) == [rows["b"]]
    assert list_projects(session, set()) == []


def test_everything_said_of_a_run_comes_back(session: Session) -> None:
    project = make_project(session, "llm")
    run, made = start_run(session, project.id, FULL)
    assert made
    assert (run.project, run.name, run.kind, run.owner, run.team) == ("llm", "llama-7b-a", "pretrain", "ann", "core")
    assert (run.model_family, run.parameter_count, run.started_at) == ("llama", 6_738_415_616, FULL.started_at)
    assert run.tags == FULL.tags
    assert sorted(run.trackers, key=lambda each: each.kind) == list(FULL.trackers)
    assert read_config(session, run.config_id) == FULL.config
    assert find_run(session, "llm", "llama-7b-a") == run == get_run(session, run.id)
    brief = get_brief(session, run.id)
    assert (brief.id, brief.project, brief.name) == (run.id, "llm", "llama-7b-a")


def test_starting_a_run_again_adds_tags_and_trackers_and_changes_nothing(session: Session) -> None:
    project = make_project(session)
    run, _ = start_run(session, project.id, FULL)
    later = RunSpec(
        FULL.name,
        owner="bob",
        config={"lr": 1},
        tags={"phase": "two", "new": "yes"},
        trackers=[FULL.trackers[0], TrackerSpec("wandb", "rank-7")],  # any rank may link
    )
    again, made = start_run(session, project.id, later)
    assert (again.id, made, again.owner, again.config_id) == (run.id, False, "ann", run.config_id)
    assert again.tags == {"phase": "one", "ü": "雪", "new": "yes"}
    assert {(each.kind, each.run_id) for each in again.trackers} == {
        ("mlflow", "abc"),
        ("wandb", "x"),
        ("wandb", "rank-7"),
    }


def test_what_the_first_start_left_unsaid_is_filled_in_whoever_came_first(session: Session) -> None:
    project = make_project(session)
    tracker = TrackerSpec("wandb", "rank-7")
    run, _ = start_run(session, project.id, RunSpec(FULL.name, trackers=[tracker]))  # the last rank knows only this
    again, made = start_run(session, project.id, FULL)
    assert (again.id, made, again.owner, again.started_at) == (run.id, False, FULL.owner, FULL.started_at)
    assert read_config(session, again.config_id) == FULL.config
    assert {each.run_id for each in again.trackers} == {"rank-7", *(each.run_id for each in FULL.trackers)}
    third, _ = start_run(session, project.id, RunSpec(FULL.name, owner="bob", config={"lr": 1}))
    assert (third.owner, third.config_id) == (FULL.owner, again.config_id)


def test_the_same_name_in_another_project_is_another_run(session: Session) -> None:
    one, other = (make_run(session, name="r") for _ in range(2))
    assert one.id != other.id
    assert find_run(session, one.project, "r").id == one.id


# 'é' as two code points, as macOS hands out names of folders, and as one.
SPELLINGS = ["r\u00e9sum\u00e9", "re\u0301sume\u0301", " r\u00e9sume\u0301 ", "\u3000r\u00e9sum\u00e9\u00a0"]


@pytest.mark.parametrize("first", SPELLINGS)
def test_names_that_read_the_same_are_one_run_however_they_are_written(session: Session, first: str) -> None:
    project = make_project(session)
    run, made = start_run(session, project.id, RunSpec(first))
    assert (made, run.name) == (True, SPELLINGS[0])
    for spelling in SPELLINGS:
        assert start_run(session, project.id, RunSpec(spelling))[0].id == run.id
        assert find_run(session, project.name, spelling).id == run.id
        assert [row.id for row in list_runs(session, project_ids=[project.id], name=spelling)] == [run.id]
    keys = [(project.name, spelling) for spelling in SPELLINGS]
    assert run_ids_by_name(session, keys) == dict.fromkeys(keys, (project.id, run.id))
    made_there = make_checkpoint(session, run, 500)
    child = make_attempt(session, make_run(session, project), resumed_from=ResumePoint(run=SPELLINGS[2], step=500))
    assert child.resumed_from is not None
    assert child.resumed_from.checkpoint_id == made_there


def test_spaces_within_a_name_and_its_letters_still_tell_runs_apart(session: Session) -> None:
    project = make_project(session)
    names = ["a b", "a  b", "A b", "ab", "\uff41 b"]
    assert len({start_run(session, project.id, RunSpec(name))[0].id for name in names}) == len(names)


def test_what_is_not_there_is_not_found(session: Session) -> None:
    run = make_run(session)
    missing = new_id()
    for look in (get_run, get_brief, list_attempts):
        with pytest.raises(RunNotFound, match=to_text(missing)):
            look(session, missing)
    for name in ("other", "a\0b", ""):
        with pytest.raises(RunNotFound):
            find_run(session, run.project, name)
    with pytest.raises(ProjectNotFound):
        find_run(session, "nowhere", run.name)


def test_runs_are_found_by_their_names_at_once(session: Session) -> None:
    runs = [make_run(session) for _ in range(3)]
    keys = [(run.project, run.name) for run in runs]
    assert run_ids_by_name(session, [*keys, ("nowhere", "r"), (runs[0].project, "none")]) == {
        (run.project, run.name): (run.project_id, run.id) for run in runs
    }
    assert run_ids_by_name(session, []) == {}


def test_runs_are_listed_the_newest_first_page_by_page_while_others_start(session: Session) -> None:
    project = make_project(session)
    runs = [make_run(session, project) for _ in range(5)]
    first = list_runs(session, project_ids=[project.id], limit=2)
    make_run(session, project)
    rest = list_runs(session, project_ids=[project.id], after=first[-1].id, limit=10)
    assert [run.id for run in (*first, *rest)] == [run.id for run in reversed(runs)]
    assert [run.id for run in list_runs(session, name=runs[1].name)] == [runs[1].id]
    assert list_runs(session, project_ids=[]) == []


def test_many_that_start_one_run_all_have_it(committed_database: Database) -> None:
    def start(_: int) -> tuple[int, bool]:
        with committed_database.write() as session:
            project, _ = create_project(session, "p")
            run, made = start_run(session, project.id, RunSpec("r", config={"lr": 1}, tags={"a": "b"}))
            return run.id, made

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(start, range(24)))
    assert len({run_id for run_id, _ in started}) == 1
    assert sum(made for _, made in started) == 1


# Attempts, as they are recorded


def test_everything_said_of_an_attempt_comes_back(session: Session) -> None:
    run = make_run(session)
    loaded = make_checkpoint(session, run, 500)
    spec = AttemptSpec(
        key="slurm-42",
        resumed_from=ResumePoint(checkpoint_id=loaded),
        command="torchrun train.py",
        reason="loss spike",
        changes="lower lr",
        skip=[(700, 900), (510, 510)],
        config={"lr": 1e-4},
        environment={"torch": "2.13"},
        layout=LayoutSpec(64, tp=4),
        nodes=["node-1", "node-2"],
        started_at=at("2026-11-01"),
    )
    made, fresh = open_attempt(session, run.id, spec)
    assert (made.number, fresh, made.key, made.state, made.restart) == (2, True, "slurm-42", "running", False)
    assert made.resumed_from == ResumePoint(loaded, None, 1, 500, "archive")
    assert (made.command, made.reason, made.changes) == ("torchrun train.py", "loss spike", "lower lr")
    assert (made.skip, made.nodes, made.started_at) == (((510, 510), (700, 900)), ("node-1", "node-2"), spec.started_at)
    assert get_attempt(session, run.id, 2) == made
    with pytest.raises(AttemptNotFound, match="no attempt 3"):
        get_attempt(session, run.id, 3)


def test_a_heartbeat_never_goes_back(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run)
    amend_attempt(session, run.id, 1, {"heartbeat_at": at("2026-11-02"), "step": 900})
    late = amend_attempt(session, run.id, 1, {"heartbeat_at": at("2026-11-01"), "step": 300})
    assert (late.heartbeat_at, late.heartbeat_step) == (at("2026-11-02"), 900)
    ended = amend_attempt(session, run.id, 1, {"state": "failed", "ended_at": at("2026-11-03"), "exit_code": -9})
    assert (ended.state, ended.ended_at, ended.exit_code, ended.heartbeat_step) == ("failed", at("2026-11-03"), -9, 900)
    assert amend_attempt(session, run.id, 1, {"exit_code": None}).exit_code is None
    assert amend_attempt(session, run.id, 1, {}).state == "failed"


def test_a_resume_point_needs_a_step_or_a_checkpoint_of_the_project(session: Session) -> None:
    run, other = make_run(session), make_run(session)
    foreign = make_checkpoint(session, other, 5)
    for point in (ResumePoint(), ResumePoint(attempt=1), ResumePoint(checkpoint_id=foreign)):
        with pytest.raises(BadResumePoint) as refused:
            open_attempt(session, run.id, AttemptSpec(resumed_from=point))
        assert refused.value.errors[0].pointer == "/resumed_from"
    with pytest.raises(BadResumePoint, match=str(MAX_ATTEMPT)):
        open_attempt(session, run.id, AttemptSpec(resumed_from=ResumePoint(attempt=MAX_ATTEMPT, step=5)))
    assert list_attempts(session, run.id) == []


@pytest.mark.parametrize("by", ["name", "id"])
def test_another_run_may_be_named_by_name_or_id(session: Session, by: str) -> None:
    project = make_project(session)
    source, fork = make_run(session, project), make_run(session, project)
    loaded = make_checkpoint(session, source, 5)
    named = source.name if by == "name" else to_text(source.id)
    made = make_attempt(session, fork, resumed_from=ResumePoint(run=named, attempt=1, step=5))
    assert made.resumed_from == ResumePoint(loaded, source.name, 1, 5, None)


def test_a_run_that_is_awaited_under_its_name_is_tied_when_its_checkpoint_arrives(session: Session) -> None:
    project = make_project(session)
    fork = make_run(session, project)
    made = make_attempt(session, fork, resumed_from=ResumePoint(run="not-yet", attempt=1, step=5))
    assert made.resumed_from == ResumePoint(None, "not-yet", 1, 5, None)
    loaded = make_checkpoint(session, make_run(session, project, "not-yet"), 5)
    assert get_attempt(session, fork.id, 1).resumed_from == ResumePoint(loaded, "not-yet", 1, 5, None)


def test_a_plain_attempt_never_slips_in_between_later_ones(session: Session) -> None:
    """Only the first attempt of a run loads nothing: a job that says nothing is not taken for an older one's record."""
    run = make_run(session)
    make_attempt(session, run, resumed_from=ResumePoint(attempt=3, step=5))
    assert [row.number for row in list_attempts(session, run.id)] == [4]
    assert open_attempt(session, run.id, AttemptSpec())[0].number == 1
    assert open_attempt(session, run.id, AttemptSpec())[0].number == 5


def test_many_that_open_attempts_have_one_number_each(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)

    def open_one(place: int) -> int:
        with committed_database.write() as session:
            return open_attempt(session, run.id, AttemptSpec(key=f"job-{place % 6}", restart=True))[0].number

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(open_one, range(24)))
    assert sorted(set(numbers)) == [1, 2, 3, 4, 5, 6]
    assert all(numbers[place] == numbers[place % 6] for place in range(24))
