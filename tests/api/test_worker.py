"""Workers as processes: one beside `serve` on SQLite, any number by `cairn-server worker`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.client.until import LATEST, until
from tests.test_server import COMMAND, Service, fresh_home, is_running, serving

API_RUN = {"project": "p", "name": "a"}


def alive(service: Service) -> list[str]:
    return [each["name"] for each in service.call("GET", "/workers")[1]["items"] if each["alive"]]


def pid_of(worker: str) -> int:
    return int(worker.split(":")[-2])


def test_serve_keeps_a_worker_beside_itself_that_ends_with_it_even_by_a_kill(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    with serving(home) as service:
        (worker,) = until(lambda: alive(service), 180)
        service.call("POST", "/projects", {"name": "p"})
        body = {"kind": "mlflow", "project": "p", "experiment": "e"}  # of a tracker whose address nobody set
        job = service.call("POST", "/imports/tracker", body)[1]["id"]
        ended = until(lambda: (found := service.call("GET", f"/jobs/{job}")[1])["error"] and found, 180)
        assert (ended["state"], ended["error_code"]) == ("failed", "tracker-answer-unknown")
        os.kill(pid_of(worker), signal.SIGKILL)
        other = until(lambda: [name for name in alive(service) if name != worker], 180)[0]
        service.process.kill()
        until(lambda: not is_running(pid_of(other)), 180)


def test_a_worker_whose_parent_was_killed_while_it_started_touches_nothing(tmp_path: Path) -> None:
    environment = fresh_home(tmp_path).environment
    assert subprocess.run([sys.executable, "-m", "api.worker"], env=environment, input=b"", check=False).returncode == 0
    assert not (tmp_path / "home").exists()


HANGING = """
import sys, time
from api import worker
class Hanging(worker.JobWorker):
    def __init__(self): pass
    def stop(self): pass
    def run(self):
        print("ready", flush=True)
        time.sleep(600)
worker.JobWorker = lambda *_: Hanging()
worker.run_worker(None, None, parent=sys.stdin.fileno())
"""


def test_a_worker_that_waits_for_something_ends_with_its_killed_parent_all_the_same() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HANGING], **pipes) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        worker.stdin.close()
        try:
            assert worker.wait(LATEST) == 1
        finally:
            worker.kill()


def test_the_worker_beside_serve_can_be_switched_off_and_others_started(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    home.environment["CAIRN_WORKER"] = "0"
    with serving(home) as service:
        workers = [subprocess.Popen([COMMAND, "worker"], env=home.environment) for _ in range(2)]
        try:
            names = until(lambda: (found := alive(service)) and len(found) == 2 and found, 180)
            assert {pid_of(name) for name in names} == {each.pid for each in workers}
            for each in workers:
                each.send_signal(signal.SIGTERM)
            assert [each.wait(60) for each in workers] == [0, 0]
        finally:
            for each in workers:
                each.kill()
                each.wait()


def test_a_setting_that_is_neither_on_nor_off_is_refused(tmp_path: Path) -> None:
    done = fresh_home(tmp_path).run("serve", CAIRN_WORKER="maybe")
    assert done.returncode == 1
    assert "CAIRN_WORKER is 'maybe'; expected 1 or 0" in done.stderr


INTERRUPTED = """
import signal
import sys
from pathlib import Path
from api import worker
from registry.config import Settings
from registry.db import Database


class Waiting(worker.JobWorker):
    def run(self):
        with self._stopping._cond:  # as it is held for a moment by whoever waits
            signal.raise_signal(signal.SIGTERM)
        assert self._stopping.wait(60)


worker.JobWorker = Waiting
url = f"sqlite:///{sys.argv[1]}/cairn.db"
worker.run_worker(Settings(Path(sys.argv[1]), url), Database(url))
"""


def test_a_signal_ends_a_worker_wherever_it_meets_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", INTERRUPTED, str(tmp_path)], timeout=LATEST, check=True)
