"""What drills show of a checkpoint's copies: how long they take, how often they work, and that this one came back."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.models import Drill
from registry.recovery.copies import Drilled, Place
from registry.recovery.drills.outcome import Outcome, evidence_of
from registry.recovery.drills.shapes import FAILED, NOT_TRIED, PASSED
from registry.recovery.ranking import p_ok
from registry.recovery.restore_time import LOAD_SECONDS, Measured, shown_reliability
from registry.wording import counted

ENOUGH: Final = 20  # drills from which one of them stands for the slowest 5 %
COMPARABLE: Final = 4.0  # times larger or smaller: beyond, a time is not in proportion to the bytes
NEWEST: Final = 200
OWN: Final = 50  # of one checkpoint: far more than it has copies


@dataclass(frozen=True, slots=True)
class Reliability:
    """How likely a restore of a copy works. `evidence` is a key of P_OK, of this copy; `passed` and `failed` drills are
    those of its tier and format, of which `trained` loaded it and trained; `shown` is the least that they show."""

    evidence: str
    chance: float
    passed: int
    failed: int
    trained: int
    shown: float

    @property
    def words(self) -> str:
        if not self.passed + self.failed:
            return ""
        told = f"{self.passed} of {counted(self.passed + self.failed, 'drill')} passed, {self.trained} of them trained"
        return f"{told}; shows at least {self.shown:.0%}" if self.passed else told


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the checkpoint has come back in a drill: the last that loaded it and trained. `words` always say how it
    stands; the rest is of that drill."""

    proven: bool
    words: str
    drill_id: int | None = None
    at: datetime | None = None
    exact: bool | None = None
    software: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """By replica: what a plan has to know, and how reliable it is; and the proof of the checkpoint."""

    drilled: Mapping[int, Drilled]
    reliability: Mapping[int, Reliability]
    proof: Proof


@dataclass(frozen=True, slots=True)
class Sample:
    """The seconds and bytes of one passed drill; `load` None: nothing was loaded."""

    bytes: int
    read: float
    verify: float
    load: float | None


def read_evidence(
    session: Session, project_id: int, checkpoint_id: int, format_name: str | None, places: Sequence[Place]
) -> Evidence:
    """In three statements, however many drills and copies there are."""
    tiers = sorted({place.tier for place in places})
    counts = _counts(session, project_id, format_name, tiers)
    samples = _samples(session, project_id, format_name, tiers)
    own = _own(session, project_id, checkpoint_id)
    last = {row.replica_id: Outcome.of(row) for row in reversed(own)}  # the newest of each copy stays
    drilled = {
        place.replica_id: _drilled(place, last.get(place.replica_id), samples.get(place.tier, ())) for place in places
    }
    reliability = {
        place.replica_id: _reliability(
            evidence_of(place.verification, last.get(place.replica_id)), counts.get(place.tier, (0, 0, 0))
        )
        for place in places
    }
    return Evidence(drilled, reliability, _proof(own))


def measure(samples: Sequence[Sample], size_bytes: int | None) -> Measured | None:
    """What drills of comparable size took, in proportion to the bytes; None where there are not enough."""
    if not size_bytes:
        return None
    near = [each for each in samples if 1 / COMPARABLE <= each.bytes / size_bytes <= COMPARABLE]
    if len(near) < ENOUGH:
        return None
    loads = [each.load for each in near if each.load is not None]
    load = fmean(loads) if loads else LOAD_SECONDS
    reads = [each.read * size_bytes / each.bytes for each in near]
    verifies = [each.verify * size_bytes / each.bytes for each in near]
    whole = [
        read + verify + (load if each.load is None else each.load)
        for each, read, verify in zip(near, reads, verifies, strict=True)
    ]
    slow = sorted(whole)[math.ceil(0.95 * len(whole)) - 1]
    return Measured(len(near), fmean(reads), fmean(verifies), load, slow)


