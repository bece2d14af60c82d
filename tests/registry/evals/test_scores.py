"""Which result counts: the newest evaluation, then the last to arrive, however often each is said."""

import random

from sqlalchemy.orm import Session

from registry.evals.read import list_scores
from registry.evals.scores import NewScore, record_scores
from registry.models import Checkpoint
from tests.factories import at, make_checkpoint


def say(session: Session, checkpoint_id: int, *values: float, on_purpose: bool = True, when: str | None = None) -> int:
    project_id = session.get_one(Checkpoint, checkpoint_id).project_id
    moment = None if when is None else at(when)
    scored = [(checkpoint_id, NewScore("gsm8k", value, metric="acc", evaluated_at=moment)) for value in values]
    return record_scores(session, project_id, scored, on_purpose=on_purpose)


def counting(session: Session, checkpoint_id: int) -> list[float | None]:
    project_id = session.get_one(Checkpoint, checkpoint_id).project_id
    return [row.value for row in list_scores(session, project_id, [checkpoint_id])]


def kept(session: Session, checkpoint_id: int) -> int:
    project_id = session.get_one(Checkpoint, checkpoint_id).project_id
    return len(list_scores(session, project_id, [checkpoint_id], every=True))


def arrivals(session: Session, checkpoint_id: int) -> list[int]:
    project_id = session.get_one(Checkpoint, checkpoint_id).project_id
    session.expire_all()
    return [row.arrival for row in list_scores(session, project_id, [checkpoint_id], every=True)]


def test_the_right_value_counts_again_when_it_is_said_after_a_typo(session: Session) -> None:
    one = make_checkpoint(session)
    assert [say(session, one, value) for value in (0.6, 0.06, 0.6)] == [1, 1, 0]
    assert (counting(session, one), kept(session, one)) == ([0.6], 2)
    assert say(session, one, 0.6) == 0
    assert say(session, one, 0.06) == 0
    assert (counting(session, one), kept(session, one)) == ([0.06], 2)


def test_in_one_call_the_last_word_counts(session: Session) -> None:
    one = make_checkpoint(session)
    assert say(session, one, 0.6, 0.06, 0.6) == 2
    assert counting(session, one) == [0.6]


def test_a_file_that_is_read_again_takes_no_correction_back(session: Session) -> None:
    one = make_checkpoint(session)
    say(session, one, 0.06, on_purpose=False)
    say(session, one, 0.6)
    assert say(session, one, 0.06, on_purpose=False) == 0
    assert counting(session, one) == [0.6]


def test_a_dated_evaluation_gives_way_to_a_later_one_only(session: Session) -> None:
    one = make_checkpoint(session)
    say(session, one, 0.6)
    say(session, one, 0.5, when="2026-11-02")
    before = arrivals(session, one)
    assert say(session, one, 0.6) == 0
    assert (counting(session, one), arrivals(session, one)) == ([0.5], before)
    say(session, one, 0.6, when="2026-11-03")
    assert counting(session, one) == [0.6]


def test_whatever_is_said_in_whatever_order_the_last_word_of_the_newest_time_counts(session: Session) -> None:
    rng = random.Random(5)
    for _ in range(20):
        one, last = make_checkpoint(session), dict[str, float]()
        for _ in range(12):
            when, value = rng.choice(["2026-11-01", "2026-11-02"]), rng.choice([0.1, 0.2, float("inf")])
            say(session, one, value, when=when)
            last[when] = value
        assert counting(session, one) == [last[max(last)]]
