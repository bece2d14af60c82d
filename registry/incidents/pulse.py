"""Signs of life: each heartbeat of an attempt is noted, with how long its steps took, the last ones and the longest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.models import Attempt, AttemptPulse

RECENT: Final = 32  # the newest intervals, of which the typical one is told
LONGEST: Final = 8  # and of those before them the longest: what evaluations and saves took, however rare they are


def note_heartbeat(session: Session, attempt: Attempt, beat: datetime, step: int | None) -> None:
    """Note a heartbeat of an attempt, which the caller has locked. A time in the future counts as now."""
    at = min(beat, now())
    pulse = session.get(AttemptPulse, (attempt.project_id, attempt.id))
    if pulse is None:
        pulse = AttemptPulse(project_id=attempt.project_id, attempt_id=attempt.id, intervals="[]")
        session.add(pulse)
    pulse.heard_at = now()
    if step is not None and (pulse.step is None or step > pulse.step):
        if pulse.step_at is not None and at > pulse.step_at:
            seconds = [*read_intervals(pulse.intervals), round((at - pulse.step_at).total_seconds(), 3)]
            pulse.intervals = strict_json.canonical(_kept(seconds))
        pulse.step, pulse.step_at = step, at if pulse.step_at is None else max(at, pulse.step_at)
    session.flush()


def _kept(intervals: list[float]) -> list[float]:
    return [*sorted(intervals[:-RECENT])[-LONGEST:], *intervals[-RECENT:]]


def read_intervals(text: str) -> Sequence[float]:
    return [float(each) for each in strict_json.loads(text.encode())]
