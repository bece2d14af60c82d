"""Scores follow lossless edges, both ways, in whatever order edges and scores arrive; never a lossy edge."""

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.queries import list_checkpoints
from registry.checkpoints.registration import ParentSpec
from registry.evals.profile import profile
from registry.models import CurrentScore
from registry.projects import ProjectRow
from tests.factories import at, make_checkpoint, make_project, make_run, make_score


def copied(
    session: Session, project: ProjectRow, parent: int, relation: str = "converted_from", **known: object
) -> int:
    return make_checkpoint(session, make_run(session, project), parents=(ParentSpec(parent, relation),), **known)  # type: ignore[arg-type]


def found(session: Session, project: ProjectRow, filter: str, order_by: str = "") -> list[int]:
    page = list_checkpoints(session, project_ids={project.id}, filter=filter, order_by=order_by)
    return [row.checkpoint.id for row in page.rows]


def via_of(session: Session, checkpoint_id: int) -> int | None:
    return session.scalar(select(CurrentScore.via_checkpoint_id).where(CurrentScore.checkpoint_id == checkpoint_id))


@pytest.mark.parametrize("relation", ["converted_from", "resharded_from"])
def test_a_filter_and_an_order_see_the_score_of_a_lossless_copy(session: Session, relation: str) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project))
    copy = copied(session, project, source, relation, scores={"gsm8k": 0.7})
    other = make_checkpoint(session, make_run(session, project), scores={"gsm8k": 0.6})
    assert set(found(session, project, "scores.gsm8k > 0.5")) == {source, copy, other}
    assert found(session, project, "scores.gsm8k > 0.1", "scores.gsm8k")[0] == other
    assert (via_of(session, source), via_of(session, copy)) == (copy, None)


def test_the_score_of_the_source_counts_for_its_copy(session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), scores={"gsm8k": 0.7})
    copy = copied(session, project, source)
    assert via_of(session, copy) == source
    assert found(session, project, "scores.gsm8k = 0.7", "scores.gsm8k desc, step") == sorted(
        [source, copy], reverse=True
    ) or set(found(session, project, "scores.gsm8k = 0.7")) == {source, copy}
    shown = [one for each in profile(session, copy).capabilities for one in each.benchmarks]
    assert [(one.value, one.via) for one in shown] == [(0.7, True)]


def test_a_score_goes_along_a_chain_of_copies_and_back(session: Session) -> None:
    project = make_project(session)
    first = make_checkpoint(session, make_run(session, project))
    second = copied(session, project, first)
    third = copied(session, project, second, "resharded_from")
    make_score(session, third, "gsm8k", 0.4)
    assert set(found(session, project, "scores.gsm8k = 0.4")) == {first, second, third}


@pytest.mark.parametrize("relation", ["quantised_from", "merged_from", "fine_tuned_from", "distilled_from"])
def test_a_lossy_edge_carries_no_score(session: Session, relation: str) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project))
    child = copied(session, project, source, relation, scores={"gsm8k": 0.7})
    make_score(session, source, "mmlu", 0.3)
    assert found(session, project, "scores.gsm8k > 0.5") == [child]
    assert found(session, project, "scores.mmlu > 0.1") == [source]


def test_a_result_of_its_own_takes_the_place_even_if_it_is_older_or_not_finite(session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project))
    copied(session, project, source)
    newest = copied(session, project, source)
    make_score(session, newest, "gsm8k", 0.7, evaluated_at=at("2026-11-20"))
    assert set(found(session, project, "scores.gsm8k = 0.7")) >= {source, newest}
    make_score(session, source, "gsm8k", 0.5, evaluated_at=at("2026-11-01"))
    assert source in found(session, project, "scores.gsm8k = 0.5")
    assert via_of(session, source) is None
    make_score(session, newest, "gsm8k", 0.8, evaluated_at=at("2026-11-21"))
    assert found(session, project, "scores.gsm8k = 0.5") == [source]


def test_of_several_copies_the_one_evaluated_last_counts_and_a_finite_one_before_one_that_is_not(
    session: Session,
) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project))
    first, second = copied(session, project, source), copied(session, project, source)
    make_score(session, first, "gsm8k", float("nan"), evaluated_at=at("2026-11-25"))
    assert source in found(session, project, "scores.gsm8k is nan")
    make_score(session, second, "gsm8k", 0.5, evaluated_at=at("2026-11-20"))
    assert source in found(session, project, "scores.gsm8k = 0.5")
    assert first in found(session, project, "scores.gsm8k is nan")
