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


def math_of(session: Session, project: str, scores: dict[str, list[float]]) -> None:
    """A project with a run for each name, of one checkpoint for each number, evaluated in two benchmarks of math."""
    made = make_project(session, project)
    for name, several in scores.items():
        run = make_run(session, made, name)
        for step, score in enumerate(several, start=1):
            make_checkpoint(session, run, step, scores=dict.fromkeys(("gsm8k", "asdiv"), score))


def test_where_there_are_too_few_for_percentiles_none_is_said(browser: TestClient, session: Session) -> None:
    math_of(session, "few", {"one": [0.2, 0.53]})
    page = read(browser, "/find?q=strong+math&project=few")
    few = "Too few checkpoints are scored for percentiles of math"
    assert page.answer == f"{few}: the strongest is one at step 2, with a normalised score of 0.53."
    assert "Loosen math: the nearest has a normalised score of 0.53, at least 0.8 was asked." in page.text
    assert "the 88th" not in page.text
    both = read(browser, "/find?q=strong+math,+weak+math&project=few", 400)
    assert "could not be understood" in both.text


def test_a_superlative_names_the_one_that_comes_first(browser: TestClient, session: Session) -> None:
    math_of(session, "many", {f"run-{name}": [0.1 + 0.1 * name] * 8 for name in range(3)})
    worst = read(browser, "/find?q=worst+math&project=many")
    assert worst.answer == "The weakest at math is run-0 at step 1, at the 17th percentile."
    best = read(browser, "/find?q=最强+math+step+<+4&project=many")
    assert best.answer == "The strongest at math of step < 4 is run-2 at step 1, at the 83rd percentile."
    top = read(browser, "/find?q=top+3+math&project=many")
    assert top.answer == "The strongest at math is run-2 at step 1, at the 83rd percentile."
    plain = read(browser, "/find?q=strong+math&project=many")
    assert plain.answer.startswith("8 checkpoints are strong at math")


def test_the_best_of_a_benchmark_that_has_few_scores_is_named_with_its_number(
    browser: TestClient, session: Session
) -> None:
    math_of(session, "few", {"one": [0.2, 0.53]})
    page = read(browser, "/find?q=best+gsm8k&project=few")
    assert page.answer == "The highest gsm8k is 0.53: one at step 2."
    assert "Loosen" not in page.text


def test_a_bare_name_and_a_metric_are_told_apart(browser: TestClient, session: Session) -> None:
    for name, metric in (("bare", ""), ("other", "acc")):
        run = make_run(session, make_project(session, name))
        make_checkpoint(session, run, scores=[NewScore("gsm8k", 0.5, metric=metric)])
    page = read(browser, "/find?q=gsm8k+%3E+40%25")
    assert "scores.gsm8k is read as scores.gsm8k.acc. bare has scores.gsm8k.none only and is left out." in page.text
    alone = read(browser, "/find?q=gsm8k+%3E+40%25&project=bare")
    assert "scores.gsm8k is read as scores.gsm8k.none, recorded without a metric." in alone.text


def test_those_that_were_left_out_are_one_link_away(browser: TestClient, session: Session) -> None:
    for name, metric, value in (("asked", "exact_match", 0.1), ("unasked", "ours", 0.9)):
        run = make_run(session, make_project(session, name))
        make_checkpoint(session, run, scores=[NewScore("gsm8k", value, metric=metric)])
    for path, text in (
        ("/find?q=gsm8k+%3E+40%25", "gsm8k.ours > 40%"),
        ("/find?mode=filter&filter=scores.gsm8k+%3E+0.4", "scores.gsm8k.ours > 0.4"),
    ):
        page = read(browser, path)
        link = f"Ask those that were left out: {text}"
        assert link in page.links
        other = read(browser, page.links[link])
        assert other.answer.startswith("1 checkpoint matches" if "mode" in path else "One checkpoint is at gsm8k > 0.4")
