"""A killed training whose last saves lie in this host's spool: they are sent, or told of, before anything is chosen."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from cairn import CairnError, Client
from cairn.replicas import replica
from cairn.resume import Choice, NothingToResume, choose, waiting
from cairn.resume.waiting import Left, send_waiting
from cairn.spool.census import held_here
from cairn.spool.delivery import Delivery

from tests.client.conftest import Cli
from tests.client.program import CAIRN, PATIENT
from tests.client.recorder.jobs import HEAD, environment, job, run_job
from tests.client.resume.test_agree import launch
from tests.client.resume.test_resume import CHECKPOINTS, away
from tests.client.spool.test_cli import SAVED, half_written
from tests.client.until import LATEST

NOBODY = "http://127.0.0.1:9"
SAMPLE = CHECKPOINTS / "hf_trainer" / "checkpoint-4"
# Says of each save whether it is on disk, and waits to be killed.
TRAINING = """
import json, shutil
run = cairn.start({project!r}, 'r', capture=False, **{said!r})
for step in {steps!r}:
    path = os.path.join({root!r}, f'checkpoint-{{step}}')
    shutil.copytree({sample!r}, path)
    state = os.path.join(path, 'trainer_state.json')
    told = json.load(open(state))
    told['global_step'] = step
    json.dump(told, open(state, 'w'))
    run.log(step, loss=1.0)
    print(run.saved(path, step=step, tier='shared'), flush=True)
{then}
time.sleep(100)
"""


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(send_waiting, "__defaults__", (LATEST,))  # a busy machine may take longer than a launch waits
    return tmp_path / "spool"


class Trainer:
    """Trains run `r` of a project, and is killed in the midst of it."""

    def __init__(self, project: str, root: Path, spool: Path, service: tuple[str, Path]) -> None:
        self.project, self.root, self.spool, self.service = project, root, spool, service
        root.mkdir()

    def killed(self, *steps: int, online: bool = False, then: str = "", **said: object) -> None:
        env = environment(*(self.service if online else (NOBODY, None)), self.spool)
        told = {"project": self.project, "steps": steps, "root": str(self.root), "sample": str(SAMPLE)}
        training = job(TRAINING.format(**told, said=said, then=then), env)
        try:
            assert training.stdout is not None
            for _ in (*steps, *([1] if then else [])):
                assert training.stdout.readline() == "True\n"
        finally:
            training.send_signal(signal.SIGKILL)
            training.communicate(timeout=LATEST)
        for left in self.spool.glob("*/service") if not online else ():
            left.unlink()  # the same service, which was away

    def path(self, step: int) -> str:
        return str(self.root / f"checkpoint-{step}")


@pytest.fixture
def trainer(project: str, tmp_path: Path, spool: Path, service: tuple[str, Path]) -> Trainer:
    return Trainer(project, tmp_path / "out", spool, service)


def test_what_was_saved_while_the_service_was_away_is_resumed_from(trainer: Trainer, live: Client, cli: Cli) -> None:
    trainer.killed(200, 650)
    code, out, err = cli("resume", "--run", f"{trainer.project}/r", "--or-fresh")
    assert (code, out) == (0, trainer.path(650) + "\n"), err
    assert "afresh" not in err
    assert not list(held_here(f"{trainer.project}/r"))


def test_a_save_that_was_killed_before_it_was_sent_is_the_next_to_resume_from(
    trainer: Trainer, live: Client, cli: Cli
) -> None:
    trainer.killed(200, online=True, then="print(run.flush(60))")
    trainer.killed(650, resumed_from=200)
    run = live.find_run(trainer.project, "r")
    for asked in (f"{trainer.project}/r", run.id):
        code, out, err = cli("resume", "--run", asked)
        assert (code, out) == (0, trainer.path(650) + "\n"), err
    assert [each.raw["resumed_from"] is None for each in live.list_attempts(run)] == [True, False]


def test_a_job_of_exec_is_told_what_its_host_saved_while_the_service_was_away(trainer: Trainer, live: Client) -> None:
    trainer.killed(200, 650)
    command = [*PATIENT, "exec", "--run", f"{trainer.project}/r", "--resume-flag", "--load", "--", "echo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False)
    assert (done.returncode, done.stdout) == (0, f"--load {trainer.path(650)}\n"), done.stderr


# Saves step 50 and dies at once; started with something to load, it ends well.
DYING = """
import signal, sys
if '--load' in sys.argv:
    sys.exit(print(sys.argv[-1]))
