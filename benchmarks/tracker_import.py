"""Import logged models from a real MLflow server, against one call a model: each read and registered by itself.

Both in the same run, in the seconds of the processor that the server and we take together: they stand on one machine
here, and whoever else uses it must not decide. The calls one by one get no curves; the import brings those too.
`python -m benchmarks.tracker_import 1000` takes so many runs of 100 models.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.service import line
from registry.checkpoints.commands import register_checkpoint
from registry.checkpoints.registration import Registration, ReplicaSpec
from registry.evals.scores import NewScore
from registry.integrations.credentials import NOTHING
from registry.integrations.http import TrackerHttp
from registry.integrations.mlflow_checkpoints import from_model
from registry.runs import RunSpec, start_run
from tests.databases import fresh_database
from tests.trackers.filling import fill
from tests.trackers.registries import Registry
from tests.trackers.servers import HOME, MlflowServer

RUNS, MODELS, SINGLES = 50, 100, 300


def main(runs: int = RUNS) -> None:
    if not (HOME / "mlflow").exists():
        print("tracker_import is left out: `make test-trackers` installs the server", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        server = MlflowServer(Path(folder))
        server.start()
        try:
            fill(server.database, experiment="warm", runs=2, models=10)
            fill(server.database, experiment="bulk", runs=runs, models=MODELS)
            with fresh_database("sqlite", Path(folder)) as database:
                _compare(server, Registry(database, Path(folder)), runs)
        finally:
            server.kill()


def _compare(server: MlflowServer, registry: Registry, runs: int) -> None:
    registry.import_experiment(server.uri, "warm")
    alone, alone_seconds = _measured(server, lambda: _one_by_one(server, registry))
    with patch.object(TrackerHttp, "call", autospec=True, side_effect=TrackerHttp.call) as calls:
        bulk, bulk_seconds = _measured(server, lambda: registry.import_experiment(server.uri, "bulk"))
    models = runs * MODELS
    line(
        "tracker_import",
        models=models,
        calls=calls.call_count,
        cpu_ms_a_model=bulk / models * 1e3,
        one_call_a_model_cpu_ms=alone / SINGLES * 1e3,
        times_less_cpu=(alone / SINGLES) / (bulk / models),
        times_faster_by_wall=(alone_seconds / SINGLES) / (bulk_seconds / models),
        resident_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _one_by_one(server: MlflowServer, registry: Registry) -> None:
    """GET each model, and register it in a transaction of its own."""
    api = TrackerHttp(server.uri, ("127.0.0.1",), NOTHING)
    experiment = server.call("GET", "experiments/get-by-name", experiment_name="bulk")["experiment"]["experiment_id"]
    found = server.call("POST", "runs/search", {"experiment_ids": [experiment], "max_results": SINGLES // MODELS})
    for run in found["runs"]:
        with registry.database.write() as session:
            name = f"alone-{run['info']['run_name']}"
            here = start_run(session, registry.project.id, RunSpec(name))[0].id
        steps = {each["model_id"]: int(each["step"]) for each in run["outputs"]["model_outputs"]}
        for model_id in steps:
            model = api.call("GET", f"api/2.0/mlflow/logged-models/{model_id}")["model"]
            known = from_model(model, steps, lambda *_: None)
            assert known.step is not None
            registration = Registration(
                known.step,
                saved_at=known.saved_at,
                scores=tuple(NewScore(each.name, each.value) for each in known.scores),
                replicas=(ReplicaSpec(str(known.uri), "object"),),
                tags={"mlflow.name": known.name},
            )
            with registry.database.write() as session:
                register_checkpoint(session, here, registration)


def _measured(server: MlflowServer, work: Any) -> tuple[float, float]:
    """Seconds of the processor that we and the server took, and seconds that went by."""
    began, ours, theirs = time.perf_counter(), time.process_time(), _server_seconds(server)
    work()
    return time.process_time() - ours + _server_seconds(server) - theirs, time.perf_counter() - began


def _server_seconds(server: MlflowServer) -> float:
    """Of the processes of the server's own group."""
    assert server.process is not None
    ticks = 0
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if words and int(words[2]) == server.process.pid:
            ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:]))
