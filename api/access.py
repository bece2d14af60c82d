"""Which project a caller means, where the caller may touch it."""

from sqlalchemy.orm import Session

from registry.projects import ProjectNotFound, ProjectRow, find_project
from registry.tokens import Caller, ProjectForbidden


def own_project(session: Session, name: str, caller: Caller) -> ProjectRow:
    """The project of this name. Raises ProjectNotFound, ProjectForbidden.

    A token that is bound to projects learns of no other: a name that is taken and one that is free answer the same.
    """
    try:
        row = find_project(session, name)
        caller.require_project(row.id)
    except (ProjectNotFound, ProjectForbidden):
        if caller.project_ids is None:
            raise
        raise ProjectForbidden(f"Token {caller.name!r} is not bound to a project {name[:128]!r}.") from None
    return row
