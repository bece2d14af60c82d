"""Links to runs of a real MLflow server: what is wrong is said, credentials work, nothing leaks."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from registry.ids import to_text
from registry.runs import RunSpec, start_run
from tests.trackers.registries import Registry
from tests.trackers.servers import HOME, MlflowServer, running_mlflow

pytestmark = pytest.mark.trackers


def run_here(registry: Registry, name: str) -> int:
    with registry.database.write() as session:
        return start_run(session, registry.project.id, RunSpec(name))[0].id


def test_a_link_says_what_the_run_is_there_and_follows_it(server: MlflowServer, registry: Registry) -> None:
    experiment = server.experiment("linked")
    run_id = server.start_run(experiment, "there", phase="sft")
    url = f"{server.uri}/#/experiments/{experiment}/runs/{run_id}/model-metrics"
    link = registry.link(run_here(registry, "here"), url)
    assert (link.state, link.external_state, link.external_name) == ("ok", "running", "there")
    server.finish(run_id, "FAILED")
    link = registry.refresh(link.id)
    assert (link.external_state, link.next_check_at) == ("failed", None)
    server.call("POST", "runs/delete", {"run_id": run_id})
    assert registry.refresh(link.id).state == "deleted"
    server.call("POST", "runs/restore", {"run_id": run_id})
    assert registry.refresh(link.id).state == "ok"


@pytest.mark.parametrize(
    ("address", "state"),
    [
        ("{uri}/#/experiments/1/runs/" + "0" * 32, "not-found"),
        ("http://127.0.0.1:9/#/experiments/1/runs/" + "0" * 32, "unreachable"),
        ("http://mlflow.example.org/#/experiments/1/runs/" + "0" * 32, "not-allowed"),
        ("http://169.254.169.254/#/experiments/1/runs/" + "0" * 32, "not-allowed"),
        ("{uri}/static-files/#/experiments/1/runs/" + "0" * 32, "not-a-tracker"),
    ],
)
def test_what_is_wrong_with_a_link_is_its_state(
    server: MlflowServer, registry: Registry, address: str, state: str
) -> None:
    run = run_here(registry, "here")
    with_state = registry.link(run, address.format(uri=server.uri)) if state != "unreachable" else None
    if with_state is None:
        registry.work = lambda tries=200: registry.hurry() or registry.worker.work_once()  # type: ignore[method-assign]
        with_state = registry.link(run, address)
    assert with_state.state == state
    assert with_state.error


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server with basic authentication, as MLflow ships it."""
    if not (HOME / "mlflow").exists():
        pytest.skip("no MLflow server is installed; `make test-trackers` installs one")
    folder = tmp_path_factory.mktemp("guarded")
    settings = folder / "auth.ini"
    settings.write_text(
        f"[mlflow]\ndefault_permission = NO_PERMISSIONS\ndatabase_uri = sqlite:///{folder}/auth.db\n"
        "admin_username = admin\nadmin_password = a-long-s3cret\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    environment = {"MLFLOW_AUTH_CONFIG_PATH": str(settings), "MLFLOW_FLASK_SERVER_SECRET_KEY": "of-tests"}
    auth = ("admin", "a-long-s3cret")
    with running_mlflow(folder, options=("--app-name", "basic-auth"), environment=environment, auth=auth) as server:
        yield server


def credentials(folder: Path, server: MlflowServer, name: str, password: str) -> str:
    file = folder / "trackers.toml"
    file.write_text(f'["127.0.0.1:{server.port}"]\nusername = "{name}"\npassword = "{password}"\n')
    file.chmod(0o600)
    return str(file)


def test_a_server_that_asks_for_a_password_gets_the_workers_own(
    guarded: MlflowServer,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    experiment = guarded.experiment("guarded")
    run_id = guarded.start_run(experiment, "secret")
    guarded.log_model(experiment, run_id, "checkpoint-5", 5)
    url = f"http://jane:a-long-s3cret@127.0.0.1:{guarded.port}/#/experiments/{experiment}/runs/{run_id}"
    link = registry.link(run_here(registry, "here"), url)
    assert link.state == "refused"
    monkeypatch.setenv("CAIRN_TRACKER_CREDENTIALS", credentials(tmp_path, guarded, "admin", "a-long-s3cret"))
    assert registry.refresh(link.id).state == "ok"
    registry.push()
    assert registry.link_now(link.id).push_state == "ok"
    assert any(tag["key"] == "cairn.newest" for tag in guarded.run(run_id)["data"]["tags"])
    guarded_user(guarded, "weak", "another-s3cret-1")
    monkeypatch.setenv("CAIRN_TRACKER_CREDENTIALS", credentials(tmp_path, guarded, "weak", "another-s3cret-1"))
    link = registry.refresh(link.id)
    assert link.state == "refused", "no permission"
    assert "403" in str(link.error)
    everything = caplog.text + "".join(str(job) for job in registry.jobs()) + repr(link)
    assert "s3cret" not in everything
    assert "s3cret" not in (tmp_path / "cairn.db").read_bytes().decode("latin-1")


def guarded_user(server: MlflowServer, name: str, password: str) -> None:
    server.call("POST", "users/create", {"username": name, "password": password})


@contextmanager
def behind_a_token(server: MlflowServer, token: str) -> Iterator[str]:
    """A proxy that lets through who shows the token, as in front of hosted servers; gives its address."""

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {token}":
                self.send_response(401)
                self.end_headers()
                return
            kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            answer = urllib3.request(self.command, server.uri + self.path, body=body, headers=kind, retries=False)
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.data)))
            self.end_headers()
            self.wfile.write(answer.data)

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, *arguments: Any) -> None:
            """Nothing."""

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def test_a_server_behind_a_token_gets_it(
    server: MlflowServer, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = server.experiment("token")
    run_id = server.start_run(experiment, "r")
    server.log_model(experiment, run_id, "checkpoint-5", 5)
    with behind_a_token(server, "t0ken") as uri:
        link = registry.link(run_here(registry, "here"), f"{uri}/#/experiments/{experiment}/runs/{run_id}")
        assert link.state == "refused"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken")
        assert registry.refresh(link.id).state == "ok"
        assert registry.import_experiment(uri, "token")["checkpoints_met"] == 1
        assert to_text(link.id)
