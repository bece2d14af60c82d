"""From rows of the registry to what a template shows of a checkpoint or a run."""

from datetime import datetime, timedelta

from registry.attempts import AttemptRow
from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.overview.runs import RunOverview
from ui import filters
from ui.contexts import CheckpointRef

SILENT_AFTER = timedelta(hours=24)


def ref_of(brief: Brief, *, suspect: bool = False) -> CheckpointRef:
    """A checkpoint's identity; `suspect` where somebody asked."""
    return CheckpointRef(
        id=to_text(brief.id),
        project=brief.project,
        run_id=to_text(brief.run_id),
        run_name=brief.run_name,
        attempt=brief.attempt,
        step=brief.step,
        kind=brief.kind,
        saved_at=None if brief.saved_at_assumed else brief.saved_at,
        recorded_at=brief.saved_at if brief.saved_at_assumed else None,
        path=brief.copies.uri,
        pieces={name.value: presence.value for name, presence in brief.pieces.items()},
        superseded=brief.superseded,
        state=brief.state,
        suspect=suspect,
    )


def run_state(run: RunOverview, now: datetime) -> str:
    """The newest attempt's state; silent where it should run and gave no sign of life for a day."""
    if run.state != "running":
        return run.state or "not reported"
    signs = [moment for moment in (run.heartbeat_at, run.saved_at) if moment is not None]
    return "silent" if signs and now - max(signs) > SILENT_AFTER else "running"


def is_reported(attempt: AttemptRow) -> bool:
    """Whether somebody opened the attempt or spoke of it since; of one made for a backfill the state is a default."""
    said = (attempt.key, attempt.started_at, attempt.heartbeat_at, attempt.ended_at, attempt.resumed_from)
    return attempt.state != "running" or attempt.restart or any(each is not None for each in said)


def saved_in_words(brief: Brief, now: datetime) -> str:
    """When a checkpoint was saved; where nobody said, when its record arrived, called that."""
    verb = "recorded" if brief.saved_at_assumed else "saved"
    return f"{verb} {filters.ago(brief.saved_at, now)}"


def config_text(value: object) -> str:
    """A plain value of a configuration as its file wrote it; a number keeps its digits."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return '""' if value == "" else str(value)
