"""Where to restore from, what to resume, and what lies in storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.reading import FLAG, ITEMS, MAPPING, NUMBER, TEXT, TEXTS, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef
from cairn.types.runs import RunRef


@dataclass(frozen=True, kw_only=True)
class CopyPart(Answer):
    """What one host holds of a copy that is spread over hosts."""

    host: str = field(metadata=TEXT)
    uri: str = field(metadata=TEXT)
    ranks: str = field(default="", metadata=TEXT)
    bytes: int | None = field(default=None, metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class CopyOption(Answer):
    """A copy, whether it can be used, and the predicted seconds of a restore; `reason` why not, or what to know.

    `timed_by`: drills, where there are enough of its tier and format, or assumed. `reliability`: what drills show.
    """

    replica_id: str = field(metadata=TEXT)
    uri: str = field(metadata=TEXT)
    tier: str = field(default="", metadata=TEXT)
    host: str | None = field(default=None, metadata=TEXT)
    bytes: int | None = field(default=None, metadata=WHOLE)
    file_count: int | None = field(default=None, metadata=WHOLE)
    verification: str = field(default="", metadata=TEXT)
    has_manifest: bool = field(default=False, metadata=FLAG)
    parts: tuple[CopyPart, ...] = field(default=(), metadata=many(CopyPart))
    feasible: bool = field(default=False, metadata=FLAG)
    reason: str = field(default="", metadata=TEXT)
    seconds: float | None = field(default=None, metadata=NUMBER)
    p95_seconds: float | None = field(default=None, metadata=NUMBER)
    terms: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    timed_by: str = field(default="", metadata=TEXT)
    reliability: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class PieceFit(Answer):
    """`verdict` is exact, after-conversion, needs-drill, refused or not-at-all."""

    verdict: str = field(default="", metadata=TEXT)
    words: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class PieceFits(Answer):
    weights: PieceFit | None = field(default=None, metadata=one(PieceFit))
    optimizer: PieceFit | None = field(default=None, metadata=one(PieceFit))
    data_position: PieceFit | None = field(default=None, metadata=one(PieceFit))
    random_state: PieceFit | None = field(default=None, metadata=one(PieceFit))


@dataclass(frozen=True, kw_only=True)
class Compatibility(Answer):
    """What of a checkpoint the layout can load, piece by piece; `changes` are the degrees that differ."""

    changes: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    pieces: PieceFits | None = field(default=None, metadata=one(PieceFits))
    assumed: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class RestorePlan(Answer):
    """From which copy to restore: `chosen`, None where none can be used; `copies` holds all, with why not.

    `obstacle` says why the checkpoint itself should not be loaded; it is empty where nothing is against it.
    `restorable`: whether a drill has proven it; `replay`: what has to be trained again.
    """

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    sentence: str = field(default="", metadata=TEXT)
    obstacle: str = field(default="", metadata=TEXT)
    chosen: CopyOption | None = field(default=None, metadata=one(CopyOption))
    copies: tuple[CopyOption, ...] = field(default=(), metadata=many(CopyOption))
    compatibility: Compatibility | None = field(default=None, metadata=one(Compatibility))
    restorable: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    replay: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    notes: tuple[str, ...] = field(default=(), metadata=TEXTS)
    assumptions: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class ResumeCandidate(Answer):
    """A checkpoint to go on from; its feasible copies come first, the fastest before the others."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    rank: int | None = field(default=None, metadata=WHOLE)
    steps_behind: int = field(default=0, metadata=WHOLE)
    copies: tuple[CopyOption, ...] = field(default=(), metadata=many(CopyOption))
    compatibility: Compatibility | None = field(default=None, metadata=one(Compatibility))
    notes: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class PassedOver(Answer):
    """A newer checkpoint that the named filter left out, and why."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    filter: str = field(default="", metadata=TEXT)
    reason: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class ResumePlan(Answer):
    """What a run can go on from, the newest first, and what was passed over on the way."""

    candidates: tuple[ResumeCandidate, ...] = field(metadata=many(ResumeCandidate))
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    project: str = field(default="", metadata=TEXT)
    sentence: str = field(default="", metadata=TEXT)
    excluded: tuple[PassedOver, ...] = field(default=(), metadata=many(PassedOver))
    excluded_counts: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    considered: int = field(default=0, metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class ResumeAgreement(Answer):
    """What the hosts of a launch agree on now. `all_ready`: every host can read it, and it never changes again."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    hosts: int = field(default=1, metadata=WHOLE)
    ready: tuple[str, ...] = field(default=(), metadata=TEXTS)
    all_ready: bool = field(default=False, metadata=FLAG)
    refused: tuple[str, ...] = field(default=(), metadata=TEXTS)
    failed: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Usage(Answer):
    """What checkpoints hold in one tier (None: no copy is recorded); `run` is None in the totals."""

    tier: str | None = field(default=None, metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    state: str = field(default="", metadata=TEXT)
    superseded: bool = field(default=False, metadata=FLAG)
    checkpoints: int = field(default=0, metadata=WHOLE)
    copies: int = field(default=0, metadata=WHOLE)
    bytes: int = field(default=0, metadata=WHOLE)
    unknown_sizes: int = field(default=0, metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class StorageUsage(Answer):
    """Bytes by run, tier and state, the largest first; `left_out` counts entries beyond the limit."""

    bytes: int = field(metadata=WHOLE)
    entries: tuple[Usage, ...] = field(default=(), metadata=many(Usage))
    left_out: int = field(default=0, metadata=WHOLE)
    totals: tuple[Usage, ...] = field(default=(), metadata=many(Usage))


@dataclass(frozen=True, kw_only=True)
class ManifestFile(Answer):
    path: str = field(metadata=TEXT)
    bytes: int = field(metadata=WHOLE)
    digest: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Manifest(Answer):
    """The files of a copy; `algorithm` is that of the digests."""

    replica_id: str = field(metadata=TEXT)
    uri: str = field(default="", metadata=TEXT)
    algorithm: str | None = field(default=None, metadata=TEXT)
    digest: str | None = field(default=None, metadata=TEXT)
    files: tuple[ManifestFile, ...] = field(default=(), metadata=many(ManifestFile))
