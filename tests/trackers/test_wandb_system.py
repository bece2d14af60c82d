"""W&B from outside: `cairn-server serve` with the worker beside it, and `cairn import wandb --project`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registry.integrations.wandb_server import KEY, Wandb, running_wandb
from tests.test_server import Home, Service, serving

pytestmark = pytest.mark.trackers
pytest.importorskip("wandb", reason="the extra wandb is not installed")
CAIRN = str(Path(sys.executable).with_name("cairn"))


@pytest.fixture
def there() -> Iterator[Wandb]:
    with running_wandb() as state:
        for number in range(30):
            name = f"r{number:02d}"
            state.add_run(name, config={"lr": 0.1})
            for step in range(0, 100, 10):
                state.log(name, step, {"loss": 1.0 / (step + 1)})
            state.add_artifact(name, "m", aliases=("step_50",))
        yield state
        assert state.errors == []


@pytest.fixture
def service(there: Wandb, tmp_path: Path) -> Iterator[tuple[Service, Home]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")}
    settings = {"CAIRN_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "CAIRN_TRACKER_HOSTS": "127.0.0.1"}
    home = Home(tmp_path / "home", own | settings | {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": there.url})
    with serving(home) as running:
        yield running, home


def cairn(running: Service, home: Home, *arguments: str) -> tuple[int, str, str]:
    address = f"http://127.0.0.1:{running._pool.port}"
    told = home.environment | {"CAIRN_URL": address, "CAIRN_TOKEN": home.admin_token}
    done = subprocess.run([CAIRN, *arguments], env=told, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_project_is_imported_with_one_command_and_again_without_change(
    there: Wandb, service: tuple[Service, Home]
) -> None:
    running, home = service
    code, out, err = cairn(running, home, "import", "wandb", "--project", "team/llm", "--base-url", there.url, "--json")
    assert code == 0, err
    report = json.loads(out)["report"]
    assert (report["runs_created"], report["checkpoints_created"], report["skipped"]) == (30, 30, {})
    code, out, _ = cairn(running, home, "import", "wandb", "--project", "team/llm", "--base-url", there.url, "--json")
    again = json.loads(out)["report"]
    assert (code, again["runs_unchanged"], again["checkpoints_created"], again["points_recorded"]) == (0, 30, 0, 0)
    _, answer = running.call("GET", "/checkpoints?filter=step%20%3D%2050&limit=100")
    assert len(answer["items"]) == 30
    assert KEY not in running.log.read_text()
    assert [path for path in home.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []


def test_a_key_that_wandb_does_not_know_is_a_clear_end(there: Wandb, service: tuple[Service, Home]) -> None:
    running, home = service
    there.fault = 401
    code, out, _ = cairn(running, home, "import", "wandb", "--project", "team/llm", "--base-url", there.url, "--json")
    job = json.loads(out)
    assert (code, job["state"], job["error_code"]) == (3, "failed", "tracker-refused")
    assert KEY not in out
