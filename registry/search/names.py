"""Which words of a query are names that the database knows: benchmarks, runs and projects, looked up once."""

import re
import unicodedata
from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.models import Benchmark, Project, Run

MOST_WORDS = 300


class Names:
    """The benchmarks and names of the projects (None: all), and the runs of which the query may hold the name."""

    def __init__(self, session: Session, project_ids: Collection[int] | None, query: str) -> None:
        benchmarks, runs = select(Benchmark.name).distinct(), select(Run.name).distinct()
        projects = select(Project.name).order_by(Project.name.desc())
        if project_ids is not None:
            benchmarks = benchmarks.where(Benchmark.project_id.in_(sorted(project_ids)))
            runs = runs.where(Run.project_id.in_(sorted(project_ids)))
            projects = projects.where(Project.id.in_(sorted(project_ids)))
        self._benchmarks = {name.lower() for name in session.scalars(benchmarks)}
        self._projects = list(session.scalars(projects))
        kinds = select(Run.kind, Run.model_family).distinct()
        if project_ids is not None:
            kinds = kinds.where(Run.project_id.in_(sorted(project_ids)))
        said = session.execute(kinds).all()
        self._kinds = sorted({kind for kind, _ in said if kind})
        self._families = sorted({family for _, family in said if family})
        words = _words(query)
        self._runs = set(session.scalars(runs.where(Run.name.in_(words)))) if words else set()

    def is_benchmark(self, name: str) -> bool:
        return name.lower() in self._benchmarks

    def is_run(self, name: str) -> bool:
        return name in self._runs

    def run_kind(self, words: Sequence[str]) -> str | None:
        found = (kind for word in words for kind in self._kinds if kind.lower() == word)
        return next(found, None)

    def family(self, name: str) -> str | None:
        if name in self._families:
            return name
        return next((each for each in self._families if each.lower() == name.lower()), None)

    def project(self, name: str) -> str | None:
        if name in self._projects:
            return name
        return next((each for each in self._projects if each.lower() == name.lower()), None)


def _words(query: str) -> list[str]:
    """Everything in the query that could be the name of a run. What cannot be text cannot be a name."""
    text = unicodedata.normalize("NFKC", query)
    quoted = re.findall(r"[\"'“‘]([^\"'”’]{1,256})[\"'”’]", text)
    found = [*quoted, *re.findall(r"[A-Za-z0-9][\w.=+,/\-]*", text, re.ASCII)]
    return sorted({word.rstrip(".,") for word in found if "\0" not in word})[:MOST_WORDS]
