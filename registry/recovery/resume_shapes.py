"""What is asked when a run is to go on, and what is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.errors import Invalid
from registry.layout.resharding import Compatibility
from registry.recovery.copies import Option
from registry.snapshots import LayoutSpec
from registry.types import PieceName

NEEDED: Final = (PieceName.WEIGHTS, PieceName.OPTIMIZER, PieceName.DATA_POSITION)


class BadResumeQuestion(Invalid):
    code = "bad-resume-question"
    title = "This does not say what to resume"


@dataclass(frozen=True, slots=True)
class ResumeQuestion:
    """What a launch needs. `hosts`: those that it runs on, which local copies need; none: nobody said.

    `require`: pieces that must be there, the weights always. `config`: today's, which a counter of samples and the
    shape of the model are held against. `skip`: checkpoints that some host could not read.
    """

    layout: LayoutSpec | None = None
    rto_seconds: float | None = None
    require: tuple[PieceName, ...] = NEEDED
    hosts: frozenset[str] = frozenset()
    config: Mapping[str, Any] | None = None
    skip: frozenset[int] = frozenset()
    limit: int = 5

    @property
    def needed(self) -> tuple[PieceName, ...]:
        """The pieces that are required, the weights among them."""
        return tuple(name for name in PieceName if name is PieceName.WEIGHTS or name in self.require)


@dataclass(frozen=True, slots=True)
class ResumeCandidate:
    """A checkpoint to go on from. `copies`: the feasible ones first, the fastest before the others."""

    checkpoint: CheckpointIdentity
    rank: int
    steps_behind: int
    copies: tuple[Option, ...]
    compatibility: Compatibility
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A newer checkpoint that the named filter left out, and why."""

    checkpoint: CheckpointIdentity
    filter: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """The answer: candidates, the newest first; what was left out on the way to the last of them."""

    run: RunName
    project: str
    sentence: str
    candidates: tuple[ResumeCandidate, ...]
    excluded: tuple[LeftOut, ...]
    excluded_counts: Mapping[str, int]
    considered: int
