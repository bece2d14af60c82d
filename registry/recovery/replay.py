"""What a run has to train again once a checkpoint is loaded: the steps since, and how long they took."""

from dataclasses import dataclass

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from registry.checkpoints.detail import CheckpointDetail
from registry.models import Attempt, Checkpoint
from registry.recovery.copies import about
from registry.recovery.population import seconds_per_step
from registry.recovery.scope import scope_of_run
from registry.types import CheckpointState
from registry.wording import counted


@dataclass(frozen=True, slots=True)
class Replay:
    """Steps and seconds from the checkpoint to where the run stands; None is unknown."""

    steps: int | None
    seconds: float | None
    at_step: int | None
    seconds_per_step: float | None

    @property
    def words(self) -> str:
        if self.steps is None:
            return "how far the run has come is not known"
        if not self.steps:
            return "nothing, the run stands at this checkpoint"
        told = f"{counted(self.steps, 'step')}, to step {self.at_step}"
        if self.seconds is None or self.seconds_per_step is None:
            return f"{told}; how long a step takes is not known"
        return f"{told}, {about(self.seconds)} at {self.seconds_per_step:.3g} s a step"


def replay_of(session: Session, found: CheckpointDetail) -> Replay:
    """The run stands at its newest live checkpoint, or where its newest attempt last said."""
    scope = scope_of_run(session, found.run_id)
    live = or_(Attempt.live_through_step.is_(None), Checkpoint.step <= Attempt.live_through_step)
    newest = session.scalar(
        select(func.max(Checkpoint.step))
        .join(Attempt, (Attempt.project_id == Checkpoint.project_id) & (Attempt.id == Checkpoint.attempt_id))
        .where(Checkpoint.project_id == found.project_id, Checkpoint.run_id == found.run_id)
        .where(Checkpoint.state == CheckpointState.COMMITTED.value, live)
    )
    known = [step for step in (newest, scope.at_step) if step is not None]
    rate = seconds_per_step(session, scope)
    if not known:
        return Replay(None, None, None, rate)
    steps = max(0, max(known) - found.checkpoint.step)
    seconds = 0.0 if not steps else None if rate is None else steps * rate
    return Replay(steps, seconds, max(known), rate)