import shutil
{head}
run = cairn.start(capture=False)
shutil.copytree({sample!r}, {path!r})
run.log(50, loss=1.0)
run.saved({path!r}, step=50)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_start_again_loads_what_was_saved_a_moment_before_the_kill(
    trainer: Trainer, live: Client, tmp_path: Path
) -> None:
    path = trainer.path(50)
    (tmp_path / "job.py").write_text(DYING.format(head=HEAD, sample=str(SAMPLE), path=path))
    started = [sys.executable, str(tmp_path / "job.py")]
    options = ["--retries", "1", "--backoff", "0", "--resume-flag", "--load"]
    command = [*PATIENT, "exec", "--run", f"{trainer.project}/r", *options, "--", *started]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False)
    assert (done.returncode, done.stdout) == (0, path + "\n"), done.stderr
    assert "not taken over" not in done.stderr  # the supervisor and the recorder tell of one attempt
    attempts = live.list_attempts(live.find_run(trainer.project, "r"))
    assert [each.state for each in attempts] == ["failed", "finished"]
    assert attempts[1].raw["resumed_from"]["step"] == 50


def test_a_save_that_became_whole_after_its_process_had_ended_is_resumed_from(
    project: str, live: Client, cli: Cli, spool: Path, service: tuple[str, Path], tmp_path: Path
) -> None:
    place, complete = half_written(tmp_path)
    done = run_job(SAVED.format(project=project, path=str(place)), environment(*service, spool))
    assert done.stdout == "True\n", done.stderr
    asked = ("resume", "--run", f"{project}/r", "--require", "weights")
    assert cli(*asked)[:2] == (1, "")
    complete()
    code, out, err = cli(*asked)
    assert (code, out) == (0, f"{place}\n"), err


