"""What the page of an alias says of the scores before it is moved, and after a newer attempt went back."""

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import move_alias
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from tests.factories import make_attempt, make_checkpoint, make_project, make_run
from tests.ui.test_pages import read


@pytest.fixture
def run(session: Session) -> RunRow:
    return make_run(session, make_project(session, "lang"), "7b")


def scored(session: Session, run: RunRow, step: int, value: float | None) -> int:
    known = [] if value is None else [NewScore("gsm8k", value, metric="exact_match", stderr=0.0135, n_samples=1319)]
    return make_checkpoint(session, run, step, scores=known)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.45, "Math falls 15.0 ± 1.9 points."),
        (0.75, "Math rises 15.0 ± 1.9 points; nothing falls beyond its uncertainty."),
        (0.60, "No score changes beyond its uncertainty."),
        (None, "How the scores differ is unknown: no benchmark was evaluated on both."),
    ],
)
def test_a_move_says_what_becomes_of_the_scores_before_it_is_made(
    browser: TestClient, session: Session, run: RunRow, value: float | None, said: str
) -> None:
    old, new = scored(session, run, 1000, 0.6), scored(session, run, 2000, value)
    move_alias(session, run.project_id, "production", old, actor="maria")
    page = read(browser, f"/aliases/lang/production?to={to_text(new)}")
    assert said in page.text
    assert page.links["Compare the two"] == f"/compare?baseline={to_text(old)}&candidate={to_text(new)}"
    assert ("after the move" in page.text) == (value is not None)  # the table of capabilities


def test_a_first_move_and_a_move_to_the_same_compare_nothing(
    browser: TestClient, session: Session, run: RunRow
) -> None:
    one = scored(session, run, 1000, 0.6)
    path = f"/aliases/lang/production?to={to_text(one)}"
    assert "Compare the two" not in read(browser, path).links
    move_alias(session, run.project_id, "production", one, actor="maria")
    assert "Compare the two" not in read(browser, path).links


def test_a_move_to_a_superseded_checkpoint_says_so(browser: TestClient, session: Session, run: RunRow) -> None:
    scored(session, run, 1000, None)
    gone = scored(session, run, 2000, None)
    make_attempt(session, run, resumed_from=ResumePoint(step=1000, attempt=1), key="two")
    page = read(browser, f"/aliases/lang/production?to={to_text(gone)}")
    assert "A newer attempt of that run went back to before it." in page.text


def test_a_final_below_the_highest_step_is_said_on_its_page(browser: TestClient, session: Session, run: RunRow) -> None:
    move_alias(session, run.project_id, "final", scored(session, run, 90_000, None), actor="maria")
    assert "not the last" not in read(browser, "/aliases/lang/final").text
    scored(session, run, 400_000, None)
    said = read(browser, "/aliases/lang/final").text
    assert "not the last of run '7b': step 90000 of attempt 1, where step 400000 of attempt 1 is committed." in said
