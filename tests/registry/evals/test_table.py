"""What a project says of its benchmarks is read everywhere; wrong words are refused, proposals never applied."""

from typing import Any

import pytest
from sqlalchemy.orm import Session

from registry.audit import list_entries
from registry.evals.profile import profile
from registry.evals.scores import NewScore
from registry.evals.table.editing import InvalidBenchmark, patch_benchmark, put_benchmark
from registry.evals.table.listing import BenchmarkEntry, BenchmarkNotFound, get_benchmark, list_benchmarks
from registry.projects import ProjectRow
from registry.provenance.compare import compare_checkpoints
from registry.search.query import search_checkpoints
from tests.factories import make_checkpoint, make_project, make_run


def put(session: Session, project: ProjectRow, name: str, **said: Any) -> BenchmarkEntry:
    put_benchmark(session, project.id, name, said, actor="lead")
    session.flush()
    return get_benchmark(session, project.id, name)


def many(session: Session, project: ProjectRow, benchmark: str, count: int = 20) -> list[int]:
    return [
        make_checkpoint(session, make_run(session, project), scores={benchmark: place / count})
        for place in range(count)
    ]


def best(session: Session, project: ProjectRow, query: str) -> int:
    answer = search_checkpoints(session, project_ids=[project.id], query=query)
    assert answer.strict
    return answer.results[0].checkpoint.id


def test_the_shipped_table_is_every_projects_table(session: Session) -> None:
    project = make_project(session)
    entry = get_benchmark(session, project.id, "gsm8k")
    assert (entry.capability, entry.direction, entry.scale, entry.chance) == ("math", "higher", "fraction", 0.0)
    assert (entry.sample_count, entry.shipped, entry.own, entry.occurring) == (1319, True, (), ())
    assert get_benchmark(session, project.id, "MATH-500").name == "hendrycks_math500"
    capabilities = {each.capability for each in list_benchmarks(session, project.id, limit=1_000)}
    assert len(capabilities - {None, "lm"}) == 12


def test_what_a_project_says_counts_at_once_in_search_profile_and_filter(session: Session) -> None:
    project = make_project(session)
    ids = many(session, project, "in_house")
    assert profile(session, ids[0]).unknown == ("in_house",)
    entry = put(session, project, "in_house", capability="math", scale="fraction", chance=0.25, sample_count=400)
    assert entry.own == ("capability", "scale", "chance", "sample_count")
    assert best(session, project, "strong math") == ids[-1]
    (math,) = profile(session, ids[-1]).capabilities
    assert (math.capability, math.composite) == ("math", pytest.approx((0.95 - 0.25) / 0.75))
    patch_benchmark(session, project.id, "in_house", {"direction": "lower"}, actor="lead")
    session.flush()
    assert best(session, project, "strong math") == ids[0]
    put_benchmark(session, project.id, "in_house", {"capability": ""}, actor="lead")
    session.flush()
    assert profile(session, ids[0]).capabilities == ()


def test_what_is_said_of_a_benchmark_holds_for_its_other_names(session: Session) -> None:
    project = make_project(session)
    ids = many(session, project, "gsm-8k")
    put(session, project, "gsm8k", direction="lower")
    assert best(session, project, "strong math") == ids[0]


def test_another_name_is_read_by_the_row_it_stands_for(session: Session) -> None:
    project = make_project(session)
    ids = many(session, project, "our_gsm")
    entry = put(session, project, "gsm8k", aliases=["our_gsm"])
    assert "our_gsm" in entry.aliases
    assert get_benchmark(session, project.id, "our_gsm").same_as == "gsm8k"
    assert best(session, project, "gsm8k > 0.5") == ids[-1]
    assert best(session, project, "strong math") == ids[-1]
    put(session, project, "gsm8k", aliases=[])
    assert get_benchmark(session, project.id, "our_gsm").same_as is None
    assert not search_checkpoints(session, project_ids=[project.id], query="strong math").results


def test_a_perplexity_keeps_its_direction_whatever_is_said_of_the_accuracy(session: Session) -> None:
    project = make_project(session)
    put(session, project, "lambada_openai", direction="higher", chance=0.1)
    scores = [NewScore("lambada_openai", 9.0, "ppl", stderr=0.1), NewScore("lambada_openai", 0.6, "acc")]
    one = make_checkpoint(session, make_run(session, project), scores=scores)
    other = make_checkpoint(
        session, make_run(session, project), scores=[NewScore("lambada_openai", 30.0, "ppl", stderr=0.1)]
    )
    compared = compare_checkpoints(session, one, other).scores.scores
    assert [(each.metric, each.verdict) for each in compared] == [("ppl", "regressed")]


def test_the_preferred_metric_is_the_projects_own(session: Session) -> None:
    project = make_project(session)
    both = [NewScore("arc_easy", 0.4, "acc"), NewScore("arc_easy", 0.6, "acc_norm")]
    one = make_checkpoint(session, make_run(session, project), scores=both)
    assert best(session, project, "arc_easy > 0.5") == one
    put(session, project, "arc_easy", preferred_metrics=[["acc", ""]])
    answer = search_checkpoints(session, project_ids=[project.id], query="arc_easy > 0.5")
    assert answer.interpretation.resolved == {"scores.arc_easy": "scores.arc_easy.acc.none"}
    assert not answer.strict


