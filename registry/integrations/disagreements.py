"""What each tracker of a run says of its fields beside what the registry says: so that two that disagree are seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.integrations.fields import values_here
from registry.models import Config
from registry.snapshots import flatten
from registry.trackers.linking import FieldValue, list_links, read_fields

MAX_PATHS: Final = 20
_SHOWN_ONLY: Final = ("name", "commit", "remote", "data")  # a run has no value of its own for these


@dataclass(frozen=True)
class PathChange:
    """One path of the configuration that reads differently there; None where it is missing."""

    path: str
    here: Any
    there: Any


@dataclass(frozen=True)
class FieldView:
    """`agree`: everybody who says something says the same. `paths`, of the config, at most MAX_PATHS that differ."""

    field: str
    here: Any
    said: Sequence[FieldValue]
    agree: bool
    paths: Sequence[PathChange] = ()


def read_views(session: Session, project_id: int, run_id: int) -> list[FieldView]:
    """Each field of which a tracker says something, by name."""
    said: dict[str, list[FieldValue]] = {}
    for value in read_fields(session, project_id, run_id):
        said.setdefault(value.field, []).append(value)
    links = list_links(session, project_id, run_id)
    here = values_here(session, links[0]) if links and said else {}
    return [_view(session, project_id, field, values, here) for field, values in said.items()]


def _view(
    session: Session, project_id: int, field: str, said: Sequence[FieldValue], here: Mapping[str, Any]
) -> FieldView:
    own = None if field in _SHOWN_ONLY else here.get(field)
    values = {strict_json.canonical(each.value) for each in said}
    if own is not None:
        values.add(strict_json.canonical(own))
    agree = len(values) == 1
    paths = () if agree or field != "config" else _paths(session, project_id, own, said)
    return FieldView(field, own, said, agree, paths)


def _paths(session: Session, project_id: int, own: str | None, said: Sequence[FieldValue]) -> tuple[PathChange, ...]:
    ours = _config(session, project_id, own)
    theirs = next((_config(session, project_id, each.value) for each in said if each.value != own), {})
    differing = (
        PathChange(path, ours.get(path), theirs.get(path))
        for path in sorted(set(ours) | set(theirs))
        if path not in ours or path not in theirs or not _same(ours[path], theirs[path])
    )
    return tuple(islice(differing, MAX_PATHS))


def _same(one: Any, other: Any) -> bool:
    return strict_json.canonical(one) == strict_json.canonical(other)


def _config(session: Session, project_id: int, digest: str | None) -> dict[str, Any]:
    if digest is None:
        return {}
    query = select(Config.body).where(Config.project_id == project_id, Config.digest == bytes.fromhex(digest))
    body = session.scalars(query).one_or_none()
    return {} if body is None else dict(flatten(strict_json.unpack(body)))
