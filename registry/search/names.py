"""Which words of a query are names that the database knows: benchmarks, runs and projects, looked up once."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cached_property

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue
from registry.filters.errors import did_you_mean
from registry.models import Benchmark, Project, Run, ScoreMetric

MOST_WORDS = 300
MOST_RUNS = 1_000  # whose names are held against a word that nobody knows
MOST_SHOWN = 3
LONGEST_START = 6  # letters that a name and a slip of it have in common


class Names:
    """The benchmarks and names of the projects (None: all), and the runs of which the query may hold the name."""

    def __init__(self, session: Session, project_ids: Collection[int] | None, query: str) -> None:
        self._session, self._project_ids = session, project_ids
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

    def metric(self, name: str) -> str | None:
        return self._metrics.get(name.lower())

    @cached_property
    def _metrics(self) -> dict[str, str]:
        metrics = select(ScoreMetric.metric).distinct()
        if self._project_ids is not None:
            metrics = metrics.where(ScoreMetric.project_id.in_(sorted(self._project_ids)))
        return {name.lower(): name for name in self._session.scalars(metrics) if name}

    def called(self, word: str) -> list[str]:
        part = re.compile(rf"(?<![a-z]){re.escape(word.lower())}(?![a-z])")
        names = [*self._families, *self._projects, *self._runs_with(word)]
        return [name for name in dict.fromkeys(names) if part.search(name.lower())][:MOST_SHOWN]

    def nearest(self, word: str) -> str:
        start = re.split(r"[\d_\W]", word)[0] or word
        names = [*self._families, *self._projects, *self._runs_with(start[:LONGEST_START])]
        listed = [row.name for row in catalogue().benchmarks if row.part_of is None]
        return did_you_mean(word, [*names, *sorted(self._benchmarks), *listed])

    def nearest_project(self, word: str) -> str:
        return did_you_mean(word, self._projects)

    def _runs_with(self, text: str) -> list[str]:
        """Names of runs that contain the text, in any case of letters."""
        query = select(Run.name).where(func.lower(Run.name).contains(text.lower(), autoescape=True)).distinct()
        if self._project_ids is not None:
            query = query.where(Run.project_id.in_(sorted(self._project_ids)))
        return list(self._session.scalars(query.order_by(Run.name).limit(MOST_RUNS)))

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
