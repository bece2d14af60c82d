"""An execution that does not say what it loaded: told from its steps, or kept on disk where they do not tell."""

from pathlib import Path

import cairn
import pytest
from cairn import Client
from cairn.recorder import Recorder, engine
from cairn.spool import sending

from tests.client.conftest import Cli
from tests.client.recorder.jobs import environment, run_job
from tests.client.until import LATEST, until


def committed(live: Client, project: str, *steps: int) -> None:
    made = live.create_run(project, "r")
    live.start_attempt(made, key="before", restart=True)
    for step in steps:
        live.register_checkpoint(made, step)


def steps_of(live: Client, project: str) -> list[tuple[int, int]]:
    found = live.iter_checkpoints(filter=f"project = '{project}'")
    return sorted((each.attempt or 0, each.step or 0) for each in found)


def begin(project: str, **more: object) -> Recorder:
    run = cairn.start(project, "r", capture=False, **more)  # type: ignore[arg-type]
    assert isinstance(run, Recorder)
    return run


def wait_for_the_question(run: Recorder) -> None:
    """Until the background knows that the records wait for somebody's word."""
    with run._engine._pace.hurried():
        until(lambda: (sender := run._engine._sender) and sender.delivery and sender.delivery.waiting)


def test_steps_that_go_on_tell_what_was_loaded(live: Client, project: str, said: list[str]) -> None:
    committed(live, project, 1000, 2000)
    run = begin(project)
    run.log(2001, loss=1.0)
    run.saved(step=3000)
    assert run.flush(LATEST)
    second = live.list_attempts(live.find_run(project, "r"))[1].raw
    assert (second["resumed_from"]["attempt"], second["resumed_from"]["step"], second["restart"]) == (1, 2000, False)
    assert second["reason"].startswith("assumed: nobody said what was loaded")
    engine.shut_down(LATEST)
    assert len([each for each in said if "assumed" in each]) == 1


def test_the_first_logged_step_counts_before_the_first_save(live: Client, project: str) -> None:
    """A quick loop has saved before the points that were logged first are on disk."""
    committed(live, project, 1000, 2000)
    run = begin(project)
    for step in range(1, 1501):
        run.log(step, loss=1.0)
    run.saved(step=1500)
    wait_for_the_question(run)  # it may have started over: nothing is assumed
    assert not run.flush(0.5)
    assert steps_of(live, project) == [(1, 1000), (1, 2000)]


@pytest.mark.parametrize("given", [1000, "path", "id", "point"])
def test_what_was_loaded_may_be_said_in_any_way(live: Client, project: str, tmp_path: Path, given: object) -> None:
    committed(live, project, 1000, 2000)
    recorded = live.find_run(project, "r")
    (one,) = live.list_checkpoints(filter=f"run.id = '{recorded.id}' and step = 1000").items
    (tmp_path / "checkpoint-1000").mkdir()
    forms = {
        "path": tmp_path / "checkpoint-1000",
        "id": one.id,
        "point": {"attempt": 1, "step": 1000, "kind": "archive"},
    }
    run = begin(project, resumed_from=forms.get(given, given) if isinstance(given, str) else given)
    run.saved(step=1500)
    assert run.flush(LATEST)
    second = live.list_attempts(recorded)[1].raw
    assert (second["resumed_from"]["checkpoint_id"], second["resumed_from"]["step"]) == (one.id, 1000)
    assert [each.step for each in live.iter_checkpoints(filter=f"project = '{project}' and superseded")] == [2000]


def test_one_that_began_below_every_checkpoint_supersedes_nothing_and_loses_nothing(
    live: Client, project: str, service: tuple[str, Path], spool: Path, cli: Cli
) -> None:
    """The pointer file was lost and the job silently began at step 0, over its own checkpoints."""
    committed(live, project, 1000, 2000)
    code = f"""
run = cairn.start({project!r}, 'r', capture=False)
other = cairn.start({project!r}, 'other', capture=False)
for step in range(1, 4):
    run.log(step, loss=1.0)
    run.saved(step=step)
other.saved(step=7)
with other._engine._pace.hurried():
    while (standing := other._engine.standing()) is None or standing.reached < 2:  # the start and the save of the other
        time.sleep(0.02)
"""
    done = run_job(code, environment(*service, spool))
    assert done.returncode == 0
    assert "began at step 1 without saying what it loaded" in done.stderr
    assert steps_of(live, project) == [(1, 7), (1, 1000), (1, 2000)]  # the other run was not held up
    assert list(live.iter_checkpoints(filter=f"project = '{project}' and superseded")) == []
    code_, out, _ = cli("spool", "list")
    assert code_ == 0
    assert f"{project}/r" in out
    assert cli("spool", "flush")[0] == 1
    assert len(live.list_attempts(live.find_run(project, "r"))) == 1
    code_, out, err = cli("spool", "flush", "--restart")
    assert code_ == 0, err
    assert "Sent" in out
    assert (2, 3) in steps_of(live, project)
    assert live.list_attempts(live.find_run(project, "r"))[1].raw["restart"] is True
    assert cli("spool", "list")[0] == 1


