"""What callers receive: frozen dataclasses with the service's own field names, and the whole answer in `raw`.

Times are aware and in UTC, numbers may be NaN or infinite, what the service left out is None or empty. One module a
subject; every name is reached here.
"""

from cairn.types.aliases import Alias, AliasMove
from cairn.types.base import Answer
from cairn.types.checkpoints import BatchReport, BatchResult, Checkpoint, CheckpointPage, CheckpointRef, Edge, Lineage
from cairn.types.compare import CapabilityChange, Comparison, ConfigChange, ScoreChange, Suspect
from cairn.types.rollback import Candidate, Excluded, Onset, RollbackAnswer
from cairn.types.runs import Attempt, Curve, Project, ProjectPage, Run, RunPage, RunRef, SeriesReport
from cairn.types.scores import ImportedFile, ImportReport, Score, ScoreReport, SkippedItem
from cairn.types.search import (
    BenchmarkEvidence,
    Condition,
    Evidence,
    Interpretation,
    Profile,
    SearchAnswer,
    SearchResult,
    Standing,
)

__all__ = [
    "Alias",
    "AliasMove",
    "Answer",
    "Attempt",
    "BatchReport",
    "BatchResult",
    "BenchmarkEvidence",
    "Candidate",
    "CapabilityChange",
    "Checkpoint",
    "CheckpointPage",
    "CheckpointRef",
    "Comparison",
    "Condition",
    "ConfigChange",
    "Curve",
    "Edge",
    "Evidence",
    "Excluded",
    "ImportReport",
    "ImportedFile",
    "Interpretation",
    "Lineage",
    "Onset",
    "Profile",
    "Project",
    "ProjectPage",
    "RollbackAnswer",
    "Run",
    "RunPage",
    "RunRef",
    "Score",
    "ScoreChange",
    "ScoreReport",
    "SearchAnswer",
    "SearchResult",
    "SeriesReport",
    "SkippedItem",
    "Standing",
    "Suspect",
]
