"""Faults that other tools were reported to have with recording, each as a claim of what happens here instead."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.aliases import NotCommitted, list_aliases, move_alias
from registry.attempts import AttemptSpec, AttemptWouldRestart, list_attempts, open_attempt
from registry.checkpoints.commands import BatchItem, register_batch, register_checkpoint
from registry.checkpoints.detail import get_checkpoint
from registry.checkpoints.errors import BatchInConflict, BatchRefused, CheckpointExists, DataCursorTooLarge
from registry.checkpoints.queries import list_checkpoints
from registry.checkpoints.registration import PieceSpec, Registration, ReplicaSpec
from registry.checkpoints.replicas import add_replicas
from registry.db import Database
from registry.evals.read import list_scores
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.models import Checkpoint, Project, Replica, Run, Score
from registry.projects import ProjectRow
from registry.provenance.compare import compare_checkpoints
from registry.recovery.rollback import find_rollback_candidates
from registry.resume_points import ResumePoint
from registry.runs import RunRow
from registry.search.query import search_checkpoints
from registry.storage.removal import note_gone
from registry.types import PieceName
from tests.api.conftest import client_of
from tests.factories import ALL_PIECES, at, make_attempt, make_checkpoint, make_project, make_run, make_score

NAN, INFINITY = math.nan, math.inf
SPECIAL = [NAN, INFINITY, -INFINITY]


@pytest.fixture
def client(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(database, tmp_path) as client:
        yield client


@pytest.fixture
def run_id(client: TestClient) -> str:
    client.post("/api/v1/projects", json={"name": "p"})
    made: str = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    return made


def listed(session: Session, run: RunRow, order_by: str, filter: str | None = None) -> list[int]:
    found = list_checkpoints(session, project_ids={run.project_id}, order_by=order_by, filter=filter)
    return [row.checkpoint.id for row in found.rows]


def searched(session: Session, project_id: int, query: str, limit: int = 100) -> list[int]:
    answer = search_checkpoints(session, project_ids=[project_id], query=query, limit=limit, now=at("2026-11-18"))
    return [each.checkpoint.id for each in answer.results]


def count(session: Session, table: Any) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


# NaN beat every score, or ended the ranking.


@pytest.mark.parametrize("benchmark", ["gsm8k", "wikitext"], ids=["higher is better", "lower is better"])
@pytest.mark.parametrize("special", SPECIAL, ids=str)
def test_a_non_finite_score_is_never_ranked_wherever_it_arrives(
    session: Session, special: float, benchmark: str
) -> None:
    metric = "word_perplexity" if benchmark == "wikitext" else "acc"
    for values in set(permutations([1.5, 2.5, special])):
        run = make_run(session)
        made = {
            value: make_checkpoint(session, run, step, scores=[NewScore(benchmark, value, metric=metric)])
            for step, value in enumerate(values)
        }
        name = f"scores.{benchmark}"
        assert listed(session, run, f"{name} desc") == [made[2.5], made[1.5], made[special]]
        assert listed(session, run, name) == [made[1.5], made[2.5], made[special]]
        if not math.isnan(special):
            continue  # an infinity compares as the number that it is, and has no more place in an order than NaN
        for condition in (f"{name} > 0", f"{name} < 1000", f"{name} != 1.5", f"{name} between -1e308 and 1e308"):
            assert made[special] not in listed(session, run, "step", condition)
            assert made[special] not in listed(session, run, "step", f"not ({condition})")


@pytest.mark.parametrize("field", ["loss", "lr", "metrics.grad_norm"])
@pytest.mark.parametrize("special", SPECIAL, ids=str)
def test_a_non_finite_loss_is_never_the_best_loss(session: Session, special: float, field: str) -> None:
    for values in set(permutations([1.5, 2.5, special])):
        run = make_run(session)
        made = {}
        for step, value in enumerate(values):
            said = {"metrics": {"grad_norm": value}} if field.startswith("metrics") else {field: value}
            made[value] = make_checkpoint(session, run, step, **said)
        assert listed(session, run, field) == [made[1.5], made[2.5], made[special]]
        assert listed(session, run, f"{field} desc") == [made[2.5], made[1.5], made[special]]


@pytest.mark.parametrize("special", SPECIAL, ids=str)
def test_a_non_finite_score_is_neither_strong_nor_weak_in_a_search(session: Session, special: float) -> None:
    project = make_project(session)
    for place in range(25):
        make_checkpoint(session, make_run(session, project), scores={"gsm8k": place / 25, "asdiv": place / 25})
    odd = make_checkpoint(session, make_run(session, project), scores={"gsm8k": special, "asdiv": special})
    for query in ("strong math", "weak math", "gsm8k >= 0", "gsm8k < 1"):
        assert odd not in searched(session, project.id, query)
        assert searched(session, project.id, query) != []


@pytest.mark.parametrize("special", SPECIAL, ids=str)
def test_a_score_that_became_non_finite_counts_as_such_and_not_as_its_last_good_value(
    session: Session, special: float
) -> None:
    run = make_run(session)
    broken = make_checkpoint(session, run, 1, scores=[NewScore("gsm8k", 0.9, evaluated_at=at("2026-11-01"))])
    sound = make_checkpoint(session, run, 2, scores=[NewScore("gsm8k", 0.1, evaluated_at=at("2026-11-01"))])
    make_score(session, broken, "gsm8k", special, evaluated_at=at("2026-11-02"))
    assert listed(session, run, "scores.gsm8k desc") == [sound, broken]
    assert listed(session, run, "step", "scores.gsm8k between 0.5 and 1") == []
    make_score(session, broken, "gsm8k", 0.8, evaluated_at=at("2026-11-03"))
    assert listed(session, run, "scores.gsm8k desc") == [broken, sound]


# 'best' on a tie depended on folder order.


@pytest.mark.parametrize("arrival", list(permutations([0, 1, 2])))
def test_a_tie_falls_to_the_newest_save_whatever_arrived_first_and_all_tied_are_shown(
    session: Session, arrival: Sequence[int]
) -> None:
    run, saves = make_run(session), [at(f"2026-11-0{day}") for day in (1, 2, 3)]
    made: dict[int, int] = {}
    for place in arrival:
        made[place] = make_checkpoint(session, run, place, saved_at=saves[place], scores={"gsm8k": 0.5})
    for order in ("scores.gsm8k desc", "scores.gsm8k"):
        assert listed(session, run, order) == [made[2], made[1], made[0]]


# Order by file time deleted the newest; order by step took a fresh attempt for old; text put 90k after 400k.


def test_the_newest_is_the_highest_step_of_the_highest_attempt_however_it_arrived(session: Session) -> None:
    run = make_run(session)
    source = make_checkpoint(session, run, 500, saved_at=at("2026-11-05"))
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=source))
    newest = make_checkpoint(session, run, 700, attempt=2, saved_at=at("2026-11-01"))
    older = make_checkpoint(session, run, 600, attempt=2, saved_at=at("2026-11-08"))
    late = make_checkpoint(session, run, 900, attempt=1, saved_at=at("2026-11-09"))
    assert listed(session, run, "attempt desc, step desc") == [newest, older, late, source]
    with pytest.raises(AttemptWouldRestart) as refused:
        open_attempt(session, run.id, AttemptSpec())
    assert refused.value.extras["newest_checkpoint"] == to_text(newest)


def test_steps_are_ordered_as_numbers_and_never_as_text(session: Session) -> None:
    run = make_run(session)
    made = {step: make_checkpoint(session, run, step) for step in (400_000, 9, 90_000, 10, 2**63 - 1, 0)}
    assert listed(session, run, "step") == [made[step] for step in sorted(made)]
    assert listed(session, run, "step", "step > 90000") == [made[400_000], made[2**63 - 1]]


@pytest.mark.parametrize("step", [5.5, "5", 5.0, True, None, -1, 2**63, "1e3", [5]])
def test_a_step_is_a_whole_number_and_nothing_else(client: TestClient, run_id: str, step: Any) -> None:
    refused = client.post(f"/api/v1/runs/{run_id}/checkpoints", json={"step": step})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/step")
    assert client.get("/api/v1/checkpoints").json()["items"] == []


def test_a_name_and_a_place_of_files_decide_nothing(session: Session) -> None:
    run = make_run(session)
    first = make_checkpoint(session, run, 20, replica="/ckpt/step-9-final")
    last = make_checkpoint(session, run, 100, replica="/ckpt/a/step-1")
    assert listed(session, run, "step desc") == [last, first]


# 'best' was forgotten after a resume or a moved folder.


def test_the_best_stays_the_best_after_a_resume_and_wherever_its_files_are_moved(session: Session) -> None:
    run = make_run(session)
    best = make_checkpoint(session, run, 500, scores={"gsm8k": 0.9}, replica="/scratch/out/best")
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=best))
    later = make_checkpoint(session, run, 600, scores={"gsm8k": 0.6}, replica="/scratch/out/best")  # the folder again
    moved = ReplicaSpec("s3://archive/500", "object")
    add_replicas(session, best, [moved], (), actor="test")
    gone = session.scalars(select(Replica).where(Replica.checkpoint_id == best, Replica.uri != moved.uri)).one()
    note_gone(session, gone.id, actor="test")
    assert listed(session, run, "scores.gsm8k desc") == [best, later]
    copies = {each.uri: each.state for each in get_checkpoint(session, best).replicas}
    assert copies == {"/scratch/out/best": "removed_elsewhere", moved.uri: "present"}


# After a rollback, saves at repeated steps were skipped; trackers refused or shifted earlier steps.


def test_a_step_repeated_after_a_rollback_is_a_checkpoint_of_its_own(session: Session) -> None:
    run = make_run(session)
    source, before = make_checkpoint(session, run, 1000, loss=2.0), make_checkpoint(session, run, 2000, loss=9.0)
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=source))
    again = make_checkpoint(session, run, 2000, loss=1.5)
    old, new = get_checkpoint(session, before), get_checkpoint(session, again)
    assert (old.checkpoint.step, old.loss, old.superseded) == (2000, 9.0, True)
    assert (new.checkpoint.step, new.loss, new.superseded) == (2000, 1.5, False)
    assert (old.checkpoint.attempt, new.checkpoint.attempt) == (1, 2)
    assert make_checkpoint(session, run, 2000, loss=1.5) == again


# The quota was exceeded while saving; steps were replayed; the second save failed because the first existed.


def test_a_save_that_broke_off_is_saved_again_under_the_next_attempt(session: Session) -> None:
    run = make_run(session)
    source = make_checkpoint(session, run, 1000)
    broken = make_checkpoint(session, run, 2000, state="pending", loss=1.5, replica="/ckpt/2000")
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=source))
    again = make_checkpoint(session, run, 2000, loss=1.25, replica="/ckpt/2000")
    states = {each: get_checkpoint(session, each) for each in (broken, again)}
    assert [(states[each].state, states[each].checkpoint.attempt) for each in states] == [
        ("pending", 1),
        ("committed", 2),
    ]
    assert listed(session, run, "attempt desc, step desc", "state = 'committed'") == [again, source]


def test_light_and_archive_saves_of_one_step_are_two_checkpoints(session: Session) -> None:
    run = make_run(session)
    light, archive = (make_checkpoint(session, run, 10, kind=kind) for kind in ("light", "archive"))
    assert light != archive
    assert listed(session, run, "step, kind") == [archive, light]


# The job silently restarted at step 0 over its old checkpoints.


def test_starting_at_0_over_committed_checkpoints_is_refused_and_says_how_to_go_on(
    client: TestClient, run_id: str
) -> None:
    made = client.post(f"/api/v1/runs/{run_id}/checkpoints", json={"step": 4000}).json()
    refused = client.post(f"/api/v1/runs/{run_id}/attempts", json={"key": "job-2"})
    problem = refused.json()
    assert (refused.status_code, problem["type"]) == (409, "/problems/attempt-would-restart")
    assert problem["newest_checkpoint"] == made["id"]
    for way_on in ("resumed_from", '"restart": true', "new run", "step 4000"):
        assert way_on in problem["detail"]
    resumed = client.post(f"/api/v1/runs/{run_id}/attempts", json={"key": "job-2", "resumed_from": made["id"]})
    assert (resumed.status_code, resumed.json()["number"]) == (201, 2)
    again = client.post(f"/api/v1/runs/{run_id}/attempts", json={"restart": True})
    assert (again.status_code, again.json()["number"]) == (201, 3)
    assert client.get(f"/api/v1/checkpoints/{made['id']}").json()["superseded"] is True


# A batch failed half-way and kept half.


@pytest.mark.parametrize("bad", [0, 250, 499])
@pytest.mark.parametrize("kind", ["refused", "in conflict"])
def test_a_batch_with_one_bad_item_keeps_nothing(database: Database, bad: int, kind: str) -> None:
    scores = (NewScore("gsm8k", 0.5),)
    items = [BatchItem("p", f"r{step % 3}", Registration(step, scores=scores, tags={"a": "b"})) for step in range(500)]
    before = 0
    if kind == "in conflict":
        with database.write() as session:
            register_batch(session, [BatchItem("p", f"r{bad % 3}", Registration(bad, loss=1.0))])
        before = 1
    else:
        items[bad] = BatchItem("p", items[bad].run, Registration(bad, data_cursor="x" * 100_000))
    refusal: Any = BatchInConflict if before else BatchRefused
    with pytest.raises(refusal) as refused, database.write() as session:
        register_batch(session, items)
    assert {error.pointer.split("/")[1] for error in refused.value.errors} == {str(bad)}
    with database.read() as session:
        assert [count(session, table) for table in (Checkpoint, Run, Project, Score)] == [before, before, before, 0]


def test_registering_again_with_other_content_names_what_differs_and_changes_nothing(session: Session) -> None:
    run = make_run(session)
    made = make_checkpoint(session, run, 1, loss=1.0, tags={"a": "b"})
    with pytest.raises(CheckpointExists) as refused:
        make_checkpoint(session, run, 1, loss=2.0, tags={"a": "b"})
    assert refused.value.extras["fields"] == ["loss"]
    assert get_checkpoint(session, made).loss == 1.0


# An async save moved 'latest' before the new one was durable; a pointer was uploaded before what it points to.


def test_pending_never_counts_as_latest(session: Session) -> None:
    run = make_run(session)
    whole: dict[str, Any] = {"pieces": list(ALL_PIECES), "replica": "/ckpt/a", "scores": {"gsm8k": 0.5}}
    pending = make_checkpoint(session, run, 2000, state="pending", **whole)
    assert open_attempt(session, run.id, AttemptSpec())[0].number == 2  # nothing durable would be started over
    durable = make_checkpoint(session, run, 1000, attempt=1, pieces=list(ALL_PIECES), replica="/ckpt/b")
    with pytest.raises(AttemptWouldRestart, match="step 1000"):
        open_attempt(session, run.id, AttemptSpec())
    answer = find_rollback_candidates(session, run_id=run.id)
    offered = {each.checkpoint.id for each in answer.candidates}
    assert pending not in offered
    assert answer.last_known_good is None or answer.last_known_good.id == durable
    assert pending not in searched(session, run.project_id, "gsm8k > 0")
    (row,) = list_checkpoints(session, project_ids={run.project_id}, filter="state = 'pending'").rows
    assert row.checkpoint.id == pending


def test_an_alias_names_only_what_is_committed(session: Session) -> None:
    run = make_run(session)
    pending = make_checkpoint(session, run, 1, state="pending")
    with pytest.raises(NotCommitted, match="pending; commit it first"):
        move_alias(session, run.project_id, "production", pending, actor="test")
    assert list_aliases(session, [run.project_id]) == []
    assert make_checkpoint(session, run, 1, state="committed") == pending
    assert move_alias(session, run.project_id, "production", pending, actor="test").checkpoint_id == pending


# NaN on a model metric was stored as 0.0, infinity as 1.797e308; long values were cut with a 200.

EXACT = [
    *SPECIAL,
    1.7976931348623157e308,  # a number that was sent is that number; what a tracker means by it, its import decides
    -1.7976931348623157e308,
    5e-324,
    0.1 + 0.2,
    1 / 3,
    2.0**53 + 2,
    1e-300,
    0.0,
]


@pytest.mark.parametrize("number", EXACT, ids=repr)
def test_every_number_is_kept_exactly(session: Session, number: float) -> None:
    made = make_checkpoint(session, loss=number, lr=number, metrics={"m": number}, scores={"gsm8k": number})
    found = get_checkpoint(session, made)
    (score,) = list_scores(session, found.project_id, [made])
    for kept in (found.loss, found.lr, found.metrics["m"], score.value):
        assert kept == number or (kept is not None and math.isnan(kept) and math.isnan(number))


def test_missing_is_neither_zero_nor_nan(session: Session) -> None:
    found = get_checkpoint(session, make_checkpoint(session))
    assert (found.loss, found.lr, found.metrics, found.tokens_seen, found.epoch) == (None, None, {}, None, None)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"tags": {"a": "x" * 4_097}}, "/tags/a"),
        ({"tags": {"x" * 513: "a"}}, "/tags"),
        ({"notes": "x" * 65_537}, "/notes"),
        ({"format": "x" * 4_097}, "/format"),
        ({"metrics": {"x" * 513: 1}}, "/metrics"),
        ({"data_cursor": "x" * 65_536}, "/data_cursor"),
        ({"scores": [{"benchmark": "x" * 513, "value": 1}]}, "/scores"),
        ({"replicas": [{"uri": "x" * 4_097, "tier": "local"}]}, "/replicas/0/uri"),
        ({"code": {"commit": "a" * 257}}, "/code/commit"),
    ],
)
def test_a_value_that_is_too_long_is_refused_and_never_cut(
    client: TestClient, run_id: str, body: dict[str, Any], pointer: str
) -> None:
    refused = client.post(f"/api/v1/runs/{run_id}/checkpoints", json={"step": 1, **body})
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"].startswith(pointer)
    assert client.get("/api/v1/checkpoints").json()["items"] == []


def test_the_longest_values_come_back_whole(session: Session) -> None:
    said: dict[str, Any] = {"tags": {"t" * 512: "x" * 4_096}, "notes": "n" * 65_536, "data_cursor": "c" * 65_534}
    config = {"k" * 3_000: "v" * 100_000}
    found = get_checkpoint(session, make_checkpoint(session, config=config, **said))
    assert (found.tags, found.notes, found.data_cursor, found.config) == (*said.values(), config)
    with pytest.raises(DataCursorTooLarge, match="65536"):
        make_checkpoint(session, data_cursor="c" * 65_535)


# A search returned every metric of every row (149 KB for 20 rows).


def test_a_listing_holds_what_was_asked_for_and_no_more(client: TestClient, run_id: str) -> None:
    metrics = {f"metric_{number}": number for number in range(300)}
    items = [{"project": "p", "run": "r", "step": step, "metrics": metrics} for step in range(20)]
    client.post("/api/v1/checkpoints:batch", json=items)
    page = client.get("/api/v1/checkpoints", params={"limit": 20, "fields": "metrics.metric_7, step"})
    lines = page.json()["items"]
    assert [line["values"] for line in lines] == [
        {"metrics.metric_7": 7.0, "step": line["checkpoint"]["step"]} for line in lines
    ]
    assert len(lines) == 20
    assert "metric_8" not in page.text
    assert len(page.content) < 20_000


# Two deleters; a trainer deleted what it had resumed from; limit 1 deleted everything.


def test_nothing_here_deletes_a_checkpoint_or_a_file(client: TestClient) -> None:
    """Only links to trackers can be taken away: whoever adds a deletion shows first what it protects."""
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert [path for path, calls in paths.items() if "delete" in calls] == ["/api/v1/runs/{run_id}/trackers/{link_id}"]
    unlinks = re.compile(r"\.unlink\(|rmtree\(|rmdir\(|removedirs\(|os\.remove\(")
    root = Path(__file__).parents[2] / "registry"
    assert {path.name for path in root.rglob("*.py") if unlinks.search(path.read_text())} <= {"backup.py"}


# The same checkpoint under another prompt template 'regressed'; a published standard error was 0.0.


def test_a_re_evaluation_is_kept_beside_the_first_and_the_newest_time_counts_whatever_arrived_last(
    session: Session,
) -> None:
    made = make_checkpoint(session)
    project_id = get_checkpoint(session, made).project_id
    for value, day in ((0.2, 2), (0.3, 3), (0.1, 1)):
        make_score(session, made, "gsm8k", value, evaluated_at=at(f"2026-11-0{day}"))
    make_score(session, made, "gsm8k", 0.9)  # says no time: it never displaces one that does
    make_score(session, made, "gsm8k", 0.3, evaluated_at=at("2026-11-03"))  # the same again
    every = list_scores(session, project_id, [made], every=True)
    assert sorted(row.value for row in every if row.value is not None) == [0.1, 0.2, 0.3, 0.9]
    assert [row.value for row in every if row.current] == [0.3]
    make_score(session, made, "gsm8k", 0.4, evaluated_at=at("2026-11-03"))  # at the same time, the last to arrive
    assert [row.value for row in list_scores(session, project_id, [made])] == [0.4]


def test_among_scores_without_a_time_the_last_to_arrive_counts(session: Session) -> None:
    made = make_checkpoint(session, scores={"gsm8k": 0.9})
    make_score(session, made, "gsm8k", 0.5)
    assert [row.value for row in list_scores(session, get_checkpoint(session, made).project_id, [made])] == [0.5]


def mmlu(value: float, **known: Any) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=known.pop("n_samples", 14042), **known)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ({"n_shot": 5}, {"n_shot": 0}, "n_shot"),
        ({"version": "1"}, {"version": "2"}, "version"),
        ({"harness": "lm-eval"}, {"harness": "helm"}, "harness"),
        ({"harness_version": "0.3"}, {"harness_version": "0.4"}, "harness_version"),
        ({"n_samples": 14042}, {"n_samples": 100}, "n_samples"),
        ({"comparability": {"template": "a"}}, {"comparability": {"template": "b"}}, "template"),
        ({"comparability": {"template": "a"}}, {}, "template"),
    ],
)
def test_scores_are_compared_only_within_equal_comparability_keys(
    session: Session, old: dict[str, Any], new: dict[str, Any], key: str
) -> None:
    run = make_run(session)
    one = make_checkpoint(session, run, 1, scores=[mmlu(0.7, **old)])
    other = make_checkpoint(session, run, 2, scores=[mmlu(0.4, **new)])
    found = compare_checkpoints(session, one, other)
    (score,) = found.scores.scores
    assert (score.verdict, score.delta, score.p_value) == ("not_comparable", None, None)
    assert key in score.why
    assert not found.scores.fell
    make_score(session, other, "mmlu", 0.4, metric="acc", **{"n_samples": 14042, **old})
    (score,) = compare_checkpoints(session, one, other).scores.scores
    assert score.verdict == "regressed"  # the result under equal keys is found beside the other


@pytest.mark.parametrize("published", [0.0, 1e-9, 0.0042 * 28])
def test_an_impossible_standard_error_is_replaced_and_marked(session: Session, published: float) -> None:
    run = make_run(session)
    one = make_checkpoint(session, run, 1, scores=[mmlu(0.5, stderr=0.0042)])
    other = make_checkpoint(session, run, 2, scores=[mmlu(0.501, stderr=published)])
    (score,) = compare_checkpoints(session, one, other).scores.scores
    assert score.stderr == pytest.approx(math.hypot(0.0042, 0.00422), rel=0.01)
    assert score.verdict not in ("regressed", "improved")
    assert "formula" in score.method
    assert "published error" in score.why
    (kept,) = list_scores(session, run.project_id, [other])
    assert kept.stderr == published  # what was published stays on record


# A missing data cursor or optimizer only warned; a data cursor that is only a counter was trusted.


@pytest.mark.parametrize(
    ("pieces", "resumability"),
    [
        ({}, "unknown"),
        ({"weights": "present"}, "unknown"),
        ({"weights": "present", "optimizer": "absent", "data_position": "absent"}, "weights-only"),
        ({"weights": "present", "optimizer": "present", "data_position": "absent"}, "incomplete"),
        ({"weights": "present", "optimizer": "absent", "data_position": "present"}, "incomplete"),
        ({"weights": "absent"}, "incomplete"),
        ({"weights": "present", "optimizer": "present", "data_position": "present"}, "resumable"),
        (dict.fromkeys(ALL_PIECES, "present"), "exact"),
    ],
)
def test_a_missing_piece_is_visible_in_every_answer(
    client: TestClient, run_id: str, pieces: dict[str, str], resumability: str
) -> None:
    expected = dict.fromkeys(ALL_PIECES, "unknown") | pieces
    body = {"step": 1, "pieces": pieces}
    made = client.post(f"/api/v1/runs/{run_id}/checkpoints", json=body).json()
    again = client.post(f"/api/v1/runs/{run_id}/checkpoints", json=body).json()
    detail = client.get(f"/api/v1/checkpoints/{made['id']}").json()
    (line,) = client.get("/api/v1/checkpoints").json()["items"]
    found = client.get("/api/v1/checkpoints", params={"filter": f"resumability = '{resumability}'"}).json()["items"]
    for answer in (made, again, detail, line, *found):
        assert (answer["pieces"], answer["resumability"]) == (expected, resumability)
    assert len(found) == 1


def test_a_position_says_whether_its_evidence_is_a_state_or_a_counter(session: Session) -> None:
    run = make_run(session)
    for step, evidence in ((1, "state"), (2, "counter"), (3, None)):
        piece = PieceSpec("present", "manifest", evidence)
        made = register_checkpoint(session, run.id, Registration(step, pieces={"data_position": piece}))
        assert get_checkpoint(session, made.checkpoint_id).pieces[PieceName.DATA_POSITION] == piece


# Spools and backfills arrive late.


def test_late_records_of_an_older_attempt_are_accepted_even_where_it_was_never_announced(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, resumed_from=ResumePoint(run=run.name, attempt=1, step=500))
    current = make_checkpoint(session, run, 600)
    made = {step: make_checkpoint(session, run, step, attempt=1) for step in (700, 500, 100)}
    assert [row.number for row in list_attempts(session, run.id)] == [1, 2]
    superseded = {step: get_checkpoint(session, each).superseded for step, each in made.items()}
    assert superseded == {100: False, 500: False, 700: True}
    assert not get_checkpoint(session, current).superseded
    point = list_attempts(session, run.id)[1].resumed_from
    assert point is not None
    assert point.checkpoint_id == made[500]


def test_the_order_of_arrival_decides_nothing_about_what_is_superseded(database: Database) -> None:
    """Two attempts, three checkpoints each, sent in every order that a spool could replay them in."""
    outcomes = set()
    saves = [(1, 100), (1, 200), (1, 300), (2, 250), (2, 350)]
    for order in permutations(saves):
        with database.write() as session:
            project = make_project(session)
            run = make_run(session, ProjectRow(project.id, project.name))
            items = [BatchItem(run.project, run.name, Registration(step, attempt=number)) for number, step in order]
            for item in items:
                register_batch(session, [item])
            rows = list_checkpoints(session, project_ids={project.id}, order_by="attempt, step").rows
            outcomes.add(tuple((row.checkpoint.attempt, row.checkpoint.step, row.superseded) for row in rows))
    assert outcomes == {((1, 100, False), (1, 200, False), (1, 300, True), (2, 250, False), (2, 350, False))}
