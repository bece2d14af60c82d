"""Workers as processes: one beside `serve` on SQLite, any number by `cairn-server worker`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.client.until import until
from tests.test_server import COMMAND, Service, fresh_home, serving

API_RUN = {"project": "p", "name": "a"}


def alive(service: Service) -> list[str]:
    return [each["name"] for each in service.call("GET", "/workers")[1]["items"] if each["alive"]]


def pid_of(worker: str) -> int:
    return int(worker.split(":")[-2])


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


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
    until(lambda: not is_running(pid_of(other)), 180)


def test_a_worker_whose_parent_was_killed_while_it_started_touches_nothing(tmp_path: Path) -> None:
    environment = fresh_home(tmp_path).environment
    assert subprocess.run([sys.executable, "-m", "api.worker"], env=environment, input=b"", check=False).returncode == 0
    assert not (tmp_path / "home").exists()


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
