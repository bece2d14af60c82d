"""The profile of one checkpoint."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.evals.profile import CapabilityStanding, profile
from registry.evals.scores import NewScore
from registry.projects import ProjectRow
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
