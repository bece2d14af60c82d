"""The pages of the benchmark table, and what the page of finding offers beside its answers."""

import pytest
from starlette.testclient import TestClient

from registry.db import Database
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.types import Scope
from tests.factories import make_checkpoint, make_project, make_run
from tests.ui.conftest import sign_in
from tests.ui.reading import Page


@pytest.fixture
def scored(database: Database) -> list[int]:
    with database.write() as session:
        project = make_project(session, "p")
        return [
            make_checkpoint(
                session,
                make_run(session, project),
                scores=[
                    *(NewScore(name, place / 25) for name in ("gsm8k", "asdiv", "my_gsm8k_v2")),
                    NewScore("mt_bench", 10 - place / 5),
                    NewScore("arc_easy", 0.3 + place / 50, "acc"),
                    NewScore("sciq", 0.4 + place / 50, "acc"),
                ],
            )
            for place in range(25)
        ]


def read(browser: TestClient, path: str, **params: str) -> Page:
    answer = browser.get(path, params=params or None)
    assert answer.status_code == 200, answer.text[:500]
    page = Page(answer.text)
    assert page.unclosed == [] or all(tag in ("tr", "td", "li", "p", "option") for tag in page.unclosed)
    return page


def test_what_needs_mapping_comes_first_with_its_proposal(browser: TestClient, scored: list[int]) -> None:
    page = read(browser, "/benchmarks", project="p")
    assert page.answer == "1 benchmark measures nothing that searches know: say which capability."
    assert "The name holds 'gsm8k', which is gsm8k" in page.text
    form = read(browser, page.links["look at it"])
    assert form.fields["same_as"] == "gsm8k"
    assert "nothing is changed before you save it" in form.text
    assert "my_gsm8k_v2: in no capability" in form.answer


def test_the_page_opens_on_the_project_with_the_newest_results(browser: TestClient, database: Database) -> None:
    with database.write() as session:
        names = ["b-older", "c-newer"]
        for name in names:
            make_checkpoint(session, make_run(session, make_project(session, name)), scores={"gsm8k": 0.5})
        make_checkpoint(session, make_run(session, make_project(session, "a-without-results")))
    assert (
        '<a href="/benchmarks?project=c-newer&amp;only=occurring" aria-current="true">'
        in read(browser, "/benchmarks").html
    )


def test_saving_maps_it_and_says_so(browser: TestClient, scored: list[int]) -> None:
    path = "/benchmarks/edit?project=p&name=my_gsm8k_v2"
    csrf = read(browser, path).fields["csrf"]
    saved = browser.post(path, data={"csrf": csrf, "same_as": "gsm8k"}, follow_redirects=True)
    assert "Saved. It counts from the next answer on" in saved.text
    assert read(browser, "/benchmarks", project="p").answer == "Every benchmark with results here has its place."


def test_what_cannot_be_said_comes_back_with_the_reason(browser: TestClient, scored: list[int]) -> None:
    path = "/benchmarks/edit?project=p&name=gsm8k"
    csrf = read(browser, path).fields["csrf"]
    for typed, reason in (({"chance": "7"}, "lies from 0 to below 1"), ({"chance": "x"}, "expected a number")):
        refused = browser.post(path, data={"csrf": csrf, **typed})
        assert refused.status_code == 422
        assert reason in Page(refused.text).text
        assert Page(refused.text).fields["chance"] == typed["chance"]


def test_who_may_read_only_cannot_save(stranger: TestClient, database: Database, scored: list[int]) -> None:
    sign_in(stranger, database, Scope.READ)
    path = "/benchmarks/edit?project=p&name=gsm8k"
    page = read(stranger, path)
    assert "Your token may read only" in page.text
    assert stranger.post(path, data={"csrf": page.fields["csrf"], "chance": "0.1"}).status_code == 403


def test_an_empty_registry_has_a_page(browser: TestClient) -> None:
    assert read(browser, "/benchmarks").answer == "There is no project yet."


def test_more_like_this_is_a_link_of_every_checkpoint(browser: TestClient, scored: list[int]) -> None:
    page = read(browser, f"/checkpoints/{to_text(scored[12])}")
    found = read(browser, page.links["More like this"])
    assert "is most like" in found.answer
    assert "math: about the 50th percentile" in found.text
    assert browser.get("/find", params={"like": "nonsense"}).status_code == 404


def test_a_result_offers_to_start_a_run_from_it(browser: TestClient, scored: list[int]) -> None:
    page = read(browser, "/find", q="strong math but weak chat", project="p")
    assert f"cairn fetch {to_text(scored[-1])} ./start" in page.html
    assert f'c.start_attempt(r, key="first", resumed_from="{to_text(scored[-1])}")\'' in page.text


def test_percentiles_may_be_among_published_figures(browser: TestClient, scored: list[int]) -> None:
    page = read(browser, "/find", q="strong knowledge", project="p")
    other = read(browser, page.links["published Pythia checkpoints"])
    assert "published Pythia checkpoints of 10 runs" in other.text
    wrong = read(browser, "/find", q="strong math", population="reference:nobody")
    assert "‘reference:nobody’ is no population" in wrong.text
