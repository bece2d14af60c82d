"""A save that the service has not heard of yet, of a process that hangs and holds its records: gone on from all the
same where its own record says enough."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.resume import Choice, NothingToResume, choose
from cairn.resume.waiting import send_waiting

from tests.client.conftest import Cli
from tests.client.recorder.jobs import environment, job
from tests.client.resume.test_waiting import SAMPLE, TRAINING
from tests.client.until import LATEST

# Its first saves reach the service, the others only the disk.
HANGING = """
print(run.flush({latest}))
from cairn.spool.delivery import Delivery
Delivery.step = lambda self: False
run._engine._sender.delivery.step = lambda: False
for step, tier in {later!r}:
    path = os.path.join({root!r}, f'checkpoint-{{step}}')
    shutil.copytree({sample!r}, path)
    state = os.path.join(path, 'trainer_state.json')
    told = json.load(open(state))
    told['global_step'] = step
    json.dump(told, open(state, 'w'))
    print(run.saved(path, step=step, tier=tier), flush=True)
"""
Hang = Callable[..., Choice]


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(send_waiting, "__defaults__", (0.3,))  # the process that holds them gives none away
    return tmp_path / "spool"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def hang(project: str, root: Path, spool: Path, live: Client, service: tuple[str, Path]) -> Iterator[Hang]:
    """Trains run `r`, hangs, and answers what is chosen then."""
    started = []

    def begin(sent: tuple[int, ...], later: dict[int, str]) -> None:
        told: dict[str, Any] = {"root": str(root), "sample": str(SAMPLE)}
        then = HANGING.format(**told, later=list(later.items()), latest=LATEST)
        code = TRAINING.format(**told, project=project, said={"restart": True}, steps=sent, then=then)
        training = job(code, environment(*service, spool))
        started.append(training)
        assert training.stdout is not None
        for _ in (*sent, "flush", *later):
            assert training.stdout.readline() == "True\n"

    def chosen(sent: tuple[int, ...], later: dict[int, str], **known: Any) -> Choice:
        if not started:
            begin(sent, later)
        return choose(live, f"{project}/r", **known)

    yield chosen
    for each in started:
        each.send_signal(signal.SIGKILL)
        each.communicate(timeout=LATEST)


def at(choice: Choice) -> tuple[int | None, str]:
    return choice.step, choice.source


def test_the_newest_save_is_taken_though_the_service_lacks_it(
    hang: Hang, root: Path, cli: Cli, project: str, live: Client
) -> None:
    choice = hang((200,), {300: "shared", 650: "shared"})
    assert (at(choice), choice.path) == ((650, "spool"), str(root / "checkpoint-650"))
    code, out, err = cli("resume", "--run", f"{project}/r")
    assert (code, out) == (0, f"{root}/checkpoint-650\n")
    assert "Found in the spool of this host" in err
    assert "with saves up to step 650 wait on this host" in err
    told = json.loads(cli("resume", "--run", f"{project}/r", "--json")[1])
    assert (told["source"], told["step"], told["checkpoint"]) == ("spool", 650, None)


def test_where_the_service_has_no_save_at_all_that_of_this_host_is_taken(hang: Hang) -> None:
    assert at(hang((), {650: "shared"})) == (650, "spool")


def test_one_that_does_not_fit_gives_way_to_the_one_before(hang: Hang, root: Path) -> None:
    later = {300: "shared", 650: "shared"}
    assert at(hang((200,), later)) == (650, "spool")
    (root / "checkpoint-650" / "optimizer.pt").unlink()
    choice = hang((200,), later)
    assert at(choice) == (300, "spool")
    assert "checkpoint-650" in choice.fallbacks[0].what
    assert at(hang((200,), later, require=("weights",))) == (650, "spool")
    shutil.rmtree(root / "checkpoint-650")
    shutil.rmtree(root / "checkpoint-300")
    assert at(hang((200,), later)) == (200, "registry")


def test_where_only_the_service_can_judge_its_word_counts(hang: Hang) -> None:
    later = {650: "shared"}
    assert at(hang((200,), later)) == (650, "spool")
    assert at(hang((200,), later, rto_seconds=1e6)) == (200, "registry")
    assert at(hang((200,), later, config={"seed": 1})) == (200, "registry")


def test_of_several_nodes_none_takes_what_the_others_do_not_see(hang: Hang, monkeypatch: pytest.MonkeyPatch) -> None:
    later = {300: "shared", 650: "local"}
    assert at(hang((200,), later)) == (650, "spool")
    monkeypatch.setenv("SLURM_NNODES", "2")
    assert at(hang((200,), later)) == (300, "spool")
    with pytest.raises(NothingToResume):
        hang((200,), later, tiers=("local",))


def test_what_a_later_attempt_has_left_is_not_gone_back_to(hang: Hang, live: Client, project: str) -> None:
    """Its path goes on from step 200: whatever the hanging process has saved beyond is superseded."""
    assert at(hang((200,), {650: "shared"})) == (650, "spool")
    live.start_attempt(live.find_run(project, "r"), key="elsewhere", resumed_from={"step": 200, "attempt": 1})
    assert at(hang((200,), {650: "shared"})) == (200, "registry")
