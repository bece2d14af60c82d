"""Which folders among the artifacts of MLflow's runs are checkpoints."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cairn.formats.checkpoints.steps import step_from_name

from registry.integrations.mlflow_api import Doc, MlflowSource
from registry.integrations.parallel import in_order
from registry.integrations.shapes import TrackerCheckpoint

MAX_FOLDERS: Final = 30  # of a run that are looked into for checkpoints
_OF_OTHERS: Final = ("images", "plots", "tables", "media", "traces", "system", "code")
_PASSED_ON: Final = "mlflow-artifacts:/"  # by the tracking server itself


class ArtifactFolders:
    """Looks only into runs that have artifacts at all, where one call tells that of a whole experiment. That is asked
    once: a run that gets its first artifact meanwhile is found the next time."""

    def __init__(self, api: MlflowSource) -> None:
        self._api = api
        self._below: dict[str, set[str] | None] = {}

    def of_runs(self, places: Mapping[str, str]) -> Iterator[tuple[str, list[TrackerCheckpoint]]]:
        """The checkpoints of each run. `places`: run id to the address of its artifacts."""
        wanted = [pair for pair in places.items() if len(places) == 1 or self._any(*pair)]
        return in_order(lambda pair: (pair[0], list(from_artifacts(self._api, *pair))), wanted)

    def _any(self, run_id: str, uri: str) -> bool:
        """Whether it may have artifacts: those of `mlflow-artifacts:/1/<run id>/artifacts` lie in a folder of `1`."""
        place = uri.removesuffix(f"/{run_id}/artifacts")
        if not uri.startswith(_PASSED_ON) or uri.startswith(f"{_PASSED_ON}/") or place == uri:
            return True
        if place not in self._below:
            self._below[place] = self._api.folders_below(place.removeprefix(_PASSED_ON))
        known = self._below[place]
        return known is None or run_id in known


def from_artifacts(api: MlflowSource, run_id: str, artifact_uri: str) -> Iterator[TrackerCheckpoint]:
    """Folders that name a step, as HF Trainer and Lightning upload them; two levels deep."""
    looked = 0
    folders = [each for each in api.artifacts(run_id) if each.get("is_dir")]
    while folders:
        path = str(folders.pop(0).get("path", ""))
        stem = path.rpartition("/")[2]
        step = step_from_name(stem)
        inside: list[Doc] = []
        if stem in _OF_OTHERS or looked >= MAX_FOLDERS:
            continue
        if step is None or "=" in stem:
            looked += 1
            inside = api.artifacts(run_id, path)
        if step is not None:
            aliases, metadata = _lightning(api, run_id, path, inside)
            uri = f"{artifact_uri.rstrip('/')}/{path}" if artifact_uri else None
            yield TrackerCheckpoint(f"{run_id}/{path}", stem, step, uri, aliases, metadata)
        elif "/" not in path:
            folders += [each for each in inside if each.get("is_dir")]


def _lightning(api: MlflowSource, run_id: str, path: str, inside: list[Doc]) -> tuple[list[str], dict[str, Any]]:
    """What Lightning's logger writes beside: aliases.txt, a list in Python's notation, and metadata.yaml."""
    names = {str(each.get("path", "")).rpartition("/")[2] for each in inside}
    if "aliases.txt" not in names:
        return [], {}
    try:
        found = ast.literal_eval(api.artifact_text(run_id, f"{path}/aliases.txt").strip() or "[]")
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        found = []
    aliases = [str(each) for each in found if isinstance(each, str)] if isinstance(found, list) else []
    lines = api.artifact_text(run_id, f"{path}/metadata.yaml").splitlines() if "metadata.yaml" in names else []
    pairs = (line.partition(": ") for line in lines if ": " in line)
    return aliases, {key.strip(): value.strip()[:500] for key, _, value in pairs}
