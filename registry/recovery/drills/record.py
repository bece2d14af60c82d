"""Keeping a drill: once for each key, compared with what is recorded at that moment."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.errors import Conflict, FieldError, Invalid
from registry.ids import new_id, to_text
from registry.models import Checkpoint, Drill, Replica
from registry.recovery.drills.judge import judge
from registry.recovery.drills.queries import STAGES, get_drill
from registry.recovery.drills.shapes import FAILED, PASSED, DrillRow, NewDrill, Step, beyond
from registry.recovery.loadable import read_facts
from registry.snapshots import LayoutSpec, keep_layouts
from registry.upsert import insert_new


class BadDrill(Invalid):
    code = "bad-drill"
    title = "The drill cannot be kept so"

    @classmethod
    def at(cls, pointer: str, message: str) -> "BadDrill":
        return cls(f"At {pointer}: {message}.", errors=[FieldError(pointer, message)])


class DrillExists(Conflict):
    code = "drill-exists"
    title = "A drill of this key says something else"


def record_drill(session: Session, checkpoint_id: int, new: NewDrill, *, actor: str) -> tuple[DrillRow, bool]:
    """The drill, and whether it was made just now: the same key and content again is the same drill.

    Raises BadDrill where the report contradicts itself, DrillExists where the key is taken.
    """
    checkpoint = session.get_one(Checkpoint, checkpoint_id)
    replica = _replica(session, checkpoint, new)
    _check(new)
    digest = strict_json.digest(strict_json.canonical(_said(checkpoint_id, new)))
    known = _known(session, checkpoint.project_id, new.key, digest)
    if known is not None:
        return get_drill(session, known), False
    row = _row(session, checkpoint, replica, new, digest, actor)
    if insert_new(session, Drill, [row]):
        return get_drill(session, row["id"]), True
    met = _known(session, checkpoint.project_id, new.key, digest)  # another sent it at this moment
    assert met is not None
    return get_drill(session, met), False


def _known(session: Session, project_id: int, key: str, digest: bytes) -> int | None:
    query = select(Drill.id, Drill.digest).where(Drill.project_id == project_id, Drill.key == key)
    found = session.execute(query).one_or_none()
    if found is not None and found.digest != digest:
        raise DrillExists(
            f"Drill {to_text(found.id)} has the key {key!r} and says something else. A drill is never changed: send "
            "another one with a key of its own."
        )
    return None if found is None else int(found.id)


def _replica(session: Session, checkpoint: Checkpoint, new: NewDrill) -> Replica | None:
    if new.replica_id is None:
        return None
    query = select(Replica).where(
        Replica.project_id == checkpoint.project_id,
        Replica.checkpoint_id == checkpoint.id,
        Replica.id == new.replica_id,
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        raise BadDrill.at("/replica_id", "the checkpoint has no such copy")
    return found


def _check(new: NewDrill) -> None:
    checks = new.checks
    if new.ended_at < new.started_at:
        raise BadDrill.at("/ended_at", "it ended before it started")
    if new.verdict == PASSED and FAILED in (checks.read, checks.verify, checks.files, checks.run):
        raise BadDrill.at("/verdict", "a drill of which a part failed has not passed")
    if new.verdict == FAILED and not new.reason.strip():
        raise BadDrill.at("/reason", "say why it failed")
    for pointer, losses in (("/losses", new.losses), ("/cold_losses", new.cold_losses)):
        steps = [each.step for each in losses]
        if any(later <= earlier for earlier, later in pairwise(steps)):
            raise BadDrill.at(pointer, "its steps must ascend")


def _said(checkpoint_id: int, new: NewDrill) -> dict[str, Any]:
    """Everything in the report, for its digest."""
    layout = new.layout
    return {
        "checkpoint": checkpoint_id,
        "replica": new.replica_id,
        "host": new.host,
        "layout": None if layout is None else {name: getattr(layout, name) for name in LayoutSpec.__dataclass_fields__},
        "software": dict(new.software),
        "times": [new.started_at.isoformat(), new.ended_at.isoformat()],
        "seconds": {stage: new.seconds.get(stage) for stage in STAGES},
        "counts": [new.bytes_read, new.steps_run],
        "losses": _plain(new.losses),
        "cold_losses": _plain(new.cold_losses),
        "tolerance": new.tolerance,
        "checks": [new.checks.read, new.checks.verify, new.checks.files, new.checks.run],
        "verdict": [new.verdict, new.reason, new.exact],
    }


def _plain(losses: Sequence[Step]) -> list[Any]:
    """Steps and losses as JSON holds them: a number that is not finite as its text."""
    return [[each.step, repr(each.loss)] for each in losses]


def _row(
    session: Session, checkpoint: Checkpoint, replica: Replica | None, new: NewDrill, digest: bytes, actor: str
) -> dict[str, Any]:
    project_id = checkpoint.project_id
    facts = read_facts(session, project_id, [checkpoint.id])[checkpoint.id]
    found = judge(session, checkpoint, facts, new)
    kept = {"losses": _plain(new.losses), "cold": _plain(new.cold_losses), "tolerance": new.tolerance}
    return {
        "id": new_id(),
        "project_id": project_id,
        "run_id": checkpoint.run_id,
        "checkpoint_id": checkpoint.id,
        "replica_id": new.replica_id,
        "key": new.key,
        "digest": digest,
        "host": new.host,
        "tier": None if replica is None else replica.tier,
        "format": facts.format,
        "layout_id": keep_layouts(session, project_id, [new.layout])[0],
        "software": strict_json.canonical(dict(new.software)),
        "started_at": new.started_at,
        "ended_at": new.ended_at,
        **{f"{stage}_seconds": new.seconds.get(stage) for stage in STAGES},
        "bytes_read": new.bytes_read,
        "steps_run": new.steps_run if new.steps_run is not None else len(beyond(new.losses, checkpoint.step)),
        "losses": strict_json.pack(strict_json.canonical(kept)),
        **asdict(new.checks),
        **asdict(found),
        "created_by": actor,
        "created_at": now(),
    }
