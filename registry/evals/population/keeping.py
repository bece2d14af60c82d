"""Populations are kept by a process from one question to the next, and follow what others record.

Before each answer the database is asked what changed (one statement over an index) and only that is read again, so
several processes over one database answer the same. Where renewing takes longer than an answer may, a thread looks
twice a second while questions are asked: answers are then up to two seconds old, and never wait.
A session that may have changed something itself is answered from what it sees, and nothing of it is kept.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from threading import Event, Lock, RLock, Thread
from typing import Final

from sqlalchemy.orm import Session

from registry.changes import changes_since, mark_of
from registry.db import Database
from registry.evals.population.renewing import renewed
from registry.evals.population.table import Population, oldest_mark

MAX_KEPT: Final = 8  # sets of projects
MAX_CELLS: Final = 125_000_000  # of all kept populations together: a gigabyte
LARGE: Final = 2_000_000  # cells from which a thread renews a population
LOOKS_EVERY: Final = 0.5  # seconds
FORGOTTEN_AFTER: Final = 600.0  # seconds without a question
ENDS_WITHIN: Final = 10.0  # seconds that a thread has to come to an end
_KEEPER: Final = "populations"

_log = logging.getLogger(__name__)


def population_of(session: Session, project_ids: Collection[int]) -> Population:
    """The population of these projects as this session sees it, or as it was at most two seconds ago."""
    database: Database | None = session.info.get("database")
    if database is None:
        return Population.read(session, project_ids)
    keeper = database.kept.get(_KEEPER)
    if keeper is None:
        keeper = database.kept.setdefault(_KEEPER, Keeper(database))
    assert isinstance(keeper, Keeper)
    return keeper.population(session, project_ids)


class Kept:
    """One population, and what it takes to make the next."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.population: Population | None = None
        self.mark = 0
        self.asked_at = time.monotonic()
        self.thread: Thread | None = None

    @property
    def cells(self) -> int:
        return 0 if self.population is None else self.population.cells


class Keeper:
    """The populations of one database, the latest asked for last."""

    def __init__(self, database: Database, *, large: int = LARGE) -> None:
        self._database, self._large = database, large
        self._kept: OrderedDict[tuple[int, ...], Kept] = OrderedDict()
        self._lock = Lock()
        self._closed = Event()
        self._threads: list[Thread] = []  # also of populations that were forgotten meanwhile

    def population(self, session: Session, project_ids: Collection[int]) -> Population:
        kept = self._of(tuple(sorted(project_ids)))
        kept.asked_at = time.monotonic()
        population = kept.population
        if population is not None and self._follows(kept):
            return population
        with kept.lock:
            population = self._renew(session, kept, project_ids)
        if population.cells >= self._large:
            self._follow(kept, project_ids)
        return population

    def close(self) -> None:
        """End the threads, and wait for them: what they read with goes back before the connections are closed."""
        self._closed.set()
        with self._lock:
            threads = self._threads
        for thread in threads:
            thread.join(ENDS_WITHIN)

    def _of(self, key: tuple[int, ...]) -> Kept:
        with self._lock:
            kept = self._kept.pop(key, None) or Kept()
            self._kept[key] = kept
            while len(self._kept) > 1 and (
                len(self._kept) > MAX_KEPT or sum(each.cells for each in self._kept.values()) > MAX_CELLS
            ):
                _, forgotten = self._kept.popitem(last=False)
                forgotten.asked_at = float("-inf")  # its thread ends
            return kept

    def _follows(self, kept: Kept) -> bool:
        """Whether a thread looks after it, so that it is new enough, or about to be."""
        thread = kept.thread
        return thread is not None and thread.is_alive()

    def _renew(self, session: Session, kept: Kept, project_ids: Collection[int], *, warmed: bool = False) -> Population:
        """The newest population; what changes while it is read is read again the next time."""
        before = kept.population
        if before is None:
            mark = mark_of(session)
            population = Population.read(session, project_ids)
        else:
            changes = changes_since(session, project_ids, oldest_mark(before.columns_since, kept.mark))
            mark = changes.mark
            population = renewed(session, before, changes.subjects) if changes.subjects else before
            if warmed and population is not before:
                warm(population, before.known_ranks, before.known_rankings)
        kept.population, kept.mark = population, mark
        return population

    def _follow(self, kept: Kept, project_ids: Collection[int]) -> None:
        with kept.lock:
            if not self._follows(kept):
                arguments = (kept, frozenset(project_ids))
                kept.thread = Thread(target=self._look_after, args=arguments, name="population", daemon=True)
                kept.thread.start()
                with self._lock:
                    self._threads = [*(each for each in self._threads if each.is_alive()), kept.thread]

    def _look_after(self, kept: Kept, project_ids: frozenset[int]) -> None:
        try:
            while not self._closed.wait(LOOKS_EVERY):
                if time.monotonic() - kept.asked_at > FORGOTTEN_AFTER:
                    return
                with kept.lock, self._database.read() as session:
                    self._renew(session, kept, project_ids, warmed=True)
        except Exception:  # the next question renews by itself, and starts another
            _log.exception("a population could not be renewed")


def warm(population: Population, ranks: Iterable[int], rankings: Iterable[str]) -> None:
    """Compute what the next question would wait for."""
    for place in list(ranks):
        if place in population.loaded:
            population.ranks(place)
    for name in list(rankings):
        if set(population.places_of([name])) <= population.loaded.keys():
            population.ranking(name)
