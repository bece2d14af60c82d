"""Pages of evidence: where a checkpoint comes from, a search for a fall, answers that were kept."""

import re
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.checkpoints.registration import ParentSpec
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.snapshots import CodeSpec, DataSpec, SourceSpec
from registry.types import Relation, Scope
from tests.factories import make_attempt, make_checkpoint, make_project, make_run, make_score
from tests.ui.conftest import sign_in
from tests.ui.reading import Page
from tests.ui.test_decisions import read


def send(browser: TestClient, page: Page, path: str, **fields: str) -> Any:
    return browser.post(path, data={"csrf": page.fields["csrf"], **fields}, follow_redirects=False)


def mmlu(value: float) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042)


@pytest.fixture
def fallen(session: Session) -> list[str]:
    """Nine checkpoints of a run; mmlu fell between the first and the last."""
    run = make_run(session, make_project(session, "lang"), "7b")
    ends = {0: 0.60, 800: 0.50}
    return [
        to_text(
            make_checkpoint(
                session,
                run,
                step,
                replica=f"/shared/{step}",
                config={"lr": 1e-3 if step < 500 else 2e-3},
                scores=[mmlu(ends[step])] if step in ends else (),
            )
        )
        for step in range(0, 900, 100)
    ]


def test_the_chain_is_a_page_that_answers_first(browser: TestClient, session: Session) -> None:
    run = make_run(session, name="<b>base</b>")
    old = make_checkpoint(
        session, run, 100, data_version=DataSpec("v1", {"web": SourceSpec(1.0)}), tokens_seen=1_000_000_000
    )
    make_checkpoint(session, run, 150)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=old), changes="halved the learning rate")
    new = make_checkpoint(
        session,
        run,
        200,
        data_version=DataSpec("v2", {"math": SourceSpec(1.0)}),
        tokens_seen=4_000_000_000,
        code=CodeSpec("a" * 40, True, "sha256:abc"),
    )
    page = read(browser, f"/checkpoints/{to_text(new)}/provenance")
    assert page.answer == "It has seen 4 B tokens, 75% of them math, over 2 stages."
    assert "1 stage ran with uncommitted code" in page.text
    assert "steps 101 – 150 were trained before, in attempt 1" in page.text
    assert "changed: halved the learning rate" in page.text
    assert "<b>base</b>" not in page.html
    answer = browser.get(page.links["For a model card, as Markdown"])
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith("## Provenance")
    own = read(browser, f"/checkpoints/{to_text(new)}")
    assert own.links["Where it comes from"] == f"/checkpoints/{to_text(new)}/provenance"


