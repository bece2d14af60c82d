"""What each call sends, and what comes back of an answer that a newer service gives."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cairn
import pytest
from cairn import Client
from cairn.calls.checkpoints import score_list, score_name
from cairn.reading import UnexpectedAnswer

from tests.client.conftest import FaultServer, Reply

REF = {
    "id": "0c1",
    "project": "p",
    "run": {"id": "0r1", "name": "a"},
    "attempt": 1,
    "step": 5,
    "kind": "archive",
    "saved_at": "2026-11-01T00:00:00Z",
}


def test_a_checkpoint_is_sent_with_what_was_given_and_nothing_else(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(201, REF)]
    checkpoint = client.register_checkpoint(
        "0r1",
        5,
        loss=math.inf,
        saved_at=datetime(2026, 11, 1, tzinfo=UTC),
        scores={"gsm8k.exact_match.strict-match": 0.5, "piqa": math.nan},
        metrics={"grad_norm": math.nan},
    )
    assert faults.seen[0].path == "/api/v1/runs/0r1/checkpoints"
    assert faults.seen[0].json == {
        "step": 5,
        "loss": "Infinity",
        "saved_at": "2026-11-01T00:00:00Z",
        "scores": [
            {"benchmark": "gsm8k", "metric": "exact_match", "filter": "strict-match", "value": 0.5},
            {"benchmark": "piqa", "value": "NaN"},
        ],
        "metrics": {"grad_norm": "NaN"},
    }
    assert str(checkpoint) == "a · 1 · 5"
    assert checkpoint.saved_at == datetime(2026, 11, 1, tzinfo=UTC)


def test_a_null_in_a_patch_removes_and_reaches_the_service(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(200, REF)]
    client.patch_checkpoint("0c1", tags={"phase": None}, notes=None)
    assert (faults.seen[0].method, faults.seen[0].json) == ("PATCH", {"tags": {"phase": None}, "notes": None})


def test_an_attempt_names_what_it_resumed_from_in_either_way(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(201, {"id": "0a1", "number": 2})]
    client.start_attempt("0r1", key="job-7", resumed_from="0c1")
    client.start_attempt("0r1", key="job-7", resumed_from={"run": "a", "attempt": 1, "step": 5})
    assert faults.seen[0].json == {"key": "job-7", "resumed_from": "0c1"}
    assert faults.seen[1].json["resumed_from"] == {"run": "a", "attempt": 1, "step": 5}


def test_pages_are_followed_and_end_at_the_limit(client: Client, faults: FaultServer) -> None:
    faults.replies = [
        Reply(body={"items": [{"checkpoint": REF, "loss": 1.5, "values": {"lr": 2}}] * 2, "next_cursor": "c2"}),
        Reply(body={"items": [{"checkpoint": REF}], "next_cursor": None}),
    ]
    found = list(client.iter_checkpoints(filter="step > 1", order_by="step", page_size=2))
    assert [each.step for each in found] == [5, 5, 5]
    assert (found[0].loss, found[0].values, found[0].raw["checkpoint"]["id"]) == (1.5, {"lr": 2}, "0c1")
    assert faults.seen[1].path == "/api/v1/checkpoints?filter=step+%3E+1&order_by=step&limit=2&cursor=c2"
    faults.replies = [Reply(body={"items": [{"checkpoint": REF}] * 2, "next_cursor": "more"})]
    assert len(list(client.iter_checkpoints(limit=3, page_size=2))) == 3
    assert list(client.iter_checkpoints(limit=0)) == []


def test_files_are_sent_with_their_names_and_target(client: Client, faults: FaultServer, tmp_path: Path) -> None:
    path = tmp_path / "r\u00e9sultat.json"
    path.write_bytes(b"\x00content")
    faults.replies = [Reply(body={"format": "lm-eval-v03", "imported": 3, "skipped": [], "files": []})]
    report = client.import_results([path, ("other.json", b"{}")], checkpoint="0c1")
    assert report.imported == 3
    body = faults.seen[0].body
    assert b'name="checkpoint_id"\r\n\r\n0c1\r\n' in body
    assert body.count(b'name="file"') == 2
    assert b"\x00content" in body


def test_fields_that_this_client_does_not_know_are_kept_and_missing_ones_are_no_error(
    client: Client, faults: FaultServer
) -> None:
    faults.replies = [Reply(200, {"id": "0c1", "invented": {"tomorrow": 1}, "loss": "NaN", "step": "five"})]
    checkpoint = client.get_checkpoint("0c1")
    assert checkpoint.raw["invented"] == {"tomorrow": 1}
    assert math.isnan(checkpoint.loss or 0)
    assert (checkpoint.step, checkpoint.run, checkpoint.pieces) == (None, None, {})
    assert str(checkpoint) == "? · ? · ?"


@pytest.mark.parametrize("answer", [{}, [], 7, {"id": 5}, {"items": 1}])
def test_an_answer_without_its_heart_is_refused(client: Client, faults: FaultServer, answer: Any) -> None:
    faults.replies = [Reply(200, answer)]
    with pytest.raises(UnexpectedAnswer):
        client.get_checkpoint("0c1")
    with pytest.raises(UnexpectedAnswer):
        client.list_checkpoints()


def test_answers_cannot_be_changed(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(200, REF)]
    with pytest.raises(AttributeError):
        client.get_checkpoint("0c1").step = 6  # type: ignore[misc]


def test_the_three_questions_send_what_was_asked(client: Client, faults: FaultServer) -> None:
    candidates = [{"checkpoint": REF, "rank": 1, "terms": {"a": 1}, "reasons": ["r"]}]
    faults.replies = [
        Reply(body={"results": [], "strict": False, "interpretation": {"unparsed": ["x"]}}),
        Reply(body={"candidates": candidates, "excluded": [], "onset": None, "last_known_good": None}),
        Reply(body={"scores": [{"benchmark": "b", "delta": "NaN", "verdict": "not_comparable"}]}),
    ]
    assert client.search("strong math", limit=3).interpretation.unparsed == ("x",)
    conditions = [{"benchmark": "gsm8k", "relation": ">", "threshold": 0.5}]
    answer = client.rollback("0r1", mode="training", conditions=conditions, watch={"capability": "math"})
    assert answer.candidates[0].checkpoint.id == "0c1"
    assert math.isnan(client.compare("0c1", "0c2").scores[0].delta or 0)
    assert [seen.json for seen in faults.seen] == [
        {"query": "strong math", "limit": 3},
        {"run_id": "0r1", "mode": "training", "conditions": conditions, "watch": {"capability": "math"}},
        {"baseline": "0c1", "candidate": "0c2"},
    ]


def test_an_alias_moves_only_from_where_it_was_expected(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(body={"name": "production", "checkpoint": REF})]
    alias = client.put_alias("p", "production", "0c1", reason="better", expected="0c0")
    assert alias.checkpoint is not None
    assert (faults.seen[0].method, faults.seen[0].path) == ("PUT", "/api/v1/aliases/p/production")
    assert faults.seen[0].json == {"checkpoint_id": "0c1", "reason": "better", "expected": "0c0"}


def test_a_thing_without_an_id_is_refused_before_anything_is_sent(client: Client, faults: FaultServer) -> None:
    for nothing in (None, "", 5, object()):
        with pytest.raises(cairn.Invalid, match="Expected an id"):
            client.get_checkpoint(nothing)  # type: ignore[arg-type]
    assert faults.seen == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("gsm8k", ("gsm8k",)),
        ("gsm8k.exact_match.strict-match", ("gsm8k", "exact_match", "strict-match")),
        ("`mmlu_pro.v2`.acc", ("mmlu_pro.v2", "acc")),
        ("a.b.c.d", ("a", "b", "c.d")),
        ("`open", ("`open",)),
    ],
)
def test_score_names_split_as_in_the_filter_language(name: str, fields: tuple[str, ...]) -> None:
    assert tuple(score_name(name).values()) == fields
    assert list(score_name(name)) == ["benchmark", "metric", "filter"][: len(fields)]


def test_a_list_of_scores_is_sent_as_it_is() -> None:
    scores = [{"benchmark": "b", "value": 1}]
    assert score_list(scores) == scores
