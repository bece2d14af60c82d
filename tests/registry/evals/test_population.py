"""A kept population follows what is recorded, and equals one that is read anew."""

from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session

from registry.changes import changes_since, mark_of
from registry.db import Database
from registry.evals.population import keeping, renewing
from registry.evals.population.keeping import Keeper, population_of
from registry.evals.population.table import Population
from registry.models import Checkpoint
from registry.search.query import search_checkpoints
from tests.client.until import LATEST, until
from tests.factories import make_checkpoint, make_project, make_run, make_score
from tests.registry.evals.world import World


def number(value: float) -> float:
    return round(float(np.nan_to_num(value, nan=-1.0)), 9)


def said_of(population: Population) -> dict[int, tuple[object, ...]]:
    """All that a population says of each checkpoint."""
    capabilities = ("math", "chat", "knowledge")
    columns = sorted(population.loaded, key=lambda place: (population.columns[place].name, place))
    found: dict[int, tuple[object, ...]] = {}
    for row, checkpoint in enumerate(population.checkpoints.tolist()):
        shown = [
            (
                population.columns[place].name,
                number(population.values(place)[row]),
                number(population.ranks(place)[row]),
            )
            for place in columns
        ]
        stands = [number(population.ranking(name).standing[row]) for name in capabilities]
        via = [bool(mask[row]) for place in columns if (mask := population.via(place)) is not None]
        found[checkpoint] = (bool(population.reference[row]), shown, any(via), stands)
    return found


def whole(session: Session, population: Population) -> dict[int, tuple[object, ...]]:
    population.load(session, range(len(population.columns)))
    return said_of(population)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_kept_population_equals_one_that_is_read_anew(committed_database: Database, seed: int) -> None:
    world = World(committed_database, seed)
    for _ in range(25):
        with committed_database.write() as session:
            world.happen(session)
        with committed_database.read() as session:
            kept = population_of(session, [world.project.id])
            anew = Population.read(session, [world.project.id])
            assert whole(session, kept) == whole(session, anew)


def test_nothing_is_read_again_where_nothing_changed(committed_database: Database) -> None:
    world = World(committed_database, 4)
    with committed_database.read() as session:
        first = population_of(session, [world.project.id])
        assert population_of(session, [world.project.id]) is first
    with committed_database.write() as session:
        other = make_project(session)
        make_checkpoint(session, make_run(session, other), scores={"gsm8k": 0.5})
    with committed_database.read() as session:
        assert population_of(session, [world.project.id]) is first


def test_only_the_column_that_changed_is_ranked_again(committed_database: Database) -> None:
    world = World(committed_database, 5)
    with committed_database.read() as session:
        before = population_of(session, [world.project.id])
        whole(session, before)
    with committed_database.write() as session:
        make_score(session, world.ids[0], "gsm8k", 0.12345)
    with committed_database.read() as session:
        after = population_of(session, [world.project.id])
    ranked = {after.columns[place].name for place in after.known_ranks}
    assert after is not before
    assert ranked == {before.columns[place].name for place in before.known_ranks} - {"gsm8k"}
    assert "chat" in after.known_rankings
    assert "math" not in after.known_rankings


def test_many_changes_are_read_anew(committed_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewing, "MANY_CHANGES", 0)
    monkeypatch.setattr(renewing, "MANY_SHARE", 0.0)
    world = World(committed_database, 6)
    with committed_database.read() as session:
        whole(session, population_of(session, [world.project.id]))
    with committed_database.write() as session:
        make_score(session, world.ids[0], "gsm8k", 0.999)
    with committed_database.read() as session:
        kept, anew = population_of(session, [world.project.id]), Population.read(session, [world.project.id])
        assert whole(session, kept) == whole(session, anew)


def test_two_processes_answer_the_same(committed_database: Database) -> None:
    world = World(committed_database, 7)
    other = Database(committed_database.url.render_as_string(hide_password=False))
    try:
        for _ in range(5):
            with committed_database.write() as session:
                world.happen(session)
            with committed_database.read() as session, other.read() as elsewhere:
                one, two = population_of(session, [world.project.id]), population_of(elsewhere, [world.project.id])
                assert one is not two
                assert whole(session, one) == whole(elsewhere, two)
    finally:
        other.dispose()


