"""The client against the real service."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cairn
import pytest
from cairn import Client, Retries

README = Path(__file__).parents[2] / "client" / "README.md"
PIECES = {"weights": "present", "optimizer": "present", "data_position": "absent"}


def test_a_run_is_made_once(live: Client, project: str) -> None:
    started = datetime(2026, 11, 1, 12, tzinfo=UTC)
    first = live.create_run(project, "a", owner="ana", tags={"phase": "sft"}, config={"lr": 1e-4}, started_at=started)
    assert live.create_run(project, "a").id == first.id
    assert (first.owner, first.tags, first.started_at) == ("ana", {"phase": "sft"}, started)
    assert live.get_run(first).name == "a"
    assert live.find_run(project, "a").id == first.id
    assert [str(each) for each in live.list_runs(project=project)] == [f"{project}/a"]
    assert project in [each.name for each in live.list_projects()]
    with pytest.raises(cairn.NotFound):
        live.find_run(project, "b")


def test_what_an_earlier_start_said_otherwise_is_told(
    live: Client, project: str, caplog: pytest.LogCaptureFixture
) -> None:
    said: dict[str, Any] = {"config": {"lr": 1e-4}, "tags": {"phase": "sft"}, "owner": "ana"}
    assert live.create_run(project, "a", **said).not_applied == ()
    assert live.create_run(project, "a", **said).not_applied == ()
    assert caplog.messages == []
    again = live.create_run(project, "a", **said | {"config": {"lr": 3e-4}, "tags": {"phase": "dpo"}})
    assert again.not_applied == ("config", "tags.phase")
    (message,) = caplog.messages
    assert f"run {project}/a was started before" in message
    assert message.endswith("not taken over: config, tags.phase")
    assert live.create_run(project, "a", config={}, warn=False).not_applied == ("config",)
    first = live.start_attempt(again, key="k", command="train.py")
    assert first.not_applied == ()
    assert live.start_attempt(again, key="k", command="other.py").not_applied == ("command",)
    assert caplog.messages[1:] == [
        "cairn: attempt 1 was started before and stays as it was said then; not taken over: command"
    ]


def test_a_checkpoint_comes_back_as_it_was_sent(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    sent = live.register_checkpoint(
        run,
        1000,
        loss=math.nan,
        lr=1e-4,
        tokens_seen=10**12,
        saved_at=datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC),
        metrics={"grad_norm": math.inf},
        scores={"gsm8k.exact_match.strict-match": 0.25, "piqa.acc": math.nan},
        pieces=PIECES,
        replicas=[{"uri": "/ckpt/1000", "tier": "shared"}],
        code={"commit": "a" * 40, "dirty": False},
        config={"optim": {"lr": 1e-4}},
        tags={"phase": "sft"},
        data_version="pile-v1",
    )
    found = live.get_checkpoint(sent)
    assert str(found) == "a · 1 · 1000"
    assert math.isnan(found.loss or 0)
    assert (found.lr, found.tokens_seen, found.metrics) == (1e-4, 10**12, {"grad_norm": math.inf})
    assert found.saved_at == datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)
    assert found.pieces == {**PIECES, "random_state": "unknown"}
    assert (found.state, found.superseded, found.config) == ("committed", False, {"optim": {"lr": 1e-4}})
    scores = {(each.benchmark, each.metric, each.filter): each.value for each in found.scores}
    assert scores.pop(("gsm8k", "exact_match", "strict-match")) == 0.25
    assert math.isnan(scores.pop(("piqa", "acc", "")) or 0)
    assert scores == {}


def test_the_same_again_is_the_same_and_other_content_is_not(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    first = live.register_checkpoint(run, 5, loss=1.0)
    assert live.register_checkpoint(run, 5, loss=1.0).id == first.id
    with pytest.raises(cairn.CheckpointExists, match="loss") as caught:
        live.register_checkpoint(run, 5, loss=2.0)
    assert caught.value.status == 409


def test_pending_then_committed_then_amended(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    pending = live.register_checkpoint(run, 5, state="pending")
    assert live.get_checkpoint(pending).state == "pending"
    assert live.commit_checkpoint(pending, loss=1.5).loss == 1.5
    amended = live.patch_checkpoint(pending, tags={"keep": "yes"}, notes="good", milestone=True)
    assert (amended.tags, amended.notes, amended.milestone) == ({"keep": "yes"}, "good", True)
    assert live.patch_checkpoint(pending, tags={"keep": None}, notes=None).tags == {}


def test_a_restart_over_checkpoints_has_to_be_meant(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    assert live.start_attempt(run, key="job-1").number == 1
    checkpoint = live.register_checkpoint(run, 5)
    with pytest.raises(cairn.AttemptWouldRestart):
        live.start_attempt(run, key="job-2")
    second = live.start_attempt(run, key="job-2", resumed_from=checkpoint, reason="node died")
    assert second.number == 2
    assert live.start_attempt(run, key="job-2", resumed_from=checkpoint).id == second.id
    ended = live.patch_attempt(run, 2, state="finished", exit_code=0)
    assert ended.state == "finished"
    assert [each.number for each in live.list_attempts(run)] == [1, 2]


def test_a_batch_is_all_or_nothing(live: Client, project: str) -> None:
    items: list[dict[str, Any]] = [{"project": project, "run": "b", "step": step} for step in range(5)]
    report = live.register_batch(items)
    assert (report.accepted, {each.status for each in report.results}) == (5, {"created"})
    assert {each.status for each in live.register_batch(items).results} == {"unchanged"}
    bad = [{**items[0], "step": 10}, {**items[0], "step": -1}]
    with pytest.raises(cairn.Invalid) as caught:
        live.register_batch(bad)
    assert caught.value.errors[0].pointer == "/1/step"
    assert [each.step for each in live.iter_checkpoints(filter=f"project = '{project}'", order_by="step")] == [
        *range(5)
    ]


def test_paging_gives_every_checkpoint_once(live: Client, project: str) -> None:
    live.register_batch({"project": project, "run": "a", "step": step, "loss": 1.0} for step in range(25))
    where = f"project = '{project}'"
    found = [each.step for each in live.iter_checkpoints(filter=where, order_by="loss, step desc", page_size=7)]
    assert sorted(step for step in found if step is not None) == [*range(25)]
    assert len(list(live.iter_checkpoints(filter=where, limit=10, page_size=7))) == 10


def test_fields_that_were_asked_for_are_in_values(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    live.register_checkpoint(run, 1, scores={"gsm8k.exact_match": 0.5}, tags={"phase": "sft"})
    page = live.list_checkpoints(filter=f"project = '{project}'", fields=["scores.gsm8k", "tags.phase"])
    assert page.items[0].values == {"scores.gsm8k": 0.5, "tags.phase": "sft", "project": project}
    assert page.resolved["scores.gsm8k"].startswith("scores.gsm8k.exact_match")


def test_a_mistake_in_a_filter_names_the_place(live: Client) -> None:
    with pytest.raises(cairn.Malformed, match="At character 7: the text ends too early") as caught:
        live.list_checkpoints(filter="step >")
    assert (caught.value.code, caught.value.status) == ("invalid-filter", 400)


def test_scores_and_curves_are_recorded(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    checkpoint = live.register_checkpoint(run, 5)
    assert live.record_scores(checkpoint, {"gsm8k.exact_match": 0.5}).recorded == 1
    assert live.record_scores(checkpoint, {"gsm8k.exact_match": 0.5}).recorded == 0
    live.record_scores(checkpoint, [{"benchmark": "gsm8k", "metric": "exact_match", "value": 0.6, "stderr": 0.01}])
    assert sorted(each.value or 0 for each in live.list_scores(checkpoint)) == [0.5, 0.6]
    curve = {"attempt": 1, "name": "loss", "steps": [1, 2, 3], "values": [3.0, math.nan, 2.0]}
    assert live.record_series(run, [curve]) == 3
    (read,) = live.read_series(run, "loss")
    assert (read.steps, read.values[0], math.isnan(read.values[1])) == ((1, 2, 3), 3.0, True)


def test_an_alias_moves_and_moves_back(live: Client, project: str) -> None:
    run = live.create_run(project, "a")
    one, two = (live.register_checkpoint(run, step) for step in (1, 2))
    live.put_alias(project, "production", one, reason="first")
    assert live.put_alias(project, "production", two, expected=one).checkpoint.id == two.id
    with pytest.raises(cairn.Conflict):
        live.put_alias(project, "production", two, expected=one)
    assert live.alias_rollback(project, "production", reason="bad").checkpoint.id == one.id
    assert live.get_alias(project, "production").checkpoint.id == one.id
    assert [each.checkpoint.id for each in live.alias_history(project, "production")] == [one.id, two.id, one.id]
    assert f"{project}/production" in map(str, live.list_aliases())


def test_lists_of_aliases_and_moves_go_on_beyond_a_page(
    live: Client, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairn.calls.base.PAGE", 2)
    run = live.create_run(project, "a")
    steps = [live.register_checkpoint(run, step) for step in range(5)]
    for number, step in enumerate(steps):
        live.put_alias(project, "production", step)
        live.put_alias(project, f"best-{number}", step)
    assert [each.checkpoint.step for each in live.alias_history(project, "production")] == [4, 3, 2, 1, 0]
    assert len([each for each in live.list_aliases() if each.project == project]) == 6


RESULT = {
    "results": {"piqa": {"acc": 0.7123456789012345, "acc_stderr": 0.01, "f1": None}},
    "versions": {"piqa": 0},
    "config": {"model_args": "pretrained=m,revision=step3000", "num_fewshot": 0},
}


def test_a_result_file_becomes_scores(live: Client, project: str) -> None:
    report = live.import_results([("r.json", json.dumps(RESULT).encode())], project=project, run="e", step=3000)
    assert report.imported == 1
    assert [each.reason for each in report.skipped] == ["missing in the file, which is not zero"]
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    score = live.get_checkpoint(found).scores[0]
    assert (score.value, score.stderr, score.n_shot, score.version) == (0.7123456789012345, 0.01, 0, "0")
    with pytest.raises(cairn.Invalid):
        live.import_results([("r.csv", b"a,b\n1,2\n")], checkpoint=found)


def test_without_a_token_nothing_is_told(service: tuple[str, Path]) -> None:
    with Client(service[0], "cairn_wrong", retries=Retries(count=0)) as client, pytest.raises(cairn.Unauthenticated):
        client.list_checkpoints()
    with Client(service[0], retries=Retries(count=0)) as client, pytest.raises(cairn.Unauthenticated):
        client.list_checkpoints()


@pytest.mark.parametrize("step", [-1, 1.5, True, "5", 2**63])
def test_a_step_that_is_none_is_refused_at_its_place(live: Client, project: str, step: Any) -> None:
    run = live.create_run(project, "a")
    with pytest.raises(cairn.Invalid) as caught:
        live.register_checkpoint(run, step)
    assert [each.pointer for each in caught.value.errors] == ["/step"]
    assert caught.value.errors[0].message
