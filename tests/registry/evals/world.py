"""A project in which things happen at random: scores, saves, new attempts, copies, another benchmark table."""

import random
from collections.abc import Callable

from sqlalchemy.orm import Session

from registry.checkpoints.commands import commit_checkpoint
from registry.checkpoints.registration import ParentSpec, Registration
from registry.db import Database
from registry.evals.table.editing import put_benchmark
from registry.models import Checkpoint
from registry.projects import ProjectRow
from registry.resume_points import ResumePoint
from tests.factories import make_attempt, make_checkpoint, make_project, make_run, make_score

BENCHMARKS = ("gsm8k", "asdiv", "mt_bench", "alignbench", "hendrycksTest-anatomy", "in_house")


class World:
    """Things that happen to a project, one after another, each in a transaction of its own."""

    def __init__(self, database: Database, seed: int, *, count: int = 24) -> None:
        self.database, self.random = database, random.Random(seed)
        with database.write() as session:
            self.project: ProjectRow = make_project(session)
            self.runs = [make_run(session, self.project) for _ in range(4)]
            self.ids = [self._scored(session) for _ in range(count)]

    def _scored(self, session: Session, **known: object) -> int:
        chosen = self.random.sample(BENCHMARKS, self.random.randint(1, len(BENCHMARKS)))
        digits = self.random.randint(1, 2)  # with one, many are equal
        scores = {name: round(self.random.random(), digits) for name in chosen}
        step = self.random.randrange(10**9)
        run = self.random.choice(self.runs)
        return make_checkpoint(session, run, step, scores=scores, **known)  # type: ignore[arg-type]

    def happen(self, session: Session) -> None:
        things: list[Callable[[Session], object]] = [
            self._score,
            self._not_finite,
            self._new,
            self._new_run,
            self._pending_then_committed,
            self._copy,
            self._supersede,
            self._map,
        ]
        self.random.choice(things)(session)

    def _score(self, session: Session) -> None:
        make_score(session, self.random.choice(self.ids), self.random.choice(BENCHMARKS), self.random.random())

    def _not_finite(self, session: Session) -> None:
        make_score(session, self.random.choice(self.ids), self.random.choice(BENCHMARKS), float("nan"))

    def _new(self, session: Session) -> None:
        self.ids.append(self._scored(session))

    def _new_run(self, session: Session) -> None:
        self.runs.append(make_run(session, self.project))
        self.ids.append(self._scored(session))

    def _pending_then_committed(self, session: Session) -> None:
        number = self._scored(session, state="pending")
        self.ids.append(number)
        if self.random.random() < 0.5:
            commit_checkpoint(session, number, Registration(0))

    def _copy(self, session: Session) -> None:
        parents = (ParentSpec(self.random.choice(self.ids), self.random.choice(["converted_from", "quantised_from"])),)
        self.ids.append(self._scored(session, parents=parents))

    def _supersede(self, session: Session) -> None:
        point = session.get_one(Checkpoint, self.random.choice(self.ids))
        run = next(run for run in self.runs if run.id == point.run_id)
        make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=point.id))

    def _map(self, session: Session) -> None:
        capability = self.random.choice(["math", "chat", ""])
        put_benchmark(session, self.project.id, "in_house", {"capability": capability}, actor="test")
