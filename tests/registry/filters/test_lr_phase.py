"""Where in the learning rate's course a checkpoint was saved."""

from collections.abc import Sequence

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.queries import list_checkpoints
from registry.projects import ProjectRow
from registry.search.query import search_checkpoints
from tests.factories import make_checkpoint, make_project, make_run

# warm-up, stable, decay: as in a warm-up, stable, decay schedule
COURSE = (1e-5, 1e-4, 3e-4, 3e-4, 2.99e-4, 2e-4, 1e-4, 1e-5)
WARM_UP, STABLE, DECAY = (100, 200), (300, 400, 500), (600, 700, 800)


def trained(session: Session, rates: Sequence[float | None] = COURSE) -> ProjectRow:
    project = make_project(session)
    run = make_run(session, project)
    for place, rate in enumerate(rates, start=1):
        make_checkpoint(session, run, place * 100, lr=rate, scores={"gsm8k": place / 10})
    return project


def steps(session: Session, project: ProjectRow, filter: str) -> tuple[int, ...]:
    page = list_checkpoints(session, project_ids={project.id}, filter=filter, order_by="step")
    return tuple(row.checkpoint.step for row in page.rows)


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        ("lr_phase = 'warm-up'", WARM_UP),
        ("lr_phase = 'stable'", STABLE),
        ("lr_phase = 'decay'", DECAY),
        ("lr_phase != 'decay'", (*WARM_UP, *STABLE)),
        ("lr_phase in ('stable', 'decay') and step > 400", (500, *DECAY)),
        ("lr_phase is null", ()),
        ("lr > 2e-4 and lr_phase = 'stable'", STABLE),
    ],
)
def test_the_phase_is_that_of_the_rates_of_the_run(session: Session, filter: str, wanted: tuple[int, ...]) -> None:
    assert steps(session, trained(session), filter) == wanted


def test_a_cosine_decays_from_its_peak(session: Session) -> None:
    project = trained(session, (1e-4, 3e-4, 2.9e-4, 2e-4, 1e-4))
    assert steps(session, project, "lr_phase = 'stable'") == (200,)
    assert steps(session, project, "lr_phase = 'decay'") == (300, 400, 500)


def test_what_does_not_say_its_rate_has_no_phase(session: Session) -> None:
    project = trained(session, (1e-4, 3e-4, None, 3e-4, float("nan")))
    assert steps(session, project, "lr_phase is null") == (300, 500)
    assert steps(session, project, "lr_phase != 'decay'") == (100, 200, 400)


def test_two_rates_make_no_course(session: Session) -> None:
    project = trained(session, (1e-4, 3e-4, None))
    assert steps(session, project, "lr_phase is null") == (100, 200, 300)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("gsm8k > 0 before the decay", {*WARM_UP, *STABLE}),
        ("退火前 gsm8k 大于 0", {*WARM_UP, *STABLE}),
        ("gsm8k > 0 in the decay phase", set(DECAY)),
        ("gsm8k > 0 after warmup", {*STABLE, *DECAY}),
    ],
)
def test_a_question_may_ask_for_a_phase(session: Session, query: str, wanted: set[int]) -> None:
    project = trained(session)
    answer = search_checkpoints(session, project_ids=[project.id], query=query)
    assert answer.strict
    assert {result.checkpoint.step for result in answer.results} == wanted
