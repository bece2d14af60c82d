"""What an alias points at now, beside the first candidate to replace it: is there a difference at all?"""

import numpy as np

from registry.checkpoints.rows import CheckpointIdentity
from registry.evals.verdict_words import Z_95
from registry.recovery.answers import Candidate, Served
from registry.recovery.ranking import ProductionOption, Terms, production_terms
from registry.recovery.view import View
from registry.recovery.watched import Watched


def served_beside(view: View, target: CheckpointIdentity, figures: Watched, first: Candidate | None) -> Served:
    """`figures`: what production is judged by."""
    ours = terms_of(view, target, figures)
    if first is None:
        return Served(target, ours, f"{target.run.name} step {target.step} is served now")
    if first.checkpoint.id == target.id:
        return Served(target, ours, "It is the first candidate itself")
    theirs = terms_of(view, first.checkpoint, figures)
    return Served(target, ours, *_difference(ours, theirs, target.step, first.checkpoint.step))


def terms_of(view: View, checkpoint: CheckpointIdentity, figures: Watched) -> Terms:
    """The terms of its rank in production; None where nothing is known."""
    values, errors = figures.along(np.array([checkpoint.id], dtype=np.int64))
    rows = np.flatnonzero(view.seen.ids == checkpoint.id)
    row = int(rows[0]) if len(rows) and view.copies.there[rows[0]] else None
    p_bad = view.question.p_bad
    option = ProductionOption(
        checkpoint.id,
        checkpoint.step,
        _known(values[0]),
        _known(errors[0]),
        None if row is None else _known(view.copies.seconds[row] / 60),
        "none" if row is None else view.copies.evidence(row),
        *((0, 0) if row is None else view.copies.tried(row)),
    )
    nothing = {} if row is not None else {"p_ok": None, "evidence": None}
    bad = None if p_bad is None or not len(rows) else _known(p_bad[rows[0]])
    return {**production_terms(option), **nothing, "p_bad": bad}


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def _difference(ours: Terms, theirs: Terms, served: int, first: int) -> tuple[str, bool, bool]:
    """In words, and as yes or no, whether step `first` surely scores better than what is served, or surely worse."""
    mine, other = ours["composite"], theirs["composite"]
    if not isinstance(mine, float) or not isinstance(other, float):
        both = "not both have a comparable finite score"
        return f"Step {served}, served now, and step {first} cannot be compared: {both}", False, False
    errors = (ours["composite_stderr"], theirs["composite_stderr"])
    told = f"{100 * other:.1f} points at step {first} and {100 * mine:.1f} at step {served}, which is served now"
    if not all(isinstance(each, float) for each in errors):
        return f"No difference can be told, since an error is unknown: {told}", False, False
    spread = sum(each**2 for each in errors if isinstance(each, float)) ** 0.5
    apart = f"{100 * (other - mine):+.1f} ± {100 * spread:.1f}"
    if abs(other - mine) <= Z_95 * spread:
        return f"No difference can be told between {told}: {apart}", False, False
    better = "better" if other > mine else "worse"
    size = f"{100 * abs(other - mine):.1f} ± {100 * spread:.1f}"
    return f"Going back scores {better} by {size} points: {told}", other > mine, other < mine
