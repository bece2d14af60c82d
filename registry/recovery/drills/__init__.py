"""Rehearsed restores: kept as they were reported, compared with what is recorded, and used as evidence.

A host reports what only it can see: what it read and verified, what the files are, how a command ended, the losses it
wrote. What those losses mean the service says itself, since it has the run's own curve: a report can be as sure of
itself as it likes, and still fails where the curve disagrees. A report that failed is never made better.
"""

from registry.recovery.drills.queries import DrillNotFound, get_drill, list_drills, project_of_drill
from registry.recovery.drills.record import BadDrill, DrillExists, record_drill
from registry.recovery.drills.shapes import Checks, DrillRow, NewDrill, Step

__all__ = [
    "BadDrill",
    "Checks",
    "DrillExists",
    "DrillNotFound",
    "DrillRow",
    "NewDrill",
    "Step",
    "get_drill",
    "list_drills",
    "project_of_drill",
    "record_drill",
]
