"""Which pieces are there: what a process keeps of them equals what is recorded, whatever happens in between."""

import random

import pytest
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from registry.checkpoints.commands import commit_checkpoint
from registry.checkpoints.registration import PieceSpec, Registration
from registry.db import Database
from registry.models import Checkpoint, Piece
from registry.recovery import whole
from registry.recovery.best_copies import copies_select
from registry.recovery.eligible import NEEDED
from registry.recovery.population import in_scope, population_select, read_population
from registry.recovery.scope import scope_of_run
from registry.recovery.whole import pieces_select
from registry.runs import RunRow
from registry.types import PieceName
from tests.factories import ALL_PIECES, make_checkpoint, make_project, make_run

PRESENCES = ("present", "absent", "unknown")


def some_pieces(chance: random.Random) -> dict[str, PieceSpec]:
    """All four, or any of them with anything said."""
    if chance.random() < 0.4:
        return dict(ALL_PIECES)
    return {name: PieceSpec(chance.choice(PRESENCES)) for name in PieceName if chance.random() < 0.8}


def said(session: Session, run: RunRow, mode: str) -> dict[int, bool]:
    seen = read_population(session, scope_of_run(session, run.id), NEEDED[mode])
    return dict(zip(seen.ids.tolist(), seen.whole.tolist(), strict=True))


def as_recorded(session: Session, run: RunRow, mode: str) -> dict[int, bool]:
    """The plain way: the pieces of each checkpoint, one by one."""
    found = {}
    for number in session.scalars(select(Checkpoint.id).where(Checkpoint.run_id == run.id)):
        query = select(Piece.name).where(Piece.checkpoint_id == number, Piece.presence == "present")
        found[number] = {each.value for each in NEEDED[mode]} <= set(session.scalars(query))
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("few", [0, 500])
def test_kept_pieces_equal_those_that_are_recorded(
    committed_database: Database, seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "FEW", few)
    chance = random.Random(seed)
    with committed_database.write() as session:
        run = make_run(session, make_project(session))
    pending: list[int] = []
    for step in range(25):
        with committed_database.write() as session:
            if pending and chance.random() < 0.3:
                number = pending.pop(chance.randrange(len(pending)))
                given = Registration(session.get_one(Checkpoint, number).step, pieces=some_pieces(chance))
                commit_checkpoint(session, number, given)
            else:
                state = chance.choice(["pending", "committed", "committed"])
                number = make_checkpoint(session, run, step, state=state, pieces=some_pieces(chance))
                pending += [number] if state == "pending" else []
        if chance.random() < 0.7:
            mode = chance.choice(["training", "production"])
            with committed_database.read() as session:
                assert said(session, run, mode) == as_recorded(session, run, mode)


def test_committed_checkpoints_are_asked_for_once(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session, make_project(session))
        number = make_checkpoint(session, run, 1, pieces=ALL_PIECES)
        waiting = make_checkpoint(session, run, 2, state="pending", pieces=ALL_PIECES)
    with committed_database.read() as session:
        said(session, run, "training")
    with committed_database.write() as session:  # nobody does this: it shows who is asked again
        for piece in session.scalars(select(Piece)):
            piece.presence = "absent"
    with committed_database.read() as session:
        assert said(session, run, "training") == {number: True, waiting: False}
    with committed_database.write() as session:  # a session that may have changed something sees what is there
        assert said(session, run, "training") == {number: False, waiting: False}


def test_what_is_kept_is_bounded(committed_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MAX_CHECKPOINTS", 3)
    with committed_database.write() as session:
        project = make_project(session)
        runs = [make_run(session, project) for _ in range(3)]
        for run in runs:
            for step in (1, 2):
                make_checkpoint(session, run, step, pieces=ALL_PIECES)
    for run in runs:
        with committed_database.read() as session:
            assert all(said(session, run, "training").values())
    keeper = committed_database.kept["pieces of runs"]
    assert list(keeper._kept) == [(runs[-1].project_id, frozenset({runs[-1].id}))]


@pytest.mark.parametrize("which", ["population", "pieces", "copies"])
def test_a_question_reads_its_own_runs_by_an_index(session: Session, which: str) -> None:
    """And not all pieces or copies of a project, of which it may have millions."""
    bind = session.get_bind()
    if bind.dialect.name != "sqlite":
        pytest.skip("PostgreSQL scans so small a table whatever indexes there are")
    run = make_run(session)
    scope = scope_of_run(session, run.id)
    of: ColumnElement[bool] = in_scope(scope)
    statement = {
        "population": population_select(scope),
        "pieces": pieces_select(run.project_id, of),
        "copies": copies_select(run.project_id, of),
    }[which]
    sql = str(statement.compile(bind, compile_kwargs={"literal_binds": True, "render_postcompile": True}))
    plan = [row[-1] for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    searches = [line for line in plan if line.startswith(("SEARCH", "SCAN"))]
    assert searches
    assert all("run_id=?" in line or "checkpoint_id=?" in line for line in searches)
