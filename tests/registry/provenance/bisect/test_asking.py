"""A search over recorded checkpoints, on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.checkpoints.registration import ParentSpec
from registry.db import Database
from registry.evals.scores import NewScore
from registry.provenance.bisect import BisectAnswer, BisectNotFound, Target, get_bisect, observe, start_bisect
from registry.provenance.bisect.asking import NotOfThisSearch, OffScale
from registry.provenance.bisect.measures import NothingFell
from registry.provenance.bisect.paths import NotOnOnePath, path_between
from registry.provenance.bisect.states import keep_observation, read_bisect
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.types import Relation
from tests.factories import make_attempt, make_checkpoint, make_project, make_run, make_score

LATER = datetime(2099, 1, 1, tzinfo=UTC)
GSM8K = Target(benchmark="gsm8k", metric="exact_match", filter="strict-match")


def gsm8k(value: float, **known: Any) -> NewScore:
    return NewScore("gsm8k", value, metric="exact_match", filter="strict-match", n_samples=1319, **known)


def evaluated(session: Session, checkpoint_id: int, value: float, at: datetime) -> None:
    known = {"metric": "exact_match", "filter": "strict-match", "n_samples": 1319, "evaluated_at": at}
    make_score(session, checkpoint_id, "gsm8k", value, **known)


def trained(session: Session, run: RunRow, steps: range, scores: dict[int, float], **known: Any) -> list[int]:
    return [
        make_checkpoint(
            session,
            run,
            step,
            replica=f"/shared/{run.name}/{step}",
            scores=[gsm8k(scores[step])] if step in scores else (),
            **known,
        )
        for step in steps
    ]


def started(session: Session, path: list[int], target: Target = GSM8K, **known: Any) -> BisectAnswer:
    from registry.models import Checkpoint

    project_id = session.get_one(Checkpoint, path[0]).project_id
    return start_bisect(session, project_id, path[0], path[-1], target, actor="somebody", **known)[0]


def one_run(session: Session, count: int = 17) -> list[int]:
    run = make_run(session)
    return trained(session, run, range(0, 1000 * count, 1000), {0: 0.60, 1000 * (count - 1): 0.55})


def test_the_middle_is_asked_first_on_as_many_items_as_the_drop_needs(session: Session) -> None:
    path = one_run(session)
    found = started(session, path)
    assert found.next is not None
    assert found.next.checkpoint.id == path[8]
    assert found.next.items == 960
    assert found.next.uri is not None
    assert found.next.uri.endswith("/8000")
    assert (found.done, len(found.posterior)) == (False, 16)
    assert sum(gap.probability for gap in found.posterior) == pytest.approx(1.0)


def test_scores_as_they_arrive_lead_to_the_gap_and_its_probability(session: Session) -> None:
    path = one_run(session)
    found = started(session, path)
    asked = []
    while found.next is not None:
        step = found.next.checkpoint.step
        asked.append(step)
        value = 0.60 if step <= 11_000 else 0.55
        found = observe(
            session, found.id, found.next.checkpoint.id, value=value, n_samples=found.next.items, actor="somebody"
        )
    assert (found.gap.after.step, found.gap.before.step) == (11_000, 12_000)
    assert found.gap.probability >= 0.95
    assert found.done
    assert len(asked) <= 6
    assert "it fell between" in found.why


def test_the_same_question_goes_on_where_it_was(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    observe(session, first.id, path[8], value=0.60, n_samples=960, actor="somebody")
    again = started(session, path)
    assert again.id == first.id
    assert [each.checkpoint.id for each in again.evaluations] == [path[8]]
    assert again.next is not None
    assert again.next.checkpoint.id == path[12]


def test_a_search_survives_a_restart(committed_database: Database) -> None:
    with committed_database.write() as session:
        path = one_run(session)
        first = started(session, path)
        observe(session, first.id, path[8], value=0.55, n_samples=960, actor="somebody")
    committed_database.dispose()
    restarted = Database(committed_database.url.render_as_string(hide_password=False))
    with restarted.read() as session:
        found = get_bisect(session, first.id)
    restarted.dispose()
    assert [(each.checkpoint.step, each.value) for each in found.evaluations] == [(8000, 0.55)]


def test_a_score_that_arrives_by_any_way_counts_by_itself(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    make_score(session, path[8], "gsm8k", 0.60, metric="exact_match", filter="strict-match", n_samples=1319)
    make_score(session, path[4], "mmlu", 0.10, metric="acc", n_samples=14042)
    found = get_bisect(session, first.id)
    assert [(each.checkpoint.id, each.source) for each in found.evaluations] == [(path[8], "recorded")]


def test_a_score_under_other_conditions_tells_nothing(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    make_score(session, path[8], "gsm8k", 0.1, metric="exact_match", filter="strict-match", n_samples=1319, n_shot=8)
    assert get_bisect(session, first.id).evaluations == ()


def test_a_checkpoint_without_a_copy_is_never_asked(session: Session) -> None:
    run = make_run(session)
    ends = {0: 0.60, 4000: 0.55}
    path = [
        make_checkpoint(
            session,
            run,
            step,
            replica=None if step == 2000 else f"/shared/{step}",
            scores=[gsm8k(ends[step])] if step in ends else (),
        )
        for step in range(0, 5000, 1000)
    ]
    found = started(session, path)
    assert found.next is not None
    assert found.next.checkpoint.id in (path[1], path[3])
    assert (found.left_out, len(found.posterior)) == (1, 3)
    assert "1 more on the way has no copy to evaluate" in found.why


def test_without_anything_to_evaluate_it_says_what_is_known(session: Session) -> None:
    run = make_run(session)
    path = [make_checkpoint(session, run, step, scores=[gsm8k(value)]) for step, value in ((1, 0.6), (9, 0.5))]
    found = started(session, path)
    assert (found.done, found.next, found.gap.probability) == (True, None, 1.0)


def test_the_same_items_again_change_nothing_and_are_not_asked_for(session: Session) -> None:
    path = one_run(session, 3)
    first = started(session, path)
    undecided = observe(session, first.id, path[1], value=0.575, n_samples=960, actor="somebody")
    assert undecided.next is not None
    assert (undecided.next.checkpoint.id, undecided.next.items) == (path[1], 1319)
    again = observe(session, first.id, path[1], value=0.575, n_samples=960, actor="somebody")
    assert again.posterior == undecided.posterior
    other = observe(session, first.id, path[1], value=0.576, n_samples=960, actor="somebody")
    assert (other.next, other.done) == (None, True)
    assert "no further evaluation" in other.why
    assert len(other.credible) == 2


def test_a_capability_is_searched_by_its_mean(session: Session) -> None:
    run = make_run(session)

    def both(value: float) -> list[NewScore]:
        return [gsm8k(value), NewScore("minerva_math", value - 0.3, metric="exact_match", n_samples=5000)]

    path = [
        make_checkpoint(session, run, step, replica=f"/s/{step}", scores=both(value) if value else ())
        for step, value in ((1, 0.6), (2, None), (3, 0.6), (4, None), (5, 0.5))
    ]
    found = started(session, path, Target(capability="math"))
    assert started(session, path, Target(capability="数学")).id == found.id
    assert [each.checkpoint.id for each in found.evaluations] == [path[2]]
    assert found.next is not None
    assert found.next.checkpoint.id == path[3]
    last = observe(session, found.id, path[3], value=0.351, n_samples=5000, actor="somebody")
    assert (last.gap.after.id, last.gap.before.id) == (path[2], path[3])


@pytest.mark.parametrize("benchmark", ["wikitext"])
def test_where_lower_is_better_a_rise_is_the_fall(session: Session, benchmark: str) -> None:
    run = make_run(session)

    def perplexity(value: float) -> NewScore:
        return NewScore(benchmark, value, metric="word_perplexity", stderr=0.02)

    ends = {1: 8.0, 4: 8.3}
    path = [
        make_checkpoint(
            session, run, step, replica=f"/s/{step}", scores=[perplexity(ends[step])] if step in ends else ()
        )
        for step in range(1, 5)
    ]
    found = started(session, path, Target(benchmark=benchmark))
    found = observe(session, found.id, path[1], value=8.29, stderr=0.02, actor="somebody")
    assert found.gap.before.id == path[1]


def test_the_way_leads_over_attempts_and_runs(session: Session) -> None:
    project = make_project(session)
    base = make_run(session, project)
    first = trained(session, base, range(1000, 4000, 1000), {1000: 0.60})
    make_attempt(session, base, resumed_from=ResumePoint(checkpoint_id=first[1]))
    second = trained(session, base, range(3000, 5000, 1000), {})
    child = make_run(session, project)
    make_attempt(session, child, resumed_from=ResumePoint(checkpoint_id=second[0]))
    tuned = trained(session, child, range(100, 300, 100), {200: 0.55})
    way = path_between(session, project.id, first[0], tuned[-1])
    assert way == [first[0], first[1], second[0], tuned[0], tuned[1]]  # not the abandoned step 3000, not step 4000
    found = started(session, way)
    assert found.next is not None
    assert found.next.checkpoint.id == first[1] or found.next.checkpoint.id == second[0]


def test_the_way_through_a_merge_meets_the_good_one(session: Session) -> None:
    project = make_project(session)
    left, right, merged = (make_run(session, project) for _ in range(3))
    a = trained(session, left, range(1, 4), {1: 0.6})
    b = trained(session, right, range(1, 3), {})
    parents = [ParentSpec(each[-1], Relation.MERGED) for each in (b, a)]
    end = make_checkpoint(session, merged, 1, parents=parents, scores=[gsm8k(0.5)])
    assert path_between(session, project.id, a[0], end) == [*a, end]


def test_two_that_do_not_come_from_each_other_have_no_way(session: Session) -> None:
    project = make_project(session)
    old = trained(session, make_run(session, project), range(1, 3), {1: 0.6})
    new = trained(session, make_run(session, project), range(1, 3), {2: 0.5})
    with pytest.raises(NotOnOnePath, match="does not come from"):
        started(session, [old[0], new[-1]])
    with pytest.raises(NotOnOnePath):
        started(session, [old[-1], old[0]])


def test_ends_that_may_differ_by_chance_are_searched_with_that_doubt(session: Session) -> None:
    path = trained(session, make_run(session), range(1, 3), {1: 0.600, 2: 0.595})
    found = started(session, path)
    assert (found.done, found.is_proven) == (True, False)
    assert found.why.startswith(
        "whether it fell at all is not proven, since the bad end is lower by 0.5 ± 1.9 points; if it did, "
        "it fell between "
    )
    assert "with a probability of over 99.9% after 0 evaluations" in found.why
    sure = started(session, trained(session, make_run(session), range(1, 3), {1: 0.60, 2: 0.50}))
    assert (sure.is_proven, sure.why.startswith("it fell between")) == (True, True)


def test_where_nothing_fell_there_is_nothing_to_search(session: Session) -> None:
    run = make_run(session)
    path = trained(session, run, range(1, 4), {1: 0.5, 3: 0.6})
    with pytest.raises(NothingFell, match="not lower"):
        started(session, path)
    with pytest.raises(NothingFell, match="not evaluated on both"):
        started(session, path, Target(benchmark="mmlu"))
    with pytest.raises(NotOfThisSearch):
        started(session, [path[0], path[0]])


def test_a_score_of_a_checkpoint_off_the_way_is_refused(session: Session) -> None:
    path = one_run(session, 3)
    found = started(session, path)
    with pytest.raises(NotOfThisSearch, match="not on the way"):
        observe(session, found.id, make_checkpoint(session), value=0.5, actor="somebody")
    with pytest.raises(BisectNotFound):
        get_bisect(session, 1)


@pytest.mark.parametrize("value", [55.0, -0.1])
def test_a_score_of_another_scale_is_refused_and_nothing_is_kept(session: Session, value: float) -> None:
    path = one_run(session, 3)
    found = started(session, path)
    with pytest.raises(OffScale, match="lies outside the fraction scale"):
        observe(session, found.id, path[1], value=value, n_samples=960, actor="somebody")
    assert get_bisect(session, found.id) == found


def test_kept_scores_of_another_scale_do_not_count_and_are_named(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    make_score(session, path[8], "gsm8k", 60.0, metric="exact_match", filter="strict-match", n_samples=1319)
    make_score(session, path[4], "gsm8k", float("nan"), metric="exact_match", filter="strict-match", n_samples=1319)
    row = read_bisect(session, first.id)
    keep_observation(session, row, path[12], value=50.0, stderr=None, n_samples=960, actor="an older service")
    found = get_bisect(session, first.id)
    assert (found.evaluations, found.posterior) == ((), first.posterior)
    assert [(each.checkpoint.id, each.value, each.source) for each in found.skipped] == [
        (path[8], 60.0, "recorded"),
        (path[12], 50.0, "posted"),
    ]
    assert "2 scores were left out: 60 lies outside the fraction scale" in found.why


def test_a_perplexity_that_is_none_is_refused(session: Session) -> None:
    run = make_run(session)
    path = [make_checkpoint(session, run, step, replica=f"/shared/{step}") for step in range(1, 4)]
    for checkpoint_id, value in ((path[0], 8.0), (path[2], 9.0)):
        make_score(session, checkpoint_id, "wikitext", value, metric="word_perplexity", stderr=0.01, n_samples=62)
    found = started(session, path, Target(benchmark="wikitext"))
    with pytest.raises(OffScale, match="above 0"):
        observe(session, found.id, path[1], value=0.0, stderr=0.01, actor="somebody")


def test_a_capability_mean_of_another_scale_is_refused(session: Session) -> None:
    path = one_run(session, 3)
    found = started(session, path, Target(capability="math"))
    with pytest.raises(OffScale, match="normalised scale"):
        observe(session, found.id, path[1], value=55.0, stderr=0.01, actor="somebody")


def test_of_equally_exact_scores_the_newest_counts_so_a_wrong_one_can_be_corrected(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    for value in (0.60, 0.95, 0.50, 0.95, 0.55):
        found = observe(session, first.id, path[8], value=value, n_samples=960, actor="somebody")
        assert [each.value for each in found.evaluations] == [value]
    assert found.evaluations[0].probability_bad > 0.9


def test_a_more_exact_score_takes_the_place_of_the_first_and_a_less_exact_one_does_not(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    observe(session, first.id, path[8], value=0.56, n_samples=200, actor="somebody")
    exact = observe(session, first.id, path[8], value=0.60, n_samples=1319, actor="somebody")
    assert [(each.value, each.items) for each in exact.evaluations] == [(0.60, 1319)]
    later = observe(session, first.id, path[8], value=0.55, n_samples=200, actor="somebody")
    assert [(each.value, each.items) for each in later.evaluations] == [(0.60, 1319)]


def test_ends_without_a_standard_error_say_so(session: Session) -> None:
    run = make_run(session)
    path = [make_checkpoint(session, run, step) for step in (1, 2)]
    for checkpoint_id, value in zip(path, (8.0, 8.8), strict=True):
        make_score(session, checkpoint_id, "wikitext", value, metric="word_perplexity")
    with pytest.raises(NothingFell, match="no standard error is known for both sides"):
        started(session, path, Target(benchmark="wikitext"))


def test_a_score_posted_for_an_end_is_named_as_one_that_does_not_count(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    found = observe(session, first.id, path[-1], value=0.60, n_samples=1319, actor="somebody")
    assert [(each.checkpoint.id, each.value) for each in found.skipped] == [(path[-1], 0.60)]
    assert "an end of the search" in found.why


def test_ends_that_no_longer_differ_end_the_search_and_it_goes_on_when_they_do(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    evaluated(session, path[-1], 0.61, LATER)
    found = get_bisect(session, first.id)
    assert (found.next, found.done) == (None, True)
    assert "is not lower on the bad one than on the good one" in found.why
    evaluated(session, path[-1], 0.54, LATER + timedelta(days=1))
    assert not get_bisect(session, first.id).done


def test_a_posted_error_of_zero_is_no_error_and_makes_no_score_exact(session: Session) -> None:
    path = one_run(session)
    first = started(session, path)
    found = observe(session, first.id, path[8], value=0.575, stderr=0.0, n_samples=960, actor="somebody")
    assert found.evaluations[0].stderr == pytest.approx((0.15 / 960 + 0.575 * 0.425 * (1 / 960 - 1 / 1319)) ** 0.5)
