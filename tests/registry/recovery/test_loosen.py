"""Where no checkpoint is left: the advice names what, loosened, leaves one."""

from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.registration import PieceSpec
from registry.recovery.rollback import find_rollback_candidates
from registry.runs import RunRow
from tests.factories import make_run
from tests.registry.recovery.test_rollback import mmlu, whole


def run_of(session: Session, **known: Any) -> RunRow:
    run = make_run(session)
    for step in range(1, 28):
        whole(session, run, step, scores=[mmlu(0.5)], **known)
    return run


WEIGHTS = {"weights": PieceSpec()}


def test_the_filter_that_helps_is_named_and_not_the_one_that_leaves_out_most(session: Session) -> None:
    run = run_of(session, pieces=WEIGHTS)
    answer = find_rollback_candidates(session, run_id=run.id, at_or_before_step=5)
    assert answer.excluded_counts == {"step": 22, "pieces": 5}
    assert "all 27 checkpoints were left out (beyond the step: 22, pieces absent or unknown: 5)" in answer.sentence
    assert answer.sentence.endswith(
        "To loosen that: record the pieces of the checkpoints, or ask in production mode, which needs weights only."
    )
    assert find_rollback_candidates(session, run_id=run.id, at_or_before_step=5, mode="production").candidates


@pytest.mark.parametrize(("scores", "pieces"), [([], WEIGHTS), ([mmlu(0.5)], {})])
def test_production_mode_is_not_advised_where_it_leaves_none_either(
    session: Session, scores: list[Any], pieces: dict[str, Any]
) -> None:
    run = make_run(session)
    whole(session, run, 1, scores=scores, pieces=pieces)
    answer = find_rollback_candidates(session, run_id=run.id)
    assert answer.sentence.endswith("To loosen that: record the pieces of the checkpoints.")
    assert not find_rollback_candidates(session, run_id=run.id, mode="production").candidates


def test_where_one_is_not_enough_all_that_is_needed_is_named(session: Session) -> None:
    run = run_of(session, pieces=WEIGHTS, replicas=())
    answer = find_rollback_candidates(session, run_id=run.id)
    assert list(answer.loosen) == ["pieces", "copy"]
    assert "To loosen that, both: record the pieces of the checkpoints" in answer.sentence
    assert "; record or restore a copy of one of the checkpoints." in answer.sentence


def test_a_run_without_scores_is_not_told_to_watch_nothing(session: Session) -> None:
    run = make_run(session)
    whole(session, run, 1)
    answer = find_rollback_candidates(session, run_id=run.id, mode="production")
    assert answer.loosen == {"unscored": "evaluate one of the checkpoints"}
