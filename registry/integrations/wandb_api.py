"""One W&B service: checked with a small question of our own, then spoken to through `wandb.Api`.

The library works through a helper process that retries by itself until its time is over, whatever is wrong. So before
it is started, one question tells in seconds whether the host may be called, answers, knows us, and sends nobody
elsewhere. Later failures take `TIMEOUT_SECONDS` at most each.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from registry.config import Settings
from registry.errors import RegistryError
from registry.integrations.credentials import Credential, find_credential
from registry.integrations.http import TrackerHttp
from registry.integrations.shapes import (
    TrackerAnswerUnknown,
    TrackerRefused,
    TrackerRunNotFound,
    TrackerUnreachable,
)
from registry.trackers.links import WANDB_API

ALSO: Final = "https://api.forge.coreweave.com"  # W&B's own service, as newer versions of the library call it
TIMEOUT_SECONDS: Final = 20
LEAST_KEY: Final = 40  # characters; the library refuses shorter ones
MAX_SAID: Final = 300
T = TypeVar("T")
# What the library raises where its helper process does not answer any more, besides timeouts.
_GONE: Final = frozenset(
    {"TimeoutError", "ConnectionError", "MailboxClosedError", "HandleAbandonedError", "AuthenticationError"}
)
_VIEWER: Final = "query Viewer { viewer { id entity username } }"
_STATUS: Final = re.compile(r"\b(?:HTTP|status|code|error)\D{0,12}\b([45]\d\d)\b", re.IGNORECASE)


class WandbMissing(TrackerAnswerUnknown):
    code = "wandb-not-installed"
    title = "The W&B library is not installed here"


class WandbApi:
    """Calls of `wandb.Api`, whose failures leave as tracker errors that hold no key."""

    def __init__(self, uri: str, settings: Settings) -> None:
        self.uri = uri
        self._key = _key(uri)
        self.viewer = self._ask_first(settings)
        self._api = self._guarded(lambda: _open(uri, self._key, settings))

    def runs(self, path: str, filters: Mapping[str, Any], page: int) -> Iterator[Any]:
        """The runs of `entity/project`, the oldest first, with config and summary."""
        self._api.flush()  # else it gives the list that it made before, whatever page was asked for then
        found = self._guarded(
            lambda: self._api.runs(path, filters=dict(filters), order="+created_at", per_page=page, lazy=False)
        )
        return self._each(found, path)

    def count(self, path: str) -> int:
        self._api.flush()
        return self._guarded(lambda: len(self._api.runs(path, order="+created_at", per_page=1)), path)

    def run(self, path: str) -> Any:
        """The run as it is now: the library would give the one that it read before. Raises TrackerRunNotFound."""
        self._api.flush()
        return self._guarded(lambda: _full(self._api.run(path)), path)

    def history(self, run: Any, from_index: int) -> Iterator[Mapping[str, Any]]:
        """Every row from W&B's own step on: a scan, without names, since sampling and naming both drop rows."""
        return self._each(self._guarded(lambda: _scan(run, from_index)), "history")

    def logged(self, run: Any) -> Iterator[Any]:
        """The artifacts that a run wrote."""
        return self._each(self._guarded(run.logged_artifacts), "artifacts")

    def used(self, run: Any) -> Iterator[Any]:
        """The artifacts that a run read."""
        return self._each(self._guarded(run.used_artifacts), "artifacts")

    def amend(self, run: Any, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sets these fields of a run and no other; gives what is stored now.

        The library's own `update()` sends the whole config and every tag as they were read, and ignores the answer.
        """
        types = {"tags": "[String!]", "summaryMetrics": "JSONString"}
        declared = "".join(f", ${name}: {types[name]}" for name in changes)
        given = "".join(f", {name}: ${name}" for name in changes)
        mutation = (
            f"mutation UpsertBucket($id: String!{declared}) {{ upsertBucket(input: {{id: $id{given}}}) "
            "{ bucket { id tags summaryMetrics } } }"
        )
        answer = self._guarded(lambda: run._exec(mutation, id=run.storage_id, **changes))
        bucket = ((answer or {}).get("upsertBucket") or {}).get("bucket") or {}
        if not isinstance(bucket, dict) or bucket.get("id") != run.storage_id:
            raise TrackerAnswerUnknown("W&B did not say that the run was changed.")
        return bucket

    def _ask_first(self, settings: Settings) -> Mapping[str, Any]:
        credential = Credential(username="api", password=self._key)
        http = TrackerHttp(self.uri, settings.tracker_hosts, credential)
        try:
            answer = http.call("POST", "graphql", {"query": _VIEWER, "operationName": "Viewer", "variables": {}})
        finally:
            http.close()
        data = answer.get("data") if isinstance(answer, dict) else None
        viewer = data.get("viewer") if isinstance(data, dict) else None
        if not isinstance(data, dict):
            raise TrackerAnswerUnknown(f"{self.uri} answered, but not as W&B does. Is it the address of W&B's API?")
        if not isinstance(viewer, dict):
            raise TrackerRefused(f"{self.uri} does not know the API key. Give the worker another one for this host.")
        return viewer

    def _each(self, items: Any, what: str) -> Iterator[Any]:
        """The items of a lazy list, each asked for under guard. The list forgets what it gave: it would keep it all."""
        iterator = iter(items)
        nothing = object()
        while (item := self._guarded(lambda: next(iterator, nothing), what)) is not nothing:
            given, at = getattr(iterator, "objects", None), getattr(iterator, "index", -1)
            if isinstance(given, list) and 0 <= at < len(given):
                given[at] = None
            yield item

    def _guarded(self, call: Callable[[], T], what: str = "") -> T:
        try:
            return call()
        except RegistryError:
            raise
        except Exception as error:  # the library raises many kinds, some of them bare ValueErrors
            raise problem_of(error, self.uri, what, [self._key]) from None


def _key(uri: str) -> str:
    names = (uri, ALSO) if uri == WANDB_API else (uri,)
    key = next((key for name in names if (key := find_credential(name).api_key)), "")
    if len(key) < LEAST_KEY:
        said = "is shorter than any key of W&B" if key else "is missing"
        raise TrackerRefused(
            f"The API key for {uri} {said}. Give the worker one in WANDB_API_KEY, or in CAIRN_TRACKER_CREDENTIALS."
        )
    return key


def _open(uri: str, key: str, settings: Settings) -> Any:
    os.environ.setdefault("WANDB_SILENT", "true")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # it would call a host that nobody listed
    os.environ.setdefault("WANDB_CACHE_DIR", str(settings.home / "wandb"))
    try:
        import wandb
    except ImportError:
        raise WandbMissing("Install the extra: pip install 'cairn-registry[wandb]'.") from None
    return wandb.Api(overrides={"base_url": uri}, api_key=key, timeout=TIMEOUT_SECONDS)


def _full(run: Any) -> Any:
    """A run that came without config and summary, with them."""
    load = getattr(run, "load_full_data", None)
    if callable(load):
        load()
    return run


def _scan(run: Any, from_index: int) -> Any:
    try:
        return run.scan_history(page_size=1_000, min_step=from_index, use_cache=False)
    except TypeError:  # before version 0.25 it took no such word
        return run.scan_history(page_size=1_000, min_step=from_index)


def problem_of(error: BaseException, uri: str, what: str, secrets: Sequence[str]) -> RegistryError:
    """The library's exception as ours."""
    said = _words(error, secrets)
    lowered = said.lower()
    status = _status(error, said)
    if "could not find" in lowered or "not found" in lowered or status == 404:
        return TrackerRunNotFound(f"{uri} has no {what or 'such run'}, or does not show it to us.")
    if status in (401, 403) or "permission denied" in lowered or "unauthorized" in lowered or "relogin" in lowered:
        return TrackerRefused(f"{uri} does not permit this ({status or 'refused'}). Give the worker another API key.")
    if status == 429 or (status or 0) >= 500 or (status is None and _never_answered(error, lowered)):
        shown = f"answered {status}" if status else f"does not answer: {said}"
        return TrackerUnreachable(f"{uri} {shown}. It is tried again.")
    return TrackerAnswerUnknown(f"{uri} answered{f' {status}' if status else ''} what is not understood: {said}")


def _never_answered(error: BaseException, said: str) -> bool:
    """Whether the helper process gave up, or is gone itself."""
    names = {type(each).__name__ for each in _chain(error)}
    given_up = ("respond in time", "timed out", "timeout", "connection", "eof", "deadline")
    return bool(names & _GONE) or any(word in said for word in given_up)


def _words(error: BaseException, secrets: Sequence[str]) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    for secret in secrets:
        said = said.replace(secret, "***")
    return said[:MAX_SAID]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what caused it; the library keeps the cause in a place of its own too."""
    for _ in range(6):
        if error is None:
            return
        yield error
        inner = getattr(error, "exc", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__


def _status(error: BaseException, said: str) -> int | None:
    """The HTTP status within an exception of the library, or within what caused it."""
    for each in _chain(error):
        response = getattr(each, "response", None)
        status = getattr(response, "http_status", None) or getattr(response, "status_code", None)
        if isinstance(status, int) and status:
            return status
    found = _STATUS.search(said)
    return int(found[1]) if found else None
