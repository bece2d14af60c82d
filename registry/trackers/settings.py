"""How a project is kept in step with its trackers: what is pushed, and how often links are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from registry import audit
from registry.db import now
from registry.models import TrackerSetting
from registry.upsert import insert_into

REFRESH_SECONDS: Final = 600


@dataclass(frozen=True)
class Tracking:
    """`best_by`: the score by which a run's best checkpoint is told, as a filter names it; None: none is told."""

    push_mlflow: bool = False
    push_wandb: bool = False
    best_by: str | None = None
    refresh_seconds: int = REFRESH_SECONDS

    def pushes(self, kind: str) -> bool:
        return self.push_mlflow if kind == "mlflow" else self.push_wandb


def read_tracking(session: Session, project_id: int) -> Tracking:
    row = session.get(TrackerSetting, project_id, populate_existing=True)
    return Tracking() if row is None else _tracking(row)


def change_tracking(session: Session, project_id: int, changes: Mapping[str, Any], *, actor: str) -> Tracking:
    """Set what a merge patch names; None takes a value back to its default."""
    default = Tracking()
    known = {name: getattr(read_tracking(session, project_id), name) for name in Tracking.__dataclass_fields__}
    wanted = known | {name: getattr(default, name) if value is None else value for name, value in changes.items()}
    at = now()
    values = wanted | {"changed_by": actor, "changed_at": at}
    statement = insert_into(session, TrackerSetting).values(project_id=project_id, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["project_id"], set_=values))
    audit.record(
        session,
        actor=actor,
        action="tracking.change",
        project_id=project_id,
        subject_id=project_id,
        detail=dict(changes),
    )
    return Tracking(**wanted)


def _tracking(row: TrackerSetting) -> Tracking:
    return Tracking(row.push_mlflow, row.push_wandb, row.best_by, row.refresh_seconds)