def test_a_large_population_is_renewed_beside_the_answers(
    committed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOKS_EVERY", 0.01)
    world = World(committed_database, 8)
    keeper = Keeper(committed_database, large=1)
    committed_database.kept["populations"] = keeper
    with committed_database.read() as session:
        before = population_of(session, [world.project.id])
        whole(session, before)
    with committed_database.write() as session:
        make_score(session, world.ids[0], "gsm8k", 0.98765)

    def newer() -> Population | None:
        with committed_database.read() as session:
            found = population_of(session, [world.project.id])
        return None if found is before else found

    after = until(newer)
    row = after.row_of(world.ids[0])
    assert row is not None
    columns = {after.columns[place].name: after.values(place)[row] for place in after.loaded}
    assert columns["gsm8k"] == 0.98765
    assert after.known_ranks.keys() == after.loaded.keys()
    keeper.close()


def test_who_closes_waits_for_the_thread_that_reads(
    committed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOKS_EVERY", 0.01)
    world = World(committed_database, 8)
    keeper = committed_database.kept["populations"] = Keeper(committed_database, large=1)
    reading, going_on = Event(), Event()

    def wait_within(session: Session, *arguments: Any) -> Any:
        session.connection()
        reading.set()
        going_on.wait()
        return changes_since(session, *arguments)

    with committed_database.read() as session:
        keeper.population(session, [world.project.id])
    monkeypatch.setattr(keeping, "changes_since", wait_within)
    assert reading.wait(LATEST)
    closing = Thread(target=committed_database.dispose)
    closing.start()
    Timer(0.2, going_on.set).start()
    closing.join()
    assert going_on.is_set(), "closed while it was reading"


def test_only_some_sets_of_projects_are_kept(committed_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MAX_KEPT", 2)
    with committed_database.write() as session:
        projects = [make_project(session) for _ in range(4)]
    keeper = Keeper(committed_database)
    with committed_database.read() as session:
        populations = [keeper.population(session, [project.id]) for project in projects]
        assert keeper.population(session, [projects[3].id]) is populations[3]
        assert keeper.population(session, [projects[0].id]) is not populations[0]


def test_questions_at_the_same_time_read_it_once(committed_database: Database) -> None:
    world = World(committed_database, 9)
    found: list[Population] = []

    def ask() -> None:
        with committed_database.read() as session:
            found.append(population_of(session, [world.project.id]))

    threads = [Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(each) for each in found}) == 1


def test_a_transaction_that_ends_late_is_not_missed(committed_database: Database) -> None:
    """On PostgreSQL one that began before another may end after it; on SQLite there is never more than one."""
    world = World(committed_database, 10)
    if committed_database.is_sqlite:
        pytest.skip("one connection writes at a time")
    with committed_database.read() as reader:
        mark = mark_of(reader)
        with committed_database.write() as slow:
            make_score(slow, world.ids[0], "gsm8k", 0.111)
            slow.flush()
            with committed_database.write() as quick:
                make_score(quick, world.ids[1], "gsm8k", 0.222)
            first = changes_since(reader, [world.project.id], mark)
            assert first.subjects == {world.ids[1]}
        second = changes_since(reader, [world.project.id], first.mark)
        assert world.ids[0] in second.subjects
        third = changes_since(reader, [world.project.id], second.mark)
        assert third.subjects == frozenset()


def test_what_was_deleted_without_a_word_is_not_shown(committed_database: Database) -> None:
    """Whoever deletes must note the change; an answer looks all the same before it names a checkpoint."""
    world = World(committed_database, 11)
    question = [{"benchmark": "gsm8k", "relation": ">=", "threshold": 0.0}]
    with committed_database.read() as session:
        before = search_checkpoints(session, project_ids=[world.project.id], conditions=question)
    gone = before.results[0].checkpoint.id
    with committed_database.write() as session:
        session.get_one(Checkpoint, gone).state = "deleted"
    with committed_database.read() as session:
        after = search_checkpoints(session, project_ids=[world.project.id], conditions=question)
    assert gone not in [result.checkpoint.id for result in after.results]
    assert len(after.results) == len(before.results) - 1


def test_a_column_that_an_older_question_was_first_to_read_is_read_again(committed_database: Database) -> None:
    """On SQLite a question sees the state in which it began, also in a population that is newer than that."""
    world = World(committed_database, 12)
    own = [world.project.id]
    with committed_database.read() as older:
        mark_of(older)
        with committed_database.write() as session:
            make_score(session, world.ids[0], "gsm8k", 0.12345)
        with committed_database.read() as newer:
            population_of(newer, own)
        whole(older, population_of(older, own))
    with committed_database.read() as session:
        assert whole(session, population_of(session, own)) == whole(session, Population.read(session, own))
