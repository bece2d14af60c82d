"""Earlier pairs, built from a project's own runs, and what they say of a suspect."""

from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.evals.scores import NewScore
from registry.projects import ProjectRow
from registry.provenance.compare import compare_checkpoints
from registry.provenance.history import past_pairs
from registry.provenance.suspects import Suspect
from registry.resume_points import ResumePoint
from tests.factories import make_attempt, make_checkpoint, make_project, make_run, make_score


def mmlu(value: float, **known: Any) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042, **known)


def family(
    session: Session,
    project: ProjectRow,
    name: str | None,
    before: dict[str, Any],
    after: dict[str, Any],
    scores: tuple[float, float],
) -> list[int]:
    """Two consecutive checkpoints of a run."""
    run = make_run(session, project, model_family=name)
    return [
        make_checkpoint(session, run, step, config=config, scores=[mmlu(value)])
        for step, config, value in zip((100, 200), (before, after), scores, strict=True)
    ]


def asked(session: Session, project: ProjectRow) -> tuple[Suspect, ...]:
    """A fall in which both the loader's seed and the weight decay changed."""
    pair = family(
        session,
        project,
        "asked",
        {"data_seed": 1, "weight_decay": 0.1},
        {"data_seed": 2, "weight_decay": 0.2},
        (0.6, 0.5),
    )
    return compare_checkpoints(session, *pair).suspects


def test_a_change_that_went_together_with_falls_in_many_families_is_a_strong_suspect(session: Session) -> None:
    project = make_project(session)
    for place in range(8):
        family(session, project, f"f{place}", {"weight_decay": 0.1}, {"weight_decay": 0.2}, (0.6, 0.5))
        family(session, project, f"g{place}", {"data_seed": 1}, {"data_seed": 2}, (0.6, 0.6))
    first, second = asked(session, project)
    assert (first.changes, first.strength) == (("config.weight_decay",), "strong")
    assert first.association is not None
    assert (first.association.counts.a, first.association.counts.b) == (8, 0)
    assert first.association.is_shown
    assert any("an association" in reason and "not a cause" in reason for reason in first.reasons)
    assert second.changes == ("config.data_seed",)
    assert second.likelihood_ratio < 1 < first.likelihood_ratio


def test_pairs_of_one_family_are_one_witness(session: Session) -> None:
    project = make_project(session)
    for _ in range(12):
        family(session, project, "one", {"weight_decay": 0.1}, {"weight_decay": 0.2}, (0.6, 0.5))
    suspects = asked(session, project)
    for suspect in suspects:
        assert suspect.strength != "strong"
        assert suspect.likelihood_ratio == 1
    said = [reason for suspect in suspects for reason in suspect.reasons]
    assert "6 earlier pairs of 1 run family had this change: too few to say anything" in said


def test_runs_without_a_family_are_one_where_they_came_from_each_other(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    last = make_checkpoint(session, run, 100, config={"weight_decay": 0.0}, scores=[mmlu(0.6)])
    for place in range(6):
        child = make_run(session, project)
        make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=last))
        last = make_checkpoint(
            session, child, 200 + place, config={"weight_decay": 0.1 * (place + 1)}, scores=[mmlu(0.6 - 0.05 * place)]
        )
    pairs = past_pairs(session, project.id, ["knowledge"], without=(0, 0))
    assert len({pair.family for pair in pairs}) == 1
    assert len(pairs) == 6
    assert all("config.weight_decay" in pair.changed for pair in pairs)
    assert sum(pair.fell for pair in pairs) == 5


def test_changes_that_always_came_together_are_one_suspect(session: Session) -> None:
    project = make_project(session)
    for place in range(6):
        both = {"data_seed": 2, "weight_decay": 0.2}
        family(session, project, f"f{place}", {"data_seed": 1, "weight_decay": 0.1}, both, (0.6, 0.5))
        family(session, project, f"g{place}", {"data_seed": 1}, {"data_seed": 1}, (0.6, 0.6))
    (suspect,) = asked(session, project)
    assert set(suspect.changes) == {"config.data_seed", "config.weight_decay"}
    assert any("nothing tells them apart" in reason for reason in suspect.reasons)


def test_what_was_never_comparable_is_no_pair(session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    make_checkpoint(session, run, 1, config={"a": 1}, scores=[mmlu(0.6, n_shot=0)])
    make_checkpoint(session, run, 2, config={"a": 2}, scores=[mmlu(0.1, n_shot=5)])
    assert past_pairs(session, project.id, ["knowledge"], without=(0, 0)) == []


def test_other_projects_are_no_witnesses(session: Session) -> None:
    other, project = make_project(session), make_project(session)
    for place in range(8):
        family(session, other, f"f{place}", {"weight_decay": 0.1}, {"weight_decay": 0.2}, (0.6, 0.5))
    assert past_pairs(session, project.id, ["knowledge"], without=(0, 0)) == []
    for suspect in asked(session, project):
        assert suspect.strength != "strong"


def test_a_later_score_changes_what_a_pair_says(session: Session) -> None:
    project = make_project(session)
    _, new = family(session, project, "f", {"a": 1}, {"a": 2}, (0.6, 0.5))
    assert [pair.fell for pair in past_pairs(session, project.id, ["knowledge"], without=(0, 0))] == [True]
    make_score(session, new, "mmlu", 0.6, metric="acc", n_samples=14042)
    assert [pair.fell for pair in past_pairs(session, project.id, ["knowledge"], without=(0, 0))] == [False]


@pytest.mark.parametrize("side", [0, 1])
def test_the_pair_that_is_asked_about_is_no_witness_of_itself(session: Session, side: int) -> None:
    project = make_project(session)
    pair = family(session, project, "f", {"a": 1}, {"a": 2}, (0.6, 0.5))
    others = (pair[side], 0)
    assert past_pairs(session, project.id, ["knowledge"], without=others) == []
