"""MLflow's store of files (`mlruns`), read where it lies: without a server, in the words in which one would answer.

Only below a folder that is listed beside the hosts (CAIRN_TRACKER_HOSTS): whoever could name any folder, or lay a link
to one, would read the worker's disk.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from registry.integrations.hosts import check_folder
from registry.integrations.mlflow_api import POINTS_A_PAGE, RUNS_A_PAGE, Doc
from registry.integrations.shapes import TrackerAnswerUnknown, TrackerRunNotFound

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_RUN_STATES: Final = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
_MODEL_STATES: Final = {1: "LOGGED_MODEL_PENDING", 2: "LOGGED_MODEL_READY", 3: "LOGGED_MODEL_UPLOAD_FAILED"}
MAX_TEXT: Final = 1_000_000  # characters of a small file
MAX_LINE: Final = 1_000


class MlflowFiles:
    """An `MlflowSource` over a folder. Runs are given in the order of their start."""

    def __init__(self, folder: str, allowed: Sequence[str]) -> None:
        self._root = check_folder(folder, allowed)
        self._starts: dict[Path, list[tuple[int, str]]] = {}
        self._models: dict[Path, dict[str, list[Path]]] = {}
        self._folders: dict[str, Path] = {}  # of runs

    def experiment(self, named: str) -> Doc:
        found = [folder for folder in self._experiments() if named in (_text(self._meta(folder), "name"), folder.name)]
        if not found:
            raise TrackerRunNotFound(f"There is no experiment {named[:80]!r} in {self._root}.")
        return {"experiment_id": found[0].name, "name": _text(self._meta(found[0]), "name")}

    def experiment_by_id(self, identity: str) -> Doc:
        return self.experiment(identity)

    def run(self, run_id: str) -> Doc:
        return self._run(self._folder_of(run_id))

    def search_runs(self, experiment: str, token: str | None) -> tuple[list[Doc], str | None]:
        folder = self._root / experiment
        if folder not in self._starts:
            runs = (each for each in _folders(folder) if self._is_run(each))
            self._starts[folder] = sorted((_whole(self._meta(run).get("start_time")), run.name) for run in runs)
        start, _, run_id = (token or "").partition(":")
        after = (_whole(start), run_id) if token else (-1, "")
        page = list(islice((each for each in self._starts[folder] if each > after), RUNS_A_PAGE[0] + 1))
        more = len(page) > RUNS_A_PAGE[0]
        page = page[: RUNS_A_PAGE[0]]
        return [self._run(folder / name) for _, name in page], f"{page[-1][0]}:{page[-1][1]}" if more else None

    def models_of_runs(self, experiment: str, run_ids: Sequence[str]) -> Iterator[Doc]:
        folder = self._root / experiment
        if folder not in self._models:
            by_run: dict[str, list[Path]] = {}
            for model in _folders(folder / "models"):
                by_run.setdefault(_text(self._meta(model), "source_run_id"), []).append(model)
            self._models[folder] = by_run
        for run_id in run_ids:
            found = [self._model(model) for model in self._models[folder].get(run_id, ())]
            yield from sorted(found, key=lambda each: _whole(each["info"]["creation_timestamp_ms"]))

    def history(self, run_id: str, key: str) -> Iterator[list[Doc]]:
        lines = self._lines(self._folder_of(run_id) / "metrics" / key)
        points: Iterator[Doc] = (point for line in lines if (point := _point(key, line)) is not None)
        while page := list(islice(points, POINTS_A_PAGE)):
            yield page

    def histories(self, run_ids: Sequence[str], key: str) -> dict[str, list[Doc]]:
        """None: each is a file of its own."""
        return {}

    def sampled_history(self, run_id: str, key: str) -> list[Doc]:
        return []

    def artifacts(self, run_id: str, path: str = "") -> list[Doc]:
        root = self._folder_of(run_id) / "artifacts"
        inside = root / path
        if not self._is_inside(inside) or not inside.is_dir():
            return []
        return [{"path": str(each.relative_to(root)), "is_dir": each.is_dir()} for each in sorted(inside.iterdir())]

    def artifact_text(self, run_id: str, path: str) -> str:
        return self._read(self._folder_of(run_id) / "artifacts" / path)[:65_536]

    def folders_below(self, path: str) -> set[str] | None:
        return None

    def model_versions(self, run_ids: Sequence[str]) -> Iterator[Doc]:
        wanted = set(run_ids)
        for model in _folders(self._root / "models"):
            for version in _folders(model):
                meta = self._meta(version) if version.name.startswith("version-") else {}
                if meta.get("run_id") in wanted:
                    yield {**meta, "tags": _pairs(self._values(version / "tags"))}

    def registered_models(self) -> Iterator[Doc]:
        for model in _folders(self._root / "models"):
            aliases = self._values(model / "aliases")
            said = [{"alias": alias, "version": version.strip()} for alias, version in aliases.items()]
            yield {"name": _text(self._meta(model), "name"), "aliases": said}

    def _experiments(self) -> list[Path]:
        return [each for each in _folders(self._root) if each.name != "models" and (each / "meta.yaml").is_file()]

    def _is_run(self, folder: Path) -> bool:
        return folder.name != "models" and (folder / "metrics").is_dir() and (folder / "meta.yaml").is_file()

    def _folder_of(self, run_id: str) -> Path:
        """Raises TrackerRunNotFound."""
        if run_id not in self._folders and _NAME.fullmatch(run_id):
            for folder in self._experiments():
                if self._is_run(folder / run_id):
                    self._folders[run_id] = folder / run_id
        if run_id not in self._folders:
            raise TrackerRunNotFound(f"There is no run {run_id[:80]!r} in {self._root}.")
        return self._folders[run_id]

    def _run(self, folder: Path) -> Doc:
        self._folders[folder.name] = folder
        meta = self._meta(folder)
        info = {key: meta.get(key) for key in ("run_name", "user_id", "start_time", "end_time", "artifact_uri")}
        info |= {"run_id": folder.name, "experiment_id": folder.parent.name}
        info |= {"status": _RUN_STATES.get(_whole(meta.get("status")), "")}
        info |= {"lifecycle_stage": _text(meta, "lifecycle_stage") or "active"}
        ends = [self._last_point(folder / "metrics" / name, name) for name in self._names(folder / "metrics")]
        steps = {each.name: _whole(self._meta(each).get("step")) for each in _folders(folder / "outputs")}
        return {
            "info": info,
            "data": {
                "params": _pairs(self._values(folder / "params")),
                "tags": _pairs(self._values(folder / "tags")),
                "metrics": [point for point in ends if point is not None],
            },
            "inputs": {"dataset_inputs": list(self._datasets(folder))},
            "outputs": {"model_outputs": [{"model_id": model, "step": step} for model, step in steps.items()]},
        }

    def _datasets(self, run: Path) -> Iterator[Doc]:
        for each in _folders(run / "inputs"):
            meta = self._meta(each)
            dataset = self._meta(run.parent / "datasets" / _text(meta, "source_id")) if meta.get("source_id") else {}
            if dataset:
                tags = meta.get("tags") if isinstance(meta.get("tags"), dict) else {}
                yield {"dataset": dataset, "tags": _pairs(tags or {})}

    def _model(self, folder: Path) -> Doc:
        meta = self._meta(folder)
        points = [
            point | {"run_id": words[3] if len(words) > 3 else _text(meta, "source_run_id")}
            for name in self._names(folder / "metrics")
            for line in self._lines(folder / "metrics" / name)
            if (point := _point(name, line)) is not None and (words := line.split())
        ]
        return {
            "info": {
                "model_id": folder.name,
                "name": _text(meta, "name"),
                "source_run_id": _text(meta, "source_run_id"),
                "artifact_uri": _text(meta, "artifact_location"),
                "creation_timestamp_ms": _whole(meta.get("creation_timestamp")),
                "status": _MODEL_STATES.get(_whole(meta.get("status")), "LOGGED_MODEL_STATUS_UNSPECIFIED"),
                "tags": _pairs(self._values(folder / "tags")),
            },
            "data": {"params": _pairs(self._values(folder / "params")), "metrics": points},
        }

    def _meta(self, folder: Path) -> Mapping[str, Any]:
        """What a folder's meta.yaml says, all of it text; nothing where it is half-written or of another kind."""
        yaml = _yaml()
        try:
            found = yaml.load(self._read(folder / "meta.yaml"), getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        except yaml.YAMLError:
            return {}
        return {key: value for key, value in found.items() if value != "null"} if isinstance(found, dict) else {}

    def _values(self, folder: Path) -> dict[str, str]:
        """Small files by their names, which may hold folders: `a/b` is a parameter's name too."""
        return {name: self._read(folder / name) for name in self._names(folder)}

    def _names(self, folder: Path) -> list[str]:
        found = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
        return sorted(each.relative_to(folder).as_posix() for each in found)

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self._root)

    def _read(self, path: Path) -> str:
        try:
            if self._is_inside(path):
                with path.open(encoding="utf-8", errors="replace") as file:
                    return file.read(MAX_TEXT)
        except OSError:
            pass
        return ""

    def _lines(self, path: Path) -> Iterator[str]:
        try:
            if self._is_inside(path):
                with path.open(encoding="utf-8", errors="replace") as file:
                    while line := file.readline(MAX_LINE):
                        yield line
        except OSError:
            return

    def _last_point(self, path: Path, key: str) -> dict[str, Any] | None:
        """The last whole line; what is written just now may be half there."""
        try:
            with path.open("rb") as file:
                begins = max(0, path.stat().st_size - MAX_LINE)
                file.seek(begins)
                lines = file.read().decode("utf-8", "replace").splitlines() if self._is_inside(path) else []
        except OSError:
            return None
        points = (_point(key, line) for line in reversed(lines[1 if begins else 0 :]))
        return next((point for point in points if point is not None), None)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []


def _point(key: str, line: str) -> dict[str, Any] | None:
    """`milliseconds value step`, without the step in old files; None for a line that is cut off."""
    words = line.split()
    try:
        step = int(words[2]) if len(words) > 2 else 0
        return {"key": key, "timestamp": int(words[0]), "value": float(words[1]), "step": step}
    except (ValueError, IndexError):
        return None


def _pairs(values: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"key": str(key), "value": str(value)} for key, value in values.items()]


def _text(meta: Mapping[str, Any], name: str) -> str:
    value = meta.get(name)
    return "" if value is None else str(value)


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise TrackerAnswerUnknown("Reading a folder takes an extra: pip install 'cairn-registry[mlflow]'.") from None
    return yaml
