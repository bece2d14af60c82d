"""After which checkpoint did it get worse? A search that says which one to evaluate next, and on how many items.

The gap between two neighbours after which the score is low is unknown; every score moves a probability over the gaps.
Asked is the checkpoint whose probability of being bad is nearest one half (Horstein 1963; Waeber, Frazier, Henderson
2013), among those that can be restored.
"""

from registry.provenance.bisect.answers import BisectAnswer
from registry.provenance.bisect.asking import get_bisect, observe, start_bisect
from registry.provenance.bisect.states import BisectNotFound, Target, project_of_bisect

__all__ = [
    "BisectAnswer",
    "BisectNotFound",
    "Target",
    "get_bisect",
    "observe",
    "project_of_bisect",
    "start_bisect",
]