def test_older_stages_are_counted_and_named_where_the_page_does_not_show_them(
    browser: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.pages.provenance.MOST_STAGES", 1)
    run = make_run(session)
    make_checkpoint(session, run, 100, data_version=DataSpec("v1", {"web": SourceSpec(1.0)}), tokens_seen=3_000)
    end = make_checkpoint(session, run, 200, data_version=DataSpec("v2", {"math": SourceSpec(1.0)}), tokens_seen=4_000)
    page = read(browser, f"/checkpoints/{to_text(end)}/provenance")
    assert page.answer == "It has seen 4 k tokens, 75% of them web, over 2 stages."
    assert "1 older stage, counted in the tokens above and not shown here" in page.text


def test_what_a_merge_has_seen_is_not_said_and_its_sources_are(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    web = DataSpec("v1", {"web": SourceSpec(1.0)})
    parents = [make_checkpoint(session, make_run(session, project), 1, data_version=web, tokens_seen=5)]
    edges = [ParentSpec(each, Relation.MERGED) for each in parents]
    merged = make_checkpoint(session, make_run(session, project), 0, parents=edges)
    page = read(browser, f"/checkpoints/{to_text(merged)}/provenance")
    assert page.answer.startswith(
        "How many tokens it has seen is not recorded; of those that can be counted 100% are web"
    )


def test_a_bare_checkpoint_says_what_is_not_known(browser: TestClient, session: Session) -> None:
    page = read(browser, f"/checkpoints/{to_text(make_checkpoint(session))}/provenance")
    assert page.answer == "How many tokens it has seen is not recorded, over 1 stage."
    assert "Not known" in page.text
    assert read(browser, "/checkpoints/0000000000001/provenance", 404)
    assert read(browser, "/checkpoints/nothing/provenance", 404)


def test_a_merge_shows_both_parents(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    parents = [make_checkpoint(session, make_run(session, project, name), 9) for name in ("left", "right")]
    edges = [ParentSpec(each, Relation.MERGED) for each in parents]
    page = read(
        browser,
        f"/checkpoints/{to_text(make_checkpoint(session, parents=edges, run=make_run(session, project)))}/provenance",
    )
    assert "merged from" in page.text
    assert "left" in page.text
    assert "right" in page.text


def test_a_search_starts_at_compare_and_says_what_to_evaluate(browser: TestClient, fallen: list[str]) -> None:
    compare = read(browser, f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}")
    assert "After which checkpoint did it fall?" in compare.text
    answer = send(browser, compare, "/bisects", good=fallen[0], bad=fallen[-1], benchmark="mmlu", metric="acc")
    assert answer.status_code == 303
    page = read(browser, answer.headers["location"])
    assert "It fell between steps 0 and 800 of 7b" in page.answer
    assert f"/checkpoints/{fallen[4]}" in page.links.values()
    assert "on 240 items; it is bad with 50%." in page.text
    assert f"cairn why --good {fallen[0]} --bad {fallen[-1]} --bisect" in page.text
    assert "None between the two ends yet." in page.text


def test_a_score_that_arrived_is_on_the_page_of_the_search(
    browser: TestClient, session: Session, fallen: list[str]
) -> None:
    compare = read(browser, f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}")
    place = send(browser, compare, "/bisects", good=fallen[0], bad=fallen[-1], benchmark="mmlu").headers["location"]
    from registry.ids import from_text

    for index in (4, 5):
        make_score(
            session, from_text(fallen[index]) or 0, "mmlu", 0.6 if index == 4 else 0.5, metric="acc", n_samples=14042
        )
    page = read(browser, place)
    assert "It fell between steps 400 and 500 of 7b, with a probability of" in page.answer
    assert "recorded" in page.text


def test_forms_of_others_and_readers_start_nothing(
    browser: TestClient, stranger: TestClient, database: Any, fallen: list[str]
) -> None:
    fields = {"good": fallen[0], "bad": fallen[-1], "benchmark": "mmlu"}
    assert browser.post("/bisects", data={**fields, "csrf": "x"}).status_code == 403
    assert browser.post("/decisions", data={"kind": "compare", "csrf": "x"}).status_code == 403
    sign_in(stranger, database, Scope.READ)
    page = read(stranger, f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}")
    assert send(stranger, page, "/bisects", **fields).status_code == 403
    assert send(stranger, page, "/decisions", kind="compare").status_code == 403


def test_a_kept_comparison_shows_what_was_known_then(browser: TestClient, session: Session, fallen: list[str]) -> None:
    compare = read(browser, f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}")
    answer = send(
        browser,
        compare,
        "/decisions",
        kind="compare",
        baseline=fallen[0],
        candidate=fallen[-1],
        note="before the <launch>",
    )
    assert answer.status_code == 303, answer.text[:2000]
    place = answer.headers["location"]
    from registry.ids import from_text

    make_score(session, from_text(fallen[-1]) or 0, "mmlu", 0.7, metric="acc", n_samples=14042)
    page = read(browser, place)
    assert page.answer == "Knowledge had fallen when this was kept; the first suspect was config.learning_rate."
    assert "before the <launch>" in page.text
    assert "Kept by maria" in page.text
    assert page.links["Ask the same now"] == f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}"
    assert "regressed" in page.text
    whole = browser.get(page.links["Whole answer as JSON"]).json()
    assert whole["answer"]["scores"][0]["candidate"] == 0.5
    listed = read(browser, "/decisions")
    assert listed.answer == "1 record of decisions."
    assert place in listed.links.values()


def test_a_rollback_and_a_search_are_kept_from_their_pages(
    browser: TestClient, session: Session, fallen: list[str]
) -> None:
    from registry.checkpoints.detail import read_identities
    from registry.ids import from_text

    number = from_text(fallen[0]) or 0
    run_id = to_text(read_identities(session, [number])[number].run.id)
    rollback = read(browser, f"/rollback?run={run_id}&step=500")
    assert "Keep this answer" in rollback.text
    kept = send(browser, rollback, "/decisions", kind="rollback", run=run_id, step="500", mode="training")
    assert kept.status_code == 303, kept.text[:2000]
    page = read(browser, kept.headers["location"])
    assert re.search(r"came first when this was kept|no checkpoint to go back to", page.answer)
    assert "at or before step" in page.text
    find = read(browser, "/find?q=mmlu+%3E+0.4&project=lang")
    kept = send(browser, find, "/decisions", kind="search", q="mmlu > 0.4", project="lang")
    assert kept.status_code == 303, kept.text[:2000]
    assert "came first when this was kept" in read(browser, kept.headers["location"]).answer


def test_what_cannot_be_kept_is_a_page_that_says_why(browser: TestClient, fallen: list[str]) -> None:
    page = read(browser, f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}")
    assert send(browser, page, "/decisions", kind="guess").status_code == 404
    assert send(browser, page, "/decisions", kind="compare", baseline="x", candidate="y").status_code == 422
    assert send(browser, page, "/decisions", kind="search", q="mmlu > 0.4").status_code == 422
    assert read(browser, "/decisions/0000000000001", 404)
    assert read(browser, "/bisects/0000000000001", 404)


def test_no_record_says_how_to_make_one(browser: TestClient) -> None:
    page = read(browser, "/decisions")
    assert page.answer == "No answer has been kept yet."
    assert "client.record_decision" in page.text


def test_figures_stand_behind_the_words_of_a_suspect(browser: TestClient, fallen: list[str]) -> None:
    page = read(browser, f"/compare?baseline={fallen[0]}&candidate={fallen[-1]}")
    assert "<summary>figures</summary>" in page.html
    assert "how likely it is at all" in page.text
    assert "the prior, assumed before any evidence" in page.html


def test_an_answer_over_several_projects_says_where_it_can_be_kept(browser: TestClient, session: Session) -> None:
    for name in ("here", "there"):
        make_checkpoint(session, make_run(session, make_project(session, name)), scores=[mmlu(0.6)])
    page = read(browser, "/find?q=mmlu+%3E+0.4")
    assert "A kept answer belongs to a project; ask in one of them:" in page.text
    assert page.links["there"] == "/find?q=mmlu+%3E+0.4&project=there#keep"
    inside = read(browser, page.links["there"])
    assert "Keep with a link" in inside.text
    assert "belongs to a project" not in inside.text


def test_a_kept_comparison_of_what_rose_blames_nothing(browser: TestClient, session: Session) -> None:
    others = [NewScore(name, 0.6, metric="acc", n_samples=900) for name in ("piqa", "boolq", "sciq", "race", "copa")]
    run = make_run(session, make_project(session, "lang"))
    ids = [
        to_text(
            make_checkpoint(
                session,
                run,
                step,
                config={"lr": lr},
                scores=[
                    NewScore("mmlu", value, metric="acc", n_samples=1600),
                    NewScore("gsm8k", math, metric="acc", n_samples=1319),
                    *others,
                ],
            )
        )
        for step, value, math, lr in ((100, 0.60, 0.2, 1e-3), (200, 0.57, 0.6, 2e-3))
    ]
    page = read(browser, f"/compare?baseline={ids[0]}&candidate={ids[1]}")
    kept = send(browser, page, "/decisions", kind="compare", baseline=ids[0], candidate=ids[1])
    record = read(browser, kept.headers["location"])
    assert record.answer == "Nothing fell beyond its uncertainty when this was kept."
    assert "Suspects" not in record.text
    assert "suspected" in record.text  # the verdict on mmlu, as it was given
