"""Which words of a query are names that the database knows: benchmarks and runs, looked up once for a query."""

import re
import unicodedata
from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.models import Benchmark, Run

MOST_WORDS = 300


class Names:
    """The benchmarks of the projects (None: all), and those runs of which the query may hold the name."""

    def __init__(self, session: Session, project_ids: Collection[int] | None, query: str) -> None:
        benchmarks, runs = select(Benchmark.name).distinct(), select(Run.name).distinct()
        if project_ids is not None:
            benchmarks = benchmarks.where(Benchmark.project_id.in_(sorted(project_ids)))
            runs = runs.where(Run.project_id.in_(sorted(project_ids)))
        self._benchmarks = {name.lower() for name in session.scalars(benchmarks)}
        words = _words(query)
        self._runs = set(session.scalars(runs.where(Run.name.in_(words)))) if words else set()

    def is_benchmark(self, name: str) -> bool:
        return name.lower() in self._benchmarks

    def is_run(self, name: str) -> bool:
        return name in self._runs


def _words(query: str) -> list[str]:
    """Everything in the query that could be the name of a run. What cannot be text cannot be a name."""
    text = unicodedata.normalize("NFKC", query)
    quoted = re.findall(r"[\"'“‘]([^\"'”’]{1,256})[\"'”’]", text)
    found = [*quoted, *re.findall(r"[A-Za-z0-9][\w.=+,/\-]*", text, re.ASCII)]
    return sorted({word.rstrip(".,") for word in found if "\0" not in word})[:MOST_WORDS]