def _counts(
    session: Session, project_id: int, format_name: str | None, tiers: Collection[str]
) -> dict[str, tuple[int, int, int]]:
    """By tier: (passed, failed, passed that trained)."""
    amount = func.count()
    query = select(
        Drill.tier,
        amount.filter(Drill.verdict == PASSED),
        amount.filter(Drill.verdict == FAILED),
        amount.filter(Drill.verdict == PASSED, Drill.steps_run > 0),
    ).where(*_alike(project_id, format_name, tiers))
    return {
        str(tier): (passed, failed, ran) for tier, passed, failed, ran in session.execute(query.group_by(Drill.tier))
    }


def _samples(
    session: Session, project_id: int, format_name: str | None, tiers: Collection[str]
) -> dict[str, list[Sample]]:
    query = (
        select(Drill.tier, Drill.bytes_read, Drill.read_seconds, Drill.verify_seconds, Drill.load_seconds)
        .where(*_alike(project_id, format_name, tiers), Drill.verdict == PASSED)
        .where(Drill.bytes_read > 0, Drill.read_seconds.is_not(None))
        .order_by(Drill.id.desc())
        .limit(NEWEST)
    )
    found: dict[str, list[Sample]] = {}
    for tier, size, read, verify, load in session.execute(query):
        if size and read is not None:
            found.setdefault(str(tier), []).append(Sample(size, read, verify or 0.0, load))
    return found


def _alike(project_id: int, format_name: str | None, tiers: Collection[str]) -> tuple[Any, ...]:
    same = Drill.format.is_(None) if format_name is None else Drill.format == format_name
    return Drill.project_id == project_id, Drill.tier.in_(tiers), same


def _own(session: Session, project_id: int, checkpoint_id: int) -> Sequence[Drill]:
    """The newest of the checkpoint first."""
    query = select(Drill).where(Drill.project_id == project_id, Drill.checkpoint_id == checkpoint_id)
    return session.scalars(query.order_by(Drill.ended_at.desc(), Drill.id.desc()).limit(OWN)).all()


def _drilled(place: Place, last: Outcome | None, samples: Sequence[Sample]) -> Drilled:
    measured = measure(samples, place.bytes)
    if last is None:
        return Drilled(measured)
    return Drilled(measured, last.words) if last.is_unreadable else Drilled(measured, remark=last.words)


def _reliability(evidence: str, counts: tuple[int, int, int]) -> Reliability:
    passed, failed, trained = counts
    return Reliability(
        evidence, p_ok(evidence, passed, failed), passed, failed, trained, shown_reliability(passed, failed)
    )


def _proof(own: Sequence[Drill]) -> Proof:
    tried = next((row for row in own if row.run != NOT_TRIED or row.steps_run), None)
    if tried is None:
        read = next((row for row in own if row.verdict == PASSED), None)
        if read is None:
            return Proof(False, "no drill has shown yet that it restores")
        return Proof(False, f"a drill on {read.ended_at:%Y-%m-%d} read it; none has loaded it")
    software = dict(strict_json.loads(tried.software.encode()))
    known = (tried.id, tried.ended_at, tried.exact, software)
    if tried.verdict == FAILED:
        return Proof(False, f"its last drill failed on {tried.ended_at:%Y-%m-%d}: {tried.reason}", *known)
    if not tried.steps_run:
        return Proof(False, f"a drill's command ended well on {tried.ended_at:%Y-%m-%d} and wrote no losses", *known)
    exact = " exactly" if tried.exact else ""
    how = f"it came back{exact} in a drill on {tried.ended_at:%Y-%m-%d} and trained {counted(tried.steps_run, 'step')}"
    main = ", ".join(f"{name} {software[name]}" for name in _MAIN if name in software)
    return Proof(True, f"{how}, with {main}" if main else how, *known)


_MAIN: Final = ("torch", "jax", "transformers", "megatron-core", "deepspeed", "lightning")
