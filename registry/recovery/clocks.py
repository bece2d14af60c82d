"""Whose steps are counted on from one run to the next. A fork may count on, or begin at nothing again.

Only checkpoints on one clock can be put in order by their steps: what lies on another is older than the run as a
whole, if the run came from it, and tells nothing of where in the run a score fell.
"""

from collections.abc import Mapping

import numpy as np

from registry.evals.percentiles import Integers
from registry.recovery.population import Population
from registry.recovery.scope import Scope

Clocks = Mapping[int, int]


def clocks_of(seen: Population, scope: Scope) -> Clocks:
    """By generation, the steps that it is behind the run's own count: 0 for those on one clock.

    What an alias served before from other runs has no place in the order, and is not among them.
    """
    alive = seen.committed & ~seen.superseded
    behind, found = 0, {0: 0}
    own = seen.steps[alive & (seen.generations == 0)]
    began = int(own.min()) if len(own) else scope.at_step or None  # a heartbeat at 0 may come before anything is loaded
    for generation, run_id in [*enumerate(scope.runs)][1:]:
        steps = seen.steps[alive & (seen.generations == generation)]
        if len(steps) and began is not None and int(steps.max()) > began:
            behind += _forked_at(scope, run_id)
        began = int(steps.min()) if len(steps) else began
        found[generation] = behind
    return found


def _forked_at(scope: Scope, run_id: int) -> int:
    """The step of what the next run loaded: where the path through this one ends."""
    return max((last for (run, _), last in scope.through.items() if run == run_id and last is not None), default=0)


def live_path(seen: Population, clocks: Clocks) -> Integers:
    """The rows of the live path by step, oldest generation and attempt first; what was superseded tells nothing."""
    on_clock = [generation for generation, behind in clocks.items() if behind == 0]
    alive = np.flatnonzero(seen.committed & ~seen.superseded & np.isin(seen.generations, on_clock))
    order = np.lexsort((seen.attempts[alive], -seen.generations[alive], seen.steps[alive]))
    return np.asarray(alive[order])
