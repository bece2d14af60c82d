"""Shapes of restoring and resuming: copies with their times, pieces one by one, and what a launch agrees on."""

import re
from typing import Any, Final, Literal, Self

from api.schemas.common import Answer, CheckpointRef, Id, Time
from registry.errors import FieldError, Invalid
from registry.layout.resharding import Change, Compatibility
from registry.layout.spec import DEGREES
from registry.recovery.copies import Option, Part
from registry.recovery.drills.evidence import Proof, Reliability
from registry.recovery.replay import Replay
from registry.recovery.restore_plan import RestorePlan
from registry.snapshots import LayoutSpec
from registry.types import INT64_MAX

_DEGREE: Final = re.compile(r"(\w{1,20})=(\d{1,19})", re.ASCII)


class BadLayoutText(Invalid):
    code = "bad-layout"
    title = "The layout cannot be read"


def read_layout(text: str) -> LayoutSpec:
    """A layout from a query, `tp=4,pp=2,dp=8`. Raises BadLayoutText."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        degree = _DEGREE.fullmatch(part.strip())
        known = degree is not None and degree[1] in DEGREES and degree[1] not in found
        if degree is None or not known or not 1 <= int(degree[2]) <= INT64_MAX:
            message = f"expected degrees such as tp=4,pp=2,dp=8 of {', '.join(DEGREES)}; got {part[:40]!r}"
            raise BadLayoutText(f"At /layout: {message}.", errors=[FieldError("/layout", message)])
        found[degree[1]] = int(degree[2])
    return LayoutSpec(**found)


class TermsOut(Answer):
    """What a restore time is made of, in seconds."""

    detect_decide_schedule_seconds: float
    thaw_seconds: float
    transfer_seconds: float
    verify_seconds: float
    convert_seconds: float
    load_seconds: float


class CopyPartOut(Answer):
    host: str
    ranks: str
    uri: str
    bytes: int | None

    @classmethod
    def from_part(cls, part: Part) -> Self:
        return cls.model_construct(host=part.host, ranks=part.ranks, uri=part.uri, bytes=part.bytes)


class ReliabilityOut(Answer):
    """How likely a restore works: `chance`, from the evidence of this copy, updated by the drills of its tier and
    format. `shown`: the least reliability that those drills show at 95 %; `trained`: passed ones that also trained."""

    evidence: str
    chance: float
    passed: int
    failed: int
    trained: int
    shown: float
    words: str

    @classmethod
    def from_row(cls, row: Reliability) -> Self:
        return cls.model_construct(**{name: getattr(row, name) for name in cls.model_fields})


class RestorableOut(Answer):
    """Whether a drill has proven that the checkpoint comes back: the last that loaded it. `words` say how it stands."""

    proven: bool
    words: str
    drill_id: Id | None
    at: Time | None
    exact: bool | None
    software: dict[str, str] | None

    @classmethod
    def from_row(cls, row: Proof) -> Self:
        return cls.model_construct(**{name: getattr(row, name) for name in cls.model_fields})


class ReplayOut(Answer):
    """What has to be trained again since the checkpoint; null is unknown. No part of any restore time."""

    steps: int | None
    seconds: float | None
    at_step: int | None
    seconds_per_step: float | None
    words: str

    @classmethod
    def from_row(cls, row: Replay) -> Self:
        return cls.model_construct(**{name: getattr(row, name) for name in cls.model_fields})


class CopyOptionOut(Answer):
    """A copy, whether it can be used, and how long a restore from it takes; `reason`: why not, or what to know.

    Seconds are predicted, and null where the size is unknown; 95 of 100 restores stay below `p95_seconds`.
    `timed_by`: `drills` of its tier and format, where there are enough, or `assumed`.
    """

    replica_id: Id
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    file_count: int | None
    state: str
    verification: str
    has_manifest: bool
    parts: list[CopyPartOut]
    feasible: bool
    reason: str
    seconds: float | None
    p95_seconds: float | None
    terms: TermsOut | None
    timed_by: Literal["drills", "assumed"] | None = None
    reliability: ReliabilityOut | None = None

    @classmethod
    def from_option(cls, row: Option, reliability: Reliability | None = None) -> Self:
        own = ("replica_id", "uri", "tier", "host", "bytes", "file_count", "state", "verification", "has_manifest")
        time = row.time
        terms: dict[str, Any] = dict(time.terms) if time is not None else {}
        return cls.model_construct(
            **{name: getattr(row.place, name) for name in own},
            parts=[CopyPartOut.from_part(part) for part in row.place.parts],
            feasible=row.feasible,
            reason=row.reason,
            seconds=time.expected if time is not None else None,
            p95_seconds=time.p95 if time is not None else None,
            terms=TermsOut.model_construct(**terms) if time is not None else None,
            timed_by=None if time is None else "drills" if time.drills else "assumed",
            reliability=None if reliability is None else ReliabilityOut.from_row(reliability),
        )


class ChangeOut(Answer):
    """A degree that is another one now; null is unknown."""

    degree: str
    old: int | None
    new: int | None

    @classmethod
    def from_change(cls, row: Change) -> Self:
        return cls.model_construct(degree=row.degree, old=row.old, new=row.new)


class PieceFitOut(Answer):
    """`verdict`: exact, after-conversion, needs-drill, refused or not-at-all; `words`: why, or what has to be done."""

    verdict: str
    words: str


class PieceFitsOut(Answer):
    weights: PieceFitOut
    optimizer: PieceFitOut
    data_position: PieceFitOut
    random_state: PieceFitOut


class CompatibilityOut(Answer):
    """What of the checkpoint the layout can load, piece by piece. `assumed`: degrees taken as they were saved."""

    changes: list[ChangeOut]
    pieces: PieceFitsOut
    assumed: list[str]

    @classmethod
    def from_row(cls, row: Compatibility) -> Self:
        fits: dict[str, Any] = {
            name.value: PieceFitOut.model_construct(verdict=fit.verdict.value, words=fit.words)
            for name, fit in row.pieces.items()
        }
        return cls.model_construct(
            changes=[ChangeOut.from_change(each) for each in row.changes],
            pieces=PieceFitsOut.model_construct(**fits),
            assumed=list(row.assumed),
        )


class RestorePlanOut(Answer):
    """`copies`: every recorded one, the feasible first, the fastest before the others; `chosen` is the first of them.

    `obstacle`: why the checkpoint itself should not be loaded, whichever the copy; empty where nothing is against it.
    """

    checkpoint: CheckpointRef
    sentence: str
    obstacle: str
    rto_seconds: float | None
    chosen: CopyOptionOut | None
    copies: list[CopyOptionOut]
    compatibility: CompatibilityOut
    restorable: RestorableOut
    replay: ReplayOut
    notes: list[str]
    assumptions: list[str]

    @classmethod
    def from_plan(cls, row: RestorePlan) -> Self:
        copies = [CopyOptionOut.from_option(each, row.reliability.get(each.place.replica_id)) for each in row.copies]
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            sentence=row.sentence,
            obstacle=row.obstacle,
            rto_seconds=row.rto_seconds,
            chosen=copies[0] if row.chosen is not None else None,
            copies=copies,
            restorable=RestorableOut.from_row(row.proof),
            replay=ReplayOut.from_row(row.replay),
            compatibility=CompatibilityOut.from_row(row.compatibility),
            notes=list(row.notes),
            assumptions=list(row.assumptions),
        )
