"""The scores of a run that are kept from one question to the next follow what is recorded."""

import random
from collections.abc import Collection

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ParentSpec
from registry.db import Database
from registry.models import ScoreMetric
from registry.recovery import run_scores
from registry.recovery.run_scores import scores_of_runs
from registry.runs import RunRow
from tests.factories import make_checkpoint, make_project, make_run, make_score

BENCHMARKS = ("gsm8k", "asdiv", "mt_bench")
Said = dict[tuple[int, int], dict[int, tuple[float, str]]]


def said(session: Session, run: RunRow, metrics: Collection[int]) -> Said:
    found = scores_of_runs(session, run.project_id, [run.id], metrics)
    return {
        series: {
            number: (value, repr(error))
            for number, value, error in zip(each.ids.tolist(), each.values.tolist(), each.errors.tolist(), strict=True)
        }
        for series, each in found.items()
    }


def as_recorded(database: Database, run: RunRow, metrics: Collection[int]) -> Said:
    with database.write() as session:  # whoever may have changed something is answered from what is there
        return said(session, run, metrics)


def metrics_of(session: Session) -> list[int]:
    return list(session.scalars(select(ScoreMetric.id).order_by(ScoreMetric.id)))


@pytest.mark.parametrize("seed", [1, 2])
def test_kept_scores_equal_those_read_anew(
    committed_database: Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_scores, "MANY_CHANGES", 2)
    chance = random.Random(seed)
    with committed_database.write() as session:
        project = make_project(session)
        run, other = make_run(session, project), make_run(session, project)
        ids = [make_checkpoint(session, run, step, scores={"gsm8k": chance.random()}) for step in range(5)]

    def happen(session: Session) -> None:
        step, name = chance.randrange(10**9), chance.choice(BENCHMARKS)
        match chance.randrange(5):
            case 0:
                ids.append(make_checkpoint(session, run, step, scores={name: chance.random()}))
            case 1:
                make_score(session, chance.choice(ids), name, float("nan"))
            case 2:
                make_checkpoint(session, other, step, scores={name: chance.random()})
            case 3:
                parents = (ParentSpec(chance.choice(ids), "converted_from"),)
                ids.append(make_checkpoint(session, run, step, parents=parents))
            case _:
                for number in chance.sample(ids, chance.randrange(1, 4)):
                    make_score(session, number, name, chance.random(), stderr=chance.choice([None, 0.01]))

    for _ in range(20):
        with committed_database.write() as session:
            happen(session)
        with committed_database.read() as session:
            every = metrics_of(session)
            some = chance.sample(every, chance.randrange(1, len(every) + 1))
            kept = said(session, run, some)
        assert kept == as_recorded(committed_database, run, some)


def test_a_question_that_sees_an_older_state_leaves_nothing_old_behind(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session, make_project(session))
        number = make_checkpoint(session, run, 1, scores={"gsm8k": 0.5, "asdiv": 0.5})
    with committed_database.read() as slow:
        first, second = metrics_of(slow)  # on SQLite its state is that of this moment
        with committed_database.write() as session:
            make_score(session, number, "gsm8k", 0.6)
            make_score(session, number, "asdiv", 0.6)
        with committed_database.read() as session:
            said(session, run, [first])
        said(slow, run, [first, second])
    with committed_database.read() as session:
        assert said(session, run, [first, second]) == as_recorded(committed_database, run, [first, second])
