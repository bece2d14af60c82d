"""The same checkpoint on every host of a launch: the first to ask proposes, and all go on when all can read it.

A host that cannot read what was proposed proposes another, and the round begins again. Once every host is ready, the
agreement is sealed and never changes: a host that asks later, or again, gets the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import read_identities
from registry.checkpoints.rows import CheckpointIdentity
from registry.db import now
from registry.errors import Conflict, FieldError, Invalid
from registry.ids import new_id, to_text
from registry.models import Checkpoint, ResumeAgreement, ResumeAgreementHost
from registry.runs import get_brief
from registry.types import CheckpointState
from registry.upsert import insert_missing

MAX_HOSTS: Final = 100_000


class CannotAgree(Conflict):
    code = "resume-agreement-conflict"
    title = "The hosts of this launch cannot agree on that"


class BadProposal(Invalid):
    code = "bad-resume-proposal"
    title = "That checkpoint cannot be agreed on"


@dataclass(frozen=True, slots=True)
class Vote:
    """What a host says. `checkpoint_id`: what it can read; None: nothing at all.

    `instead_of`: what was proposed and it cannot read, with the `reason`. `hosts`: of how many the launch consists.
    """

    key: str
    host: str
    hosts: int
    checkpoint_id: int | None
    instead_of: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What stands now. `ready`: hosts that can read the checkpoint. `failed`: why nobody can go on; None while all may.

    `refused`: checkpoints that a host could not read, which are not to be proposed again.
    """

    checkpoint: CheckpointIdentity
    hosts: int
    ready: tuple[str, ...]
    refused: tuple[int, ...]
    is_sealed: bool
    failed: str | None


def agree(session: Session, run_id: int, vote: Vote) -> Agreement:
    """What the launch agrees on after this host has spoken; to ask again how it stands, a host says the same again.

    Raises RunNotFound, BadProposal for a checkpoint that the project has not or that is not committed, CannotAgree
    where the hosts contradict each other.
    """
    run = get_brief(session, run_id)
    if vote.checkpoint_id is not None:
        _require_committed(session, run.project_id, vote.checkpoint_id)
    row = _locked(session, run.project_id, run_id, vote)
    if row.hosts != vote.hosts:
        raise CannotAgree(
            f"Launch {vote.key!r} was said to have {row.hosts} hosts, and {vote.host!r} says {vote.hosts}. "
            "Give each launch a key of its own."
        )
    if row.sealed_at is None and row.failed is None:
        _hear(session, row, vote)
    return _read(session, row)


def _require_committed(session: Session, project_id: int, checkpoint_id: int) -> None:
    state = session.scalar(
        select(Checkpoint.state).where(Checkpoint.project_id == project_id, Checkpoint.id == checkpoint_id)
    )
    if state != CheckpointState.COMMITTED:
        message = "this project has no such checkpoint" if state is None else f"it is {state}"
        raise BadProposal(
            f"Checkpoint {to_text(checkpoint_id)} cannot be resumed from: {message}.",
            errors=[FieldError("/checkpoint_id", message)],
        )


def _locked(session: Session, project_id: int, run_id: int, vote: Vote) -> ResumeAgreement:
    if vote.checkpoint_id is not None:
        row = {
            "id": new_id(),
            "project_id": project_id,
            "run_id": run_id,
            "key": vote.key,
            "hosts": vote.hosts,
            "checkpoint_id": vote.checkpoint_id,
            "round": 1,
            "refused": "[]",
            "sealed_at": None,
            "failed": None,
            "created_at": now(),
        }
        insert_missing(session, ResumeAgreement, [row])
    query = select(ResumeAgreement).where(
        ResumeAgreement.project_id == project_id, ResumeAgreement.run_id == run_id, ResumeAgreement.key == vote.key
    )
    found = session.scalars(query.with_for_update().execution_options(populate_existing=True)).one_or_none()
    if found is None:
        message = "nothing was proposed for this launch yet, so propose a checkpoint"
        raise BadProposal(f"At /checkpoint_id: {message}.", errors=[FieldError("/checkpoint_id", message)])
    return found


def _hear(session: Session, row: ResumeAgreement, vote: Vote) -> None:
    refused = _refused(row)
    if vote.checkpoint_id is None:
        row.failed = f"host {vote.host} can read no checkpoint{': ' + vote.reason if vote.reason else ''}"
    elif vote.checkpoint_id == row.checkpoint_id:
        _note_ready(session, row, vote)
    elif vote.instead_of == row.checkpoint_id:
        if vote.checkpoint_id in refused:
            raise CannotAgree(
                f"Checkpoint {to_text(vote.checkpoint_id)} was refused by a host before. Propose another.",
                refused=[to_text(each) for each in refused],
            )
        row.refused = strict_json.canonical([*map(str, refused), str(row.checkpoint_id)])
        row.checkpoint_id, row.round = vote.checkpoint_id, row.round + 1
        _note_ready(session, row, vote)
    session.flush()
    if row.failed is None and len(_ready(session, row)) >= row.hosts:
        row.sealed_at = now()
        session.flush()


def _note_ready(session: Session, row: ResumeAgreement, vote: Vote) -> None:
    if vote.host in _ready(session, row):
        return
    values = {"round": row.round, "ready_at": now()}
    own = {"project_id": row.project_id, "agreement_id": row.id, "host": vote.host}
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    statement = insert(ResumeAgreementHost).values(**own, **values)
    session.execute(statement.on_conflict_do_update(index_elements=list(own), set_=values))


def _ready(session: Session, row: ResumeAgreement) -> Sequence[str]:
    query = select(ResumeAgreementHost.host).where(
        ResumeAgreementHost.project_id == row.project_id,
        ResumeAgreementHost.agreement_id == row.id,
        ResumeAgreementHost.round == row.round,
    )
    return session.scalars(query.order_by(ResumeAgreementHost.host)).all()


def _refused(row: ResumeAgreement) -> list[int]:
    return [int(each) for each in strict_json.loads(row.refused.encode())]


def _read(session: Session, row: ResumeAgreement) -> Agreement:
    checkpoint = read_identities(session, [row.checkpoint_id])[row.checkpoint_id]
    return Agreement(
        checkpoint=checkpoint,
        hosts=row.hosts,
        ready=tuple(_ready(session, row)),
        refused=tuple(_refused(row)),
        is_sealed=row.sealed_at is not None,
        failed=row.failed,
    )
