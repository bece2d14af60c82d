"""What the head of a search says where a project was not asked."""

from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.evals.scores import NewScore
from tests.factories import make_checkpoint, make_project, make_run
from tests.ui.test_pages import read


def test_nobody_is_denied_who_was_not_asked(browser: TestClient, session: Session) -> None:
    for name, metric, value in (("asked", "exact_match", 0.1), ("unasked", "ours", 0.9)):
        run = make_run(session, make_project(session, name))
        make_checkpoint(session, run, scores=[NewScore("gsm8k", value, metric=metric)])
    page = read(browser, "/find?q=gsm8k+%3E+40%25")
    assert "unasked measured it otherwise and was not asked; of the others no checkpoint is at gsm8k > 0.4" in page.text
    assert "No checkpoint is at gsm8k > 0.4" in read(browser, "/find?q=gsm8k+%3E+40%25&project=asked").text
