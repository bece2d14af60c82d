"""The profile of one checkpoint."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.queries import list_checkpoints
from registry.evals.profile import CapabilityStanding, profile
from registry.evals.scores import NewScore
from registry.projects import ProjectRow
from registry.search.query import search_checkpoints
from tests.factories import make_checkpoint, make_project, make_run


def peers(session: Session, project: ProjectRow, count: int = 20, parameter_count: int | None = None) -> list[int]:
    return [
        make_checkpoint(
            session,
            make_run(session, project, parameter_count=parameter_count),
            scores={"gsm8k": place / count, "asdiv": place / count},
        )
        for place in range(count)
    ]


def standing(session: Session, checkpoint_id: int, capability: str) -> CapabilityStanding:
    (found,) = [each for each in profile(session, checkpoint_id).capabilities if each.capability == capability]
    return found


def test_a_profile_says_where_a_checkpoint_stands_and_on_what_evidence(session: Session) -> None:
    project = make_project(session)
    peers(session, project)
    scores = [NewScore("gsm8k", 0.5, stderr=0.01), NewScore("asdiv", 0.5), NewScore("lambada_openai", 9.0, "ppl")]
    checkpoint = make_checkpoint(session, make_run(session, project), scores=scores)
    math = standing(session, checkpoint, "math")
    assert math.percentile == pytest.approx(0.5, abs=0.03)
    assert math.composite == pytest.approx(0.5)
    assert (math.coverage, math.population_size, math.warning) == (1.0, 21, None)
    assert {(each.benchmark, each.stderr) for each in math.benchmarks} == {("gsm8k", 0.01), ("asdiv", None)}
    assert (math.title, math.title_zh) == ("Math", "数学")


def test_what_was_not_evaluated_is_listed_as_such(session: Session) -> None:
    checkpoint = make_checkpoint(session, scores={"gsm8k": 0.5})
    found = profile(session, checkpoint)
    assert "chat" in found.not_evaluated
    assert "math" not in found.not_evaluated


def test_a_small_population_gives_no_percentile_and_says_so(session: Session) -> None:
    checkpoint = make_checkpoint(session, scores={"gsm8k": 0.5, "asdiv": 0.5})
    math = standing(session, checkpoint, "math")
    assert math.percentile is None
    assert math.composite == pytest.approx(0.5)
    assert math.warning is not None
    assert "too few" in math.warning


def test_the_percentile_among_models_of_its_size_stands_beside(session: Session) -> None:
    project = make_project(session)
    small = peers(session, project, parameter_count=1_400_000_000)
    for place in range(20):
        run = make_run(session, project, parameter_count=7_000_000_000)
        make_checkpoint(session, run, scores={"gsm8k": 0.99 + place / 10_000, "asdiv": 0.99 + place / 10_000})
    math = standing(session, small[-1], "math")
    assert math.percentile == pytest.approx(0.4875)
    assert math.percentile_for_size == pytest.approx(0.975)


def test_a_pending_checkpoint_has_a_profile_and_is_no_peer(session: Session) -> None:
    project = make_project(session)
    peers(session, project)
    scores = {"gsm8k": 0.99, "asdiv": 0.99}
    checkpoint = make_checkpoint(session, make_run(session, project), scores=scores, state="pending")
    math = standing(session, checkpoint, "math")
    assert (math.percentile, math.population_size) == (1.0, 20)


def test_benchmarks_that_nobody_knows_are_listed(session: Session) -> None:
    scores = [NewScore("our_bench", 0.5), NewScore("gsm8k", 0.5), NewScore("our_loss", 2.0, "loss")]
    found = profile(session, make_checkpoint(session, scores=scores))
    assert found.unknown == ("our_bench",)


def test_only_unknown_benchmarks_are_listed_too(session: Session) -> None:
    found = profile(session, make_checkpoint(session, scores={"our_bench": 0.5}))
    assert found.capabilities == ()
    assert found.unknown == ("our_bench",)


def test_a_value_off_its_scale_is_shown_and_marked(session: Session) -> None:
    project = make_project(session)
    peers(session, project)
    checkpoint = make_checkpoint(session, make_run(session, project), scores={"gsm8k": 62.5, "asdiv": 0.5})
    marks = {each.benchmark: each.off_scale for each in standing(session, checkpoint, "math").benchmarks}
    assert marks == {"gsm8k": True, "asdiv": False}


def test_a_checkpoint_without_scores_has_an_empty_profile(session: Session) -> None:
    found = profile(session, make_checkpoint(session))
    assert found.capabilities == ()
    assert len(found.not_evaluated) == 13


def test_an_unknown_checkpoint_is_refused(session: Session) -> None:
    with pytest.raises(CheckpointNotFound):
        profile(session, 42)


def test_profile_search_and_filter_read_the_same_metric_of_a_benchmark(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    both = make_checkpoint(session, run, 1, scores=[NewScore("gsm8k", 0.52), NewScore("gsm8k", 0.53, "acc")])
    for step in (2, 3):
        make_checkpoint(session, run, step, scores={"gsm8k": 0.1})
    (used, other) = standing(session, both, "math").benchmarks
    assert [(each.metric, each.value) for each in (used, other)] == [("acc", 0.53), ("", 0.52)]
    answer = search_checkpoints(session, project_ids=[project.id], query="strong math, gsm8k > 0.4")
    shown = {each.checkpoint.id: [one.benchmarks[0].value for one in each.evidence] for each in answer.results}
    assert shown[both] == [0.53, 0.53]
    assert answer.interpretation.resolved == {"scores.gsm8k": "scores.gsm8k.acc.none"}
    page = list_checkpoints(session, project_ids=[project.id], filter="scores.gsm8k > 0.4")
    assert [row.values["scores.gsm8k"] for row in page.rows] == [0.53]
    assert page.resolved == answer.interpretation.resolved


def test_the_metric_of_one_benchmark_is_the_tables_first_however_many_have_another(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    strict, flexible = (("exact_match", f"{name}") for name in ("strict-match", "flexible-extract"))
    scores = [NewScore("gsm8k", 0.2, *strict), NewScore("gsm8k", 0.3, *flexible)]
    one = make_checkpoint(session, run, 1, scores=scores)
    make_checkpoint(session, run, 2, scores=scores[:1])
    assert standing(session, one, "math").benchmarks[0].filter == "flexible-extract"


def test_a_metric_that_the_others_do_not_have_is_named_where_it_is_not_ranked(session: Session) -> None:
    project = make_project(session)
    peers(session, project)
    one = make_checkpoint(session, make_run(session, project), scores=[NewScore("gsm8k", 0.5, "acc")])
    warning = standing(session, one, "math").warning
    assert warning is not None
    assert (
        "Its gsm8k is recorded as acc, and that of others without a metric: two metrics are never compared." in warning
    )


def test_a_percent_among_shares_is_shown_and_never_ranked(session: Session) -> None:
    project = make_project(session)
    peers(session, project)
    odd = make_checkpoint(session, make_run(session, project), scores={"gsm8k": 52.0, "asdiv": 0.5})
    by_name = {each.benchmark: each for each in standing(session, odd, "math").benchmarks}
    assert (by_name["gsm8k"].off_scale, by_name["gsm8k"].percentile) == (True, None)
    assert standing(session, odd, "math").percentile == pytest.approx(0.5, abs=0.03)
