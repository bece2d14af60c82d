"""Where aliases point, and where they pointed before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import literal, select, tuple_
from sqlalchemy.orm import Session

from registry.aliases.errors import no_alias
from registry.models import Alias, AliasMove
from registry.projects import NAME


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


def move_before(session: Session, alias: Alias) -> AliasMove | None:
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
    before = move_before(session, _find(session, project_id, name))
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


def _find(session: Session, project_id: int, name: str) -> Alias:
    """Raises AliasNotFound; text that can be no name names nothing."""
    query = select(Alias).where(Alias.project_id == project_id, Alias.name == name)
    alias = session.scalars(query).one_or_none() if NAME.fullmatch(name) else None
    if alias is None:
        raise no_alias(name)
    return alias
