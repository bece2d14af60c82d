"""Every table, one file each. Importing this module is what makes the metadata complete."""

from registry.models.alias import Alias
from registry.models.alias_move import AliasMove
from registry.models.attempt import Attempt
from registry.models.attempt_pulse import AttemptPulse
from registry.models.attempt_skip import AttemptSkip
from registry.models.audit_entry import AuditEntry
from registry.models.benchmark import Benchmark
from registry.models.bisect import Bisect
from registry.models.bisect_observation import BisectObservation
from registry.models.checkpoint import Checkpoint
from registry.models.checkpoint_metric import CheckpointMetric
from registry.models.checkpoint_suspicion import CheckpointSuspicion
from registry.models.checkpoint_tag import CheckpointTag
from registry.models.code_version import CodeVersion
from registry.models.config import Config
from registry.models.config_entry import ConfigEntry
from registry.models.current_score import CurrentScore
from registry.models.data_source import DataSource
from registry.models.data_version import DataVersion
from registry.models.decision import Decision
from registry.models.drill import Drill
from registry.models.environment import Environment
from registry.models.finding import Finding
from registry.models.incident import Incident
from registry.models.item_set import ItemSet
from registry.models.job import Job
from registry.models.layout import Layout
from registry.models.lineage_edge import LineageEdge
from registry.models.login_code import LoginCode
from registry.models.manifest import Manifest
from registry.models.outbox import OutboxEvent
from registry.models.piece import Piece
from registry.models.population_change import PopulationChange
from registry.models.project import Project
from registry.models.replica import Replica
from registry.models.replica_part import ReplicaPart
from registry.models.resume_agreement import ResumeAgreement
from registry.models.resume_agreement_host import ResumeAgreementHost
from registry.models.resume_receipt import ResumeReceipt
from registry.models.run import Run
from registry.models.run_tag import RunTag
from registry.models.sample_result import SampleResult
from registry.models.score import Score
from registry.models.score_metric import ScoreMetric
from registry.models.score_series import ScoreSeries
from registry.models.series_chunk import SeriesChunk
from registry.models.suspect_test import SuspectTest
from registry.models.token import Token
from registry.models.token_project import TokenProject
from registry.models.tracker_checkpoint import TrackerCheckpoint
from registry.models.tracker_field import TrackerField
from registry.models.tracker_link import TrackerLink
from registry.models.tracker_setting import TrackerSetting
from registry.models.tracker_state import TrackerState
from registry.models.watch import Watch
from registry.models.watch_due import WatchDue
from registry.models.web_session import WebSession
from registry.models.worker import Worker

__all__ = [
    "Alias",
    "AliasMove",
    "Attempt",
    "AttemptPulse",
    "AttemptSkip",
    "AuditEntry",
    "Benchmark",
    "Bisect",
    "BisectObservation",
    "Checkpoint",
    "CheckpointMetric",
    "CheckpointSuspicion",
    "CheckpointTag",
    "CodeVersion",
    "Config",
    "ConfigEntry",
    "CurrentScore",
    "DataSource",
    "DataVersion",
    "Decision",
    "Drill",
    "Environment",
    "Finding",
    "Incident",
    "ItemSet",
    "Job",
    "Layout",
    "LineageEdge",
    "LoginCode",
    "Manifest",
    "OutboxEvent",
    "Piece",
    "PopulationChange",
    "Project",
    "Replica",
    "ReplicaPart",
    "ResumeAgreement",
    "ResumeAgreementHost",
    "ResumeReceipt",
    "Run",
    "RunTag",
    "SampleResult",
    "Score",
    "ScoreMetric",
    "ScoreSeries",
    "SeriesChunk",
    "SuspectTest",
    "Token",
    "TokenProject",
    "TrackerCheckpoint",
    "TrackerField",
    "TrackerLink",
    "TrackerSetting",
    "TrackerState",
    "Watch",
    "WatchDue",
    "WebSession",
    "Worker",
]
