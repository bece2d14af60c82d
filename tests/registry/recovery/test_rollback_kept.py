"""What a process keeps between questions changes no answer: over random runs, it says what a first question says."""

import math
import random
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from registry.checkpoints.commands import amend_checkpoint, commit_checkpoint
from registry.checkpoints.registration import PieceSpec, Registration, ReplicaSpec
from registry.db import Database
from registry.incidents.suspicion import say_suspect
from registry.models import Checkpoint, Replica
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import Watch
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from tests.factories import ALL_PIECES, at, make_attempt, make_project, make_run, make_score
from tests.registry.recovery.test_rollback import arc, mmlu, whole

QUESTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"watch": Watch(benchmark="arc_challenge")},
    {"mode": "production", "watch": Watch(benchmark="arc_challenge")},
    {"mode": "production"},
    {"after": at("2026-11-01"), "before": at("2026-11-01T02:00:00Z"), "rto_seconds": 600.0},
)


class Happening:
    """One thing after the other that may happen to a run."""

    def __init__(self, seed: int, run: RunRow) -> None:
        self.chance, self.run, self.step = random.Random(seed), run, 0
        self.ids: list[int] = []
        self.pending: list[int] = []

    def save(self, session: Session, **known: Any) -> int:
        self.step += self.chance.randrange(1, 200)
        chance = self.chance
        if chance.random() < 0.8:
            value = chance.choice([0.4, 0.41, 0.39, 0.2, math.nan])
            known["scores"] = [arc(value), mmlu(value)]
        if chance.random() < 0.2:
            known["pieces"] = ALL_PIECES | {"optimizer": PieceSpec(chance.choice(["absent", "unknown"]))}
        if chance.random() < 0.2:
            known["loss"] = chance.choice([math.nan, math.inf])
        if chance.random() < 0.3:
            known["replicas"] = tuple(
                ReplicaSpec(f"/{self.step}/{tier}", tier, bytes=chance.choice([None, 10**11]))
                for tier in chance.sample(["shared", "object", "local"], chance.randrange(3))
            )
        return whole(session, self.run, self.step, **known)

    def next(self, session: Session) -> None:
        chance = self.chance
        match chance.randrange(9) if len(self.ids) > 3 else 0:
            case 1:
                self.pending.append(self.save(session, state="pending"))
            case 2 if self.pending:
                number = self.pending.pop()
                step = session.get_one(Checkpoint, number).step
                commit_checkpoint(session, number, Registration(step, pieces=ALL_PIECES))
            case 3:
                row = session.get_one(Checkpoint, chance.choice(self.ids))
                say_suspect(session, row, suspect=chance.random() < 0.7, reason="bit flips", actor="ann")
            case 4:
                amend_checkpoint(
                    session, chance.choice(self.ids), {"loss": chance.choice([2.0, math.nan])}, actor="ann"
                )
            case 5:
                verdict = chance.choice(["verified", "corrupt"])
                of = Replica.checkpoint_id == chance.choice(self.ids)
                session.execute(update(Replica).where(of).values(verification=verdict))
            case 6:
                back = chance.choice(self.ids)
                make_attempt(session, self.run, resumed_from=ResumePoint(checkpoint_id=back))
                self.step = session.get_one(Checkpoint, back).step
            case 7:
                make_score(session, chance.choice(self.ids), "arc_challenge", chance.choice([0.1, 0.5, math.nan]))
            case _:
                self.ids.append(self.save(session))


@pytest.mark.parametrize("seed", range(4))
def test_a_later_question_is_answered_as_a_first_one(committed_database: Database, seed: int) -> None:
    with committed_database.write() as session:
        happening = Happening(seed, make_run(session, make_project(session)))
        happening.ids += [happening.save(session, scores=[arc(0.4), mmlu(0.5)]) for _ in range(4)]
    seen: set[str] = set()
    for _ in range(25):
        with committed_database.write() as session:
            happening.next(session)
        asked = happening.chance.choice(QUESTIONS)
        with committed_database.read() as session:
            kept = find_rollback_candidates(session, run_id=happening.run.id, **asked)
        with committed_database.write() as session:  # whoever may have changed something is answered from what is there
            plain = find_rollback_candidates(session, run_id=happening.run.id, **asked)
        assert repr(kept) == repr(plain)  # NaN is not itself
        seen |= kept.excluded_counts.keys()
    assert {"state", "loss", "pieces"} & seen
