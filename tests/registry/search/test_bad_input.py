"""Populations that say little or nothing: each answers with its reason, and none fails."""

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.registration import ParentSpec
from registry.evals.profile import profile
from registry.search import fields
from registry.search.query import search_checkpoints
from tests.factories import make_checkpoint, make_project, make_run

MATH = ("gsm8k", "asdiv")
NAN = float("nan")


def test_one_checkpoint_alone_is_compared_by_its_own_score_and_that_is_said(session: Session) -> None:
    project = make_project(session)
    one = make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, 0.9))
    answer = search_checkpoints(session, project_ids=[project.id], query="strong math")
    assert [result.checkpoint.id for result in answer.results] == [one]
    assert "1 checkpoint of 1 run is too few" in answer.population.warnings[0]
    like = search_checkpoints(session, project_ids=[project.id], like=one)
    assert like.results == ()
    assert "No other checkpoint of the project was judged" in like.population.warnings[-1]


def test_equal_checkpoints_stand_in_the_middle_and_none_is_strong(session: Session) -> None:
    project = make_project(session)
    ids = [make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, 0.5)) for _ in range(25)]
    answer = search_checkpoints(session, project_ids=[project.id], query="strong math")
    assert not answer.strict
    assert {result.evidence[0].percentile for result in answer.results} == {0.5}
    assert [result.checkpoint.id for result in answer.results] == ids[:20]
    like = search_checkpoints(session, project_ids=[project.id], like=ids[0])
    assert {result.score for result in like.results} == {1.0}


def test_no_scores_at_all_is_said_for_each_condition(session: Session) -> None:
    project = make_project(session)
    one = make_checkpoint(session, make_run(session, project))
    answer = search_checkpoints(session, project_ids=[project.id], query="strong math, gsm8k > 0.5")
    assert (answer.strict, answer.results, answer.incomplete) == (False, (), ())
    assert len(answer.population.warnings) == 2
    like = search_checkpoints(session, project_ids=[project.id], like=one)
    assert like.results == ()
    assert like.population.warnings == (
        "It has no score of a capability that could be judged, so nothing can be like it.",
    )


def test_all_nan_is_no_score(session: Session) -> None:
    project = make_project(session)
    ids = [make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, NAN)) for _ in range(25)]
    for query in ("strong math", "weak math", "gsm8k > 0.1", "gsm8k < 0.9"):
        answer = search_checkpoints(session, project_ids=[project.id], query=query)
        assert (answer.strict, answer.results) == (False, ())
        assert answer.population.warnings
    assert profile(session, ids[0]).capabilities == ()
    assert "math" in profile(session, ids[0]).not_evaluated
    assert search_checkpoints(session, project_ids=[project.id], like=ids[0]).results == ()


def test_a_checkpoint_that_nobody_may_see_is_not_there(session: Session) -> None:
    project, other = make_project(session), make_project(session)
    one = make_checkpoint(session, make_run(session, other), scores={"gsm8k": 0.5})
    for number in (one, 7):
        with pytest.raises(CheckpointNotFound):
            search_checkpoints(session, project_ids=[project.id], like=number)


def test_a_lossless_copy_is_not_like_its_source_but_the_same(session: Session) -> None:
    project = make_project(session)
    ids = [
        make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, place / 25))
        for place in range(25)
    ]
    parents = (ParentSpec(ids[12], "converted_from"),)
    copy = make_checkpoint(session, make_run(session, project), parents=parents)
    found = search_checkpoints(session, project_ids=[project.id], like=copy)
    assert {result.checkpoint.id for result in found.results[:2]} == {ids[11], ids[13]}
    assert ids[12] not in [result.checkpoint.id for result in found.results]


def test_who_shares_little_is_not_the_most_alike(session: Session) -> None:
    project = make_project(session)
    chat = ("mt_bench", "alignbench")
    scored = [
        make_checkpoint(
            session,
            make_run(session, project),
            scores={**dict.fromkeys(MATH, place / 25), **dict.fromkeys(chat, 1 + place / 3)},
        )
        for place in range(25)
    ]
    partly = make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, 12 / 25))
    found = search_checkpoints(session, project_ids=[project.id], like=scored[12]).results
    assert {result.checkpoint.id for result in found[:2]} == {scored[11], scored[13]}
    (little,) = [result for result in found if result.checkpoint.id == partly] or [None]
    assert little is None or little.score == pytest.approx(1 - 1 / 6, abs=0.02)


def test_fields_that_leave_many_are_checked_for_the_best_candidates_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As among a million checkpoints, where what the fields allow is too much to fetch."""
    project = make_project(session)
    ids = [
        make_checkpoint(
            session,
            make_run(session, project),
            tags={"phase": "sft" if place % 3 == 0 else "dpo"},
            scores=dict.fromkeys(MATH, place / 30),
        )
        for place in range(30)
    ]
    question = [
        {"capability": "math", "relation": "strong"},
        {"field": "tags.phase", "relation": "=", "threshold": "sft"},
    ]
    whole = search_checkpoints(session, project_ids=[project.id], conditions=question)
    rare = [question[0], {"field": "tags.phase", "relation": "=", "threshold": "nobody"}]
    monkeypatch.setattr(fields, "FEW", 1)
    monkeypatch.setattr("registry.search.answering.BATCH", 2)
    checked = search_checkpoints(session, project_ids=[project.id], conditions=question)
    assert checked.strict
    assert [each.checkpoint.id for each in checked.results] == [each.checkpoint.id for each in whole.results]
    assert {each.checkpoint.id for each in checked.results} <= set(ids[::3])
    monkeypatch.setattr("registry.search.answering.MAX_CHECKED", 3)
    again = search_checkpoints(session, project_ids=[project.id], conditions=question, limit=2)
    assert [each.checkpoint.id for each in again.results] == [each.checkpoint.id for each in whole.results][:2]
    weak = [{"capability": "math", "relation": "strong", "threshold": 0.97}, question[1]]
    nearest = search_checkpoints(session, project_ids=[project.id], conditions=weak, limit=1)
    assert not nearest.strict
    assert nearest.results[0].checkpoint.id == whole.results[0].checkpoint.id
    assert search_checkpoints(session, project_ids=[project.id], conditions=rare).results == ()


def test_the_newest_of_those_that_meet_everything(session: Session) -> None:
    project = make_project(session)
    ids = [
        make_checkpoint(session, make_run(session, project), scores=dict.fromkeys(MATH, place / 25))
        for place in range(25)
    ]
    newest = search_checkpoints(session, project_ids=[project.id], query="latest checkpoint with strong math")
    assert newest.interpretation.order == "newest"
    assert {result.checkpoint.id for result in newest.results} == set(ids[20:])
    times = [result.checkpoint.saved_at for result in newest.results]
    assert times == sorted(times, reverse=True)
    everything = search_checkpoints(session, project_ids=[project.id], query="oldest")
    assert [result.checkpoint.id for result in everything.results][:3] == ids[:3]
