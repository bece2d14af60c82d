"""What the pages of the three questions answer first, and how they prove it: find, compare, roll back."""

import math
import re
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import move_alias
from registry.checkpoints.registration import ParentSpec, ReplicaSpec
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.snapshots import DataSpec, SourceSpec
from registry.types import Relation
from tests.factories import ALL_PIECES, at, make_attempt, make_checkpoint, make_project, make_run
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
    assert "not understood flurb left out of the search" in page.text
    assert "Not understood and left out: ‘flurb’." in page.text


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
    assert table.fields["order_by"] == "capabilities.math desc"
    assert table.text.index("model-23") < table.text.index("model-20")
    assert "model-23" in table.text


def test_a_filter_gives_a_table_that_sorts_by_its_columns(browser: TestClient, models: list[RunRow]) -> None:
    page = read(browser, "/find?mode=filter&filter=scores.gsm8k+%3E+0.305&columns=scores.gsm8k&order_by=scores.gsm8k")
    assert page.answer == "3 checkpoints match."
    assert page.text.index("model-21") < page.text.index("model-23")
    turned = read(browser, page.links["scores.gsm8k"])
    assert turned.text.index("model-23") < turned.text.index("model-21")
    assert "scores.gsm8k is read as" in page.text


def test_a_filter_over_all_projects_names_those_that_measured_otherwise(
    browser: TestClient, models: list[RunRow], session: Session
) -> None:
    run = make_run(session, make_project(session, "other"))
    make_checkpoint(session, run, 1000, scores=[scored("gsm8k", 0.5, "ours")])
    page = read(browser, "/find?mode=filter&filter=scores.gsm8k+%3E+0.305")
    assert page.answer == "3 checkpoints match."
    assert "scores.gsm8k is read as scores.gsm8k.exact_match." in page.text
    assert "other has scores.gsm8k.ours only and is left out." in page.text


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


def test_a_filter_without_a_mode_is_asked_and_never_left_out_silently(
    browser: TestClient, models: list[RunRow]
) -> None:
    assert read(browser, "/find?filter=scores.gsm8k+%3E+0.305").answer == "3 checkpoints match."
    words = read(browser, "/find?q=strong+math&filter=step+%3E+5&mode=words")
    assert "filter of the address was left out" in words.text
    table = read(browser, "/find?mode=filter&q=strong+math")
    assert "the words ‘strong math’ were left out" in table.text
    assert "‘flurb’ is no way to ask" in read(browser, "/find?mode=flurb").text


def test_large_counts_read_alike_in_a_table(browser: TestClient, session: Session) -> None:
    run = make_run(session, parameter_count=6_700_000_000)
    make_checkpoint(session, run, 10, tokens_seen=270_100_000_000)
    page = read(browser, "/find?mode=filter&columns=tokens_seen,run.parameter_count")
    assert "270 B" in page.text
    assert "6.7 B" in page.text
    assert 'title="270100000000"' in page.html


def test_a_skill_that_nobody_was_evaluated_on_is_said_in_one_sentence(
    browser: TestClient, models: list[RunRow]
) -> None:
    page = read(browser, "/find?q=strong+math+but+weak+chat")
    assert "No checkpoint was evaluated on chat, which is unknown, not weak; 5 meet every other condition." in page.text
    assert page.text.count("evaluated on chat") == 1


def test_a_project_is_named_in_words(browser: TestClient, session: Session, models: list[RunRow]) -> None:
    page = read(browser, "/find?q=strong+math+in+project+lang")
    assert "project = lang" in page.text
    assert "not understood" not in page.text
    assert "checkpoints are strong at math and in project lang; model-23" in page.answer
    assert page.links["the same as a filter"].endswith("&project=lang")
    assert "model-23" in read(browser, page.links["the same as a filter"]).text


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
    mix = page.text.partition("Data mix")[2]
    assert re.search(r"\d% of the \w+ .*?\. figures", mix)  # in words; the terms of it for who opens them
    assert "total variation" in mix
    assert "Jensen-Shannon" in mix
    assert "the share that is expected to be chance: 0.05 is one in twenty" in page.text
    assert "40.0%" in page.text
    assert "Evaluated on one side only, so not compared: 1 on the baseline, 1 on the candidate." in page.text
    assert "lr" in page.text
    assert page.links["Swap the two"] == f"/compare?baseline={pair[1]}&candidate={pair[0]}"


