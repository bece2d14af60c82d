"""Reading an MLflow server with few calls: pages, many curves at once, and what the model registry adds."""

from collections.abc import Mapping
from typing import Any

import pytest

from registry.errors import RegistryError
from registry.integrations import mlflow_curves
from registry.integrations.http import AnswerTooLarge
from registry.integrations.mlflow_api import MlflowApi
from registry.integrations.mlflow_reader import MlflowReader
from registry.integrations.open import Place
from registry.integrations.shapes import TrackerAnswerUnknown, TrackerRun, TrackerUnreachable


class Server:
    """Answers by path, behind the one method by which a server is spoken to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.models_a_page = 10_000
        self.points: dict[tuple[str, str], int] = {}
        self.has_inner = True
        self.folders: list[str] | None = []
        self.versions: list[dict[str, Any]] = []
        self.registered: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.refused: RegistryError = TrackerAnswerUnknown("no", tracker_code="INVALID_PARAMETER_VALUE")

    def call(self, method: str, path: str, body: Any = None, query: Any = ()) -> Any:
        name = path.removeprefix("api/2.0/mlflow/")
        self.calls.append(name)
        asked = dict(query) if isinstance(query, Mapping) else query
        match name:
            case "logged-models/search":
                if body["max_results"] > self.models_a_page:
                    raise self.refused
                at = int(body.get("page_token", 0))
                end = at + body["max_results"]
                wanted = [m for m in self.models if m["info"]["source_run_id"] in body["filter"]]
                return {"models": wanted[at:end]} | ({"next_page_token": str(end)} if end < len(wanted) else {})
            case "metrics/get-history":
                return {"metrics": self._points(asked["run_id"], asked["metric_key"])}
            case "ajax-api/2.0/mlflow/metrics/get-history-bulk":
                if not self.has_inner:
                    raise TrackerAnswerUnknown("no such page", status=404)
                key = dict(asked)["metric_key"]
                runs = sorted(value for name, value in asked if name == "run_id")
                found = [{**point, "run_id": run} for run in runs for point in self._points(run, key)]
                return {"metrics": found[: dict(asked)["max_results"]]}
            case "ajax-api/2.0/mlflow/metrics/get-history-bulk-interval":
                return {"metrics": self._points("chosen", "loss")}
            case "api/2.0/mlflow-artifacts/artifacts":
                if self.folders is None:
                    raise TrackerUnreachable("no store", status=500)
                return {"files": [{"path": each, "is_dir": True} for each in self.folders]}
            case "artifacts/list":
                return {"files": [{"path": "checkpoint-7", "is_dir": True}]}
            case "model-versions/search":
                return {"model_versions": self.versions}
            case "registered-models/search":
                return {"registered_models": self.registered}
        raise AssertionError(name)

    def _points(self, run: str, key: str) -> list[dict[str, Any]]:
        steps = range(1, self.points.get((run, key), 0) + 1)
        return [{"key": key, "step": step, "timestamp": step, "value": step / 2} for step in steps]

    def model(self, run: str, name: str, **info: Any) -> None:
        identity = f"m-{len(self.models)}"
        known = {"model_id": identity, "name": name, "source_run_id": run, "status": "LOGGED_MODEL_READY"}
        self.models.append({"info": known | {"artifact_uri": f"s3://b/{identity}"} | info})


@pytest.fixture
def server() -> Server:
    return Server()


def reading(server: Server, *names: str, step: int = 10) -> tuple[MlflowReader, list[TrackerRun]]:
    reader = MlflowReader(MlflowApi(server), Place("mlflow", "http://m", None, "e"))  # type: ignore[arg-type]
    reader._names["1"] = "e"
    docs = [
        {
            "info": {"run_id": name, "experiment_id": "1", "artifact_uri": f"mlflow-artifacts:/1/{name}/artifacts"},
            "data": {"metrics": [{"key": "loss", "step": step, "timestamp": step, "value": 1.0}]},
        }
        for name in names
    ]
    return reader, [reader._read(doc) for doc in docs]


def test_curves_of_many_runs_come_with_one_call(server: Server) -> None:
    server.points = {("r1", "loss"): 10, ("r2", "loss"): 20}
    reader, runs = reading(server, "r1", "r2")
    reader.read_ahead([(run, {}) for run in runs])
    curves = [curve for run in runs for curve, _ in reader.series(run, {})]
    assert [len(curve.steps) for curve in curves] == [10, 20]
    assert server.calls == ["ajax-api/2.0/mlflow/metrics/get-history-bulk"]
    marks = {curve.name: mark for curve, mark in reader.series(runs[0], {})}
    server.calls.clear()
    reader.read_ahead([(runs[0], marks), (runs[1], marks)])
    assert server.calls == [], "what did not change is not read"


def test_a_curve_that_did_not_fit_is_read_alone_and_whole(server: Server) -> None:
    server.points = {("r1", "loss"): 10_000, ("r2", "loss"): 20_000}
    reader, runs = reading(server, "r1", "r2")
    reader.read_ahead([(run, {}) for run in runs])
    curves = [curve for run in runs for curve, _ in reader.series(run, {})]
    assert [len(curve.steps) for curve in curves] == [10_000, 20_000]
    assert server.calls[1:] == ["metrics/get-history"]


def test_a_server_without_such_a_call_is_read_curve_by_curve(server: Server) -> None:
    server.has_inner, server.points = False, {("r1", "loss"): 10, ("r2", "loss"): 20}
    reader, runs = reading(server, "r1", "r2")
    for _ in range(2):
        reader.read_ahead([(run, {}) for run in runs])
        assert [len(curve.steps) for run in runs for curve, _ in reader.series(run, {})] == [10, 20]
    assert server.calls.count("ajax-api/2.0/mlflow/metrics/get-history-bulk") == 1


def test_a_curve_beyond_all_bounds_is_chosen_from_by_the_server(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_curves, "MOST_POINTS", 1_000)
    server.points = {("r1", "loss"): 5_000, ("chosen", "loss"): 50}
    reader, (run,) = reading(server, "r1")
    ((curve, _),) = reader.series(run, {})
    assert len(curve.steps) == 50
    assert "evenly" in str(curve.skipped)


@pytest.mark.parametrize("refused", [None, AnswerTooLarge("too large")])
def test_pages_are_as_large_as_the_server_allows(server: Server, refused: RegistryError | None) -> None:
    server.models_a_page, server.refused = 50, refused or server.refused
    for step in range(120):
        server.model("r1", f"checkpoint-{step}")
    reader, (run,) = reading(server, "r1")
    found = [each.step for _, each in reader.checkpoints([run]) if each.external_id.startswith("m-")]
    assert found == list(range(120))
    assert server.calls.count("logged-models/search") == 1 + 3, "refused at 250, then 3 pages of 50"


def test_only_runs_with_artifacts_are_looked_into(server: Server) -> None:
    server.folders = ["r2", "models"]
    reader, runs = reading(server, "r1", "r2")
    assert [(run_id, each.step) for run_id, each in reader.checkpoints(runs)] == [("r2", 7)]
    assert server.calls.count("artifacts/list") == 1
    server.folders = None
    reader, runs = reading(server, "r1", "r2")
    assert len(list(reader.checkpoints(runs))) == 2, "who does not say so is asked for each run"


def test_aliases_of_registered_models_name_checkpoints_and_may_say_their_step(server: Server) -> None:
    server.model("r1", "checkpoint-5")
    server.model("r1", "best")
    server.versions = [
        {"name": "llm", "version": "1", "run_id": "r1", "source": "models:/m-0"},
        {"name": "llm", "version": "2", "run_id": "r1", "source": "s3://b/m-1", "tags": []},
        {"name": "llm", "version": "3", "run_id": "r1", "source": "mlflow-artifacts:/1/r1/artifacts/checkpoint-7"},
        {"name": "old", "version": "4", "run_id": "r1", "source": "s3://elsewhere/model",
         "tags": [{"key": "step", "value": "40"}]},
    ]  # fmt: skip
    server.registered = [
        {"name": "llm", "aliases": [{"alias": "champion", "version": "1"}, {"alias": "step-90", "version": "2"}]},
        {"name": "llm", "aliases": [{"alias": "next", "version": "3"}]},
    ]
    reader, (run,) = reading(server, "r1")
    found = {each.step: each for _, each in reader.checkpoints([run])}
    assert {step: each.aliases for step, each in found.items()} == {
        5: ("llm@champion",),
        90: ("llm@step-90",),
        7: ("llm@next",),
        40: (),
    }
    assert (found[40].external_id, found[40].uri) == ("models:/old/4", "s3://elsewhere/model")
