"""One path for one registration and for many, in a dozen statements."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from registry import models
from registry.checkpoints.commands import BatchItem, register_batch, register_checkpoint
from registry.checkpoints.registration import PieceSpec, Registration
from registry.evals.scores import NewScore
from registry.runs import RunRow
from registry.upsert import MANY
from tests.factories import make_project, make_run


@contextmanager
def statements(session: Session) -> Iterator[list[str]]:
    said: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(statement)

    event.listen(session.get_bind(), "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(session.get_bind(), "before_cursor_execute", note)


def registration(step: int) -> Registration:
    return Registration(
        step,
        config={"lr": 0.1},
        scores=tuple(NewScore(f"benchmark-{number}", number / 7) for number in range(MANY)),
        tags={f"tag-{number}": "x" for number in range(MANY)},
        pieces={"weights": PieceSpec()},
    )


def items(run: RunRow, *steps: int) -> list[BatchItem]:
    return [BatchItem(run.project, run.name, registration(step)) for step in steps]


def test_one_checkpoint_and_many_take_the_same_dozen_statements(session: Session) -> None:
    run = make_run(session, make_project(session))
    register_checkpoint(session, run.id, registration(1))
    with statements(session) as of_one:
        register_checkpoint(session, run.id, registration(2), project_id=run.project_id)
    with statements(session) as of_many:
        register_batch(session, items(run, *range(3, 9)))
    assert len(of_one) <= 11
    assert len(of_many) <= len(of_one) + 2  # which also look for project and run by name


def test_of_a_batch_only_what_is_new_is_written_and_the_rest_is_found(session: Session) -> None:
    run = make_run(session, make_project(session))
    first = register_batch(session, items(run, 2, 4))
    again = register_batch(session, items(run, 1, 2, 3, 4, 5, 1))
    assert [each.status for each in again] == ["created", "unchanged", "created", "unchanged", "created", "unchanged"]
    assert [again[1].checkpoint_id, again[3].checkpoint_id] == [each.checkpoint_id for each in first]
    for table, each in ((models.Checkpoint, 1), (models.Score, MANY), (models.CheckpointTag, MANY), (models.Piece, 1)):
        counted = select(func.count()).select_from(table).where(table.project_id == run.project_id)
        assert session.scalar(counted) == 5 * each
    current = select(func.count()).where(models.CurrentScore.project_id == run.project_id)
    assert session.scalar(current) == 5 * MANY
    told = select(func.count()).where(models.OutboxEvent.project_id == run.project_id)
    assert session.scalar(told) == 5
