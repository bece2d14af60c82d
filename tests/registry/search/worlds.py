"""Checkpoints to search among, and how a search is asked and its answer read."""

from sqlalchemy.orm import Session

from registry.projects import ProjectRow
from registry.search.answers import SearchAnswer
from registry.search.query import search_checkpoints
from tests.factories import at, make_checkpoint, make_project, make_run

MATH = ("gsm8k", "asdiv")


CHAT = ("arena_hard", "alpaca_eval2")


def skills(math: float | None = None, chat: float | None = None) -> dict[str, float]:
    """Scores in two benchmarks each; chat in percent."""
    scores = {} if math is None else dict.fromkeys(MATH, math)
    return scores | ({} if chat is None else dict.fromkeys(CHAT, chat * 100))


def population(session: Session, count: int = 25) -> tuple[ProjectRow, list[int]]:
    """Checkpoints of a run each: the better at math, the worse at chat."""
    project = make_project(session)
    ids = []
    for place in range(count):
        run = make_run(session, project)
        scores = skills(place / count, 1 - place / count)
        ids.append(make_checkpoint(session, run, scores=scores))
    return project, ids


def scored(session: Session, benchmark: str, count: int = 25) -> tuple[ProjectRow, list[int]]:
    """Checkpoints of a run each, by how high the number is."""
    project = make_project(session)
    runs = [make_run(session, project) for _ in range(count)]
    return project, [
        make_checkpoint(session, run, scores={benchmark: (place + 1) / (count + 1)}) for place, run in enumerate(runs)
    ]


def search(session: Session, query: str, project: ProjectRow | None = None, limit: int = 20) -> SearchAnswer:
    ids = None if project is None else [project.id]
    return search_checkpoints(session, project_ids=ids, query=query, limit=limit, now=at("2026-11-18T10:00"))


def found(answer: SearchAnswer) -> list[int]:
    return [result.checkpoint.id for result in answer.results]
