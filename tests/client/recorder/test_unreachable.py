"""Whatever the registry does, no call waits for it or raises, and what was recorded is sent later."""

import json
import os
import signal
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cairn
import pytest
from cairn.errors import CairnError
from cairn.recorder import Recorder, engine
from cairn.spool import lease, sending
from cairn.spool.backlog import Backlog
from cairn.spool.flush import flush
from cairn.spool.owner import Owner

from tests.client.conftest import FaultServer, Reply
from tests.client.recorder.jobs import environment, job, run_job
from tests.client.until import LATEST, until
from tests.ports import held_port

PROBLEM = {"type": "/problems/unavailable", "title": "Busy", "status": 503, "detail": "Busy."}


@pytest.fixture
def black_hole() -> Iterator[str]:
    """A port that takes connections into its queue and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def nobody() -> Iterator[str]:
    """A port at which nobody listens."""
    with held_port() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Recorder]:
    """A run that is recorded at an address."""

    def begin(url: str) -> Recorder:
        monkeypatch.setenv("CAIRN_URL", url)
        monkeypatch.setenv("CAIRN_TOKEN", "a-token")
        run = cairn.start("p", "r", capture=False)
        assert isinstance(run, Recorder)
        return run

    return begin


def spooled(run: Recorder) -> list[int]:
    folder = run._engine.writer.folder
    assert folder is not None
    return [each.record["step"] for each in Backlog(folder).records() if each.record["kind"] == "saved"]


def call_seconds(run: Recorder, calls: int = 300) -> tuple[list[float], list[float]]:
    """How long each call took: on the processor of this thread, and by the clock."""
    worked, took = [], []

    def measure(call: Callable[..., object], *given: Any, **named: Any) -> None:
        began, began_work = time.monotonic(), time.thread_time()
        call(*given, **named)
        worked.append(time.thread_time() - began_work)
        took.append(time.monotonic() - began)

    for step in range(1, calls + 1):
        measure(run.log, step, loss=1.0, lr=0.1)
        measure(run.saved, f"/ckpt/{step}", step=step, loss=1.0)
    return worked, took


@pytest.mark.parametrize("where", ["black_hole", "nobody", "429", "500", "503", "slow"])
def test_calls_cost_the_same_whatever_the_registry_does(
    where: str, request: pytest.FixtureRequest, faults: FaultServer, at: Callable[[str], Recorder]
) -> None:
    replies = {
        "429": Reply(429, {"type": "/problems/too-many-requests", "status": 429}, {"Retry-After": "1"}),
        "500": Reply(500, b"oops"),
        "503": Reply(503, PROBLEM, {"Retry-After": "1"}),
        "slow": Reply(200, {}, wait_seconds=600),
    }
    faults.replies = [replies.get(where, Reply())]
    url = request.getfixturevalue(where) if where in ("black_hole", "nobody") else faults.url
    run = at(url)
    worked, took = call_seconds(run)
    assert statistics.median(worked) < 0.001  # of a busy machine some calls are slow, never most
    assert max(took) < sending.TIMEOUT_SECONDS / 2  # none waited for an answer
    assert spooled(run) == list(range(1, 301))


def test_429_is_not_answered_before_retry_after_has_passed(
    faults: FaultServer, at: Callable[[str], Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    real = sending.Sender._after

    def noted(self: sending.Sender, fault: CairnError) -> float:
        pause = real(self, fault)
        if fault.status == 429:
            pauses.append(pause)
        return pause

    monkeypatch.setattr(sending.Sender, "_after", noted)
    faults.replies = [Reply(429, {"type": "/problems/too-many-requests", "status": 429}, {"Retry-After": "3"})]
    run = at(faults.url)
    run.saved(step=1)
    assert not run.flush(0.0)
    until(lambda: pauses)
    assert min(pauses) >= 3


def test_a_service_that_is_slow_is_given_more_time_each_time(
    faults: FaultServer, at: Callable[[str], Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    real = sending.Sender._after

    def noted(self: sending.Sender, fault: CairnError) -> float:
        given.append(self.timeout)
        return real(self, fault)

    monkeypatch.setattr(sending.Sender, "_after", noted)
    monkeypatch.setattr(sending, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(sending, "FIRST_PAUSE_SECONDS", 0.01)
    never = [Reply(wait_seconds=600) for _ in range(3)]
    faults.replies = [*never, Reply(200, {"id": "x", "name": "p"}, wait_seconds=0.3)]
    run = at(faults.url)
    run.saved(step=1)
    until(lambda: any(each.path.endswith("/runs") for each in faults.seen))  # the project's answer was waited for
    assert given[:3] == [0.05, 0.1, 0.2]


def test_pauses_grow_and_are_spread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cairn.errors import ConnectionFailed
    from cairn.spool.writer import SpoolWriter

    def sender() -> Any:
        writer = SpoolWriter([tmp_path], lambda said: None)
        return sending.Sender(writer, [tmp_path], None, None, lambda said: None)  # type: ignore[arg-type]

    def pauses(one: Any) -> list[float]:
        return [one._after(ConnectionFailed("gone")) for _ in range(12)]

    several = [pauses(sender()) for _ in range(20)]
    assert all(each[0] <= 1.0 for each in several)
    assert all(30 <= each[-1] <= 60 for each in several)
    assert len({each[0] for each in several}) > 10


def test_a_token_that_is_refused_is_told_once_and_costs_no_record(
    faults: FaultServer, at: Callable[[str], Recorder], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "ADVICE_SECONDS", 0.05)
    faults.replies = [Reply(401, {"type": "/problems/unauthenticated", "status": 401, "detail": "No such token."})]
    run = at(faults.url)
    run.saved(step=1)
    assert not run.flush(0.0)
    until(lambda: len(faults.seen) >= 3)
    engine.shut_down(LATEST)
    assert len([each for each in said if "does not accept the token" in each]) == 1


EXIT = """
began = time.monotonic()
import atexit
atexit.register(lambda: None)
run = cairn.start('p', 'r', capture=OFF)
run.saved('/ckpt/1', step=1, loss=1.0)
print(run.saved('/ckpt/2', step=2, loss=1.0))
"""


def test_a_process_ends_in_a_bounded_time_and_leaves_its_records_to_the_next(
    black_hole: str, spool: Path, service: tuple[str, Path], tmp_path: Path
) -> None:
    done = run_job(EXIT, environment(black_hole, None, spool), seconds=engine.EXIT_SECONDS + LATEST)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(spool.glob("*/records-*.log"))) == 1


@pytest.mark.parametrize("ends", ["print(run.flush(60))", "run.finish()"], ids=["that takes its time", "over at once"])
def test_the_next_start_first_sends_what_an_earlier_one_could_not(
    nobody: str, spool: Path, live: cairn.Client, project: str, service: tuple[str, Path], ends: str
) -> None:
    code = f"run = cairn.start({project!r}, 'r', capture=OFF)\nrun.log(1, loss=0.5)\nrun.saved(step=1)\nrun.finish()"
    assert run_job(code, environment(nobody, None, spool)).returncode == 0
    for left in spool.glob("*/service"):
        left.unlink()  # the same service under another address
    again = f"run = cairn.start({project!r}, 'r', resumed_from=1, capture=OFF)\nrun.saved(step=2)\n{ends}"
    done = run_job(again, environment(*service, spool))
    assert done.stdout == ("True\n" if "flush" in ends else "")
    flush(live)  # what the end of the process was too short for
    found = sorted((each.attempt, each.step) for each in live.iter_checkpoints(filter=f"project = '{project}'"))
    assert found == [(1, 1), (2, 2)]
    (curve,) = live.read_series(live.find_run(project, "r"))
    assert (curve.attempt, curve.steps, curve.values) == (1, (1,), (0.5,))
    assert not list(spool.glob("*/records-*.log"))


def test_an_execution_waits_for_the_one_before_it_that_another_host_may_have_left(
    nobody: str, spool: Path, live: cairn.Client, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts are numbered as they are opened: the dead node's first, although nobody knows yet that it is dead."""
    monkeypatch.setattr(sending, "SILENT_SECONDS", 0.05)
    code = f"run = cairn.start({project!r}, 'r', capture=OFF)\nrun.saved(step=1)\nrun.finish()"
    assert run_job(code, environment(nobody, None, spool)).returncode == 0
    (left,) = (each.parent for each in spool.glob("*/records-*.log"))
    (left / "service").unlink(missing_ok=True)
    elsewhere = Owner("node9", 1, "other", "other", "1")
    path = max(left.glob("lease-*"))
    path.write_text(json.dumps(vars(elsewhere)))
    half = lease.file_system_time(left) - lease.EXPIRY_SECONDS / 2
    os.utime(path, (half, half))
    run = cairn.start(project, "r", capture=False, resumed_from=1)
    assert run.saved(step=2)
    assert not run.flush(2)
    assert list(live.iter_checkpoints(filter=f"project = '{project}'")) == []
    os.utime(path, (1, 1))  # now it counts as dead
    assert run.flush(LATEST)
    found = sorted((each.attempt, each.step) for each in live.iter_checkpoints(filter=f"project = '{project}'"))
    assert found == [(1, 1), (2, 2)]


def test_sigterm_ends_the_process_as_it_does_without_us(nobody: str, spool: Path) -> None:
    code = "run = cairn.start('p', 'r', capture=OFF)\nprint(run.saved(step=1))\ntime.sleep(600)"
    started = job(code, environment(nobody, None, spool))
    assert started.stdout is not None
    assert started.stdout.readline() == "True\n"
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=LATEST)
    assert started.returncode == -signal.SIGTERM
    assert len(list(spool.glob("*/records-*.log"))) == 1


def test_a_spool_folder_that_cannot_be_written_costs_no_call_and_sends_from_memory(
    live: cairn.Client, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "file" / "spool"))
    run = cairn.start(project, "r", capture=False)
    assert run.saved(step=1) is False
    assert run.saved(step=2, cursor={"at": 1}) is False
    found = lambda: sorted(each.step or 0 for each in live.iter_checkpoints(filter=f"project = '{project}'"))  # noqa: E731
    until(lambda: len(found()) >= 2)
    assert found() == [1, 2]
    engine.shut_down(LATEST)
    assert len([each for each in said if "cannot be written" in each]) == 1