def test_a_comparison_the_other_way_round_rises(browser: TestClient, pair: tuple[str, str]) -> None:
    page = read(browser, f"/compare?baseline={pair[1]}&candidate={pair[0]}")
    assert page.answer.startswith("Math rose 1")
    assert page.answer.endswith("nothing fell beyond its uncertainty.")


def test_where_nothing_fell_no_cause_is_looked_for(browser: TestClient, session: Session) -> None:
    """One benchmark of many is lower by chance: it is suspected, and nothing is said to have fallen."""
    others = [scored(name, 0.6, "acc", 900) for name in ("piqa", "boolq", "sciq", "race", "copa")]
    sides = [
        {"scores": [scored("mmlu", value, "acc", 1600), scored("gsm8k", math_, "acc"), *others], "config": {"lr": lr}}
        for value, math_, lr in ((0.60, 0.2, 1e-3), (0.57, 0.6, 2e-3))
    ]
    page = read(browser, pair_of(session, *sides))
    assert page.answer.startswith("Math rose")
    assert "nothing fell beyond its uncertainty" in page.answer
    assert "suspected" in page.text  # the row of mmlu
    assert "1 benchmark of 7 is suspected below: by chance alone some would be." in page.text
    assert 'id="suspects"' not in page.html
    assert 'id="search"' not in page.html
    assert "After which checkpoint did it fall?" not in page.text


def test_the_parts_of_a_benchmark_count_as_one(browser: TestClient, session: Session) -> None:
    parts = [scored(f"hendrycksTest-{name}", 0.4, "acc", 100) for name in ("anatomy", "astronomy", "virology")]
    side = {"scores": [*parts, scored("arc_easy", 0.6, "acc")]}
    page = read(browser, pair_of(session, side, side))
    assert "Knowledge 2 benchmarks (4 with their parts)" in page.text
    assert "the mean of the parts counts as one" in page.text


def pair_of(session: Session, *known: dict[str, Any]) -> str:
    """The address of a comparison of two checkpoints of one project."""
    project = make_project(session)
    old, new = (to_text(make_checkpoint(session, make_run(session, project), 1000, **each)) for each in known)
    return f"/compare?baseline={old}&candidate={new}"


def test_the_words_of_a_benchmark_have_the_figures_of_its_row(browser: TestClient, session: Session) -> None:
    """Four choices: on the common scale a fall of 3.0 points would be 4.0. Alone it is sure, among others it is not."""
    others = [scored(name, 0.6, "acc", 900) for name in ("piqa", "boolq", "sciq", "race", "copa")]
    sides = ({"scores": [scored("mmlu", value, "acc", 1600), *others]} for value in (0.60, 0.57))
    page = read(browser, pair_of(session, *sides))
    assert "mmlu acc" in page.text
    assert "−3.0 ± 1.7" in page.text
    assert "fell by 3.0 points with p = 0.043, but q = 0.26" in page.text
    assert "4.0 points" not in page.text


def test_where_lower_is_better_number_words_and_drawing_point_one_way(browser: TestClient, session: Session) -> None:
    page = read(browser, pair_of(session, *({"scores": [scored("wmdp", value, "acc")]} for value in (0.30, 0.45))))
    assert "acc, lower is better" in page.text
    assert "on its own scale" not in page.text
    assert "+15.0 ± 1.9" in page.text
    assert any("lower is better: rose by 15.0 points with q" in value for _, _, value in page.attributes)
    benchmarks = page.html.partition('id="scores"')[2]
    drawn = re.search(r'<svg class="whisker regressed".*?</svg>', benchmarks, re.S)
    assert drawn is not None
    places = [float(each) for each in re.findall(r'x[12]="([\d.]+)"', drawn.group(0))][2:]
    assert len(places) == 2
    assert all(place > 60 for place in places)  # right of the line of no change


def test_a_loss_of_perplexity_has_no_points_and_a_score_alone_got_worse(browser: TestClient, session: Session) -> None:
    ppl = [{"scores": [NewScore("wikitext", value, metric="word_perplexity", stderr=0.05)]} for value in (8.0, 9.0)]
    assert read(browser, pair_of(session, *ppl)).answer.startswith("Language modelling fell 0.12 in −ln of perplexity;")
    bias = [NewScore("crows_pairs_english", value, metric="likelihood_difference", stderr=0.1) for value in (3.4, 4.3)]
    page = read(browser, pair_of(session, *({"scores": [each]} for each in bias)))
    assert page.answer.startswith("crows_pairs_english got worse, though no capability did as a whole;")
    assert "on its own scale" in page.text