def test_every_change_is_audited_and_saying_the_same_again_is_none(session: Session) -> None:
    project = make_project(session)
    put(session, project, "gsm8k", chance=0.01)
    put(session, project, "gsm8k", chance=0.01)
    session.flush()
    entries = [entry for entry in list_entries(session) if entry.action == "benchmark.set"]
    assert [entry.actor for entry in entries] == ["lead"]
    assert entries[0].detail == '{"benchmark":"gsm8k","changes":{"chance":[null,0.01]}}'


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"capability": "cooking"}, "/capability"),
        ({"direction": "sideways"}, "/direction"),
        ({"scale": "huge"}, "/scale"),
        ({"chance": 1.0}, "/chance"),
        ({"chance": -0.1}, "/chance"),
        ({"chance": float("nan")}, "/chance"),
        ({"scale": "percent", "chance": 120}, "/chance"),
        ({"scale": "log", "chance": 1.0}, "/chance"),
        ({"sample_count": 0}, "/sample_count"),
        ({"preferred_metrics": [["acc", ""], ["acc", ""]]}, "/preferred_metrics"),
        ({"same_as": "gsm8k"}, "/same_as"),
        ({"same_as": "nobody_knows"}, "/same_as"),
        ({"aliases": ["GSM-8K"]}, "/aliases"),
        ({"aliases": ["x"], "same_as": "mmlu"}, "/aliases"),
        ({"aliases": ["ours_*"]}, "/aliases"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(session: Session, said: dict[str, Any], pointer: str) -> None:
    project = make_project(session)
    with pytest.raises(InvalidBenchmark) as refused:
        put_benchmark(session, project.id, "gsm8k", said, actor="lead")
    assert pointer in [error.pointer for error in refused.value.errors]


def test_names_cannot_stand_for_each_other_in_a_circle(session: Session) -> None:
    project = make_project(session)
    put(session, project, "a", capability="math")
    put(session, project, "b", same_as="a")
    with pytest.raises(InvalidBenchmark):
        put(session, project, "a", same_as="b")
    with pytest.raises(InvalidBenchmark):
        put(session, project, "c", same_as="b")


def test_an_unknown_benchmark_is_listed_for_mapping_with_a_reason_and_stays_unmapped(session: Session) -> None:
    project = make_project(session)
    ids = many(session, project, "my_gsm8k_v2")
    many(session, project, "company_quiz", count=3)
    unmapped = {each.name: each for each in list_benchmarks(session, project.id, only="unmapped")}
    assert unmapped.keys() == {"my_gsm8k_v2", "company_quiz"}
    near, far = unmapped["my_gsm8k_v2"].proposal, unmapped["company_quiz"].proposal
    assert near is not None
    assert (near.same_as, near.capability) == ("gsm8k", "math")
    assert near.reason == "The name holds 'gsm8k', which is gsm8k; values from 0 to 0.95 fit its scale 'fraction'."
    assert far is not None
    assert (far.same_as, far.scale) == (None, "fraction")
    assert profile(session, ids[0]).capabilities == ()
    assert best(session, project, "my_gsm8k_v2 > 0.5") == ids[-1]
    put(session, project, "my_gsm8k_v2", same_as="gsm8k")
    put(session, project, "company_quiz", capability="")
    assert list_benchmarks(session, project.id, only="unmapped") == []


def test_two_scales_under_one_metric_are_flagged_and_not_rescaled(session: Session) -> None:
    project = make_project(session)
    make_checkpoint(session, make_run(session, project), scores={"gsm8k": 0.6})
    assert get_benchmark(session, project.id, "gsm8k").flags == ()
    make_checkpoint(session, make_run(session, project), scores={"gsm8k": 61.5})
    (flag,) = get_benchmark(session, project.id, "gsm8k").flags
    assert "run from 0.6 to 61.5" in flag
    assert "not rescaled" in flag


def test_an_unknown_benchmark_in_percent_here_and_in_fractions_there_is_flagged_and_no_scale_is_proposed(
    session: Session,
) -> None:
    run = make_run(session)
    for step, value in ((1, 0.632), (2, 63.2)):
        make_checkpoint(session, run, step, scores=[NewScore("new_bench", value, "acc")])
    entry = get_benchmark(session, run.project_id, "new_bench")
    assert len(entry.flags) == 1
    assert "may be percent in one file and fractions in another" in entry.flags[0]
    assert entry.proposal is not None
    assert (entry.proposal.same_as, entry.proposal.scale) == (None, None)


def test_metrics_that_point_in_different_directions_are_flagged(session: Session) -> None:
    project = make_project(session)
    scores = [NewScore("lambada_openai", 9.0, "ppl"), NewScore("lambada_openai", 0.6, "acc")]
    make_checkpoint(session, make_run(session, project), scores=scores)
    (flag,) = get_benchmark(session, project.id, "lambada_openai").flags
    assert flag.startswith("Its metrics point in different directions: acc higher; ppl lower")


def test_a_project_learns_nothing_of_anothers_table(session: Session) -> None:
    project, other = make_project(session), make_project(session)
    put(session, other, "gsm8k", capability="chat")
    assert get_benchmark(session, project.id, "gsm8k").capability == "math"
    with pytest.raises(BenchmarkNotFound):
        get_benchmark(session, project.id, "never_heard_of")


def test_the_list_goes_on_after_a_name(session: Session) -> None:
    project = make_project(session)
    every = [each.name for each in list_benchmarks(session, project.id, limit=1_000)]
    first = [each.name for each in list_benchmarks(session, project.id, limit=10)]
    rest = [each.name for each in list_benchmarks(session, project.id, after=first[-1], limit=1_000)]
    assert first + rest == every
    assert every == sorted(every)
