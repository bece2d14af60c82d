"""Point an alias at a checkpoint, or back at what it pointed at before."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import audit, outbox, watching
from registry.aliases.errors import AliasMoved, BadAliasName, NothingToRollBackTo, moved_meanwhile, no_alias
from registry.aliases.fitness import require_fit
from registry.aliases.reading import AliasRow, move_before
from registry.db import now
from registry.errors import FieldError
from registry.ids import new_id, to_text
from registry.models import Alias, AliasMove
from registry.projects import NAME
from registry.upsert import insert_missing


def move_alias(
    session: Session,
    project_id: int,
    name: str,
    checkpoint_id: int,
    *,
    actor: str,
    reason: str | None = None,
    expected: int | None = None,
    only_new: bool = False,
    force: bool = False,
) -> AliasRow:
    """Point an alias at a checkpoint of its project, making the alias if need be.

    `expected` is the checkpoint it must point at now; `only_new`: there must be no such alias yet. `force`, with a
    reason, takes a suspect checkpoint too.
    Raises BadAliasName, CheckpointNotFound, NotCommitted, SuspectTarget, ForceWithoutReason, AliasMoved.
    """
    if not NAME.fullmatch(name):
        wanted = "expected 1 to 128 of: letters, digits, dot, underscore, hyphen"
        raise BadAliasName(f"{name[:60]!r} is no alias name: {wanted}.", errors=[FieldError("/name", wanted)])
    require_fit(session, project_id, checkpoint_id, reason, force=force)
    moment, fresh = now(), new_id()
    if expected is None:
        row = {"id": fresh, "project_id": project_id, "name": name, "checkpoint_id": checkpoint_id, "moved_at": moment}
        insert_missing(session, Alias, [row])
    alias = _locked(session, project_id, name)
    if alias is None:
        raise AliasMoved(f"There is no alias {name!r} yet, so it does not point at {to_text(expected or 0)}.")
    created = alias.id == fresh
    if only_new and not created:
        raise AliasMoved(f"Alias {name!r} is there already; it points at {to_text(alias.checkpoint_id)}.")
    if expected is not None and alias.checkpoint_id != expected:
        raise moved_meanwhile(alias, expected)
    if created or alias.checkpoint_id != checkpoint_id:
        previous = None if created else alias.checkpoint_id
        _move(session, alias, checkpoint_id, previous, reason, actor, moment)
    return AliasRow(project_id, name, alias.checkpoint_id, alias.moved_at)


def roll_back_alias(
    session: Session,
    project_id: int,
    name: str,
    *,
    actor: str,
    reason: str | None = None,
    expected: int | None = None,
    force: bool = False,
) -> AliasRow:
    """Point an alias at what it pointed at before; once more, at what came before that.

    `expected`: what it must point at now, so that a repeated call does not go back one step further.
    Raises AliasNotFound, AliasMoved, NothingToRollBackTo, NotCommitted, SuspectTarget, ForceWithoutReason.
    """
    alias = _locked(session, project_id, name)
    if alias is None:
        raise no_alias(name)
    if expected is not None and alias.checkpoint_id != expected:
        raise moved_meanwhile(alias, expected)
    before = move_before(session, alias)
    if before is None:
        raise NothingToRollBackTo(
            f"Alias {name!r} points at {to_text(alias.checkpoint_id)}, with which its history begins. "
            "PUT points it at a checkpoint of your choice."
        )
    require_fit(session, project_id, before.checkpoint_id, reason, force=force)
    _move(session, alias, before.checkpoint_id, alias.checkpoint_id, reason, actor, now(), rolled_back_to=before.id)
    return AliasRow(project_id, name, alias.checkpoint_id, alias.moved_at)


def _move(
    session: Session,
    alias: Alias,
    checkpoint_id: int,
    previous: int | None,
    reason: str | None,
    actor: str,
    moment: datetime,
    *,
    rolled_back_to: int | None = None,
) -> None:
    alias.checkpoint_id, alias.moved_at = checkpoint_id, moment
    session.add(
        AliasMove(
            id=new_id(),
            project_id=alias.project_id,
            alias_id=alias.id,
            checkpoint_id=checkpoint_id,
            previous_id=previous,
            reason=reason,
            moved_by=actor,
            moved_at=moment,
            rolled_back_to=rolled_back_to,
        )
    )
    session.flush()
    watching.alias_moved(session, alias.project_id, alias.id)
    detail = {"alias": alias.name, "from": previous and to_text(previous), "to": to_text(checkpoint_id)}
    outbox.announce(session, alias.project_id, "alias.moved", [checkpoint_id], detail)
    audit.record(
        session,
        actor=actor,
        action="alias.move",
        project_id=alias.project_id,
        subject_id=checkpoint_id,
        detail=detail | {"reason": reason},
    )
    session.flush()


def _locked(session: Session, project_id: int, name: str) -> Alias | None:
    if not NAME.fullmatch(name):
        return None
    query = select(Alias).where(Alias.project_id == project_id, Alias.name == name)
    return session.scalars(query.with_for_update().execution_options(populate_existing=True)).one_or_none()