def test_what_no_sample_size_allows_is_not_called_detectable(browser: TestClient, session: Session) -> None:
    few = NewScore("boolq", 0.6, metric="acc", n_samples=5)
    page = read(browser, pair_of(session, {"scores": [few]}, {"scores": [few]}))
    assert "none" in page.text
    assert any("no change that is possible on this scale" in value for _, _, value in page.attributes)


def test_what_one_side_did_not_record_is_never_the_headline(browser: TestClient, session: Session) -> None:
    whole = {"lr": 1e-3, "open_lm": {f"option{number}": number for number in range(14)}}
    fall = [{"scores": [scored("gsm8k", value, "exact_match")]} for value in (0.6, 0.4)]
    page = read(browser, pair_of(session, {**fall[0], "config": whole}, {**fall[1], "config": {"lr": 1e-3}}))
    assert page.answer.endswith("points; no recorded change explains it.")
    assert "the candidate recorded nothing of open_lm (14 values)." in page.text
    assert "open_lm.option3 not recorded on the candidate" in page.text
    assert "removed" not in page.text
    assert "Unknown: no environment is recorded for the baseline and the candidate." in page.text
    assert 'id="suspects"' not in page.html


def test_weak_suspects_are_never_the_headline(browser: TestClient, session: Session) -> None:
    fall = [{"scores": [scored("gsm8k", value, "exact_match")]} for value in (0.6, 0.4)]
    even = [{f"option{number}": side for number in range(12)} for side in (1, 2)]
    page = read(browser, pair_of(session, {**fall[0], "config": even[0]}, {**fall[1], "config": even[1]}))
    assert page.answer.endswith("points; no change stands out.")
    assert "No change stands out: the evidence against each of these is weak." in page.text


def test_data_sets_known_by_name_alone_have_not_moved_by_100_percent(browser: TestClient, session: Session) -> None:
    sides = ({"data_version": DataSpec(name, {name: SourceSpec(1.0)})} for name in ("c4", "pile"))
    page = read(browser, pair_of(session, *sides))
    assert "Another data version (c4 → pile); their mixes are not recorded." in page.text
    assert "mix moved" not in page.text


def test_what_was_seen_before_a_fork_is_counted_in_the_mix(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    base, child = make_run(session, project), make_run(session, project)
    pile, swapped = (DataSpec(name, {name: SourceSpec(1.0)}) for name in ("pile", "swapped"))
    fork = make_checkpoint(session, base, 900, data_version=pile, tokens_seen=900)
    old = make_checkpoint(session, base, 1000, data_version=pile, tokens_seen=1000)
    make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=fork))
    new = make_checkpoint(session, child, 1000, data_version=swapped, tokens_seen=1000)
    page = read(browser, f"/compare?baseline={to_text(old)}&candidate={to_text(new)}")
    assert "10% of the tokens seen came from other sources" in page.text
    assert "90.0%" in page.text


def test_how_the_candidate_was_made_is_the_first_thing_said_of_a_fall(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), 10, scores=[scored("boolq", 0.8, "acc", 3270)])
    parents = [ParentSpec(source, Relation.QUANTISED)]
    made = make_checkpoint(
        session, make_run(session, project), 10, scores=[scored("boolq", 0.7, "acc", 3270)], parents=parents
    )
    page = read(browser, f"/compare?baseline={to_text(source)}&candidate={to_text(made)}")
    assert page.answer.endswith("; the candidate was quantised from the baseline.")
    assert "The candidate was quantised from the baseline." in page.text
    assert "lineage.quantised_from" in page.text


