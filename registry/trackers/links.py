"""Reading the links that people paste: where a run is found in MLflow or W&B. Pure: nothing is called.

What a browser shows (with hash routes, tabs, queries), what the tools print, and bare ids; user names and passwords in
an address are dropped.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from registry.errors import FieldError, Invalid

WANDB_API: Final = "https://api.wandb.ai"
# The same service under the name that newer versions of its library use; its pages lie below /wandb there.
_WANDB_ALSO: Final = ("forge.coreweave.com", "api.forge.coreweave.com")
_MLFLOW_ID: Final = re.compile(r"[0-9a-f]{32}")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_EXPERIMENT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[^/\\#?%:\x00-\x1f\x7f]{1,128}")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_EXPECTED: Final = (
    "expected the address of a run, such as https://mlflow.example.org/#/experiments/1/runs/… or "
    "https://wandb.ai/entity/project/runs/…"
)


class BadTrackerLink(Invalid):
    code = "bad-tracker-link"
    title = "This does not say which run of a tracker is meant"


@dataclass(frozen=True)
class TrackerPlace:
    """A run in a tracker. `uri` is the tracker's address, '' for its default; `project` is MLflow's experiment id."""

    kind: str
    run_id: str
    uri: str = ""
    entity: str | None = None
    project: str | None = None


def read_link(text: str, *, kind: str | None = None) -> TrackerPlace:
    """The run that a link or an id means. `kind` tells mlflow from wandb where the text alone does not.

    Raises BadTrackerLink.
    """
    text = text.strip()
    if not text or len(text) > 4_096 or any(ord(letter) < 32 for letter in text):
        raise _refused(text)
    place = _mlflow_scheme(text) or _wandb_scheme(text) or _address(text) or _bare(text, kind)
    if place is None:
        raise _refused(text)
    if kind is not None and place.kind != kind:
        message = f"this is a run of {place.kind}, not of {kind}"
        raise BadTrackerLink(f"{_shown(text)}: {message}.", errors=[FieldError("/kind", message)])
    return place


def clean_uri(text: str) -> str:
    """A tracker's address without user name, password, query and fragment; other text is given back unchanged."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        if parts.hostname in _WANDB_ALSO:
            return WANDB_API
        return _base(parts, parts.path) if parts.scheme in _DEFAULT_PORTS and parts.hostname else _no_userinfo(text)
    except ValueError:
        return _no_userinfo(text)


def without_userinfo(text: str) -> str:
    """An address as it was given, where it holds no user name or password; else without them."""
    authority = text.partition("://")[2].partition("/")[0]
    return clean_uri(text) if "@" in authority else text


def _no_userinfo(text: str) -> str:
    scheme, _, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _address(text: str) -> TrackerPlace | None:
    if "://" not in text:
        return None
    try:
        parts = urlsplit(text)
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            return None
        return _mlflow_page(parts) or _wandb_page(parts)
    except ValueError:  # a port that is none, brackets that do not close
        return None


def _mlflow_page(parts: SplitResult) -> TrackerPlace | None:
    """`#/experiments/1/runs/<id>`, Databricks' `#mlflow/experiments/…` and `/ml/experiments/…`, or without the hash."""
    fragment = parts.fragment.partition("?")[0]
    for route, before in ((fragment, parts.path), (parts.path, None)):
        segments = [unquote(each) for each in route.split("/") if each]
        for at in range(len(segments) - 3):
            word, experiment, runs, run_id = segments[at : at + 4]
            if (word, runs) == ("experiments", "runs") and _EXPERIMENT.fullmatch(experiment) and _ID.fullmatch(run_id):
                if before is None and not (_MLFLOW_ID.fullmatch(run_id) or experiment.isdigit()):
                    continue
                root = before if before is not None else "/".join(["", *segments[:at]])
                return TrackerPlace("mlflow", run_id, _base(parts, _without_page(root)), None, experiment)
    return None


def _without_page(path: str) -> str:
    """The path that a tracking server answers under: without the page of its interface, and Databricks' /ml."""
    path = re.sub(r"/(index\.html)?$", "", path)
    return path.removesuffix("/ml")


def _wandb_page(parts: SplitResult) -> TrackerPlace | None:
    segments = [unquote(each) for each in parts.path.split("/") if each]
    also = (parts.hostname or "").lower() in _WANDB_ALSO
    segments = segments[1:] if also and segments[:1] == ["wandb"] else segments
    if len(segments) < 4 or segments[2] != "runs":
        return None
    entity, project, _, run_id = segments[:4]
    if not (_NAME.fullmatch(entity) and _NAME.fullmatch(project) and _ID.fullmatch(run_id)):
        return None
    host = (parts.hostname or "").lower()
    known = also or host in ("wandb.ai", "www.wandb.ai", "api.wandb.ai", "app.wandb.ai")
    return TrackerPlace("wandb", run_id, WANDB_API if known else _base(parts, ""), entity, project)


def _mlflow_scheme(text: str) -> TrackerPlace | None:
    """`runs:/<id>/model`, `mlflow:/<experiment>/<id>`, `mlflow-artifacts://host/1/<id>/artifacts`."""
    scheme, colon, rest = text.partition(":/")
    if not colon or scheme not in ("runs", "mlflow", "mlflow-artifacts", "mlflow+http", "mlflow+https"):
        return None
    uri = ""
    if rest.startswith("/"):
        authority, _, rest = rest[1:].partition("/")
        authority = authority.rpartition("@")[2]
        if authority:
            uri = f"{'https' if scheme == 'mlflow+https' else 'http'}://{authority.lower()}"
    segments = [each for each in rest.partition("?")[0].lstrip("#").split("/") if each and each != "#"]
    segments = [each for each in segments if each not in ("experiments", "runs", "api", "2.0", "mlflow")]
    for at, segment in enumerate(segments):
        if _MLFLOW_ID.fullmatch(segment):
            experiment = segments[at - 1] if at and _EXPERIMENT.fullmatch(segments[at - 1]) else None
            return TrackerPlace("mlflow", segment, uri, None, experiment)
    return None


def _wandb_scheme(text: str) -> TrackerPlace | None:
    """`wandb:entity/project/id`, `wandb://entity/project/runs/id`."""
    if not text.startswith("wandb:"):
        return None
    return _triple(text.removeprefix("wandb:").lstrip("/"))


def _triple(text: str) -> TrackerPlace | None:
    segments = [each for each in text.partition("?")[0].split("/") if each]
    if len(segments) == 4 and segments[2] == "runs":
        segments.pop(2)
    if len(segments) != 3 or not all(_NAME.fullmatch(each) for each in segments) or not _ID.fullmatch(segments[2]):
        return None
    return TrackerPlace("wandb", segments[2], WANDB_API, segments[0], segments[1])


def _bare(text: str, kind: str | None) -> TrackerPlace | None:
    if "://" in text:
        return None
    if kind != "wandb" and _MLFLOW_ID.fullmatch(text):
        return TrackerPlace("mlflow", text)
    return _triple(text) if kind in (None, "wandb") else None


def _base(parts: SplitResult, path: str) -> str:
    """Scheme, host and path: the host in lower case, without userinfo and without the port that goes without saying."""
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    where = host if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f"{host}:{port}"
    return f"{parts.scheme}://{where}{path.rstrip('/')}"


def _refused(text: str) -> BadTrackerLink:
    return BadTrackerLink(f"{_shown(text)} names no run: {_EXPECTED}.", errors=[FieldError("/url", _EXPECTED)])


def _shown(text: str) -> str:
    """The start of what was given, without a password that it may hold."""
    return repr(_no_userinfo(text)[:80] if "://" in text else text[:80])
