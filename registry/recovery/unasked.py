"""What a rollback says where nobody said what got worse: that no fall was asked about, and what fell all the same."""

from collections.abc import Sequence
from typing import Final

from registry.recovery.eligible import TRAINING
from registry.recovery.every_capability import Fallen, Overlook
from registry.wording import counted, listed

NAMED: Final = 3  # capabilities that fell, said one by one
_BEST: Final = {True: "costs the least time to go back to", False: "has the surest score"}


def unasked(overlook: Overlook, mode: str, step: int, where: str) -> str:
    """`where`: the first candidate, 'step 100 of 7b (attempt 1)', at `step`."""
    if overlook.fallen and all(step <= (each.onset.after_step or 0) for each in overlook.fallen):
        return (
            f"You did not say what got worse, and {_fell(overlook.fallen)}. {where[0].upper()}{where[1:]} is from "
            f"before; of all candidates it {_BEST[mode == TRAINING]}."
        )
    if overlook.fallen:
        return (
            f"You did not say what got worse, and {_fell(overlook.fallen)}: ask again with "
            f"{overlook.fallen[0].watch.words} watched. Of all candidates, {where} {_BEST[mode == TRAINING]}, "
            "fallen or not."
        )
    seen = "nothing was evaluated that could show a fall"
    if overlook.too_many:
        seen = "no fall was looked for unasked, since there are too many scores"
    elif overlook.looked_at:
        seen = f"no fall is established in {listed(overlook.looked_at)}"
    return (
        f"You did not say what got worse; {seen}. Of the candidates, {where} {_BEST[mode == TRAINING]}. "
        "Say what fell (watch it), and only what is safely from before are candidates."
    )


def what_fell(overlook: Overlook) -> str:
    """How far, and since when, in sentences; '' where nothing fell."""
    return " ".join(f"{each.watch.words}: {each.onset.sentence}" for each in overlook.fallen[:NAMED])


def _fell(fallen: Sequence[Fallen]) -> str:
    first, *others = fallen
    told = [f"{first.watch.words} fell between steps {first.onset.after_step} and {first.onset.by_step}"]
    told += [
        f"{each.watch.words} between steps {each.onset.after_step} and {each.onset.by_step}"
        for each in others[: NAMED - 1]
    ]
    if len(fallen) > NAMED:
        told.append(counted(len(fallen) - NAMED, "more capability", "more capabilities"))
    return listed(told)
