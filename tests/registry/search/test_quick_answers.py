"""Answers that look at few checkpoints closely equal those of a plain reading of every one."""

import math
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from sqlalchemy.orm import Session

from registry.db import Database
from registry.evals.copies import copies_around
from registry.evals.population.table import Population
from registry.search import contrast, distance, pool
from registry.search.answers import SearchAnswer
from registry.search.query import search_checkpoints
from registry.types import Direction
from tests.registry.evals.world import BENCHMARKS, World

CAPABILITIES = ("math", "chat", "knowledge")
COMPARE = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "=": np.equal,
    "!=": np.not_equal,
}
Condition = dict[str, object]
Shown = list[tuple[int, float, bool]]  # (checkpoint, score, whether it is on the front)


@pytest.fixture(autouse=True)
def samples_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a million rows are to what is set, so are a few dozen to this."""
    for module in (pool, distance):
        monkeypatch.setattr(module, "SAMPLE", 12)
    monkeypatch.setattr(distance, "BLOCK", 7)
    monkeypatch.setattr(contrast, "_LARGE", 8)


class Plain:
    """The checkpoints of a project, read anew and looked at one by one."""

    def __init__(self, session: Session, project_id: int) -> None:
        self.table = table = Population.read(session, [project_id])
        table.load(session, range(len(table.columns)))
        self.live = np.flatnonzero(table.reference).tolist()

    def column(self, condition: Condition) -> int:
        """No benchmark of the world has two metrics."""
        names = [column.name for column in self.table.columns]
        return names.index(str(condition["benchmark"]))

    def judge(self, condition: Condition, row: int) -> tuple[float, bool, float]:
        """(how well it is met, whether it is, how far)."""
        threshold = float(str(condition["threshold"]))
        if "capability" in condition:
            standing = float(self.table.ranking(str(condition["capability"])).standing[row])
            strong = condition["relation"] == "strong"
            return (standing, standing >= threshold, 0.0) if strong else (1 - standing, standing <= threshold, 0.0)
        place, relation = self.column(condition), str(condition["relation"])
        value, rank = float(self.table.values(place)[row]), float(self.table.ranks(place)[row])
        if math.isnan(value):
            return math.nan, False, 0.0
        lower = self.table.columns[place].benchmark.direction is Direction.LOWER
        upwards = {">": 1, "<": -1}.get(relation[0], 0) * (-1 if lower else 1)
        margin = 0.0 if math.isnan(rank) else rank * upwards
        if COMPARE[relation](value, threshold):
            return 1.0, True, margin
        near = 1 - abs(rank - self.table.share_below(place, threshold))
        return (0.0 if relation == "!=" or math.isnan(near) else min(near, 0.999)), False, margin

    def contrast(self, conditions: Sequence[Condition], limit: int) -> tuple[bool, Shown]:
        """(whether those shown meet everything, those shown)."""
        judged = {row: [self.judge(condition, row) for condition in conditions] for row in self.live}
        known = {row: each for row, each in judged.items() if not any(math.isnan(score) for score, _, _ in each)}
        strict = {row: each for row, each in known.items() if all(met for _, met, _ in each)}
        scores = {row: [score for score, _, _ in each] for row, each in (strict or known).items()}

        def order(row: int) -> tuple[float, float, float, int]:
            margin = sum(each[2] for each in known[row])
            mean = sum(scores[row]) / len(conditions)
            return -round(min(scores[row]), 12), -round(mean, 12), -margin, int(self.table.checkpoints[row])

        def is_beaten(mine: list[float]) -> bool:
            return any(
                all(a >= b for a, b in zip(other, mine, strict=True)) and other != mine for other in scores.values()
            )

        return bool(strict), [
            (int(self.table.checkpoints[row]), round(min(scores[row]), 6), not is_beaten(scores[row]))
            for row in sorted(scores, key=order)[:limit]
        ]

    def like(self, checkpoint: int, same: set[int], limit: int) -> list[tuple[int, float]]:
        row = self.table.row_of(checkpoint)
        standings = [self.table.ranking(name).standing for name in CAPABILITIES]
        asked = [each for each in standings if not math.isnan(each[row])]
        found = []
        for other in self.live:
            number = int(self.table.checkpoints[other])
            apart = [abs(float(each[other] - each[row])) for each in asked]
            shared = sum(not math.isnan(each) for each in apart)
            if number not in same and shared >= max(1, math.ceil(len(asked) / 2)):
                mean = sum(1 / 3 if math.isnan(each) else each for each in apart) / len(asked)
                found.append((-round(1 - mean, 12), -shared, number))
        return [(number, round(-nearness, 6)) for nearness, _, number in sorted(found)[:limit]]


def shown(answer: SearchAnswer) -> Shown:
    return [(each.checkpoint.id, each.score, each.on_front) for each in answer.results]


def conditions_of(chance: random.Random) -> Iterator[list[Condition]]:
    """Conditions at random, some that most meet and some that nobody does."""
    for _ in range(40):
        conditions: list[Condition] = []
        for _ in range(chance.randint(1, 3)):
            threshold = chance.choice([0.0, 0.1, 0.3, 0.5, 0.8, 0.95])
            if chance.random() < 0.5:
                relation = chance.choice(["strong", "weak"])
                conditions.append({"capability": chance.choice(CAPABILITIES), "relation": relation})
            else:
                relation = chance.choice(list(COMPARE))
                conditions.append({"benchmark": chance.choice(BENCHMARKS[:4]), "relation": relation})
            conditions[-1]["threshold"] = threshold
        if len({str(each) for each in conditions}) == len(conditions):
            yield conditions


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_a_quick_answer_is_that_of_a_plain_reading(committed_database: Database, seed: int) -> None:
    world = World(committed_database, seed, count=60)
    with committed_database.write() as session:
        for _ in range(25):
            world.happen(session)
    own, strict = [world.project.id], []
    with committed_database.read() as session:
        plain = Plain(session, world.project.id)
        for conditions in conditions_of(world.random):
            for limit in (1, 5, 100):
                answer = search_checkpoints(session, project_ids=own, conditions=conditions, limit=limit)
                assert (answer.strict, shown(answer)) == plain.contrast(conditions, limit), (conditions, limit)
            strict.append(answer.strict)
    assert {True, False} == set(strict)


@pytest.mark.parametrize("seed", [31, 32])
def test_what_is_most_like_is_that_of_a_plain_reading(committed_database: Database, seed: int) -> None:
    world = World(committed_database, seed, count=60)
    with committed_database.write() as session:
        for _ in range(25):
            world.happen(session)
    with committed_database.read() as session:
        plain = Plain(session, world.project.id)
        for checkpoint in world.random.sample(world.ids, 15):
            same = {checkpoint}.union(*copies_around(session, world.project.id, [checkpoint]))
            for limit in (1, 5, 100):
                answer = search_checkpoints(session, project_ids=[world.project.id], like=checkpoint, limit=limit)
                found = [(each.checkpoint.id, each.score) for each in answer.results]
                assert found == plain.like(checkpoint, same, limit), (checkpoint, limit)
