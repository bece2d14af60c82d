"""A proxy before the service that answers a bare 404 for it, as an ingress does during a rollout: nothing is lost,
nothing set aside, no path printed."""

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cairn
import pytest
from cairn import Client
from cairn.recorder import Recorder, engine
from cairn.spool.flush import list_jobs, list_refused
from cairn.supervise.kept import Request
from cairn.supervise.sending import Sending, send_all

from tests.client.background import end_background, wait_for_the_disk
from tests.client.conftest import Cli
from tests.client.program import CAIRN, PATIENT
from tests.client.until import LATEST, until


class Ingress:
    """Passes everything on to the service; while `is_out`, it answers as if nobody were behind it."""

    def __init__(self, service: str) -> None:
        self.is_out = False
        self.refused: list[str] = []
        outer, behind = self, urlsplit(service).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if outer.is_out:
                    outer.refused.append(f"{self.command} {self.path}")
                    self.answer(404, {"Content-Type": "text/plain"}, b"404 page not found\n")
                    return
                passed = http.client.HTTPConnection(behind, timeout=LATEST)
                passed.request(self.command, self.path, body, {**self.headers, "Host": behind})
                answer = passed.getresponse()
                self.answer(answer.status, dict(answer.headers), answer.read())
                passed.close()

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

            def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name in ("Content-Type", "Retry-After"):
                    if name in headers:
                        self.send_header(name, headers[name])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                """Nothing: the test's output is for its failures."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def ingress(
    live: Client, service: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Ingress]:
    made = Ingress(service[0])
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("CAIRN_URL", made.url)
    monkeypatch.setenv("CAIRN_TOKEN", (service[1] / "admin-token").read_text().strip())
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    wait_for_the_disk(monkeypatch)
    yield made
    end_background()
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def refused_files(spool: Path) -> list[Path]:
    return [path for path in spool.rglob("*.json") if path.parent.name == "refused"]


def test_resume_never_takes_a_bare_404_for_a_run_without_checkpoints(
    live: Client, project: str, ingress: Ingress, cli: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "ckpt/1000"
    folder.mkdir(parents=True)
    (folder / "weights.bin").write_bytes(b"\0" * 100)
    run = live.create_run(project, "r")
    live.register_checkpoint(run, 1000, pieces={"weights": "present"}, replicas=[cairn.replica(folder, tier="shared")])
    asked = ("resume", "--run", f"{project}/r", "--or-fresh", "--require", "weights")
    ingress.is_out = True
    for named in (f"{project}/r", run.id):
        code, out, err = cli(*asked[:2], named, *asked[3:])
        assert (code, out) == (1, ""), err
        assert f"{ingress.url} answered 404" in err
        assert "loses nothing" not in err
    ingress.is_out = False
    code, out, err = cli(*asked)
    assert (code, out) == (0, f"{folder}\n"), err
    ingress.is_out = True
    code, out, err = cli(*asked)  # the folder of the last success is looked through
    assert (code, out) in ((0, f"{folder}\n"), (1, ""))
    assert "loses nothing" not in err


def test_other_commands_end_with_3_and_name_the_address(ingress: Ingress, cli: Cli) -> None:
    ingress.is_out = True
    for command in (("run", "list"), ("find",), ("show", "00000000000a1"), ("lineage", "00000000000a1")):
        code, out, err = cli(*command)
        assert (code, out) == (3, ""), err
        assert f"{ingress.url} answered 404" in err


def test_exec_keeps_attempt_and_incident_until_the_service_is_back(
    live: Client, project: str, ingress: Ingress, tmp_path: Path
) -> None:
    ingress.is_out = True
    job = [sys.executable, "-u", "-c", "print('step 7 | loss 1'); raise KeyError('lr')"]
    command = [*CAIRN, "exec", "--run", f"{project}/r", "--heartbeat", "0.2", "--", *job]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False)
    assert (done.returncode, done.stdout) == (1, "step 7 | loss 1\n")
    assert "kept for the next" in done.stderr
    assert ingress.refused
    assert len(list_jobs()) == 1
    assert list(live.list_runs(project=project)) == []
    ingress.is_out = False
    flushed = subprocess.run(
        [*CAIRN, "spool", "flush", "--json"], capture_output=True, text=True, timeout=LATEST, check=False
    )
    assert json.loads(flushed.stdout)["refused"] == 0, flushed.stderr
    assert list_jobs() == []
    assert refused_files(tmp_path / "spool") == []
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert (attempt.state, attempt.number) == ("failed", 1)
    (incident,) = live.list_incidents(project=project)
    assert (incident.cause, incident.last_step) == ("python-exception", 7)


def test_what_the_service_itself_refuses_of_a_job_is_set_aside_whole(ingress: Ingress, tmp_path: Path) -> None:
    command = [*PATIENT, "exec", "--run", "p/r", "--hardware", "H" * 50_000, "--", "sh", "-c", "exit 5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATEST, check=False)
    assert done.returncode == 5
    kinds = [json.loads(path.read_text())["record"]["kind"] for path in sorted(refused_files(tmp_path / "spool"))]
    assert kinds == ["incident"], done.stderr
    assert list(list_jobs()) == []


def test_the_end_of_an_attempt_that_was_refused_does_not_stay(live: Client) -> None:
    sending = Sending(f"p/{'long' * 500}", lambda said: None, live)
    aside: list[str] = []
    requests = [Request("open", "k", {}), Request("end", "k", {"state": "failed"})]
    for part in (requests[:1], requests[1:]):  # the end comes when the job ends
        left = send_all(sending, part, print, at_the_end=True, refused=lambda each, fault: aside.append(each.what))
        assert left == []
    assert aside == ["open", "end"]


def test_the_recorder_waits_out_a_rollout(
    live: Client, project: str, ingress: Ingress, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cairn.spool.sending.MAX_PAUSE_SECONDS", 0.2)
    ingress.is_out = True
    run = cairn.start(project, "r", capture=False)
    assert isinstance(run, Recorder)
    run.log(1, loss=2.0)
    assert run.saved("/ckpt/1", step=1, loss=2.0)
    until(lambda: ingress.refused)
    assert not engine.engine().flush(1.0)
    ingress.is_out = False
    assert run.saved("/ckpt/2", step=2, loss=1.0)
    run.finish()
    assert engine.engine().flush(LATEST)
    assert [each.step for each in live.iter_checkpoints(filter=f"project = '{project}'", order_by="step")] == [1, 2]
    assert list(list_refused()) == []
    assert refused_files(tmp_path / "spool") == []
