"""What callers receive: frozen dataclasses with the service's own field names, and the whole answer in `raw`.

Times are aware and in UTC, numbers may be NaN or infinite, what the service left out is None or empty. One module a
subject; every name is reached here.
"""

from cairn.types.aliases import Alias, AliasMove
from cairn.types.base import Answer
from cairn.types.benchmarks import Benchmark, BenchmarkPage
from cairn.types.checkpoints import BatchReport, BatchResult, Checkpoint, CheckpointPage, CheckpointRef, Edge, Lineage
from cairn.types.compare import CapabilityChange, Comparison, ConfigChange, ScoreChange, Suspect
from cairn.types.drills import Drill, DrillPage
from cairn.types.incidents import Incident, IncidentPage, ResumeReceipt, Suspicion
from cairn.types.provenance import Bisect, Decision, Gap, NextEvaluation, Provenance
from cairn.types.recovery import (
    Compatibility,
    CopyOption,
    CopyPart,
    Manifest,
    ManifestFile,
    PassedOver,
    PieceFit,
    PieceFits,
    RestorePlan,
    ResumeAgreement,
    ResumeCandidate,
    ResumePlan,
    StorageUsage,
    Usage,
)
from cairn.types.rollback import Candidate, Excluded, Onset, RollbackAnswer, Served, Spike
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
from cairn.types.trackers import Job, JobPage, JobProgress, TrackerField, TrackerLink, TrackerLinks, Tracking
from cairn.types.watches import Finding, FindingPage, Watch

__all__ = [
    "Alias",
    "AliasMove",
    "Answer",
    "Attempt",
    "BatchReport",
    "BatchResult",
    "Benchmark",
    "BenchmarkEvidence",
    "BenchmarkPage",
    "Bisect",
    "Candidate",
    "CapabilityChange",
    "Checkpoint",
    "CheckpointPage",
    "CheckpointRef",
    "Comparison",
    "Compatibility",
    "Condition",
    "ConfigChange",
    "CopyOption",
    "CopyPart",
    "Curve",
    "Decision",
    "Drill",
    "DrillPage",
    "Edge",
    "Evidence",
    "Excluded",
    "Finding",
    "FindingPage",
    "Gap",
    "ImportReport",
    "ImportedFile",
    "Incident",
    "IncidentPage",
    "Interpretation",
    "Job",
    "JobPage",
    "JobProgress",
    "Lineage",
    "Manifest",
    "ManifestFile",
    "NextEvaluation",
    "Onset",
    "PassedOver",
    "PieceFit",
    "PieceFits",
    "Profile",
    "Project",
    "ProjectPage",
    "Provenance",
    "RestorePlan",
    "ResumeAgreement",
    "ResumeCandidate",
    "ResumePlan",
    "ResumeReceipt",
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
    "Served",
    "SkippedItem",
    "Spike",
    "Standing",
    "StorageUsage",
    "Suspect",
    "Suspicion",
    "TrackerField",
    "TrackerLink",
    "TrackerLinks",
    "Tracking",
    "Usage",
    "Watch",
]