def test_copies_have_the_same_weights_whatever_their_evaluations_say(browser: TestClient, session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), 10, scores=[scored("boolq", 0.8, "acc", 3270)])
    parents = [ParentSpec(source, Relation.CONVERTED)]

    def compared(scores: list[NewScore]) -> Page:
        copy = make_checkpoint(session, make_run(session, project), 10, scores=scores, parents=parents)
        return read(browser, f"/compare?baseline={to_text(source)}&candidate={to_text(copy)}")

    same, other = compared([]), compared([scored("boolq", 0.7, "acc", 3270)])
    assert same.answer == "The two have the same weights: nothing got better or worse."
    assert "the same evaluation" in same.text
    assert other.answer == "The two have the same weights, but 1 evaluation differs."
    assert "evaluation noise or another way of evaluating: the weights are the same" in other.text
    assert "Suspects" not in other.text


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
    assert "'nonsense' does not name a checkpoint. A checkpoint is named by its id, by project/run@step" in page.text
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
    assert "Go back to step 14 000 of base" in page.answer
    assert "last known good base · 1 · 14 000" in page.text
    assert "after step 14 000, by 15 000" in page.text
    assert 'class="mark good"' in page.html
    assert 'class="band"' in page.html
    assert "may be bad already 6" in page.text
    assert "/shared/base/14" in page.text
    assert "Assumed, not measured:" in page.text


def test_rollback_gives_the_onset_as_csv(browser: TestClient, fallen: RunRow) -> None:
    rows = browser.get(f"/rollback.csv?run={to_text(fallen.id)}&watch=math").text.splitlines()
    assert len(rows) == 21
    assert rows[0] == "checkpoint,run,attempt,step,value,stderr,p_already_bad"
    assert float(rows[14].rsplit(",", 1)[1]) < 0.05 < float(rows[15].rsplit(",", 1)[1])


def test_rollback_without_a_watch_takes_the_newest(browser: TestClient, fallen: RunRow) -> None:
    page = read(browser, f"/rollback?run={to_text(fallen.id)}")
    assert page.answer.startswith("You did not say what got worse, and math fell between steps 14 000 and 15 000")
    assert "step 20 000 of base (attempt 1) costs the least time to go back to, fallen or not" in page.answer
    assert 'class="answer tone warn"' in page.html
    assert "Go back to step 14 000 of base" in read(browser, page.links["Go back to before math fell"]).answer
    page = read(browser, f"/rollback?run={to_text(fallen.id)}&step=5%20000")
    assert "Step 5 000 of base (attempt 1) is from before; of all candidates it costs the least" in page.answer
    assert "beyond the step 15" in page.text


def test_rollback_shows_a_few_candidates_and_more_where_asked(browser: TestClient, fallen: RunRow) -> None:
    page = read(browser, f"/rollback?run={to_text(fallen.id)}")
    assert "base · 1 · 16 000" in page.text
    assert "base · 1 · 15 000" not in page.text
    assert "base · 1 · 1 000" in read(browser, page.links["Show more candidates"]).text


def test_rollback_takes_conditions_in_words_and_says_which_field_is_wrong(browser: TestClient, fallen: RunRow) -> None:
    path = f"/rollback?run={to_text(fallen.id)}"
    page = read(browser, f"{path}&where=gsm8k+%3E%3D+0.5")
    assert "Step 14 000 of base (attempt 1) is from before" in page.answer
    wrong = read(browser, f"{path}&where=flurb&step=soon&watch=nonsense&after=someday")
    for words in (
        "The query names no capability, benchmark or field.",
        "expected a whole number",
        "No score of 'nonsense' is recorded",
        "expected a date",
        "The step ‘soon’ was left out: expected a whole number.",
        "The day from ‘someday’ was left out: expected a date such as 2026-11-01.",
    ):
        assert words in wrong.text
    before_the_answer = wrong.html.partition('class="answer')[0]
    assert "‘soon’ was left out" in before_the_answer.replace("\u202f", " ")


def test_a_file_of_a_question_that_was_not_understood_is_refused(browser: TestClient, fallen: RunRow) -> None:
    answer = browser.get(f"/rollback.csv?run={to_text(fallen.id)}&watch=math&step=soon")
    assert answer.status_code == 400
    assert "The step ‘soon’ was left out" in Page(answer.text).text


def test_what_is_true_of_every_candidate_is_said_once(browser: TestClient, fallen: RunRow) -> None:
    page = read(browser, f"/rollback?run={to_text(fallen.id)}")
    words = "A restore is assumed to work in 60% of cases (evidence: none)"
    assert page.text.count(words) == 1
    assert f"True of each: {words}." in page.text
    table = page.html.partition('id="candidates"')[2].partition("</table>")[0]
    assert "If it does not load" in table
    assert "from step 19\u202f000" in table


