"""`Client`: typed calls over HTTP, with the service's problems as exceptions."""

from types import TracebackType
from typing import Any

from cairn.calls.aliases import AliasCalls
from cairn.calls.checkpoints import CheckpointCalls
from cairn.calls.decide import DecideCalls
from cairn.calls.drills import DrillCalls
from cairn.calls.evals import EvalCalls
from cairn.calls.incidents import IncidentCalls
from cairn.calls.provenance import ProvenanceCalls
from cairn.calls.recovery import RecoveryCalls
from cairn.calls.runs import RunCalls
from cairn.calls.trackers import TrackerCalls
from cairn.calls.watches import WatchCalls
from cairn.settings import read_settings
from cairn.transport import Retries, Transport

DEFAULT_TIMEOUT_SECONDS = 30.0


class Client(
    RunCalls,
    CheckpointCalls,
    EvalCalls,
    DecideCalls,
    AliasCalls,
    RecoveryCalls,
    DrillCalls,
    TrackerCalls,
    IncidentCalls,
    ProvenanceCalls,
    WatchCalls,
):
    """A connection to one Cairn service. Threads may share it; a fork gets connections of its own.

    `url` and `token` come from the arguments, else CAIRN_URL and CAIRN_TOKEN, else what `cairn login` saved,
    else, on the service's own machine, the admin token it wrote. `timeout` is in seconds and bounds each try
    of a call; calls that may be repeated without harm are, as `retries` says.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        *,
        retries: Retries | None = None,
    ) -> None:
        settings = read_settings(url, token)
        self._transport = Transport(settings, timeout=timeout, retries=retries or Retries())

    @property
    def url(self) -> str:
        return self._transport.settings.url

    def ready(self) -> Any:
        """What `/health/ready` answers. Raises `Unavailable` while the service cannot work."""
        from cairn.transport import Call

        return self._transport.send(Call("GET", "/health/ready"))

    def close(self) -> None:
        """Closes idle connections; the client can still be used."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"
