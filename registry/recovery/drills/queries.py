"""Reading drills: one, or a list, the newest first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import read_identities
from registry.checkpoints.rows import CheckpointIdentity
from registry.errors import NotFound
from registry.ids import to_text
from registry.models import Drill, Layout
from registry.recovery.drills.shapes import Checks, DrillRow, Step
from registry.snapshots import LayoutSpec

STAGES: Final = ("read", "verify", "convert", "load", "run")
_PLAIN: Final = (
    *("id", "project_id", "replica_id", "key", "host", "tier", "format", "started_at", "ended_at", "bytes_read"),
    *(
        "steps_run",
        "continuation",
        "cold_start",
        "verdict",
        "exact",
        "reason",
        "comparison",
        "created_by",
        "created_at",
    ),
)


class DrillNotFound(NotFound):
    code = "drill-not-found"
    title = "There is no such drill"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which drills: of these projects (None: all), of a run, of a checkpoint."""

    project_ids: Collection[int] | None = None
    run_id: int | None = None
    checkpoint_id: int | None = None


def project_of_drill(session: Session, drill_id: int) -> int:
    """Raises DrillNotFound."""
    found = session.scalars(select(Drill.project_id).where(Drill.id == drill_id)).one_or_none()
    if found is None:
        raise DrillNotFound(f"There is no drill {to_text(drill_id)}. GET /api/v1/drills lists them.")
    return found


def get_drill(session: Session, drill_id: int) -> DrillRow:
    """Raises DrillNotFound."""
    project_of_drill(session, drill_id)
    return _rows(session, session.scalars(select(Drill).where(Drill.id == drill_id)).all())[0]


def list_drills(session: Session, asked: Asked, *, before_id: int | None = None, limit: int = 50) -> list[DrillRow]:
    """The newest first, after the drill `before_id`."""
    query = select(Drill)
    if asked.project_ids is not None:
        query = query.where(Drill.project_id.in_(asked.project_ids))
    if asked.run_id is not None:
        query = query.where(Drill.run_id == asked.run_id)
    if asked.checkpoint_id is not None:
        query = query.where(Drill.checkpoint_id == asked.checkpoint_id)
    if before_id is not None:
        query = query.where(Drill.id < before_id)
    return _rows(session, session.scalars(query.order_by(Drill.id.desc()).limit(limit)).all())


def _rows(session: Session, found: Sequence[Drill]) -> list[DrillRow]:
    identities = read_identities(session, sorted({row.checkpoint_id for row in found}))
    wanted = sorted({row.layout_id for row in found if row.layout_id is not None})
    layouts = session.scalars(select(Layout).where(Layout.id.in_(wanted))).all() if wanted else []
    known = {each.id: _layout(each) for each in layouts}
    return [_read(row, identities[row.checkpoint_id], known.get(row.layout_id or 0)) for row in found]


def _read(row: Drill, checkpoint: CheckpointIdentity, layout: LayoutSpec | None) -> DrillRow:
    kept: dict[str, Any] = strict_json.unpack(row.losses) if row.losses is not None else {}
    return DrillRow(
        **{name: getattr(row, name) for name in _PLAIN},
        checkpoint=checkpoint,
        layout=layout,
        software=strict_json.loads(row.software.encode()),
        seconds={stage: getattr(row, f"{stage}_seconds") for stage in STAGES},
        losses=_steps(kept.get("losses", ())),
        cold_losses=_steps(kept.get("cold", ())),
        tolerance=float(kept.get("tolerance", 0)),
        checks=Checks(row.read, row.verify, row.files, row.run),
    )


def _steps(plain: Sequence[Any]) -> list[Step]:
    return [Step(int(step), float(loss)) for step, loss in plain]


def _layout(row: Layout) -> LayoutSpec:
    extra = strict_json.loads(row.extra.encode()) if row.extra else {}
    return LayoutSpec(row.world_size, row.tp, row.pp, row.dp, row.cp, row.ep, row.sharding, extra)
