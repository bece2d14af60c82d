"""What undoes a spike of the loss: the checkpoint to load, and the data to skip.

It follows PaLM (Chowdhery et al. 2022, 5.1): go back to about 100 steps before the spike, and skip the data that was
seen shortly before and during it; the same data from another state did not spike. Where the run has saved nothing
before it, it begins again: from what it came from, else from nothing. A curve that begins with it and came from
nothing was never good, so that no data is to blame.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from registry.recovery.spikes import NON_FINITE, SINGLE, Spike, cause_within


@dataclass(frozen=True, slots=True)
class Origin:
    """What the run came from: a checkpoint of another run, which can be loaded."""

    step: int
    run: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """Load the run's own step `rewind_to`, or the origin, or nothing; skip the data of the steps `skip`, both included.

    `is_needed`: there is something to do at all.
    """

    rewind_to: int | None
    skip: tuple[int, int] | None
    sentence: str
    is_needed: bool = True


def remedy(spike: Spike, saved_steps: Sequence[int], origin: Origin | None = None) -> Remedy:
    """Where to go back to among the steps of the run's own loadable checkpoints, and the data to skip.

    The newest that lies LEAD_STEPS before the spike; where there is none, the newest before it at all.
    """
    lead, began = cause_within(spike)
    early = [each for each in saved_steps if each < lead]
    before = [each for each in saved_steps if each < began]
    own = max(early or before, default=None)
    if own is None and origin is None and spike.after_step is None:
        return Remedy(None, None, _never_good(spike), is_needed=not spike.recovered)
    loaded = origin.step if own is None and origin is not None else own
    skip = (max(lead, 0 if loaded is None or loaded >= began else loaded + 1), spike.to_step)
    return Remedy(own, skip, _sentence(spike, _where(own, origin), skip))


def _where(own: int | None, origin: Origin | None) -> str:
    if own is not None:
        return f"rewind to step {own}"
    if origin is not None:
        return f"start again from step {origin.step} of {origin.run}"
    return "no loadable checkpoint was saved before it, so start again from nothing"


def _sentence(spike: Spike, where: str, skip: tuple[int, int]) -> str:
    data = f"the data of step {skip[0]}" if skip[0] == skip[1] else f"the data of steps {skip[0]} to {skip[1]}"
    advice = f"{where} and skip {data}"
    if spike.recovered:
        return f"{_seen(spike)}. To undo it all the same: {advice}."
    return f"{_seen(spike)}: {advice}."


def _never_good(spike: Spike) -> str:
    if spike.recovered:
        return f"{_seen(spike)}. It began so, as where a loss scale has yet to settle: there is nothing to go back to."
    return (
        f"{_seen(spike)}. It was never finite before: look for the cause in the setting before the data (learning "
        "rate, precision, first weights), and start again from nothing."
    )


def _seen(spike: Spike) -> str:
    where = f"at step {spike.from_step}"
    if spike.to_step != spike.from_step:
        where = f"from step {spike.from_step} to {spike.to_step}"
    if spike.shape == NON_FINITE:
        told = f"The loss was not finite {where}"
    else:
        told = f"The loss spiked {where}, from {spike.level:.3g} to {spike.peak:.3g}"
    if spike.shape == SINGLE:
        return f"{told}, a single point"
    return f"{told}{' and came back by itself' if spike.recovered else ' and has not come back'}"
