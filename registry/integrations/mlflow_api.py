"""The calls of MLflow's REST interface that are used here, each as its documents write it (`/api/2.0/mlflow/`)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from registry.errors import RegistryError
from registry.integrations.http import AnswerTooLarge, TrackerHttp
from registry.integrations.shapes import (
    TrackerAnswerUnknown,
    TrackerRefused,
    TrackerRunNotFound,
    TrackerUnreachable,
)

BASE: Final = "api/2.0/mlflow"
INNER: Final = "ajax-api/2.0/mlflow"  # what MLflow's own pages ask; not every server lets others ask it
RUNS_A_PAGE: Final = (100, 20, 4, 1)  # fewer where an answer would be too large
MODELS_A_PAGE: Final = (250, 50, 10, 1)  # fewer where that is refused, or an answer would be too large
IDS_A_FILTER: Final = 50
POINTS_A_PAGE: Final = 25_000
Doc = Mapping[str, Any]


class MlflowSource(Protocol):
    """Where runs and models are read: a server, or a folder of files. Each call raises the tracker errors.

    A run is not there: TrackerRunNotFound. Documents are those of MLflow's REST interface.
    """

    def experiment(self, named: str) -> Doc: ...
    def experiment_by_id(self, identity: str) -> Doc: ...
    def run(self, run_id: str) -> Doc: ...
    def search_runs(self, experiment: str, token: str | None) -> tuple[list[Doc], str | None]: ...
    def models_of_runs(self, experiment: str, run_ids: Sequence[str]) -> Iterator[Doc]: ...
    def history(self, run_id: str, key: str) -> Iterator[list[Doc]]: ...
    def histories(self, run_ids: Sequence[str], key: str) -> dict[str, list[Doc]]: ...
    def sampled_history(self, run_id: str, key: str) -> list[Doc]: ...
    def artifacts(self, run_id: str, path: str = "") -> list[Doc]: ...
    def artifact_text(self, run_id: str, path: str) -> str: ...
    def folders_below(self, path: str) -> set[str] | None: ...
    def model_versions(self, run_ids: Sequence[str]) -> Iterator[Doc]: ...
    def registered_models(self) -> Iterator[Doc]: ...


class MlflowApi:
    """An `MlflowSource` over HTTP, and what is written there."""

    def __init__(self, http: TrackerHttp) -> None:
        self.http = http
        self._no_models = self._no_bulk = False
        self._models_a_page = MODELS_A_PAGE[0]

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
        for filter_text in _filters("source_run_id", run_ids):
            yield from self._search_models(experiment, filter_text)

    def _search_models(self, experiment: str, filter_text: str) -> Iterator[Doc]:
        token = None
        while not self._no_models:
            body: dict[str, Any] = {"experiment_ids": [experiment], "filter": filter_text}
            body["order_by"] = [{"field_name": "creation_timestamp", "ascending": True}]
            try:
                found = self._model_page(body | ({"page_token": token} if token else {}))
            except (TrackerAnswerUnknown, TrackerRunNotFound) as error:
                if not _is_no_such_call(error):
                    raise
                self._no_models = True  # a server before MLflow 3
                return
            yield from found.get("models", ())
            token = found.get("next_page_token")
            if not token:
                return

    def _model_page(self, body: Doc) -> Doc:
        """Tokens are places in the order, whatever the size of a page: Databricks, for one, allows small pages only."""
        while True:
            size = self._models_a_page
            try:
                return self._call("POST", "logged-models/search", {**body, "max_results": size})
            except TrackerAnswerUnknown as error:
                fewer = [each for each in MODELS_A_PAGE if each < size]
                refused = error.extras.get("tracker_code") == "INVALID_PARAMETER_VALUE"
                if not fewer or not (refused or isinstance(error, AnswerTooLarge)):
                    raise
                self._models_a_page = fewer[0]

    def history(self, run_id: str, key: str) -> Iterator[list[Doc]]:
        """Every point of a metric, as it was logged, page by page."""
        token = None
        while True:
            query = {"run_id": run_id, "metric_key": key, "max_results": POINTS_A_PAGE}
            found = self._call("GET", "metrics/get-history", None, query | ({"page_token": token} if token else {}))
            yield list(found.get("metrics", ()))
            token = found.get("next_page_token")
            if not token:
                return

    def histories(self, run_ids: Sequence[str], key: str) -> dict[str, list[Doc]]:
        """Every point of a metric of many runs with one call, by run. Those that do not fit are left out, all of them
        where the server does not answer this."""
        found: dict[str, list[Doc]] = {}
        if self._no_bulk:
            return found
        query = [("metric_key", key), ("max_results", POINTS_A_PAGE), *(("run_id", each) for each in run_ids)]
        try:
            points = self._object(f"{INNER}/metrics/get-history-bulk", query).get("metrics", ())
        except AnswerTooLarge:
            return found
        except (TrackerAnswerUnknown, TrackerRunNotFound, TrackerRefused):
            self._no_bulk = True
            return found
        for point in points:
            found.setdefault(str(point.get("run_id")), []).append(point)
        if len(points) >= POINTS_A_PAGE and found:  # sorted by run: the last one's points may go on
            found.popitem()
        return found

    def sampled_history(self, run_id: str, key: str) -> list[Doc]:
        """Some 2,500 points of a metric, evenly chosen by the server; none where it does not answer this."""
        query = [("metric_key", key), ("max_results", 2_500), ("run_ids", run_id)]
        try:
            return list(self._object(f"{INNER}/metrics/get-history-bulk-interval", query).get("metrics", ()))
        except (TrackerAnswerUnknown, TrackerRunNotFound, TrackerRefused):
            return []

    def model_versions(self, run_ids: Sequence[str]) -> Iterator[Doc]:
        """The versions in the model registry that came out of these runs."""
        for filter_text in _filters("run_id", run_ids):
            yield from self._of_registry("model-versions", filter_text)

    def registered_models(self) -> Iterator[Doc]:
        """All models of the registry; their aliases stand there."""
        return self._of_registry("registered-models")

    def _of_registry(self, what: str, filter_text: str = "") -> Iterator[Doc]:
        """None where the server keeps none, or does not show them to us."""
        query: dict[str, Any] = {"max_results": 1_000} | ({"filter": filter_text} if filter_text else {})
        while True:
            try:
                found = self._call("GET", f"{what}/search", None, query)
            except (TrackerAnswerUnknown, TrackerRunNotFound, TrackerRefused):
                return
            except TrackerUnreachable as error:
                if error.extras.get("tracker_code") == "FEATURE_DISABLED":
                    return
                raise
            yield from found.get(what.replace("-", "_"), ())
            if not found.get("next_page_token"):
                return
            query["page_token"] = found["next_page_token"]

    def folders_below(self, path: str) -> set[str] | None:
        """The names in a folder of the artifacts that the server itself passes on; None where it does not say."""
        try:
            files = self._object("api/2.0/mlflow-artifacts/artifacts", {"path": path}).get("files", ())
        except RegistryError:  # whatever it was, the runs are asked one by one then
            return None
        return {str(each.get("path", "")) for each in files}

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
        return _checked(path, self.http.call(method, f"{BASE}/{path}", body, query or {}))

    def _object(self, path: str, query: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> Doc:
        return _checked(path, self.http.call("GET", path, None, query))


def _checked(path: str, found: Any) -> Doc:
    if not isinstance(found, dict):
        raise TrackerAnswerUnknown(f"The tracker's answer to {path} is no object: it is no MLflow server.")
    return found


def _filters(column: str, run_ids: Sequence[str]) -> Iterator[str]:
    for at in range(0, len(run_ids), IDS_A_FILTER):
        wanted = ", ".join(f"'{run_id}'" for run_id in run_ids[at : at + IDS_A_FILTER])
        yield f"{column} IN ({wanted})"


def _is_no_such_call(error: RegistryError) -> bool:
    return error.extras.get("status") == 404 or error.extras.get("tracker_code") == "ENDPOINT_NOT_FOUND"
