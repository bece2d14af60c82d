"""The page of a rollback: what opens it, what stands beside the candidates, and what is said once."""

import math
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from registry.aliases import move_alias
from registry.checkpoints.registration import PieceSpec, ReplicaSpec
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.series import Points, record_series
from tests.factories import ALL_PIECES, at, make_attempt, make_checkpoint, make_project, make_run
from tests.registry.recovery.test_rollback import whole
from tests.ui.reading import Page


def read(browser: TestClient, path: str) -> Page:
    answer = browser.get(path)
    assert answer.status_code == 200
    return Page(answer.text)


def mmlu(value: float) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042)


def scored(session: Session, values: Sequence[float]) -> tuple[RunRow, list[int]]:
    run = make_run(session)
    ids = [
        make_checkpoint(
            session,
            run,
            1000 * place,
            pieces=ALL_PIECES,
            saved_at=at("2026-11-01"),
            replicas=(ReplicaSpec(f"/shared/{run.name}/{place}", "shared", bytes=10**11),),
            scores=[mmlu(value)],
        )
        for place, value in enumerate(values, 1)
    ]
    return run, ids


def test_without_a_fall_the_page_does_not_say_to_go_back(browser: TestClient, session: Session) -> None:
    run, _ = scored(session, [0.6 + 0.001 * place for place in range(20)])
    page = read(browser, f"/rollback?run={to_text(run.id)}&watch=mmlu")
    assert page.answer.startswith("No fall is established: nothing here speaks for going back. If you must: step ")
    assert 'class="answer tone unknown"' in page.html
    assert 'class="mark good"' not in page.html
    assert "last known good, provisional" in page.text


def test_what_the_alias_serves_stands_below_the_candidates(browser: TestClient, session: Session) -> None:
    run, ids = scored(session, [0.6] * 20)
    move_alias(session, run.project_id, "production", ids[-1], actor="x")
    page = read(browser, f"/rollback?alias={run.project}/production&watch=mmlu")
    row = page.html.partition('id="served"')[2].partition("</tr>")[0]
    assert "served now" in row
    assert "No difference can be told between" in row
    assert "46.7 ± 0.6" in row
    for jargon in ("P(restores)", "P(bad)", "composite", "P(already bad)"):
        assert jargon not in page.text
    assert "A score is mmlu, in points: 0 is guessing, 100 perfect." in page.text


def test_a_score_that_stands_alone_is_marked_and_kept_in_the_plot(browser: TestClient, session: Session) -> None:
    run, _ = scored(session, [0.3 if place == 9 else 0.6 for place in range(20)])
    page = read(browser, f"/rollback?run={to_text(run.id)}&watch=mmlu")
    assert "step 10 000: evaluate it again" in page.text
    plot = page.html.partition("<figure")[2].partition("</figure>")[0]
    assert "stands alone: evaluate it again" in plot
    assert "candidates and the scores that stand alone" in page.text


def test_scores_that_do_not_count_are_said_beside_the_onset(browser: TestClient, session: Session) -> None:
    run, _ = scored(session, [*[0.6] * 11, *[math.nan] * 9])
    page = read(browser, f"/rollback?run={to_text(run.id)}&watch=mmlu")
    assert page.text.count("9 checkpoints with a score that is not finite were left out") == 2  # detail, and the facts
    assert "no comparable finite score at or after its step" in page.text


def test_one_reason_of_many_checkpoints_is_said_once(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    for step in (10, 20, 30):
        make_checkpoint(session, run, step, pieces={"weights": PieceSpec()})
    page = read(browser, f"/rollback?run={to_text(run.id)}")
    assert page.text.count("training needs it whole") == 1
    assert "3 checkpoints" in page.text


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_spike_names_one_checkpoint_to_go_back_to(browser: TestClient, session: Session, comes_back: bool) -> None:
    run = make_run(session)
    for step in range(100, 601, 100):
        copy = (ReplicaSpec(f"/shared/{step}", "shared", bytes=10**11),)
        make_checkpoint(session, run, step, pieces=ALL_PIECES, replicas=copy, saved_at=at("2026-11-01"))
    calm = [2.0 + 0.01 * (place % 7) for place in range(600)]
    until = 450 if comes_back else 600
    losses = [6.0 if 430 <= step <= until else calm[step - 1] for step in range(1, 601)]
    record_series(session, run.id, [Points("loss", list(range(1, 601)), losses)])
    page = read(browser, f"/rollback?run={to_text(run.id)}")
    assert ("Of the candidates, step 600 of" if comes_back else "Go back to step 300 of") in page.answer
    assert ("rewind to step 300" in page.answer) is not comes_back


def test_names_that_are_cut_stay_apart(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    names = [f"pretraining-of-the-large-mixture-{part}-with-a-long-warmup-and-cosine" for part in ("code", "math")]
    base, fork = (make_run(session, project, name) for name in names)
    loaded = whole(session, base, 500)
    make_attempt(session, fork, resumed_from=ResumePoint(checkpoint_id=loaded))
    whole(session, fork, 600)
    page = read(browser, f"/rollback?run={to_text(fork.id)}")
    for part in ("code", "math"):
        assert sum(f"{part}…" in name for name in page.links) == 2, part  # the candidate, and the choice of a run


def test_a_loss_that_began_not_finite_shows_the_attempt_that_starts_again(
    browser: TestClient, session: Session
) -> None:
    run = make_run(session)
    whole(session, run, 3)
    record_series(session, run.id, [Points("loss", list(range(6)), [math.nan] * 6)])
    page = read(browser, f"/rollback?run={to_text(run.id)}")
    assert "start again from nothing" in page.answer
    assert "The new attempt says that it starts again and why" in page.text
    assert '"restart": true' in page.text
    assert f"/runs/{to_text(run.id)}/attempts" in page.text
    assert "data to skip" not in page.text
    assert "loss not finite" in page.text
    assert "NaN" not in page.text


def test_a_score_over_many_benchmarks_says_how_parts_count(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    parts = ("anatomy", "astronomy", "virology", "nutrition", "marketing")
    scores = [NewScore(f"hendrycksTest-{name}", 0.4, metric="acc", n_samples=100) for name in parts]
    scores.append(NewScore("arc_easy", 0.6, metric="acc", n_samples=900))
    for step in (10, 20):
        copy = (ReplicaSpec(f"/shared/{step}", "shared", bytes=10**11),)
        last = make_checkpoint(session, run, step, pieces=ALL_PIECES, replicas=copy, scores=scores)
    move_alias(session, run.project_id, "production", last, actor="x")
    page = read(browser, f"/rollback?alias={run.project}/production")
    told = "A score is the mean over 2 benchmarks (6 with their parts), the parts of one counted as one, in points"
    assert told in page.text


def test_a_time_to_restore_within_may_have_a_unit(browser: TestClient, session: Session) -> None:
    run, _ = scored(session, [0.6] * 3)
    answers = [read(browser, f"/rollback?run={to_text(run.id)}{asked}").answer for asked in ("", "&rto=1s", "&rto=1")]
    assert answers[0] != answers[1] == answers[2]  # no copy is restored in a second
    wrong = read(browser, f"/rollback?run={to_text(run.id)}&rto=soon")
    assert "‘soon’ was left out: expected a time such as 600, 90s, 10m or 1h30m." in wrong.text