def test_times_that_nobody_gave_are_said_where_a_time_is_asked_for(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    copy = (ReplicaSpec("/shared/1", "shared", bytes=10**11),)
    make_checkpoint(session, run, 10, pieces=ALL_PIECES, replicas=copy)
    make_checkpoint(session, run, 20, pieces=ALL_PIECES, replicas=copy, saved_at=at("2026-11-01"))
    words = "Nobody said when 1 of 2 checkpoints was saved: the times asked for were held against the arrival"
    path = f"/rollback?run={to_text(run.id)}"
    assert words in read(browser, f"{path}&after=2026-10-01").text
    assert words not in read(browser, path).text


def test_an_unasked_rollback_opens_on_what_has_an_answer(browser: TestClient, session: Session, fallen: RunRow) -> None:
    """Not on the alias that was moved last, whose run saved nothing else."""
    lonely = make_run(session, make_project(session, "other"), "single")
    move_alias(
        session, lonely.project_id, "production", make_checkpoint(session, lonely, 1, pieces=ALL_PIECES), actor="x"
    )
    answer = browser.get("/rollback", follow_redirects=False)
    assert answer.headers["location"] == f"/rollback?run={to_text(fallen.id)}"
    assert read(browser, answer.headers["location"]).answer.startswith("You did not say what got worse")
    asked = read(browser, "/rollback?step=soon&limit=-1")  # what else the address says is not lost on the way
    assert "The step ‘soon’ was left out" in asked.text
    assert "This page has no parameter ‘limit’" in asked.text
    move_alias(session, fallen.project_id, "best", make_checkpoint(session, fallen, 30_000), actor="x")
    move_alias(session, lonely.project_id, "newer", make_checkpoint(session, lonely, 2), actor="x")
    assert browser.get("/rollback", follow_redirects=False).headers["location"] == "/rollback?alias=lang%2Fbest"


def test_an_unasked_comparison_takes_the_newest_run_with_two_checkpoints(browser: TestClient, session: Session) -> None:
    run = make_run(session, name="longer")
    old, new = (to_text(make_checkpoint(session, run, step, saved_at=at("2026-11-01"))) for step in (10, 20))
    for day in range(2, 5):
        make_checkpoint(session, make_run(session), 1, saved_at=at(f"2026-11-0{day}"))
    answer = browser.get("/compare", follow_redirects=False)
    assert answer.headers["location"] == f"/compare?baseline={old}&candidate={new}"


def test_rollback_that_leaves_nothing_names_the_filter_to_loosen(browser: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 10, pieces=["weights"])
    page = read(browser, f"/rollback?run={to_text(run.id)}")
    assert page.answer == (
        "No checkpoint is left to go back to: the only checkpoint was left out (pieces absent or unknown). To loosen "
        "that, both: record the pieces of the checkpoints; record or restore a copy of one of the checkpoints."
    )
    assert "pieces absent or unknown 1" in page.text


def test_rolling_back_an_alias_leads_to_the_move(browser: TestClient, session: Session, fallen: RunRow) -> None:
    newest = make_checkpoint(session, fallen, 30_000, pieces=ALL_PIECES)
    move_alias(session, fallen.project_id, "production", newest, actor="x")
    assert browser.get("/rollback", follow_redirects=False).headers["location"] == "/rollback?alias=lang%2Fproduction"
    page = read(browser, "/rollback?alias=lang/production&watch=math")
    link = page.links["Move lang/production to the first candidate…"]
    assert link.startswith("/aliases/lang/production?to=")
    assert "Move it?" in read(browser, link).text


def test_a_search_page_begins_with_the_strongest_at_each_capability(browser: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "llm"), "base")
    weak, strong = (
        make_checkpoint(session, run, step, scores=[scored("gsm8k", math, "exact_match"), scored("piqa", piqa, "acc")])
        for step, math, piqa in ((1000, 0.10, 0.80), (2000, 0.60, 0.60))
    )
    page = read(browser, "/find")
    assert "base at step 2 000 is the strongest at math." in page.text
    first, second = (page.html.index(f"/checkpoints/{to_text(each)}") for each in (strong, weak))
    assert first < second
    assert page.links["Math"].startswith("/find?q=strong+math")
    assert "strongest" not in read(browser, "/find?project=llm&mode=filter").text


def test_a_search_page_of_an_empty_registry_asks(browser: TestClient) -> None:
    assert "Say what the checkpoint should be good and bad at." in read(browser, "/find").text
