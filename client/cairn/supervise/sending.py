"""Sends what a supervisor has to say: attempts, heartbeats, how a job ended, what interrupted it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.errors import (
    AttemptWouldRestart,
    BadSettings,
    CairnError,
    ConnectionFailed,
    Forbidden,
    Invalid,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from cairn.spool.refused import set_aside
from cairn.supervise.kept import Left, Request
from cairn.transport import Retries
from cairn.types import Run

TIMEOUT_SECONDS = 5.0
PASSING = frozenset({401, 403, 408, 429})  # statuses after which the same may be taken later
Say = Callable[[str], None]


class Sending:
    """One run of the service. Every method raises `CairnError` where the service is away, and tries once."""

    def __init__(self, run: str, say: Say, client: Client | None = None) -> None:
        self.name = run
        self._project, _, self._name = run.partition("/")
        self._say = say
        self._client = client
        self._run: Run | None = None
        self._numbers: dict[str, int] = {}
        self.last_incident: str | None = None  # the one that was recorded last
        self.refused: set[str] = set()  # attempts that will never be opened

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client(timeout=TIMEOUT_SECONDS, retries=Retries(count=0))
        return self._client

    def is_open(self, key: str) -> bool:
        return key in self._numbers

    def run(self) -> Run:
        """The run, made where it is absent."""
        if self._run is None:
            self.client.create_project(self._project)
            self._run = self.client.create_run(self._project, self._name)
        return self._run

    def send(self, request: Request) -> bool:
        """Whether it is done with; what waits for the attempt to be opened is not."""
        if request.what == "open":
            return self._open(request)
        if request.what == "incident":
            return self._incident(request)
        return request.key in self._numbers and self._end(request)

    def beat(self, key: str, moment: str, step: int | None) -> None:
        changes: dict[str, Any] = {"heartbeat_at": moment} | ({} if step is None else {"step": step})
        self.client.patch_attempt(self.run(), self._numbers[key], **changes)

    def newest(self) -> str | None:
        """The newest committed checkpoint that is live."""
        rule = f"run.id = '{self.run().id}' and state = 'committed' and not superseded"
        for each in self.client.iter_checkpoints(filter=rule, order_by="attempt desc, step desc", limit=1):
            return each.id
        return None

    def _open(self, request: Request) -> bool:
        """The attempt of this key, which the recorder in the job may have opened before us."""
        try:
            started = self.client.start_attempt(self.run(), key=request.key, **request.body, warn=False)
        except AttemptWouldRestart:
            return False
        self._numbers[request.key] = started.number
        return True

    def _end(self, request: Request) -> bool:
        """Of the attempt; where the recorder in the job has opened further ones after it, those before the last
        stopped and the last ended so."""
        first = self._numbers[request.key]
        for each in self.client.list_attempts(self.run()):
            if each.number > first and (each.key or "").startswith((f"{request.key}.", f"{request.key}-")):
                stopped = {name: value for name, value in request.body.items() if name in ("ended_at", "heartbeat_at")}
                self.client.patch_attempt(self.run(), self._numbers[request.key], state="stopped", **stopped)
                self._numbers[request.key] = each.number
        self.client.patch_attempt(self.run(), self._numbers[request.key], **request.body)
        return True

    def _incident(self, request: Request) -> bool:
        """Of its attempt; where that could not be opened, of the run alone."""
        body = {**request.body, "run_id": self.run().id}
        if request.key in self._numbers:
            body["attempt"] = self._numbers[request.key]
        else:
            body["attempt"] = None
        self.last_incident = self.client._send("POST", "/incidents", body, idempotent=True).get("id")
        return True


def is_refused(fault: CairnError) -> bool:
    """Whether the service will never take it as it stands."""
    if isinstance(fault, (BadSettings, ConnectionFailed, Unauthenticated, Unavailable, Forbidden)):
        return False
    return isinstance(fault, NotFound) or (400 <= fault.status < 500 and fault.status not in PASSING)


def send_all(
    sending: Sending,
    requests: Sequence[Request],
    say: Say,
    *,
    at_the_end: bool,
    refused: Callable[[Request, CairnError], object] = lambda request, fault: None,
) -> list[Request]:
    """Sends in order; gives back what is left. Raises `CairnError` where the service is away, with `requests` whole.

    What the service refuses is said once and left out. What waits for its attempt to be opened stays; but at the end an
    incident is recorded without its attempt. The end of an attempt that was refused is refused as well.
    """
    left: list[Request] = []
    for request in requests:
        if request.what == "end" and request.key in sending.refused:
            refused(request, Invalid("The attempt that it ends was refused."))
            continue
        waits = request.what != "open" and not sending.is_open(request.key)
        if waits and not at_the_end and request.what == "incident":
            left.append(request)
            continue
        try:
            if not sending.send(request):
                left.append(request)
        except CairnError as fault:
            if not is_refused(fault):
                raise
            if request.what == "open":
                sending.refused.add(request.key)
            refused(request, fault)
            say(f"the service refused what was recorded of this job ({request.what}): {fault.detail}")
    return left


def keep_refused(folder: Path, run: str, request: Request, fault: CairnError) -> None:
    """Beside `folder`, the one of what waits: with the reason, for `cairn spool list`."""
    project, _, name = run.partition("/")
    record = {"kind": request.what, "key": request.key, "project": project, "run": name}
    set_aside(folder.parent, record, request.body, fault)


def send_left(left: Left, client: Client, say: Say, meant: Mapping[str, Any] | None = None) -> tuple[int, int]:
    """Sends what an earlier job has left, and takes it off the disk; how many requests were sent, and how many refused:
    those are set aside with the reason. Raises `CairnError`.

    An attempt that waits for somebody to say what it loaded (`meant`: `{"restart": true}` or `{"resumed_from": ...}`)
    stays in the file, with its end.
    """
    if meant:
        for each in left.requests:
            if each.what == "open" and not {"resumed_from", "restart"} & each.body.keys():
                each.body.update(meant)
    before = len(left.requests)
    aside: list[Request] = []

    def refused(request: Request, fault: CairnError) -> None:
        aside.append(request)
        keep_refused(left.path.parent, left.run, request, fault)

    sending = Sending(left.run, say, client)
    left.requests = send_all(sending, left.requests, say, at_the_end=True, refused=refused)
    with contextlib.suppress(OSError):  # sent again by the next: that does no harm
        if left.requests:
            left.write()
        else:
            left.path.unlink()
    return before - len(left.requests) - len(aside), len(aside)
