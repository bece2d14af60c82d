"""What the pages of the three questions answer first, and how they prove it: find, compare, roll back."""

import math
from urllib.parse import quote

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import move_alias
from registry.checkpoints.registration import ReplicaSpec
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.runs import RunRow
from registry.snapshots import DataSpec, SourceSpec
from tests.factories import ALL_PIECES, at, make_checkpoint, make_project, make_run
from tests.ui.reading import Page


def read(browser: TestClient, path: str, status: int = 200) -> Page:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text[:3000]
    page = Page(answer.text)
    assert page.unclosed == []
    return page


def scored(benchmark: str, value: float, metric: str, n: int = 1319) -> NewScore:
    stderr = math.sqrt(value * (1 - value) / (n - 1))
    return NewScore(benchmark, value, metric=metric, stderr=stderr, n_samples=n, n_shot=5, version="1")


# ---- find


@pytest.fixture
def models(session: Session) -> list[RunRow]:
    """24 runs whose math rises and whose reading falls with their number; the last was not evaluated on reading."""
    project = make_project(session, "lang")
    runs = []
    for number in range(24):
        run = make_run(session, project, f"model-{number:02}", parameter_count=1_000_000_000)
        scores = [scored("gsm8k", 0.1 + number / 100, "exact_match"), scored("mathqa", 0.2 + number / 100, "acc")]
        if number < 23:
            scores += [scored("boolq", 0.9 - number / 100, "acc"), scored("race", 0.8 - number / 100, "acc")]
        make_checkpoint(session, run, 1000, scores=scores)
        runs.append(run)
    return runs


def test_find_answers_in_words_with_evidence(browser: TestClient, models: list[RunRow]) -> None:
    page = read(browser, "/find?q=strong+math+but+weak+reading")
    assert page.answer.endswith(
        "checkpoints are strong at math and weak at reading; model-22 at step 1 000 comes first."
    )
    assert "math strong: at least the 80th percentile" in page.text
    assert "reading weak: at most the 20th percentile" in page.text
    assert "Ranked math among 24 checkpoints of 24 runs and reading among 23 checkpoints of 23 runs." in page.text
    assert "gsm8k 0.32, mathqa 0.42" in page.text
    assert "model-23" not in page.text  # not evaluated on reading is not weak at it


def test_find_understands_chinese_and_says_what_it_did_not(browser: TestClient, models: list[RunRow]) -> None:
    page = read(browser, "/find?q=" + quote("找一个数学强但阅读弱的 checkpoint flurb"))
    assert "model-22" in page.answer
    assert "not understood flurb" in page.text


def test_find_names_the_condition_to_loosen_where_nothing_meets_all(browser: TestClient, models: list[RunRow]) -> None:
    page = read(browser, "/find?q=strong+math+and+strong+reading")
    assert page.answer.startswith("No checkpoint is strong at math and strong at reading;")
    assert "Loosen math: the nearest has the" in page.text
    assert "at least the 80th was asked" in page.text


def test_an_unreadable_question_gives_examples(browser: TestClient) -> None:
    page = read(browser, "/find?q=flurb", status=400)
    assert page.answer == "That could not be understood."
    assert page.links["strong math but weak chat"].startswith("/find?q=strong")


def test_the_question_can_be_taken_over_as_a_filter(browser: TestClient, models: list[RunRow]) -> None:
    page = read(browser, "/find?q=strong+math+before+step+5000")
    href = page.links["the same as a filter"]
    table = read(browser, href)
    assert "capabilities.math >= 0.8 and step < 5000 and not superseded" in table.text
    assert "model-23" in table.text


