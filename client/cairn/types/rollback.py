"""Where to go back to, since when something is bad, and what was left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.reading import FLAG, ITEMS, MAPPING, NUMBER, TEXT, TEXTS, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef


@dataclass(frozen=True, kw_only=True)
class Onset(Answer):
    """When what is watched began to fall; `established` False: it may be noise. `sentence` says it in words.

    `why` says whose results do not count; `alone` are the steps of single scores that those around them contradict.
    `found_by` is scores, bisect, or comparison of the newest with the best earlier one.
    """

    sentence: str = field(default="", metadata=TEXT)
    watch: str = field(default="", metadata=TEXT)
    established: bool | None = field(default=None, metadata=FLAG)
    shape: str | None = field(default=None, metadata=TEXT)
    p_no_change: float | None = field(default=None, metadata=NUMBER)
    drop: float | None = field(default=None, metadata=NUMBER)
    drop_stderr: float | None = field(default=None, metadata=NUMBER)
    after_step: int | None = field(default=None, metadata=WHOLE)
    by_step: int | None = field(default=None, metadata=WHOLE)
    points: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    why: str | None = field(default=None, metadata=TEXT)
    alone: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    found_by: str | None = field(default=None, metadata=TEXT)
    q_value: float | None = field(default=None, metadata=NUMBER)
    bisect_id: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Spike(Answer):
    """The newest spike of the loss: rewind to the checkpoint of `rewind_to`, skip the data of the ranges `skip`.

    `attempt` is what a new attempt says of itself (see `Client.start_attempt`); None: none is needed.
    """

    sentence: str = field(default="", metadata=TEXT)
    from_step: int | None = field(default=None, metadata=WHOLE)
    to_step: int | None = field(default=None, metadata=WHOLE)
    shape: str | None = field(default=None, metadata=TEXT)
    recovered: bool | None = field(default=None, metadata=FLAG)
    rewind_to: int | None = field(default=None, metadata=WHOLE)
    checkpoint: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    skip: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    attempt: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class Candidate(Answer):
    """One checkpoint to go back to, `rank` 1 first; `terms` are what the rank was computed from.

    `copy` is the replica that the restore time is reckoned for.
    """

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    rank: int | None = field(default=None, metadata=WHOLE)
    terms: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    reasons: tuple[str, ...] = field(default=(), metadata=TEXTS)
    copy: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)


@dataclass(frozen=True, kw_only=True)
class Served(Answer):
    """What the alias points at now, with the terms that a candidate has; `sentence` holds it against the first one."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    terms: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    sentence: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Excluded(Answer):
    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    filter: str = field(default="", metadata=TEXT)
    reason: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Fallen(Answer):
    """A capability that fell though nobody asked about it: ask again with it as `watch`."""

    capability: str = field(metadata=TEXT)
    sentence: str = field(default="", metadata=TEXT)
    after_step: int | None = field(default=None, metadata=WHOLE)
    by_step: int | None = field(default=None, metadata=WHOLE)
    drop: float | None = field(default=None, metadata=NUMBER)
    drop_stderr: float | None = field(default=None, metadata=NUMBER)


@dataclass(frozen=True, kw_only=True)
class RollbackAnswer(Answer):
    """Where to go back to; `sentence` says it in words. `onset` is None where nothing was watched: then `fallen` are
    the capabilities of `looked_at` that fell all the same. Where `candidates` is empty, `loosen` says by filter how to
    get some.

    `spike` is None where the loss has none, and where something else was watched.

    `excluded` shows the newest of those left out, `excluded_counts` counts all of them by filter.
    """

    candidates: tuple[Candidate, ...] = field(metadata=many(Candidate))
    sentence: str = field(default="", metadata=TEXT)
    mode: str | None = field(default=None, metadata=TEXT)
    onset: Onset | None = field(default=None, metadata=one(Onset))
    spike: Spike | None = field(default=None, metadata=one(Spike))
    last_known_good: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    served: Served | None = field(default=None, metadata=one(Served))
    excluded: tuple[Excluded, ...] = field(default=(), metadata=many(Excluded))
    excluded_counts: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    considered: int | None = field(default=None, metadata=WHOLE)
    assumptions: tuple[str, ...] = field(default=(), metadata=TEXTS)
    fallen: tuple[Fallen, ...] = field(default=(), metadata=many(Fallen))
    looked_at: tuple[str, ...] = field(default=(), metadata=TEXTS)
    loosen: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
