"""The calls of MLflow's REST interface that are used here, each as its documents write it (`/api/2.0/mlflow/`)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from registry.errors import RegistryError
from registry.integrations.http import AnswerTooLarge, TrackerHttp
from registry.integrations.shapes import TrackerAnswerUnknown, TrackerRunNotFound, TrackerUnreachable

BASE: Final = "api/2.0/mlflow"
RUNS_A_PAGE: Final = (100, 20, 4, 1)  # fewer where an answer would be too large
MODELS_A_PAGE: Final = 500
IDS_A_FILTER: Final = 50
POINTS_A_PAGE: Final = 25_000
Doc = Mapping[str, Any]


class MlflowApi:
    """Each call raises the tracker errors."""

    def __init__(self, http: TrackerHttp) -> None:
        self.http = http
        self._no_models = False

    def experiment(self, named: str) -> Doc:
        """The experiment of a name, or else of an id. Raises TrackerRunNotFound."""
        try:
            return self._doc("GET", "experiments/get-by-name", None, {"experiment_name": named}, "experiment")
        except TrackerRunNotFound:
            if not named.isdigit():
                raise
        return self._doc("GET", "experiments/get", None, {"experiment_id": named}, "experiment")

    def experiment_by_id(self, identity: str) -> Doc:
        return self._doc("GET", "experiments/get", None, {"experiment_id": identity}, "experiment")

    def run(self, run_id: str) -> Doc:
        """Raises TrackerRunNotFound."""
        try:
            return self._doc("GET", "runs/get", None, {"run_id": run_id}, "run")
        except TrackerAnswerUnknown as error:
            if error.extras.get("tracker_code") == "INVALID_PARAMETER_VALUE":  # text that can be no run's id
                raise TrackerRunNotFound(error.message) from None
            raise

    def search_runs(self, experiment: str, token: str | None) -> tuple[list[Doc], str | None]:
        """A page of runs, deleted ones too, those that began first before others; and the token of the next page."""
        for size in RUNS_A_PAGE:
            body = {"experiment_ids": [experiment], "run_view_type": "ALL", "max_results": size}
            body["order_by"] = ["attributes.start_time ASC"]
            try:
                found = self._call("POST", "runs/search", body | ({"page_token": token} if token else {}))
            except AnswerTooLarge:
                if size == RUNS_A_PAGE[-1]:
                    raise
                continue
            return list(found.get("runs", ())), found.get("next_page_token") or None
        raise AssertionError

    def models_of_runs(self, experiment: str, run_ids: Sequence[str]) -> Iterator[Doc]:
        """The logged models of these runs, the oldest first, many a call; none where the server knows no such thing."""
        for at in range(0, len(run_ids), IDS_A_FILTER):
            wanted = ", ".join(f"'{run_id}'" for run_id in run_ids[at : at + IDS_A_FILTER])
            yield from self._search_models(experiment, f"source_run_id IN ({wanted})")

    def _search_models(self, experiment: str, filter_text: str) -> Iterator[Doc]:
        token = None
        while not self._no_models:
            body: dict[str, Any] = {"experiment_ids": [experiment], "filter": filter_text, "max_results": MODELS_A_PAGE}
            body["order_by"] = [{"field_name": "creation_timestamp", "ascending": True}]
            try:
                found = self._call("POST", "logged-models/search", body | ({"page_token": token} if token else {}))
            except (TrackerAnswerUnknown, TrackerRunNotFound) as error:
                if error.extras.get("status") == 404 or error.extras.get("tracker_code") == "ENDPOINT_NOT_FOUND":
                    self._no_models = True  # a server before MLflow 3
                    return
                raise
            yield from found.get("models", ())
            token = found.get("next_page_token")
            if not token:
                return

    def history(self, run_id: str, key: str) -> Iterator[Doc]:
        """Every point of a metric, as it was logged."""
        token = None
        while True:
            query = {"run_id": run_id, "metric_key": key, "max_results": POINTS_A_PAGE}
            found = self._call("GET", "metrics/get-history", None, query | ({"page_token": token} if token else {}))
            yield from found.get("metrics", ())
            token = found.get("next_page_token")
            if not token:
                return

    def artifacts(self, run_id: str, path: str = "") -> list[Doc]:
        """The files and folders of a run below a path; none where its store cannot be listed."""
        query = {"run_id": run_id} | ({"path": path} if path else {})
        try:
            found = self._call("GET", "artifacts/list", None, query)
        except TrackerUnreachable as error:
            if error.extras.get("status") is None:
                raise
            return []  # the server is there, its artifact store is not
        except (TrackerAnswerUnknown, TrackerRunNotFound):
            return []
        return list(found.get("files", ()))

    def artifact_text(self, run_id: str, path: str) -> str:
        """A small text file; '' where it cannot be read."""
        try:
            return self.http.text("get-artifact", {"run_uuid": run_id, "path": path})[:65_536]
        except RegistryError:
            return ""

    def create_model(self, experiment: str, run_id: str, name: str, tags: Mapping[str, str]) -> str:
        """A new external model of a run; gives its id."""
        body = {
            "experiment_id": experiment,
            "name": name,
            "source_run_id": run_id,
            "model_type": "external",
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        return str(self._call("POST", "logged-models", body)["model"]["info"]["model_id"])

    def finish_model(self, model_id: str) -> None:
        self._call("PATCH", f"logged-models/{model_id}", {"model_id": model_id, "status": "LOGGED_MODEL_READY"})

    def tie_model(self, run_id: str, model_id: str, step: int) -> None:
        """Say that the run put out this model at a step. The server refuses it a second time."""
        self._call("POST", "runs/outputs", {"run_id": run_id, "models": [{"model_id": model_id, "step": step}]})

    def tag_model(self, model_id: str, tags: Mapping[str, str]) -> None:
        body = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        self._call("PATCH", f"logged-models/{model_id}/tags", body)

    def untag_model(self, model_id: str, key: str) -> None:
        self._call("DELETE", f"logged-models/{model_id}/tags/{key}")

    def log_metrics(self, run_id: str, metrics: Sequence[Doc]) -> None:
        """At most 1,000 a call. Sending a point again changes nothing."""
        for at in range(0, len(metrics), 1_000):
            self._call("POST", "runs/log-batch", {"run_id": run_id, "metrics": list(metrics[at : at + 1_000])})

    def tag_run(self, run_id: str, tags: Mapping[str, str]) -> None:
        pairs = [{"key": key, "value": value} for key, value in tags.items()]
        for at in range(0, len(pairs), 100):
            self._call("POST", "runs/log-batch", {"run_id": run_id, "tags": pairs[at : at + 100]})

    def untag_run(self, run_id: str, key: str) -> None:
        """A tag that is not there is no error."""
        with suppress(TrackerRunNotFound):
            self._call("POST", "runs/delete-tag", {"run_id": run_id, "key": key})

    def _doc(self, method: str, path: str, body: Any, query: Mapping[str, Any], member: str) -> Doc:
        found = self._call(method, path, body, query).get(member)
        if not isinstance(found, dict):
            raise TrackerAnswerUnknown(f"The tracker's answer to {path} has no {member!r}: it is no MLflow server.")
        return found

    def _call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Doc:
        found = self.http.call(method, f"{BASE}/{path}", body, query or {})
        if not isinstance(found, dict):
            raise TrackerAnswerUnknown(f"The tracker's answer to {path} is no object: it is no MLflow server.")
        return found