def without_a_word(project: str, run: str, **said: object) -> str:
    """A job that saves step 1 and ends without having said what it loaded."""
    return f"cairn.start({project!r}, {run!r}, capture=False, **{said!r}).saved(step=1)\n"


def test_a_word_for_one_run_is_not_said_of_another(
    live: Client, project: str, cli: Cli, spool: Path, service: tuple[str, Path]
) -> None:
    for name in ("r", "other"):
        live.register_checkpoint(live.create_run(project, name), 1000)
        assert run_job(without_a_word(project, name), environment(*service, spool)).returncode == 0
    for word in (("--restart",), ("--resumed-from", "1")):
        code, _, err = cli("spool", "flush", *word)
        assert (code, f"one of {project}/other, {project}/r." in err) == (2, True), err
    assert [len(live.list_attempts(live.find_run(project, name))) for name in ("r", "other")] == [1, 1]
    assert cli("spool", "flush", "--restart", "--run", f"{project}/r")[0] == 0
    assert [len(live.list_attempts(live.find_run(project, name))) for name in ("r", "other")] == [2, 1]
    code, _, err = cli("spool", "flush")
    assert code == 1
    assert f"cairn spool flush --run {project}/other --restart" in err
    assert cli("spool", "flush", "--restart")[0] == 0  # only one is left that it could mean
    assert cli("spool", "list")[0] == 1


def test_of_two_runs_of_one_process_a_word_is_said_of_one(
    live: Client, project: str, cli: Cli, spool: Path, service: tuple[str, Path]
) -> None:
    for name in ("r", "other"):
        live.register_checkpoint(live.create_run(project, name), 1000)
    code = without_a_word(project, "r") + without_a_word(project, "other")
    assert run_job(code, environment(*service, spool)).returncode == 0
    assert cli("spool", "flush", "--restart", "--run", f"{project}/other")[0] == 1
    assert [len(live.list_attempts(live.find_run(project, name))) for name in ("r", "other")] == [1, 2]


def test_a_word_takes_the_place_of_an_origin_that_nobody_knows(
    live: Client, project: str, cli: Cli, spool: Path, service: tuple[str, Path]
) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 1000)
    unknown = without_a_word(project, "r", resumed_from="nosuchcheckpt")
    assert run_job(unknown, environment(*service, spool)).returncode == 0
    code, _, err = cli("spool", "flush")
    assert (code, "is not known to the service" in err) == (1, True), err
    assert cli("spool", "flush", "--restart")[0] == 0
    second = live.list_attempts(live.find_run(project, "r"))[1].raw
    assert (second["resumed_from"], second["restart"]) == (None, True)


def test_a_person_may_say_afterwards_what_was_loaded_while_the_job_runs(
    live: Client, project: str, cli: Cli, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "ADVICE_SECONDS", 0.1)
    committed(live, project, 1000)
    run = begin(project)
    run.saved(step=500)
    wait_for_the_question(run)
    assert cli("spool", "flush", "--resumed-from", "100")[0] == 0
    assert run.flush(LATEST)
    second = live.list_attempts(live.find_run(project, "r"))[1].raw
    assert (second["resumed_from"]["step"], second["restart"]) == (100, False)


def test_a_checkpoint_that_the_service_does_not_know_is_asked_for_and_the_records_wait(
    live: Client, project: str, said: list[str]
) -> None:
    committed(live, project, 1000)
    run = begin(project, resumed_from="7zzzzzzzzzzzz")
    run.saved(step=1500)
    wait_for_the_question(run)
    assert not run.flush(0.5)
    assert steps_of(live, project) == [(1, 1000)]
    engine.shut_down(LATEST)
    assert any("not known to the service" in each for each in said)


def test_a_restart_on_purpose_is_one(live: Client, project: str) -> None:
    committed(live, project, 1000)
    run = begin(project, restart=True)
    run.saved(step=10)
    assert run.flush(LATEST)
    assert steps_of(live, project) == [(1, 1000), (2, 10)]
    assert live.list_attempts(live.find_run(project, "r"))[1].raw["restart"] is True
