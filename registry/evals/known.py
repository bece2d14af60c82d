"""Names that nobody knows: a benchmark that neither a table nor any result has, a capability that no table has."""

from collections.abc import Collection, Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue, key_of
from registry.filters.errors import did_you_mean, in_words
from registry.models import Benchmark


def nearest_capabilities(name: str) -> str:
    """What may have been meant by the name of no capability; all that there are where none is near."""
    known = [each.name for each in catalogue().capabilities]
    return did_you_mean(name, known) or f"There are {in_words(known)}."


def unknown_benchmarks(session: Session, project_ids: Collection[int], names: Iterable[str]) -> dict[str, str]:
    """Those of `names` that nobody knows, each with a question that names the nearest known ones ('' where none is)."""
    unlisted = [name for name in dict.fromkeys(names) if catalogue().get(name) is None]
    if not unlisted:
        return {}
    query = select(Benchmark.name).where(Benchmark.project_id.in_(sorted(project_ids))).distinct()
    used = set(session.scalars(query))
    keys = {key_of(each) for each in used}
    near = sorted(used | {each.name for each in catalogue().benchmarks})
    return {name: did_you_mean(name, near) for name in unlisted if key_of(name) not in keys}
