"""Large experiments: many runs and models come with one call, and memory stays bounded."""

import subprocess
import sys
from pathlib import Path

import pytest

from registry.db import Database
from registry.integrations import http
from tests.trackers.filling import fill
from tests.trackers.registries import Registry
from tests.trackers.servers import MlflowServer

pytestmark = pytest.mark.trackers

RUNS, MODELS = 40, 100
ROOT = Path(__file__).parents[2]
IMPORTING = """
import resource, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from registry.db import Database
from tests.trackers.registries import Registry
report = Registry(Database(sys.argv[1]), Path(sys.argv[2])).import_experiment(sys.argv[3], "bulk")
print(report["checkpoints_created"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.fixture(scope="module")
def bulk(server: MlflowServer) -> MlflowServer:
    fill(server.database, experiment="bulk", runs=RUNS, models=MODELS)
    return server


def test_models_are_read_many_a_call(bulk: MlflowServer, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    original = http.TrackerHttp.call

    def count(self: http.TrackerHttp, method: str, path: str, *rest: object) -> object:
        calls.append(path)
        return original(self, method, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(http.TrackerHttp, "call", count)
    report = registry.import_experiment(bulk.uri, "bulk")
    assert (report["checkpoints_created"], report["scores_recorded"]) == (RUNS * MODELS, RUNS * MODELS)
    assert len(calls) * 100 < RUNS * MODELS, "a hundredth of one call a model"
    first = len(calls)
    before = registry.counts()
    registry.import_experiment(bulk.uri, "bulk")
    assert registry.counts() == before
    assert len(calls) - first < first, "curves that did not change are not read again"


def test_memory_stays_bounded(bulk: MlflowServer, sqlite: Database, tmp_path: Path) -> None:
    url = sqlite.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", IMPORTING, url, str(tmp_path), bulk.uri, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    made, peak_mb = map(int, done.stdout.split())
    assert made == RUNS * MODELS
    assert peak_mb < 400