def test_a_filter_gives_a_table_that_sorts_by_its_columns(browser: TestClient, models: list[RunRow]) -> None:
    page = read(browser, "/find?mode=filter&filter=scores.gsm8k+%3E+0.305&columns=scores.gsm8k&order_by=scores.gsm8k")
    assert page.answer == "3 checkpoints match."
    assert page.text.index("model-21") < page.text.index("model-23")
    turned = read(browser, page.links["scores.gsm8k"])
    assert turned.text.index("model-23") < turned.text.index("model-21")
    assert "scores.gsm8k is read as" in page.text


def test_a_filter_that_finds_nothing_names_the_condition_and_the_nearest_value(
    browser: TestClient, models: list[RunRow]
) -> None:
    page = read(browser, "/find?mode=filter&filter=scores.gsm8k+%3E+0.9+and+step+%3C+5000")
    assert page.answer == "No checkpoint matches."
    link = "Without scores.gsm8k > 0.9: the highest is 0.33"
    assert link in page.links
    assert "model-23" in read(browser, page.links[link]).text
    assert not any(text.startswith("Without step") for text in page.links)  # it excludes nothing by itself


def test_a_mistake_in_a_filter_is_shown_at_its_place(browser: TestClient) -> None:
    page = read(browser, "/find?mode=filter&filter=step+%3E+5+an+x", status=400)
    assert page.answer == "The filter has a mistake."
    assert "step &gt; 5 <mark>a</mark>n x" in page.html
    assert "Expected" in page.text
    page = read(browser, "/find?mode=filter&filter=step+%3E+5&order_by=nonsense", status=400)
    assert page.answer == "The order has a mistake."


def test_a_long_table_is_paged_and_given_whole_as_csv(browser: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "lang"), "base")
    for step in range(55):
        make_checkpoint(session, run, step, loss=float(step))
    first = read(browser, "/find?mode=filter&order_by=step&columns=loss")
    assert "54" not in [cell for cell in first.text.split() if cell.isdigit()]
    second = read(browser, first.links["Next rows"])
    assert "54" in second.text.split()
    rows = browser.get(first.links["These rows as CSV"]).text.splitlines()
    assert len(rows) == 56
    assert rows[0].startswith("checkpoint,project,run,attempt,step,kind,loss")
    assert rows[1].split(",")[1:] == ["lang", "base", "1", "0", "archive", "0.0", "0"]


def test_csv_text_is_never_a_formula(browser: TestClient, session: Session) -> None:
    make_checkpoint(session, make_run(session, name="=HYPERLINK(1)", owner="@cmd"), 1, loss=-0.5)
    row = browser.get("/find.csv?columns=run.name,run.owner,loss").text.splitlines()[1]
    assert "'=HYPERLINK(1)" in row
    assert "'@cmd" in row
    assert ",-0.5" in row


# ---- compare


@pytest.fixture
def pair(session: Session) -> tuple[str, str]:
    """Two versions: math fell, boolq did not, the math data was cut."""
    project = make_project(session, "lang")
    mixes = ({"web": 0.6, "math": 0.4}, {"web": 0.97, "math": 0.03})
    made = []
    for number, (math_score, mix) in enumerate(zip((0.60, 0.45), mixes, strict=True)):
        run = make_run(session, project, f"v{number + 1}")
        checkpoint = make_checkpoint(
            session,
            run,
            1000,
            tokens_seen=400_000_000_000,
            config={"lr": 3e-4 / (number + 1), "seed": 1},
            data_version=DataSpec(f"mix-{number + 1}", {name: SourceSpec(share) for name, share in mix.items()}),
            scores=[
                scored("gsm8k", math_score, "exact_match"),
                scored("mathqa", math_score - 0.1, "acc", 2985),
                scored("boolq", 0.8, "acc", 3270),
                scored("piqa", 0.7, "acc", 1838) if number else scored("hellaswag", 0.7, "acc_norm", 10042),
            ],
        )
        made.append(to_text(checkpoint))
    return made[0], made[1]