@pytest.mark.parametrize("said", [[], ["--require", "weights"]])
def test_exec_asks_for_the_pieces_that_it_is_told(
    trainer: Trainer, live: Client, said: list[str], tmp_path: Path
) -> None:
    copy = replica(shutil.copytree(SAMPLE, tmp_path / "weights-alone"), tier="shared")
    known = {"weights": "present", "optimizer": "absent"}
    live.register_checkpoint(live.create_run(trainer.project, "r"), 7, pieces=known, replicas=[copy])
    command = [*PATIENT, "exec", "--run", f"{trainer.project}/r", *said, "--resume-flag", "--load", "--", "echo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False)
    path = str(tmp_path / "weights-alone")
    assert (done.returncode, done.stdout) == ((0, f"--load {path}\n") if said else (1, "")), done.stderr


@pytest.fixture
def undecided(trainer: Trainer, live: Client) -> Trainer:
    """Records that cannot be sent: the disk has lost the line in which their execution began."""
    trainer.killed(650)
    for path in trainer.spool.glob("*/records-*.log"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(each for each in lines if b'"capture":' not in each))
    return trainer


def test_where_saves_stay_behind_nothing_starts_afresh(undecided: Trainer, cli: Cli) -> None:
    run = f"{undecided.project}/r"
    for fresh in ((), ("--or-fresh",), ("--or-fresh", "--json")):
        code, out, err = cli("resume", "--run", run, *fresh)
        assert code == 1
        assert out == "" or json.loads(out)["path"] is None
        assert f"records of {run} with saves up to step 650 wait on this host; `cairn spool flush`" in err
        assert "Starting afresh" not in err
    command = [*PATIENT, "exec", "--run", run, "--resume-flag", "--load", "--", "echo", "started"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "wait on this host" in done.stderr


def test_what_waits_is_said_where_an_older_checkpoint_is_chosen(trainer: Trainer, live: Client, cli: Cli) -> None:
    trainer.killed(200, online=True, then="print(run.flush(60))")
    trainer.killed(100)  # nobody said what it loaded, and it began below what is there
    code, out, err = cli("resume", "--run", f"{trainer.project}/r")
    assert (code, out) == (0, trainer.path(200) + "\n")
    assert "with saves up to step 100 wait on this host" in err


def test_saves_for_another_service_are_said_with_its_address(
    trainer: Trainer, live: Client, cli: Cli, spool: Path
) -> None:
    trainer.killed(650)
    (folder,) = spool.glob("2*")
    (folder / "service").write_text("http://registry.example:8499")
    code, _, err = cli("resume", "--run", f"{trainer.project}/r", "--or-fresh")
    assert code == 1
    assert "they are for http://registry.example:8499: `cairn spool flush --here` sends them" in err


def test_refused_saves_are_progress_too(trainer: Trainer, live: Client, cli: Cli, spool: Path) -> None:
    trainer.killed(650)
    aside = {"at": "", "record": {"kind": "saved", "project": trainer.project, "run": "r", "step": 650}}
    shutil.rmtree(next(spool.glob("2*")))
    (spool / "refused").mkdir()
    (spool / "refused" / "1.json").write_text(json.dumps({**aside, "sent": None, "problem": {"detail": "no"}}))
    code, _, err = cli("resume", "--run", f"{trainer.project}/r", "--or-fresh")
    assert code == 1
    assert "1 save" in err
    assert "was refused by the service" in err


def test_a_run_of_which_only_points_wait_starts_afresh(trainer: Trainer, live: Client, cli: Cli, spool: Path) -> None:
    trainer.killed()
    code, out, err = cli("resume", "--run", f"{trainer.project}/r", "--or-fresh")
    assert (code, out) == (0, "")
    assert "afresh" in err


def test_other_runs_of_the_host_are_none_of_it(trainer: Trainer, live: Client, cli: Cli) -> None:
    trainer.killed(650)
    code, _, err = cli("resume", "--run", f"{trainer.project}/other", "--or-fresh")
    assert (code, "wait on this host" in err) == (0, False)
    assert list(held_here(f"{trainer.project}/r"))


def test_hosts_agree_on_what_one_of_them_had_still_to_send(
    trainer: Trainer, live: Client, spool: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The host without records proposes at once, before the other has told of the newest save."""
    trainer.killed(200, online=True, then="print(run.flush(60))")
    trainer.killed(650, resumed_from=200)
    run, found, has_proposed = live.find_run(trainer.project, "r"), list[Choice](), threading.Event()

    def without_records() -> None:
        found.append(choose(live, run, launch=launch("quick"), say=lambda text: has_proposed.set()))

    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "of another host"))
    quick = threading.Thread(target=without_records)
    quick.start()
    assert has_proposed.wait(LATEST)
    monkeypatch.setenv("CAIRN_SPOOL", str(spool))
    own = choose(live, run, launch=launch("trained"))
    quick.join(LATEST)
    assert [each.step for each in (own, *found)] == [650, 650]


@pytest.mark.parametrize("patiently", [True, False])
def test_what_only_the_service_can_judge_waits_as_long_as_records_go_out(
    trainer: Trainer, live: Client, monkeypatch: pytest.MonkeyPatch, patiently: bool
) -> None:
    """The records start to go out once the first wait is over."""
    trainer.killed(200, 650)
    is_over, looks, real = threading.Event(), list[int](), waiting.left_here

    def look(run: str, service: str = "") -> Left:
        looks.append(1)
        if len(looks) > 2:
            ended(LATEST)
        found = real(run, service)
        if len(looks) == 2:
            is_over.set()
        return found

    def ended(seconds: float) -> None:
        for each in threading.enumerate():
            if each.name == "cairn-resume":
                each.join(seconds)

    step = Delivery.step
    monkeypatch.setattr(Delivery, "step", lambda self: is_over.wait(LATEST) and step(self))
    monkeypatch.setattr(waiting, "left_here", look)
    left = send_waiting(live, f"{trainer.project}/r", 0.01, patiently=patiently)
    ended(LATEST)
    assert (left.unsent == 0, left.sent) == ((True, 2) if patiently else (False, 0))


@pytest.mark.parametrize(
    ("known", "patiently"),
    [({}, False), ({"rto_seconds": 600.0}, True), ({"config": {"seed": 1}}, True), ({"launch": launch("one")}, True)],
)
def test_who_cannot_take_an_unsent_save_is_the_one_who_waits_for_it(
    trainer: Trainer, live: Client, monkeypatch: pytest.MonkeyPatch, known: dict[str, Any], patiently: bool
) -> None:
    asked = []

    def sending(client: Client, run: str, *, patiently: bool) -> Left:
        asked.append(patiently)
        return Left()

    trainer.killed(200)
    monkeypatch.setattr("cairn.resume.choosing.send_waiting", sending)
    with pytest.raises(CairnError):
        choose(live, f"{trainer.project}/r", **known)
    assert asked == [patiently]


def test_a_sender_that_sends_nothing_more_is_not_waited_for() -> None:
    counts, over = iter([9, 7, 7]), threading.Event()
    sender = threading.Thread(target=over.wait, args=(LATEST,))
    sender.start()
    waiting.join_while_it_gets_on(sender, 0.001, lambda: next(counts))
    assert (list(counts), sender.is_alive()) == ([], True)
    over.set()
    sender.join(LATEST)


# ---- without the registry


def test_without_the_registry_what_only_the_spool_names_is_found(trainer: Trainer) -> None:
    trainer.killed(200, 650)
    with away() as client:
        choice = choose(client, f"{trainer.project}/r")
    assert (choice.path, choice.step, choice.source) == (trainer.path(650), 650, "scan")
    assert any("spool of this host" in each for each in choice.reasons)


def test_without_the_registry_the_newest_of_scan_and_spool_is_taken(
    trainer: Trainer, live: Client, tmp_path: Path
) -> None:
    trainer.killed(200, online=True, then="print(run.flush(60))")
    assert choose(live, f"{trainer.project}/r").path == trainer.path(200)
    trainer.root = tmp_path / "elsewhere"
    trainer.root.mkdir()
    trainer.killed(150, resumed_from=100)  # a rollback: the later attempt counts, not the higher step
    with away() as client:
        assert choose(client, f"{trainer.project}/r").path == trainer.path(150)
        (trainer.root / "checkpoint-150" / "optimizer.pt").unlink()
        choice = choose(client, f"{trainer.project}/r")
    assert choice.step == 200
    assert any("checkpoint-150" in each.what for each in choice.fallbacks)


def test_without_the_registry_a_save_that_is_gone_is_passed_over(trainer: Trainer) -> None:
    trainer.killed(200, 650)
    shutil.rmtree(trainer.path(650))
    with away() as client:
        assert choose(client, f"{trainer.project}/r").step == 200
        shutil.rmtree(trainer.path(200))
        with pytest.raises(NothingToResume, match="cannot be read here") as failed:
            choose(client, f"{trainer.project}/r")
    assert not failed.value.has_none


def test_exec_loads_what_only_the_spool_names_while_the_service_is_away(trainer: Trainer) -> None:
    trainer.killed(200, 650)
    env = {**os.environ, "CAIRN_URL": NOBODY, "CAIRN_TOKEN": "t"}
    command = [*CAIRN, "exec", "--run", f"{trainer.project}/r", "--resume-flag", "--load", "--", "echo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False, env=env)
    assert done.stdout == f"--load {trainer.path(650)}\n", done.stderr
