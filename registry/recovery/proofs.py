"""How likely each copy restores: its best evidence, moved by how drills of its tier and format went, as columns."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, case, select
from sqlalchemy.orm import Session

from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Floats, Integers
from registry.filters import tables
from registry.recovery.drills.of_runs import Drills
from registry.recovery.drills.outcome import evidence_of
from registry.recovery.ranking import P_OK, PRIOR_WEIGHT
from registry.types import Tier

EVIDENCE: Final = tuple(P_OK)
VERIFICATIONS: Final = ("unverified", "verified", "corrupt")
TIERS: Final = (*Tier,)
_CHECKPOINT = tables.checkpoint


@dataclass(frozen=True, slots=True, eq=False)
class Proofs:
    """`evidence` numbers EVIDENCE; `passed` and `failed` count the drills of the same tier and format."""

    evidence: Integers
    passed: Integers
    failed: Integers

    def __getitem__(self, which: Any) -> "Proofs":
        return Proofs(self.evidence[which], self.passed[which], self.failed[which])

    def along(self, there: Any) -> "Proofs":
        """The same as columns of a larger population: those of whom `there` is true, in their order."""
        columns = [np.zeros(len(there), dtype=np.int64) for _ in range(3)]
        for column, own in zip(columns, (self.evidence, self.passed, self.failed), strict=True):
            column[there] = own
        return Proofs(*columns)

    @property
    def chances(self) -> Floats:
        """What `ranking.p_ok` says of each."""
        assumed = np.array(list(P_OK.values()))[self.evidence]
        return np.asarray((PRIOR_WEIGHT * assumed + self.passed) / (PRIOR_WEIGHT + self.passed + self.failed))


def proofs_of(
    session: Session,
    project_id: int,
    of: ColumnElement[bool],
    drills: Drills,
    *,
    checkpoints: Integers,
    replicas: Integers,
    tiers: Integers,
    verifications: Integers,
) -> Proofs:
    """Of copies as columns of one length; `of` picks their checkpoints, whose formats matter once there are drills."""
    by_verification = np.array([EVIDENCE.index(evidence_of(each, None)) for each in VERIFICATIONS])
    evidence = by_verification[verifications]
    for place in np.flatnonzero(np.isin(replicas, list(drills.last))).tolist() if drills.last else ():
        verification, last = VERIFICATIONS[verifications[place]], drills.last[int(replicas[place])]
        evidence[place] = EVIDENCE.index(evidence_of(verification, last))
    passed, failed = np.zeros(len(replicas), dtype=np.int64), np.zeros(len(replicas), dtype=np.int64)
    if drills.counts:
        names = sorted({name for _, name in drills.counts}, key=str)
        formats = _formats(session, project_id, of, names, checkpoints)
        for (tier, name), (good, bad) in drills.counts.items():
            alike = (tiers == TIERS.index(Tier(tier))) & (formats == names.index(name))
            passed[alike], failed[alike] = good, bad
    return Proofs(evidence, passed, failed)


def _formats(
    session: Session, project_id: int, of: ColumnElement[bool], names: list[str | None], checkpoints: Integers
) -> Integers:
    """The place in `names` of each checkpoint's format; -1: it is none of them."""
    column = _CHECKPOINT.c.format
    places = [(column.is_(None) if name is None else column == name, place) for place, name in enumerate(names)]
    query = select(_CHECKPOINT.c.id, case(*places, else_=-1)).where(_CHECKPOINT.c.project_id == project_id, of)
    ids, found = read_arrays(session, [query], (np.int64,) * 2)
    order = np.argsort(ids)
    return np.asarray(found[order][np.searchsorted(ids[order], checkpoints)])
