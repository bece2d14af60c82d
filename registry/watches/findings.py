"""What watches found: list it, acknowledge it, and the rollback question that it opens."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry import audit, strict_json
from registry.checkpoints.detail import read_identities
from registry.checkpoints.rows import CheckpointIdentity, RunName
from registry.db import now
from registry.errors import Conflict, NotFound
from registry.ids import to_text
from registry.models import Alias, Finding, Project, Run, Watch
from registry.watches.settle import ACKNOWLEDGED, OPEN, WITHDRAWN
from registry.watching import LOSS


class FindingNotFound(NotFound):
    code = "finding-not-found"
    title = "No such finding"


class FindingWithdrawn(Conflict):
    code = "finding-withdrawn"
    title = "Nothing speaks for the finding any more"


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with what it is about. `detail` holds its figures, on the common scale where larger is better."""

    id: int
    project_id: int
    project: str
    watch_id: int
    kind: str
    benchmark: str | None
    capability: str | None
    run: RunName
    alias: str | None
    checkpoint: CheckpointIdentity | None
    state: str
    from_step: int
    to_step: int
    sentence: str
    detail: Mapping[str, Any]
    opened_at: datetime
    changed_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None

    @property
    def question(self) -> dict[str, Any]:
        """The rollback question it opens, as the body of POST /rollback."""
        subject: dict[str, Any] = {"run_id": to_text(self.run.id)}
        if self.alias is not None:
            subject = {"alias": f"{self.project}/{self.alias}"}
        if self.benchmark is not None:
            return subject | {"watch": {"benchmark": self.benchmark}}
        return subject | ({"watch": {"capability": self.capability}} if self.capability is not None else {})

    @property
    def parameters(self) -> dict[str, str]:
        """The same as the page has it in its address."""
        question = self.question
        subject = {"alias": question["alias"]} if "alias" in question else {"run": question["run_id"]}
        return subject | ({"watch": next(iter(question["watch"].values()))} if "watch" in question else {})


def list_findings(
    session: Session,
    project_ids: Collection[int] | None,
    *,
    states: Collection[str] = (),
    run_ids: Collection[int] | None = None,
    watch_id: int | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[FindingRow]:
    """Findings, the newest first; of some states, runs, of a watch. `after` is the last of the page before."""
    query = _select().order_by(Finding.id.desc()).limit(limit)
    if project_ids is not None:
        query = query.where(Finding.project_id.in_(sorted(project_ids)))
    if states:
        query = query.where(Finding.state.in_(sorted(states)))
    if run_ids is not None:
        query = query.where(Finding.run_id.in_(sorted(run_ids)))
    if watch_id is not None:
        query = query.where(Finding.watch_id == watch_id)
    if after is not None:
        query = query.where(Finding.id < after)
    return _rows(session, session.execute(query).all())


def get_finding(session: Session, finding_id: int) -> FindingRow:
    """Raises FindingNotFound."""
    rows = _rows(session, session.execute(_select().where(Finding.id == finding_id)).all())
    if not rows:
        raise FindingNotFound(f"There is no finding {to_text(finding_id)}. GET /api/v1/findings lists them.")
    return rows[0]


def count_open(session: Session, project_ids: Collection[int] | None) -> int:
    """How many findings nobody has acknowledged."""
    query = select(func.count()).select_from(Finding).where(Finding.state == OPEN)
    if project_ids is not None:
        query = query.where(Finding.project_id.in_(sorted(project_ids)))
    return session.scalar(query) or 0


def amend_finding(session: Session, finding_id: int, changes: Mapping[str, Any], *, actor: str) -> FindingRow:
    """Acknowledge it, or open it again (`state`), and set the `note`. Who acknowledged first stays named.

    Raises FindingNotFound; FindingWithdrawn where a withdrawn one would be opened.
    """
    finding = session.scalars(select(Finding).where(Finding.id == finding_id).with_for_update()).one_or_none()
    if finding is None:
        raise FindingNotFound(f"There is no finding {to_text(finding_id)}. GET /api/v1/findings lists them.")
    state = changes.get("state")
    if state == OPEN and finding.state == WITHDRAWN:
        raise FindingWithdrawn(
            f"Finding {to_text(finding_id)} was withdrawn: its scores or steps are not what they were. It opens by "
            "itself when they are again."
        )
    if state == ACKNOWLEDGED and finding.acknowledged_at is None:
        finding.acknowledged_at, finding.acknowledged_by = now(), actor
    if state == OPEN:
        finding.acknowledged_at = finding.acknowledged_by = None
    if state in (OPEN, ACKNOWLEDGED) and finding.state != WITHDRAWN:
        finding.state = state
    if "note" in changes:
        finding.note = changes["note"]
    finding.changed_at = now()
    session.flush()
    detail = {"finding": to_text(finding_id), **changes}
    audit.record(
        session,
        actor=actor,
        action="finding.amend",
        project_id=finding.project_id,
        subject_id=finding.checkpoint_id,
        detail=detail,
    )
    session.flush()
    return get_finding(session, finding_id)


def _select() -> Any:
    return (
        select(Finding, Watch.kind, Watch.benchmark, Watch.capability, Project.name, Run.name, Alias.name)
        .join(Watch, (Watch.project_id == Finding.project_id) & (Watch.id == Finding.watch_id))
        .join(Project, Project.id == Finding.project_id)
        .join(Run, (Run.project_id == Finding.project_id) & (Run.id == Finding.run_id))
        .outerjoin(Alias, (Alias.project_id == Watch.project_id) & (Alias.id == Watch.alias_id))
        .execution_options(populate_existing=True)
    )


def _rows(session: Session, found: Sequence[Any]) -> list[FindingRow]:
    named = [row[0].checkpoint_id for row in found if row[0].checkpoint_id is not None]
    identities = read_identities(session, named) if named else {}
    return [
        FindingRow(
            finding.id,
            finding.project_id,
            project,
            finding.watch_id,
            kind,
            benchmark,
            capability if kind != LOSS else None,
            RunName(finding.run_id, run),
            alias,
            identities.get(finding.checkpoint_id or 0),
            finding.state,
            finding.from_step,
            finding.to_step,
            finding.sentence,
            strict_json.loads(finding.detail.encode()),
            finding.opened_at,
            finding.changed_at,
            finding.acknowledged_at,
            finding.acknowledged_by,
            finding.note,
        )
        for finding, kind, benchmark, capability, project, run, alias in found
    ]
