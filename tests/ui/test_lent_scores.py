"""Scores that were measured on a lossless copy say so, and figures read as the project's own table says."""

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.evals.table.editing import put_benchmark
from registry.ids import to_text
from registry.runs import RunRow
from registry.types import Relation
from tests.factories import make_checkpoint, make_project, make_run
from tests.ui.test_pages import read, scored


@pytest.fixture
def lent(session: Session) -> tuple[RunRow, int, int]:
    """(run, a checkpoint of it that nobody evaluated, its converted copy that somebody did)."""
    project = make_project(session, "lang")
    run = make_run(session, project, "base")
    make_checkpoint(session, run, 1000, scores=[scored("piqa", 0.70)])
    source = make_checkpoint(session, run, 2000)
    copy = make_checkpoint(
        session,
        make_run(session, project, "base-hf"),
        2000,
        parents=[ParentSpec(source, Relation.CONVERTED)],
        scores=[scored("piqa", 0.75)],
    )
    return run, source, copy


def test_the_table_of_a_run_leads_to_the_copy(browser: TestClient, lent: tuple[RunRow, int, int]) -> None:
    run, _, copy = lent
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert page.links["via copy"] == f"/checkpoints/{to_text(copy)}"
    assert page.text.count("via copy") == 2  # wide and narrow
    assert "Dashed: measured on a lossless copy." in page.text
    assert "piqa.acc, step 2\u202f000: 0.750 ± 0.010, measured on a lossless copy" in page.html
    assert "piqa.acc, step 1\u202f000: 0.700 ± 0.010, measured" not in page.html


def test_the_csv_of_a_run_names_the_copy(browser: TestClient, lent: tuple[RunRow, int, int]) -> None:
    run, _, copy = lent
    rows = browser.get(f"/runs/{to_text(run.id)}/scores.csv").text.splitlines()
    assert [row.rpartition(",")[2] for row in rows] == ["via", "", to_text(copy)]


def test_a_filter_marks_the_cell(browser: TestClient, lent: tuple[RunRow, int, int]) -> None:
    page = read(browser, "/find?filter=run.name+%3D+'base'&columns=loss,scores.piqa&order_by=step")
    assert page.text.count("via copy") == 1
    assert page.links["via copy"] == f"/checkpoints/{to_text(lent[2])}"


def test_a_search_marks_its_evidence(browser: TestClient, lent: tuple[RunRow, int, int]) -> None:
    page = read(browser, "/find?q=piqa+%3E+0.74")
    assert "of a lossless copy" in page.html


def test_plots_read_a_benchmark_as_the_project_says(browser: TestClient, session: Session) -> None:
    project = make_project(session, "lang")
    run = make_run(session, project, "base")
    for step in (1, 2):
        own = NewScore("house_exam", 40.0 + step, metric="acc")
        make_checkpoint(session, run, step * 1000, scores=[scored("piqa", 0.7), own])
    path = f"/runs/{to_text(run.id)}?score=house_exam.acc"
    assert "score, percent" not in read(browser, path).text
    put_benchmark(session, project.id, "house_exam", {"capability": "math", "scale": "percent"}, actor="maria")
    assert "score, percent" in read(browser, path).text
    shown = read(browser, f"/runs/{to_text(run.id)}").html
    assert "<h3>Math</h3>" in shown
    assert "<option>math</option>" in read(browser, f"/rollback?run={to_text(run.id)}").html


def test_a_checkpoint_page_leads_to_the_copy_that_was_evaluated(
    browser: TestClient, lent: tuple[RunRow, int, int]
) -> None:
    _, source, copy = lent
    page = read(browser, f"/checkpoints/{to_text(source)}")
    assert page.links["via copy"] == f"/checkpoints/{to_text(copy)}"
    assert "0.750 ± 0.010" in page.text
    assert "via copy" not in read(browser, f"/checkpoints/{to_text(copy)}").text
