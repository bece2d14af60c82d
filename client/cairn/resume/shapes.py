"""What choosing a checkpoint answers with."""

from dataclasses import dataclass, field
from typing import Any

from cairn.errors import NotFound
from cairn.types import CheckpointRef, CopyOption

REGISTRY, SCAN, SPOOL = "registry", "scan", "spool"


class NothingToResume(NotFound):
    """No checkpoint that this host can go on from; the message says why. `has_none`: the run has no checkpoint yet."""

    def __init__(self, detail: str, *, passed_over: "tuple[PassedOver, ...]" = (), has_none: bool = False) -> None:
        super().__init__(detail, code="nothing-to-resume")
        self.passed_over = passed_over
        self.has_none = has_none


@dataclass(frozen=True)
class PassedOver:
    """A checkpoint, or a copy of it, that was not taken: `what` names it, `why` says the reason."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class Launch:
    """Which launch this host belongs to, so that all its hosts load the same: none goes on before all can read it.

    `key` is new for each launch (a job id with its restart count); `hosts` is how many it has.
    """

    key: str
    hosts: int
    host: str
    wait_seconds: float = 600.0
    poll_seconds: float = 2.0


@dataclass(frozen=True)
class Choice:
    """What to load. `path` is a path or URL; `source` is registry; scan where the registry could not be reached; spool
    where only this host knows of the save yet.

    `checkpoint` and `replica` are None where the registry did not name it. `reasons` are remarks in sentences;
    `fallbacks` what was passed over on the way here.
    """

    path: str
    step: int | None
    source: str
    checkpoint: CheckpointRef | None = None
    replica: CopyOption | None = None
    reasons: tuple[str, ...] = ()
    fallbacks: tuple[PassedOver, ...] = ()
    agreed_by: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """Everything about the choice, as plain values."""
        return {
            "path": self.path,
            "step": self.step,
            "source": self.source,
            "checkpoint": self.checkpoint.raw if self.checkpoint is not None else None,
            "replica": self.replica.raw if self.replica is not None else None,
            "reasons": list(self.reasons),
            "fallbacks": [{"what": each.what, "why": each.why} for each in self.fallbacks],
            "agreed_by": list(self.agreed_by),
            **self.details,
        }
