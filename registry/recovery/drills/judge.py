"""What a report shows once it is held against what is recorded: the two comparisons, the verdict, and whether exact."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from registry.models import Checkpoint
from registry.recovery.drills.compare import Compared, Recorded, compare_cold, compare_continuation
from registry.recovery.drills.recorded import last_of, read_recorded, read_software, same_software
from registry.recovery.drills.shapes import FAILED, NOT_TRIED, PASSED, NewDrill, Step, beyond
from registry.recovery.loadable import Facts, compatibility_of
from registry.snapshots import LayoutSpec


@dataclass(frozen=True)
class Judgement:
    """The fields of a kept drill that the service decides. `exact` None: unknown."""

    continuation: str
    cold_start: str
    verdict: str
    exact: bool | None
    reason: str
    comparison: str


def judge(session: Session, checkpoint: Checkpoint, facts: Facts, new: NewDrill) -> Judgement:
    """A report that failed stays failed; one that passed fails where a comparison does. Raises ContradictoryLayout."""
    losses = beyond(new.losses, checkpoint.step) or new.losses
    went_on = read_recorded(session, checkpoint, last_of([each.step for each in losses], checkpoint.step))
    recorded, onward = _confirmed(losses, went_on, new.tolerance)
    begun = [each.loss for each in new.cold_losses] or recorded.first
    cold = compare_cold(losses, begun, recorded, new.tolerance)
    software, changed = same_software(read_software(session, checkpoint), new.software)
    layout = _same_layout(facts, new.layout)
    exact, against = _exact(new, onward, layout, software)
    told = {
        "layout": "the layout is another one" if layout is False else "whether the layout is the same is not known",
        "software": f"the software differs: {changed}" if changed else "the software is not known on both sides",
    }
    failures = [each.words for each in (onward, cold) if each.check == FAILED]
    return Judgement(
        continuation=onward.check,
        cold_start=cold.check,
        verdict=FAILED if FAILED in (new.verdict, onward.check, cold.check) else PASSED,
        exact=exact,
        reason="; ".join(filter(None, [new.reason.strip().removesuffix("."), *failures])),
        comparison="; ".join(filter(None, [onward.words, cold.words, *(told[each] for each in against)])),
    )


def _confirmed(losses: Sequence[Step], went_on: Sequence[Recorded], tolerance: float) -> tuple[Recorded, Compared]:
    """The continuation that confirms the drill, and how: one that is equal, else one that is near, else the first."""
    all_of = [(each, compare_continuation(losses, each, tolerance)) for each in went_on]
    passed = [pair for pair in all_of if pair[1].check == PASSED]
    tried = [pair for pair in all_of if pair[1].check != NOT_TRIED]
    recorded, found = next((pair for pair in passed if pair[1].equal), (passed or tried or all_of)[0])
    first, other = all_of[0]
    if found.check == PASSED and other.check == FAILED:
        found = replace(found, words=f"{found.words}; they are not those of {first.source}")
    return recorded, found


def _same_layout(facts: Facts, today: LayoutSpec | None) -> bool | None:
    """Whether every degree is as it was saved; None: one side does not say."""
    if today is None or facts.layout is None:
        return None
    changes = compatibility_of(facts, today).changes
    if any(None not in (each.old, each.new) for each in changes):
        return False
    return None if changes else True


def _exact(
    new: NewDrill, onward: Compared, layout: bool | None, software: bool | None
) -> tuple[bool | None, list[str]]:
    """(exact, what stands against calling it so): equal losses, in the same layout, with the same software."""
    if onward.check == NOT_TRIED or onward.equal is None:
        return None, []
    if not onward.equal or new.verdict == FAILED or new.exact is False:
        return False, []
    same = {"layout": layout, "software": software}
    against = [name for name, each in same.items() if not each]
    if False in same.values():
        return False, against
    return (None if against else True), against
