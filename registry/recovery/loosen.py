"""Where no checkpoint is left to go back to: which filter, loosened, would leave one. Advice that helps, or none."""

from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from registry.recovery.eligible import LOOSEN, NEEDED, PRODUCTION, TRAINING, judge
from registry.recovery.population import in_scope
from registry.recovery.view import View
from registry.recovery.watched import Watch, read_watched
from registry.recovery.whole import are_whole

# What speaks against the checkpoint itself is loosened only where nothing else helps.
_LAST: Final = ("state", "superseded", "loss", "quarantine", "suspect")
NO_MODE: Final = "record the pieces of the checkpoints"  # where asking in production mode would leave none either
NO_FIGURE: Final = "evaluate one of the checkpoints"


def what_to_loosen(view: View) -> tuple[str, ...]:
    """The filters that together leave a candidate when they are loosened: one, where one is enough."""
    if not len(view.seen):
        return ()
    if len(view.judged.rows):  # judged well, and without a figure to be ranked by
        return ("unscored",)
    present = [name for name in LOOSEN if name not in _LAST], list(_LAST)
    for names in present:
        left = {name: len(judge(view.seen, view.copies, view.question, without={name}).rows) for name in names}
        best = max(left, key=left.__getitem__)
        if left[best]:
            return (best,)
    return _several(view)


def _several(view: View) -> tuple[str, ...]:
    """What leaves out most, then what of the rest, until one is left."""
    without: list[str] = []
    judged = view.judged
    while not len(judged.rows):
        counts = np.bincount(judged.failed, minlength=len(judged.names))
        without.append(judged.names[int(np.argmax(counts))])
        judged = judge(view.seen, view.copies, view.question, without=set(without))
    return tuple(without)


def in_words(session: Session, view: View, names: tuple[str, ...]) -> dict[str, str]:
    """What to do about each, in words that are true of this run."""
    words = {name: LOOSEN[name] for name in names}
    if "pieces" in words and not (view.question.mode == TRAINING and _production_helps(session, view, names)):
        words["pieces"] = NO_MODE
    if "unscored" in words and view.watched is None:
        words["unscored"] = NO_FIGURE
    return words


def _production_helps(session: Session, view: View, names: tuple[str, ...]) -> bool:
    """Whether one that only its pieces leave out has its weights, and a score to be ranked by."""
    seen, scope = view.seen, view.scope
    rows = judge(seen, view.copies, view.question, without=set(names)).rows
    whole = are_whole(
        *(session, scope.project_id, scope.runs, in_scope(scope), seen.ids, seen.committed, NEEDED[PRODUCTION])
    )
    figures = read_watched(session, scope.project_id, view.run_ids, Watch(), or_nothing=True, uncounted=False)
    if view.watched is not None and not len(figures.ids):
        figures = view.watched
    return bool((whole[rows] & ~np.isnan(figures.along(seen.ids[rows])[0])).any())
