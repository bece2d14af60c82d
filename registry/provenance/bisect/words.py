"""How a search stands, in words."""

from collections.abc import Sequence

import numpy as np

from registry.checkpoints.rows import CheckpointIdentity
from registry.evals.verdict_words import Z_95
from registry.provenance.bisect.answers import Gap
from registry.provenance.bisect.evidence import Rejected
from registry.provenance.bisect.measures import Measured
from registry.provenance.bisect.posterior import SURE, Ask
from registry.wording import counted, was

ALMOST_SURE = 0.999


def is_proven(fall: Measured | None) -> bool:
    """Whether the bad end is worse beyond chance, one-sided; a search takes its ends at their word."""
    return fall is not None and fall.delta < -Z_95 * fall.stderr


def doubt(fall: Measured | None, *, has_points: bool) -> str:
    """That the two ends may differ by chance alone; '' where they do not."""
    if fall is None or is_proven(fall):
        return ""
    lower = f"{-fall.delta:.2g} ± {fall.stderr:.2g}"
    if has_points:
        lower = f"{-100 * fall.delta:.2g} ± {100 * fall.stderr:.2g} points"
    return f"whether it fell at all is not proven, since the bad end is lower by {lower}; if it did, "


def rest(left_out: int, skipped: Sequence[Rejected]) -> str:
    """What does not count, and why."""
    said = ""
    if left_out:
        said = f"; {left_out} more on the way {'has' if left_out == 1 else 'have'} no copy to evaluate"
    if skipped:
        reasons = "; ".join(dict.fromkeys(each.why for each in skipped[:3]))
        said += f"; {counted(len(skipped), 'score')} {was(len(skipped))} left out: {reasons}"
    return said


def told(posterior: Sequence[Gap], credible: Sequence[int], ask: Ask | None, evaluations: int, rest: str) -> str:
    best = posterior[int(np.argmax([each.probability for each in posterior]))]
    between = f"between {_name(best.after)} and {_name(best.before)}"
    count = counted(evaluations, "evaluation")
    if best.probability >= SURE:
        chance = f"{best.probability:.1%}" if best.probability < ALMOST_SURE else f"over {ALMOST_SURE:.1%}"
        return f"it fell {between}, with a probability of {chance} after {count}{rest}"
    first, last = posterior[credible[0]].after, posterior[credible[-1]].before
    span = f"between {_name(first)} and {_name(last)} (95 %: {len(credible)} of {len(posterior)} gaps)"
    if ask is None:
        return f"it fell {span}; no further evaluation of these would tell more{rest}"
    return f"it fell {span} after {count}; the likeliest is {between}, {best.probability:.0%}{rest}"


def _name(checkpoint: CheckpointIdentity) -> str:
    return f"{checkpoint.run.name} step {checkpoint.step:,}"
