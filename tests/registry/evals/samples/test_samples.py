"""Single results: kept compactly, once, and brought together item by item."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.imports import Target, Upload, import_results
from registry.evals.samples import keep_samples, sample_sets, shared_items
from registry.evals.samples.keep import MAX_ITEMS, Sampled
from registry.evals.samples.packing import arrange, key_of, pack_keys, pack_values, unpack_keys, unpack_values
from registry.evals.scores import NewScore, record_scores
from registry.models import Checkpoint, ItemSet, SampleResult
from registry.provenance.compare import compare_checkpoints
from tests.factories import make_checkpoint, make_project, make_run

KEY = ("gsm8k", "exact_match", "strict-match")


def lines(answers: Sequence[float], *, first: int = 0, prompt: str = "p", hashes: bool = True) -> bytes:
    """A samples file of lm-eval: item `first` and on, right or wrong."""
    rows = []
    for place, value in enumerate(answers, start=first):
        row = {
            "doc_id": place,
            "doc": {"question": f"question {place}"},
            "filtered_resps": ["7"],
            "filter": "strict-match",
            "metrics": ["exact_match"],
            "exact_match": value,
        }
        if hashes:
            row |= {"doc_hash": f"d{place}", "prompt_hash": f"{prompt}{place}"}
        rows.append(json.dumps(row))
    return "\n".join(rows).encode()


def imported(session: Session, checkpoint_id: int, content: bytes) -> list[str]:
    (report,) = import_results(
        session, [Upload("samples_gsm8k_2026-11-01T10-00-00.000000.jsonl", content)], Target(checkpoint_id)
    )
    return list(report.notes)


def answers(right: int, wrong: int) -> list[float]:
    return [1.0] * right + [0.0] * wrong


def count(session: Session, table: type) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def two(session: Session) -> tuple[int, int]:
    run = make_run(session)
    return make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)


def test_values_come_back_as_they_were() -> None:
    for values in ([0.0, 1.0, 1.0, 0.0, 1.0], [0.25, -3.0, 1e300]):
        given = np.array(values)
        encoding, body = pack_values(given)
        assert unpack_values(encoding, body, len(values)).tolist() == values
        assert encoding == ("bits" if set(values) <= {0.0, 1.0} else "float64")
    keys, means = arrange([("b", 1.0), ("a", 0.0), ("b", 0.0)])
    assert dict(zip(keys.tolist(), means.tolist(), strict=True)) == {key_of("a"): 0.0, key_of("b"): 0.5}
    assert unpack_keys(pack_keys(keys)).tolist() == sorted(keys.tolist())


def test_items_are_shared_and_a_checkpoint_adds_a_bit_for_each(session: Session) -> None:
    old, new = two(session)
    imported(session, old, lines(answers(9000, 5042)))
    imported(session, new, lines(answers(8000, 6042)))
    assert (count(session, ItemSet), count(session, SampleResult)) == (1, 2)
    sizes = session.scalars(select(func.length(SampleResult.body))).all()
    assert max(sizes) <= 14_042 / 8 + 64


def test_the_same_file_again_adds_nothing(session: Session) -> None:
    old, _ = two(session)
    for _ in range(2):
        imported(session, old, lines(answers(3, 2)))
    assert (count(session, ItemSet), count(session, SampleResult)) == (1, 1)


def test_another_evaluation_is_kept_beside_the_first_and_the_newest_is_read(session: Session) -> None:
    old, _ = two(session)
    imported(session, old, lines(answers(3, 2)))
    imported(session, old, lines(answers(4, 1)))
    project_id = session.get_one(Checkpoint, old).project_id
    sets = sample_sets(session, project_id, [old])[old][KEY]
    assert [each.values().sum() for each in sets] == [4.0, 3.0]


def test_items_are_matched_by_document_and_prompt_in_any_order(session: Session) -> None:
    old, new = two(session)
    imported(session, old, lines([1.0, 1.0, 0.0, 0.0]))
    imported(session, new, lines([0.0, 1.0, 0.0], first=2))
    project_id = session.get_one(Checkpoint, old).project_id
    found = sample_sets(session, project_id, [old, new])
    (shared,) = shared_items(session, [(found[old][KEY][0], found[new][KEY][0])])
    assert (shared.n, shared.counts, shared.is_partial) == (2, (4, 3), True)
    assert sorted(zip(shared.old.tolist(), shared.new.tolist(), strict=True)) == [(0.0, 0.0), (0.0, 1.0)]


def test_a_paired_test_sees_what_two_means_cannot(session: Session) -> None:
    """The worked case: 1,319 items, 66 turned wrong and 40 right: p = .0074, where the unpaired p is .148."""
    old, new = two(session)
    before = answers(792, 527)
    after = [0.0] * 66 + before[66:792] + [1.0] * 40 + before[832:]
    imported(session, old, lines(before))
    imported(session, new, lines(after))
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert score.method == "paired, McNemar exact"
    assert score.p_value == pytest.approx(0.0074, abs=5e-5)
    assert (score.delta, score.stderr) == (pytest.approx(-26 / 1319), pytest.approx(0.00779, abs=5e-6))
    assert score.verdict == "regressed"
    assert score.minimum_detectable == pytest.approx(2.4865 * (106 / 1319 / 1319) ** 0.5, abs=1e-5)


def test_where_only_some_items_are_shared_that_is_said_and_only_those_count(session: Session) -> None:
    old, new = two(session)
    imported(session, old, lines(answers(60, 40)))
    imported(session, new, lines(answers(20, 60), first=40))
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert score.method.startswith("paired")
    assert "over the 60 items that both answered, of 100 and 80" in score.why
    assert (score.baseline, score.candidate) == (pytest.approx(20 / 60), pytest.approx(20 / 60))


def test_other_prompts_are_not_paired_and_not_compared(session: Session) -> None:
    old, new = two(session)
    imported(session, old, lines(answers(60, 40)))
    imported(session, new, lines(answers(40, 60), prompt="another template "))
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert score.verdict == "not_comparable"
    assert "items_digest differs" in score.why


def test_identical_answers_are_unchanged(session: Session) -> None:
    old, new = two(session)
    for each in (old, new):
        imported(session, each, lines(answers(60, 40)))
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert (score.verdict, score.delta, score.stderr) == ("unchanged", 0.0, 0.0)


def test_graded_answers_are_compared_by_their_differences(session: Session) -> None:
    old, new = two(session)
    random = np.random.default_rng(3)
    grades = random.uniform(0.2, 0.9, 300).round(3)
    imported(session, old, lines(grades.tolist()))
    imported(session, new, lines((grades - 0.02 + 0.01 * random.standard_normal(300)).tolist()))
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert (score.method, score.verdict) == ("paired t", "regressed")


def test_scores_of_a_converted_copy_are_paired_for_its_source(session: Session) -> None:
    from registry.checkpoints.registration import ParentSpec
    from registry.types import Relation

    project = make_project(session)
    run = make_run(session, project)
    old, new = make_checkpoint(session, run, 1), make_checkpoint(session, run, 2)
    copy = make_checkpoint(session, make_run(session, project), 2, parents=[ParentSpec(new, Relation.CONVERTED)])
    imported(session, old, lines(answers(60, 40)))
    imported(session, copy, lines(answers(40, 60)))
    (score,) = compare_checkpoints(session, old, new).scores.scores
    assert (score.method, score.via) == ("paired, McNemar exact", (None, copy))


def test_lines_without_hashes_keep_only_their_mean_and_say_so(session: Session) -> None:
    old, _ = two(session)
    notes = imported(session, old, lines(answers(3, 2), hashes=False))
    assert count(session, SampleResult) == 0
    assert any("without doc_hash and prompt_hash" in note for note in notes)


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([("a", 1.0)], "fewer than two"),
        ([("a", 1.0), ("b", float("nan"))], "not finite"),
        ([(str(place), 1.0) for place in range(MAX_ITEMS + 1)], "at most 200,000"),
    ],
)
def test_what_no_paired_test_could_use_is_not_kept(
    session: Session, samples: list[tuple[str, float]], why: str
) -> None:
    old, _ = two(session)
    score = NewScore("mmlu", 1.0, metric="acc")
    project_id = session.get_one(Checkpoint, old).project_id
    record_scores(session, project_id, [(old, score)])
    (note,) = keep_samples(session, project_id, [Sampled(old, score, samples)])
    assert why in note
    assert count(session, SampleResult) == 0