def test_compare_says_first_what_fell_and_what_changed_most(browser: TestClient, pair: tuple[str, str]) -> None:
    page = read(browser, f"/compare?baseline={pair[0]}&candidate={pair[1]}")
    assert page.answer.startswith("Math fell 1")
    assert "points; the data mix changed most (data.math)." in page.answer
    assert "gsm8k exact_match 0.6 0.45 −15.0 ± 1.9" in page.text
    assert "regressed" in page.text
    assert "mix-1 → mix-2." in page.text
    assert "40.0%" in page.text
    assert "Evaluated on one side only, so not compared: 1 on the baseline, 1 on the candidate." in page.text
    assert "lr" in page.text
    assert page.links["Swap the two"] == f"/compare?baseline={pair[1]}&candidate={pair[0]}"


def test_a_comparison_the_other_way_round_rises(browser: TestClient, pair: tuple[str, str]) -> None:
    page = read(browser, f"/compare?baseline={pair[1]}&candidate={pair[0]}")
    assert page.answer.startswith("Math rose 1")
    assert page.answer.endswith("nothing fell beyond its uncertainty.")


def test_different_ways_of_evaluating_are_not_compared(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    sides = []
    for shots, value in ((0, 0.4), (5, 0.2)):
        score = NewScore("gsm8k", value, metric="exact_match", stderr=0.01, n_shot=shots)
        sides.append(to_text(make_checkpoint(session, make_run(session, project), 10, scores=[score])))
    page = read(browser, f"/compare?baseline={sides[0]}&candidate={sides[1]}")
    assert page.answer == "The scores cannot be compared: they were evaluated in different ways."
    assert "not comparable" in page.text


def test_checkpoints_without_a_common_benchmark_say_so(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    one, two = (to_text(make_checkpoint(session, make_run(session, project), 10)) for _ in range(2))
    page = read(browser, f"/compare?baseline={one}&candidate={two}")
    assert page.answer == "The scores cannot be compared: no benchmark was evaluated on both."
    assert "Unknown: no config is recorded for the baseline and the candidate." in page.text


def test_the_comparison_as_csv_has_every_digit(browser: TestClient, pair: tuple[str, str]) -> None:
    rows = browser.get(f"/compare.csv?baseline={pair[0]}&candidate={pair[1]}").text.splitlines()
    gsm8k = next(row for row in rows if row.startswith("gsm8k"))
    assert gsm8k.split(",")[4:6] == ["0.6", "0.45"]
    assert "regressed" in gsm8k


def test_an_unasked_comparison_shows_what_the_last_alias_move_changed(
    browser: TestClient, session: Session, pair: tuple[str, str]
) -> None:
    from registry.ids import from_text
    from registry.projects import find_project

    project = find_project(session, "lang")
    for each in pair:
        move_alias(session, project.id, "production", from_text(each) or 0, actor="x")
    answer = browser.get("/compare", follow_redirects=False)
    assert answer.headers["location"] == f"/compare?baseline={pair[0]}&candidate={pair[1]}"
    by_name = read(browser, f"/compare?baseline={pair[0]}&candidate=lang/production")
    assert by_name.answer.startswith("Math fell")


def test_a_side_that_does_not_exist_is_asked_for_again(browser: TestClient, pair: tuple[str, str]) -> None:
    page = read(browser, f"/compare?baseline={pair[0]}&candidate=nonsense", status=404)
    assert "There is no checkpoint 'nonsense'." in page.text
    assert page.fields["baseline"] == pair[0]


# ---- roll back


@pytest.fixture
def fallen(session: Session) -> RunRow:
    """A run of 20 checkpoints whose math score fell by 20 points after step 14,000."""
    run = make_run(session, make_project(session, "lang"), "base")
    copy = ReplicaSpec("/shared/base", "shared", bytes=100_000_000_000)
    for number in range(1, 21):
        value = 0.4 + 0.05 * math.log(number) - (0.2 if number > 14 else 0)
        make_checkpoint(
            session,
            run,
            number * 1000,
            pieces=ALL_PIECES,
            saved_at=at("2026-11-01T00:00").replace(hour=number),
            replicas=(ReplicaSpec(f"{copy.uri}/{number}", "shared", bytes=copy.bytes),),
            scores=[scored("gsm8k", value, "exact_match"), scored("mathqa", value - 0.1, "acc", 2985)],
        )
    return run


def test_rollback_names_the_last_known_good_before_the_fall(browser: TestClient, fallen: RunRow) -> None:
    page = read(browser, f"/rollback?run={to_text(fallen.id)}&watch=math")
    assert "Go back to step 14000 of base" in page.answer
    assert "last known good base · 1 · 14 000" in page.text
    assert "after step 14 000, by 15 000" in page.text
    assert 'class="mark good"' in page.html
    assert 'class="band"' in page.html
    assert "probably bad already 6" in page.text
    assert "/shared/base/14" in page.text
    assert "Assumed, not measured:" in page.text


def test_rollback_gives_the_onset_as_csv(browser: TestClient, fallen: RunRow) -> None:
    rows = browser.get(f"/rollback.csv?run={to_text(fallen.id)}&watch=math").text.splitlines()
    assert len(rows) == 21
    assert rows[0] == "checkpoint,run,attempt,step,value,stderr,p_already_bad"
    assert float(rows[14].rsplit(",", 1)[1]) < 0.05 < float(rows[15].rsplit(",", 1)[1])


def test_rollback_without_a_watch_takes_the_newest(browser: TestClient, fallen: RunRow) -> None:
    page = read(browser, f"/rollback?run={to_text(fallen.id)}")
    assert page.answer.startswith("Go back to step 20000")
    page = read(browser, f"/rollback?run={to_text(fallen.id)}&step=5%20000")
    assert page.answer.startswith("Go back to step 5000")
    assert "beyond the step 15" in page.text


def test_rollback_shows_a_few_candidates_and_more_where_asked(browser: TestClient, fallen: RunRow) -> None:
    page = read(browser, f"/rollback?run={to_text(fallen.id)}")
    assert "base · 1 · 16 000" in page.text
    assert "base · 1 · 15 000" not in page.text
    assert "base · 1 · 1 000" in read(browser, page.links["Show more candidates"]).text


def test_rollback_takes_conditions_in_words_and_says_which_field_is_wrong(browser: TestClient, fallen: RunRow) -> None:
    path = f"/rollback?run={to_text(fallen.id)}"
    page = read(browser, f"{path}&where=gsm8k+%3E%3D+0.5")
    assert "Go back to step 14000" in page.answer
    wrong = read(browser, f"{path}&where=flurb&step=soon&watch=nonsense&after=someday")
    for words in (
        "The query names no capability, benchmark or field.",
        "expected a whole number",
        "No score of 'nonsense' is recorded",
        "expected a date",
    ):
        assert words in wrong.text


def test_rollback_that_leaves_nothing_names_the_filter_to_loosen(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 10, pieces=["weights"])
    page = read(browser, f"/rollback?run={to_text(run.id)}")
    assert page.answer.startswith("No checkpoint is left to go back to: of 1, 1 failed the filter 'pieces'.")
    assert "pieces absent or unknown 1" in page.text


def test_rolling_back_an_alias_leads_to_the_move(browser: TestClient, session: Session, fallen: RunRow) -> None:
    newest = make_checkpoint(session, fallen, 30_000, pieces=ALL_PIECES)
    move_alias(session, fallen.project_id, "production", newest, actor="x")
    assert browser.get("/rollback", follow_redirects=False).headers["location"] == "/rollback?alias=lang%2Fproduction"
    page = read(browser, "/rollback?alias=lang/production&watch=math")
    link = page.links["Move lang/production to the first candidate…"]
    assert link.startswith("/aliases/lang/production?to=")
    assert "Move it?" in read(browser, link).text
