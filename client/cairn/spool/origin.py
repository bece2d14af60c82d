"""What an execution loaded, told from its steps where nobody said it.

The service refuses to start a run over silently, since a job whose pointer was lost would supersede its own
checkpoints. Steps say more than nothing: an execution whose first step is 3001 has loaded something, and among the
live committed checkpoints of its run the newest at or before that step is what it went on from. One that began below
every committed checkpoint may have started over, or count its steps anew: that nobody can tell, so it waits.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """The first step of an execution, and whether it was logged in training or is that of a save."""

    step: int
    is_save: bool


@dataclass(frozen=True)
class Committed:
    """A committed checkpoint of the run."""

    attempt: int
    step: int
    kind: str


def loaded_by_steps(first: Evidence, committed: Iterable[Committed]) -> Committed | None:
    """The checkpoint that an execution went on from; None where its steps do not tell.

    The step of a checkpoint counts finished steps in some loops and is the index of the last one in others: a first
    logged step equal to it goes on from it too. A save at the same step cannot have come from it.
    """
    before = [each for each in committed if each.step < first.step or (each.step == first.step and not first.is_save)]
    return max(before, key=lambda each: (each.step, each.attempt, each.kind == "archive"), default=None)


def explain(first: Evidence, found: Committed) -> str:
    """The assumption in words, for the attempt's `reason`."""
    what = "saved" if first.is_save else "logged"
    return (
        f"assumed: nobody said what was loaded; the first step that was {what}, {first.step}, follows the committed "
        f"checkpoint at attempt {found.attempt}, step {found.step}"
    )
