"""Aliases: names such as production that point at one committed checkpoint, with their history.

A move is atomic, may demand what the alias pointed at before (compare and set), and is never forgotten: rolling back
is one more move. Rolling back twice goes two steps back in the history, not back and forth: who is woken at night and
finds the version before bad as well wants the one before that. To undo a rollback, point the alias forward again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import literal, select, tuple_
from sqlalchemy.orm import Session

from registry import audit, outbox, watching
from registry.checkpoints.errors import CheckpointNotFound
from registry.db import now
from registry.errors import Conflict, FieldError, Invalid, NotFound
from registry.ids import new_id, to_text
from registry.incidents.suspicion import suspects_of
from registry.models import Alias, AliasMove, Checkpoint, CheckpointTag
from registry.projects import NAME
from registry.types import CheckpointState
from registry.upsert import insert_missing

QUARANTINE_TAGS: Final = ("quarantine", "quarantined")


class AliasNotFound(NotFound):
    code = "alias-not-found"
    title = "No such alias"


class BadAliasName(Invalid):
    code = "bad-alias-name"
    title = "Not a name for an alias"


class AliasMoved(Conflict):
    code = "alias-moved"
    title = "The alias points elsewhere by now"


class NotCommitted(Conflict):
    code = "alias-target-not-committed"
    title = "An alias can only name a committed checkpoint"


class NothingToRollBackTo(Conflict):
    code = "nothing-to-roll-back-to"
    title = "There is nothing earlier in the alias's history"


class SuspectTarget(Conflict):
    code = "alias-target-suspect"
    title = "The checkpoint is suspect"


class ForceWithoutReason(Invalid):
    code = "force-without-reason"
    title = "Who overrides a suspicion says why"


@dataclass(frozen=True)
class AliasRow:
    project_id: int
    name: str
    checkpoint_id: int
    moved_at: datetime


@dataclass(frozen=True)
class Move:
    id: int
    checkpoint_id: int
    previous_id: int | None
    reason: str | None
    moved_by: str
    moved_at: datetime
    is_rollback: bool = False


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
    _require_fit(session, project_id, checkpoint_id, reason, force=force)
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
        raise _moved(alias, expected)
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
        raise _missing(name)
    if expected is not None and alias.checkpoint_id != expected:
        raise _moved(alias, expected)
    before = _before(session, alias)
    if before is None:
        raise NothingToRollBackTo(
            f"Alias {name!r} points at {to_text(alias.checkpoint_id)}, with which its history begins. "
            "PUT points it at a checkpoint of your choice."
        )
    _require_fit(session, project_id, before.checkpoint_id, reason, force=force)
    _move(session, alias, before.checkpoint_id, alias.checkpoint_id, reason, actor, now(), rolled_back_to=before.id)
    return AliasRow(project_id, name, alias.checkpoint_id, alias.moved_at)


def _before(session: Session, alias: Alias) -> AliasMove | None:
    """The move that stood before the one that stands now; a rollback stands for the move that it went back to."""
    standing = _standing(session, alias, None)
    return _standing(session, alias, standing.id) if standing is not None else None


def _standing(session: Session, alias: Alias, before: int | None) -> AliasMove | None:
    """The newest move of an alias, or the newest older than `before`; of a rollback, the move it went back to."""
    query = select(AliasMove).where(AliasMove.project_id == alias.project_id, AliasMove.alias_id == alias.id)
    if before is not None:
        query = query.where(AliasMove.id < before)
    last = session.scalars(query.order_by(AliasMove.id.desc()).limit(1)).one_or_none()
    if last is None or last.rolled_back_to is None:
        return last
    return session.scalars(query.where(AliasMove.id == last.rolled_back_to)).one_or_none()


def get_alias(session: Session, project_id: int, name: str) -> AliasRow:
    """Raises AliasNotFound."""
    alias = _find(session, project_id, name)
    return AliasRow(project_id, alias.name, alias.checkpoint_id, alias.moved_at)


def get_alias_id(session: Session, project_id: int, name: str) -> int:
    """Raises AliasNotFound."""
    return _find(session, project_id, name).id


def rollback_target(session: Session, project_id: int, name: str) -> int | None:
    """The checkpoint that a rollback would go to; None at the beginning of the history. Raises AliasNotFound."""
    before = _before(session, _find(session, project_id, name))
    return None if before is None else before.checkpoint_id


def list_aliases(
    session: Session,
    project_ids: Sequence[int] | None = None,
    *,
    checkpoint_ids: Sequence[int] | None = None,
    after: tuple[str, int] | None = None,
    limit: int | None = None,
) -> list[AliasRow]:
    """Aliases of some projects (None: all), or those that point at some checkpoints, by name and project.

    `after` is the (name, project id) of the last one of the page before.
    """
    query = select(Alias).order_by(Alias.name, Alias.project_id).limit(limit)
    if project_ids is not None:
        query = query.where(Alias.project_id.in_(project_ids))
    if checkpoint_ids is not None:
        query = query.where(Alias.checkpoint_id.in_(checkpoint_ids))
    if after is not None:
        query = query.where(tuple_(Alias.name, Alias.project_id) > tuple_(*map(literal, after)))
    return [AliasRow(row.project_id, row.name, row.checkpoint_id, row.moved_at) for row in session.scalars(query)]


def alias_history(
    session: Session, project_id: int, name: str, *, after: int | None = None, limit: int = 100
) -> list[Move]:
    """The moves of an alias, the newest first, those older than the move `after`. Raises AliasNotFound."""
    alias = _find(session, project_id, name)
    query = select(AliasMove).where(AliasMove.project_id == project_id, AliasMove.alias_id == alias.id)
    if after is not None:
        query = query.where(AliasMove.id < after)
    return [
        Move(
            row.id,
            row.checkpoint_id,
            row.previous_id,
            row.reason,
            row.moved_by,
            row.moved_at,
            row.rolled_back_to is not None,
        )
        for row in session.scalars(query.order_by(AliasMove.id.desc()).limit(limit))
    ]


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


def _find(session: Session, project_id: int, name: str) -> Alias:
    """Raises AliasNotFound; text that can be no name names nothing."""
    query = select(Alias).where(Alias.project_id == project_id, Alias.name == name)
    alias = session.scalars(query).one_or_none() if NAME.fullmatch(name) else None
    if alias is None:
        raise _missing(name)
    return alias


def _locked(session: Session, project_id: int, name: str) -> Alias | None:
    if not NAME.fullmatch(name):
        return None
    query = select(Alias).where(Alias.project_id == project_id, Alias.name == name)
    return session.scalars(query.with_for_update().execution_options(populate_existing=True)).one_or_none()


def _require_fit(session: Session, project_id: int, checkpoint_id: int, reason: str | None, *, force: bool) -> None:
    """Raises CheckpointNotFound, NotCommitted; SuspectTarget unless it is forced with a reason, ForceWithoutReason."""
    if force and not (reason or "").strip():
        message = "a reason, for those who read the history"
        raise ForceWithoutReason(f"'force' needs {message}.", errors=[FieldError("/reason", message)])
    query = select(Checkpoint.state, Checkpoint.loss_special).where(
        Checkpoint.project_id == project_id, Checkpoint.id == checkpoint_id
    )
    found = session.execute(query).one_or_none()
    if found is None:
        raise CheckpointNotFound(f"This project has no checkpoint {to_text(checkpoint_id)}.")
    if found.state != CheckpointState.COMMITTED:
        raise NotCommitted(f"Checkpoint {to_text(checkpoint_id)} is {found.state}; commit it first.")
    why = _suspicion(session, project_id, checkpoint_id, found.loss_special)
    if why and not force:
        raise SuspectTarget(
            f"Checkpoint {to_text(checkpoint_id)} is suspect: {why}. Choose another one (POST /rollback ranks them), "
            'or send "force": true with a reason.'
        )


def _suspicion(session: Session, project_id: int, checkpoint_id: int, loss_special: str | None) -> str:
    """Why nobody should serve this checkpoint; '' where nothing speaks against it."""
    if loss_special is not None:
        return f"its loss is {loss_special}"
    tagged = select(CheckpointTag.name).where(
        CheckpointTag.project_id == project_id,
        CheckpointTag.checkpoint_id == checkpoint_id,
        CheckpointTag.name.in_(QUARANTINE_TAGS),
    )
    if session.scalars(tagged.limit(1)).one_or_none() is not None:
        return "it is tagged as quarantined"
    suspicion = suspects_of(session, [checkpoint_id]).get(checkpoint_id)
    return suspicion.reason if suspicion is not None else ""


def _moved(alias: Alias, expected: int) -> AliasMoved:
    return AliasMoved(
        f"Alias {alias.name!r} points at {to_text(alias.checkpoint_id)}, not at {to_text(expected)}. "
        "Read it again, and decide again.",
        current=to_text(alias.checkpoint_id),
    )


def _missing(name: str) -> AliasNotFound:
    return AliasNotFound(f"There is no alias {name[:128]!r} in this project. PUT makes one.")
