"""Projects: the namespace of runs, aliases and benchmarks, and the unit of access."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import now
from registry.errors import FieldError, Invalid, NotFound
from registry.ids import new_id
from registry.models import Project
from registry.upsert import insert_missing

# A name of dots alone would be swallowed by every client that tidies a path.
NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}")


class ProjectNotFound(NotFound):
    code = "project-not-found"
    title = "No such project"


class BadProjectName(Invalid):
    code = "bad-project-name"
    title = "Not a name for a project"


@dataclass(frozen=True)
class ProjectRow:
    id: int
    name: str


def create_project(session: Session, name: str) -> tuple[ProjectRow, bool]:
    """The project of this name, and whether it was made just now. Raises BadProjectName."""
    if not NAME.fullmatch(name):
        wanted = "expected 1 to 128 of: letters, digits, dot, underscore, hyphen"
        raise BadProjectName(f"{name[:60]!r} is no project name: {wanted}.", errors=[FieldError("/name", wanted)])
    fresh = new_id()
    insert_missing(session, Project, [{"id": fresh, "name": name, "created_at": now()}])
    row = find_project(session, name)
    return row, row.id == fresh


def find_project(session: Session, name: str) -> ProjectRow:
    """Raises ProjectNotFound."""
    query = select(Project.id, Project.name).where(Project.name == name)
    row = session.execute(query).one_or_none() if NAME.fullmatch(name) else None
    if row is None:
        raise ProjectNotFound(f"There is no project {name[:128]!r}. POST /api/v1/projects makes one.")
    return ProjectRow(row.id, row.name)


def list_projects(
    session: Session,
    allowed: Collection[int] | None = None,
    *,
    after: str | None = None,
    limit: int | None = None,
) -> list[ProjectRow]:
    """The projects that a caller may see (`allowed` None: all), by name, those after the name `after`."""
    query = select(Project.id, Project.name).order_by(Project.name).limit(limit)
    if allowed is not None:
        query = query.where(Project.id.in_(allowed))
    if after is not None:
        query = query.where(Project.name > after)
    return [ProjectRow(row.id, row.name) for row in session.execute(query)]
