"""For each checkpoint of a rollback the copy that it would be loaded from, as columns along the population."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.filters import tables
from registry.recovery.drills.of_runs import Drills
from registry.recovery.proofs import EVIDENCE, TIERS, VERIFICATIONS, Proofs, proofs_of
from registry.recovery.restore_time import (
    FIXED_SECONDS,
    LOAD_SECONDS,
    READER_RATE,
    READERS,
    SLOW_IO,
    SOURCE_RATE,
    VERIFY_RATE,
)
from registry.types import Tier

_CHECKPOINT, _REPLICA = tables.checkpoint, tables.replica
_CORRUPT: Final = VERIFICATIONS.index("corrupt")
_WHOLE: Final = 4  # a bit beside the verification; the tier is written above both


@dataclass(frozen=True, slots=True, eq=False)
class BestCopies:
    """Columns along the population. Where `there` is false no copy can be loaded, and the others say nothing.

    `slow`: the seconds that 95 % of restores stay below. Seconds are NaN where the size is unknown.
    """

    there: Booleans
    replicas: Integers
    proofs: Proofs
    seconds: Floats
    slow: Floats
    unusable: "_Copies"
    drills: Drills

    def evidence(self, row: int) -> str:
        """The best evidence that the copy restores, as a key of P_OK."""
        return EVIDENCE[int(self.proofs.evidence[row])]

    def tried(self, row: int) -> tuple[int, int]:
        """How many drills of the copy's tier and format passed, and failed."""
        return int(self.proofs.passed[row]), int(self.proofs.failed[row])

    def chances(self, rows: Integers) -> Floats:
        """How likely a restore works, of the copies at these rows."""
        return self.proofs[rows].chances

    def why_none(self, checkpoint_id: int) -> str:
        """Why the checkpoint has no copy to be loaded from."""
        mine = self.unusable.checkpoints == checkpoint_id
        if not mine.any():
            return "no copy of it is recorded as present"
        if (self.unusable.verifications[mine] == _CORRUPT).any():
            return "its only copies are corrupt"
        for replica_id in self.unusable.replicas[mine].tolist():
            if replica_id in self.drills.last and self.drills.last[replica_id].is_unreadable:
                return self.drills.last[replica_id].words
        if self.unusable.whole[mine].all():
            return "its only copies are suspect: what loaded them failed alike each time"
        return "its only copy is partial: the parts do not cover every rank"


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """Columns with one entry a copy. `tiers` number TIERS, `verifications` are as above; bytes -1: unknown."""

    checkpoints: Integers
    replicas: Integers
    tiers: Integers
    bytes: Integers
    whole: Booleans
    verifications: Integers

    def __getitem__(self, which: Any) -> "_Copies":
        return _Copies(
            *(self.checkpoints[which], self.replicas[which], self.tiers[which]),
            *(self.bytes[which], self.whole[which], self.verifications[which]),
        )

    @classmethod
    def read(cls, session: Session, project_id: int, of: ColumnElement[bool]) -> "_Copies":
        checkpoints, replicas, sizes, said = read_arrays(session, [copies_select(project_id, of)], (np.int64,) * 4)
        return cls(checkpoints, replicas, said >> 3, sizes, said & _WHOLE != 0, said & 3)


def best_copies(
    session: Session,
    project_id: int,
    of: ColumnElement[bool],
    suspect: Collection[int],
    ids: Integers,
    drills: Drills,
) -> BestCopies:
    """Of the checkpoints `ids`; `of` is the condition that picks them, `suspect` are copies by their id."""
    copies = _Copies.read(session, project_id, of)
    usable = copies.whole & (copies.verifications != _CORRUPT)
    if barred := [*suspect, *drills.unreadable]:
        usable &= ~np.isin(copies.replicas, np.array(barred, dtype=np.int64))
    unusable, copies = copies[~usable], copies[usable]
    seconds, slow = restore_seconds(copies.tiers, copies.bytes)
    proofs = proofs_of(
        *(session, project_id, of, drills),
        checkpoints=copies.checkpoints,
        replicas=copies.replicas,
        tiers=copies.tiers,
        verifications=copies.verifications,
    )
    order = _best_first(copies, seconds, proofs)
    owners, first = np.unique(copies.checkpoints[order], return_index=True)
    best = order[first]
    at = np.minimum(np.searchsorted(owners, ids), max(len(owners) - 1, 0))
    there = owners[at] == ids if len(owners) else np.zeros(len(ids), dtype=bool)
    rows = best[at[there]]
    return BestCopies(
        there=there,
        replicas=_along(there, copies.replicas[rows], 0),
        proofs=proofs[rows].along(there),
        seconds=_along(there, seconds[rows], np.nan),
        slow=_along(there, slow[rows], np.nan),
        unusable=unusable,
        drills=drills,
    )


def _best_first(copies: _Copies, seconds: Floats, proofs: Proofs) -> Integers:
    """The places of the copies by checkpoint; of several of one the best evidence first, then the fastest.

    Local disks only where nothing else is as good, since nodes are lost.
    """
    order = np.argsort(copies.checkpoints)
    if (np.diff(copies.checkpoints[order]) > 0).all():  # mostly there is one, and nothing more to be ordered
        return order
    return np.lexsort(
        (
            *(copies.replicas, np.where(np.isnan(seconds), np.inf, seconds)),
            *(-proofs.chances, copies.tiers == TIERS.index(Tier.LOCAL), copies.checkpoints),
        )
    )


def copies_select(project_id: int, of: ColumnElement[bool]) -> Select[Any]:
    """Every copy that is or may be there; apart, so that a test can read its plan. The last column packs what is short.

    The checkpoints are picked first: joined, SQLite would begin with all copies of the project.
    """
    tier = case({each.value: place << 3 for place, each in enumerate(TIERS)}, value=_REPLICA.c.tier)
    whole = case((_REPLICA.c.state == "present", _WHOLE), else_=0)
    verification = case({name: place for place, name in enumerate(VERIFICATIONS)}, value=_REPLICA.c.verification)
    checkpoints = select(_CHECKPOINT.c.id).where(_CHECKPOINT.c.project_id == project_id, of)
    return select(
        *(_REPLICA.c.checkpoint_id, _REPLICA.c.id, func.coalesce(_REPLICA.c.bytes, -1), tier + whole + verification)
    ).where(
        _REPLICA.c.project_id == project_id,
        _REPLICA.c.checkpoint_id.in_(checkpoints),
        _REPLICA.c.state.in_(("present", "partial")),
    )


def restore_seconds(tiers: Integers, sizes: Integers) -> tuple[Floats, Floats]:
    """(expected, 95th percentile) of `restore_time` for copies as columns; NaN where a size is below 0: unknown."""
    bytes_ = np.where(sizes < 0, np.nan, sizes.astype(float))
    rates = np.array([min(SOURCE_RATE[each], READERS * READER_RATE[each]) for each in TIERS])[tiers]
    transfer, verify, still = bytes_ / rates, bytes_ / VERIFY_RATE, FIXED_SECONDS + LOAD_SECONDS
    return still + transfer + verify, still + SLOW_IO * (transfer + verify)


def _along(there: Booleans, values: Any, nothing: Any) -> Any:
    column = np.full(len(there), nothing, dtype=values.dtype)
    column[there] = values
    return column
