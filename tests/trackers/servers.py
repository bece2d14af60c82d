"""A real MLflow server as a process of its own, which tests fill, kill and start again.

It runs from an environment of its own (`make test-trackers` makes it), since it is larger than all the rest together.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from tests.ports import held_port

HOME = Path(__file__).parents[2] / ".venv-trackers" / "bin"
# Jobs of its own (none of ours) would take ten processes more.
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


@dataclass
class MlflowServer:
    """`mlflow server` over a store in a folder. `environment` and `options` add to how it is started."""

    folder: Path
    port: int
    store: str = ""
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    auth: tuple[str, str] | None = None
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "mlflow.db"

    def start(self) -> None:
        store = self.store or f"sqlite:///{self.database}"
        command = [str(HOME / "python"), "-m", "mlflow", "server", "--backend-store-uri", store, "--workers", "1"]
        command += ["--artifacts-destination", str(self.folder / "artifacts"), "--host", "127.0.0.1"]
        with (self.folder / "mlflow.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *self.options],
                env=os.environ | QUIET | dict(self.environment),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 600  # ten seconds of work, on a machine that may be busy
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                if urllib3.request("GET", f"{self.uri}/health", timeout=2, retries=False).status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                time.sleep(0.2)
        self.kill()
        raise AssertionError((self.folder / "mlflow.log").read_text()[-3_000:])

    def kill(self) -> None:
        """As a crash does: it and the processes that it started, at once."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait(30)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        status, answer = self.answer(method, path, body, **query)
        assert status == 200, (path, status, answer)
        return answer

    def answer(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        if self.auth is not None:
            headers |= urllib3.make_headers(basic_auth=":".join(self.auth))
        url = f"{self.uri}/api/2.0/mlflow/{path}"
        if query:
            url += "?" + "&".join(f"{key}={value}" for key, value in query.items())
        raw = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        answer = urllib3.request(method, url, body=raw, headers=headers, timeout=60, retries=False)
        return answer.status, json.loads(answer.data or b"{}")

    # ---- what a training does

    def experiment(self, name: str) -> str:
        return str(self.call("POST", "experiments/create", {"name": name})["experiment_id"])

    def start_run(self, experiment: str, name: str, *, at: int = 1_700_000_000_000, **tags: str) -> str:
        body = {"experiment_id": experiment, "run_name": name, "start_time": at}
        body["tags"] = [{"key": key, "value": value} for key, value in tags.items()]
        return str(self.call("POST", "runs/create", body)["run"]["info"]["run_id"])

    def log(
        self,
        run_id: str,
        *,
        params: Mapping[str, str] | None = None,
        metrics: Sequence[tuple[str, Any, int]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Metrics as (name, value, step); the step is also the second that each was logged at."""
        body: dict[str, Any] = {"run_id": run_id, "metrics": [_point(*each) for each in metrics]}
        body["params"] = [{"key": key, "value": value} for key, value in (params or {}).items()]
        body["tags"] = [{"key": key, "value": value} for key, value in (tags or {}).items()]
        self.call("POST", "runs/log-batch", body)

    def log_model(self, experiment: str, run_id: str, name: str, step: int, **scores: Any) -> str:
        return self.log_models(experiment, run_id, [(name, step, scores)])[0]

    def log_models(
        self, experiment: str, run_id: str, models: Sequence[tuple[str, int, Mapping[str, Any]]]
    ) -> list[str]:
        """Models as (name, step, scores); gives their ids."""
        ids = []
        for name, _, _ in models:
            body = {"experiment_id": experiment, "name": name, "source_run_id": run_id}
            ids.append(str(self.call("POST", "logged-models", body)["model"]["info"]["model_id"]))
            self.call("PATCH", f"logged-models/{ids[-1]}", {"model_id": ids[-1], "status": "LOGGED_MODEL_READY"})
        tied = [{"model_id": model_id, "step": step} for model_id, (_, step, _) in zip(ids, models, strict=True)]
        self.call("POST", "runs/outputs", {"run_id": run_id, "models": tied})
        points = [
            _point(key, value, step) | {"model_id": model_id}
            for model_id, (_, step, scores) in zip(ids, models, strict=True)
            for key, value in scores.items()
        ]
        if points:
            self.call("POST", "runs/log-batch", {"run_id": run_id, "metrics": points})
        return ids

    def finish(self, run_id: str, status: str = "FINISHED") -> None:
        self.call("POST", "runs/update", {"run_id": run_id, "status": status, "end_time": 1_700_000_900_000})

    def run(self, run_id: str) -> Any:
        return self.call("GET", "runs/get", run_id=run_id)["run"]

    def models(self, experiment: str, run_id: str) -> list[Any]:
        body = {"experiment_ids": [experiment], "filter": f"source_run_id = '{run_id}'", "max_results": 1000}
        return list(self.call("POST", "logged-models/search", body).get("models", ()))


def _point(key: str, value: Any, step: int) -> dict[str, Any]:
    return {"key": key, "value": value, "step": step, "timestamp": 1_700_000_000_000 + step * 1000}


@contextmanager
def running_mlflow(folder: Path, **known: Any) -> Iterator[MlflowServer]:
    """A server that answers; its port is its own also while it is killed and not yet started again."""
    with held_port() as port:
        server = MlflowServer(folder, port, **known)
        server.start()
        try:
            yield server
        finally:
            server.kill()
