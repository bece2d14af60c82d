"""Scans against the real service: recorded once, added to later, refused item by item, rebuilt from storage."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cairn import Client, Retries, wire
from cairn.formats.checkpoints import cairn_json
from cairn.scan import compare, register, scan
from cairn.types import Checkpoint, Run

from tests.client.conftest import Cli
from tests.client.live import running_service
from tests.client.scan.trees import LONG_AGO, fixture, safetensors, trainer, written


def record(client: Client, root: Path | str, project: str, **options: Any) -> dict[str, int]:
    """Scans and records; answers how many checkpoints fared how."""
    given = {"tier": "shared", "settle_seconds": 0, **options}
    with scan(str(root), project=project, **given) as plan:
        compare(plan, client)
        register(plan, client)
        return dict(plan.counts())


def recorded(client: Client, project: str) -> list[Checkpoint]:
    found = client.iter_checkpoints(filter=f"project = '{project}'", order_by="run.name, attempt, step")
    return list(found)


def identities(client: Client, project: str) -> list[tuple[str, int | None, int | None, str | None]]:
    return [
        (each.run.name if each.run else "", each.attempt, each.step, each.state) for each in recorded(client, project)
    ]


def test_a_tree_is_recorded_and_run_again_adds_only_what_is_new(live: Client, project: str, tmp_path: Path) -> None:
    trainer(tmp_path / "a/checkpoint-10", 10, at=LONG_AGO)
    trainer(tmp_path / "b/checkpoints/checkpoint-10", 10, at=LONG_AGO)
    assert record(live, tmp_path, project) == {"recorded": 2}
    assert identities(live, project) == [("a", 1, 10, "committed"), ("b", 1, 10, "committed")]
    assert record(live, tmp_path, project) == {"known": 2}
    trainer(tmp_path / "a/checkpoint-20", 20, at=LONG_AGO + 60)
    assert record(live, tmp_path, project) == {"known": 2, "recorded": 1}
    assert record(live, tmp_path / "a", project, run="a") == {"known": 2}


def test_what_is_recorded_says_what_the_files_said(live: Client, project: str, tmp_path: Path) -> None:
    fixture("hf_trainer/checkpoint-4", tmp_path / "r/checkpoint-4")
    written(tmp_path / "r", LONG_AGO)
    record(live, tmp_path, project)
    found = live.get_checkpoint(recorded(live, project)[0])
    assert set(found.pieces.values()) == {"present"}
    assert found.raw["piece_evidence"]["data_position"]["position_evidence"] == "counter"
    assert (found.resumability, found.format, found.step) == ("exact", "hf-trainer", 4)
    assert found.saved_at is not None
    assert found.saved_at.timestamp() == LONG_AGO
    (replica,) = found.replicas
    assert (replica["uri"], replica["tier"]) == (str(tmp_path / "r/checkpoint-4"), "shared")
    assert replica["file_count"] == len(list((tmp_path / "r/checkpoint-4").iterdir()))


def test_a_pending_save_is_committed_once_it_is_whole(live: Client, project: str, tmp_path: Path) -> None:
    whole = fixture("safetensors_sharded", tmp_path / "r/step-10")
    shard = (whole / "model-00002-of-00002.safetensors").read_bytes()
    (whole / "model-00002-of-00002.safetensors").unlink()
    assert record(live, tmp_path, project) == {"recorded": 1}
    assert identities(live, project) == [("r", 1, 10, "pending")]
    assert record(live, tmp_path, project) == {"known": 1}
    (whole / "model-00002-of-00002.safetensors").write_bytes(shard)
    assert record(live, tmp_path, project) == {"recorded": 1}
    assert identities(live, project) == [("r", 1, 10, "committed")]
    assert live.get_checkpoint(recorded(live, project)[0]).replicas[0]["file_count"] == 5


def test_attempts_of_a_reused_folder_supersede_as_they_did(live: Client, project: str, tmp_path: Path) -> None:
    for place, step in enumerate((300, 400, 500, 100, 200)):
        trainer(tmp_path / f"r/checkpoint-{step}", step, at=LONG_AGO + place * 600)
    record(live, tmp_path, project)
    superseded = {(each.attempt, each.step): each.superseded for each in recorded(live, project)}
    assert superseded == {(1, 300): True, (1, 400): True, (1, 500): True, (2, 100): False, (2, 200): False}


def test_what_others_recorded_is_known_by_its_copys_address(live: Client, project: str, tmp_path: Path) -> None:
    run = live.create_run(project, "7b-a")
    trainer(tmp_path / "exp/checkpoint-10", 10)
    replica = {"uri": str(tmp_path / "exp/checkpoint-10"), "tier": "shared"}
    live.register_checkpoint(run, 10, replicas=[replica])
    assert record(live, tmp_path, project) == {"known": 1}
    assert identities(live, project) == [("7b-a", 1, 10, "committed")]


def test_a_copy_elsewhere_of_a_recorded_checkpoint_is_added_to_it(live: Client, project: str, tmp_path: Path) -> None:
    run = live.create_run(project, "exp")
    live.register_checkpoint(run, 10, replicas=[{"uri": "s3://ckpt/exp/10", "tier": "object"}])
    trainer(tmp_path / "exp/checkpoint-10", 10)
    assert record(live, tmp_path, project) == {"recorded": 1}
    (found,) = recorded(live, project)
    uris = [each["uri"] for each in live.get_checkpoint(found).replicas]
    assert sorted(uris) == sorted(["s3://ckpt/exp/10", str(tmp_path / "exp/checkpoint-10")])
    assert record(live, tmp_path, project) == {"known": 1}


def test_what_has_another_size_than_the_recorded_copy_is_said_and_not_added(
    live: Client, project: str, tmp_path: Path
) -> None:
    run = live.create_run(project, "exp")
    live.register_checkpoint(run, 10, replicas=[{"uri": "s3://ckpt/exp/10", "tier": "object", "bytes": 5}])
    trainer(tmp_path / "exp/checkpoint-10", 10)
    with scan(str(tmp_path), project=project, tier="shared", settle_seconds=0) as plan:
        compare(plan, live)
        (item,) = plan.items()
    assert item["status"] == "left out"
    assert "where the recorded copy s3://ckpt/exp/10 has 5: no copy of it" in item["note"]


def test_files_that_changed_since_they_were_recorded_are_said_to_have(
    live: Client, project: str, tmp_path: Path
) -> None:
    trainer(tmp_path / "r/checkpoint-10", 10, at=LONG_AGO)
    record(live, tmp_path, project)
    trainer(tmp_path / "r/checkpoint-10", 10, at=LONG_AGO + 3600)
    with scan(str(tmp_path), project=project, tier="shared") as plan:
        compare(plan, live)
        (item,) = plan.items()
    assert item["status"] == "left out"
    assert "have changed since" in item["note"]


def test_what_the_service_refuses_is_told_by_item_and_the_rest_goes_on(
    live: Client, project: str, tmp_path: Path
) -> None:
    for step in (10, 20, 30):
        trainer(tmp_path / f"r/checkpoint-{step}", step)
    sidecar(tmp_path / "r/checkpoint-20", project, step=20, run="r", tags={"t" * 600: "a name too long"})
    with scan(str(tmp_path), project=project, tier="shared", settle_seconds=0) as plan:
        compare(plan, live)
        assert register(plan, live) == 2
        assert dict(plan.counts()) == {"recorded": 2, "refused": 1}
        ((place, reason),) = plan.problems()
    assert place == "r/checkpoint-20"
    assert reason.startswith("the service refuses it as r · 1 · 20: tags")
    assert [step for _, _, step, _ in identities(live, project)] == [10, 30]


def test_a_converted_copy_has_its_original_as_parent(live: Client, project: str, tmp_path: Path) -> None:
    safetensors(tmp_path / "r/step10/model.safetensors")
    safetensors(tmp_path / "r/step10-unsharded/model.safetensors")
    assert record(live, tmp_path, project) == {"recorded": 2}
    original, copy = recorded(live, project)
    parents = live.get_checkpoint(copy).parents
    assert [(each["checkpoint_id"], each["relation"]) for each in parents] == [(original.id, "resharded_from")]


def test_a_lost_registry_is_rebuilt_from_what_lies_beside_the_checkpoints(
    live: Client, project: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same identities, scores, pieces and lineage, from storage alone."""
    base = live.create_run(project, "base")
    run = live.create_run(project, "7b-a")
    live.start_attempt(run, key="one", restart=True)
    live.start_attempt(run, key="two", restart=True)
    live.start_attempt(run, key="three", restart=True)
    first = saved(live, tmp_path / "old/x", base, 5)
    saved(live, tmp_path / "ckpt/save-10", run, 10, attempt=3, kind="light", parents=[(first, "fine_tuned_from")])
    saved(live, tmp_path / "ckpt/save-20", run, 20, attempt=3, scores={"gsm8k": 0.25, "mmlu": math.nan})
    before = facts(live, project)
    with running_service(tmp_path_factory.mktemp("rebuilt")) as (url, home):
        token = (home / "admin-token").read_text().strip()
        with Client(url, token, timeout=60, retries=Retries(count=0)) as rebuilt:
            assert record(rebuilt, tmp_path, project) == {"recorded": 3}
            assert facts(rebuilt, project) == before
            assert record(rebuilt, tmp_path, project) == {"known": 3}


def saved(client: Client, folder: Path, run: Run, step: int, *, parents: Sequence[Any] = (), **given: Any) -> Any:
    """A checkpoint on storage and in the registry, with its `cairn.json`."""
    trainer(folder, step)
    fields = {
        "loss": 1.5,
        "tokens_seen": step * 1000,
        "saved_at": "2026-11-01T00:00:00Z",
        "tags": {"phase": "pretrain"},
        "pieces": {"weights": "present", "optimizer": "absent"},
        **given,
    }
    edges = [{"checkpoint_id": parent.id, "relation": relation} for parent, relation in parents]
    made = client.register_checkpoint(run, step, parents=edges, replicas=[replica(folder)], **fields)
    found = client.get_checkpoint(made)
    scores = [
        {"benchmark": name, "value": wire.number_to_wire(value)} for name, value in given.get("scores", {}).items()
    ]
    said = {**fields, "scores": scores, "attempt": found.attempt, "kind": found.kind}
    of = [{**edge, "of": identity(parent)} for edge, (parent, _) in zip(edges, parents, strict=True)]
    sidecar(folder, found.project, run=run.name, step=step, parents=of, **said)
    return found


def replica(folder: Path) -> dict[str, str]:
    return {"uri": str(folder), "tier": "shared"}


def identity(found: Checkpoint) -> dict[str, Any]:
    run = found.run.name if found.run else ""
    return {"project": found.project, "run": run, "attempt": found.attempt, "step": found.step, "kind": found.kind}


def sidecar(folder: Path, project: str, *, run: str, step: int, **said: Any) -> None:
    identified = {"project": project, "run": {"name": run}, "attempt": 1, "step": step, "kind": "archive"}
    cairn_json.write(folder, {**identified, **said})


def facts(client: Client, project: str) -> list[Any]:
    """Everything that a rebuilt registry must say alike."""
    found = [client.get_checkpoint(each) for each in recorded(client, project)]
    of = {each.id: (each.run.name if each.run else "", each.attempt, each.step) for each in found}
    return [
        (
            *(of[each.id], each.kind, each.state, each.saved_at, each.loss, each.tokens_seen, dict(each.tags)),
            *(sorted((score.benchmark, str(score.value)) for score in each.scores), each.pieces["optimizer"]),
            *([copy["uri"] for copy in each.replicas], each.superseded),
            [(of[parent["checkpoint_id"]], parent["relation"]) for parent in each.parents],
        )
        for each in found
    ]


def test_a_list_is_recorded_and_run_again_adds_nothing(live: Client, project: str, tmp_path: Path) -> None:
    lines = [f"{step},https://checkpoints.example/x/step{step}/" for step in (0, 1000, 2000)]
    (tmp_path / "olmo.csv").write_text("\n".join(["Step,Checkpoint Directory", *lines]))
    assert record(live, tmp_path / "olmo.csv", project, tier=None) == {"recorded": 3}
    assert record(live, tmp_path / "olmo.csv", project, tier=None) == {"known": 3}
    first = live.get_checkpoint(recorded(live, project)[0])
    assert set(first.pieces.values()) == {"unknown"}
    assert first.replicas[0]["tier"] == "object"


def test_the_command_shows_the_plan_and_records_it(live: Client, project: str, tmp_path: Path, cli: Cli) -> None:
    trainer(tmp_path / "r/checkpoint-10", 10, at=LONG_AGO)
    code, out, err = cli("scan", str(tmp_path), "--project", project, "--dry-run")
    assert code == 0
    assert out.splitlines()[1].split("\t")[:5] == ["r", "1", "new", "1", "10"]
    assert "Nothing was recorded." in err
    assert recorded(live, project) == []
    code, _, err = cli("scan", str(tmp_path), "--project", project, "--no-dry-run")
    assert code == 2
    assert "--tier local or --tier shared" in err
    code, _, err = cli("scan", str(tmp_path), "--project", project, "--no-dry-run", "--tier", "shared")
    assert code == 0
    assert "Recorded 1 checkpoint." in err
    assert identities(live, project) == [("r", 1, 10, "committed")]
    code, out, _ = cli("scan", str(tmp_path), "--project", project, "--tier", "shared", "--json")
    answer = json.loads(out)
    assert answer["counts"] == {"known": 1}
    assert answer["checkpoints"][0]["note"] == "recorded as r · 1 · 10"


def test_nothing_found_ends_with_1_and_no_root_says_so(live: Client, project: str, tmp_path: Path, cli: Cli) -> None:
    assert cli("scan", str(tmp_path), "--project", project, "--tier", "shared")[0] == 1
    code, _, err = cli("scan", str(tmp_path / "nowhere"), "--project", project, "--tier", "shared")
    assert code == 2
    assert "No such file" in err


def test_a_plan_can_be_shown_without_a_service(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:1")
    trainer(tmp_path / "r/checkpoint-10", 10)
    code, out, err = cli("scan", str(tmp_path), "--project", "p", "--dry-run")
    assert code == 0
    assert "checkpoint" in out
    assert "Not compared with what is recorded" in err
    assert cli("scan", str(tmp_path), "--project", "p", "--no-dry-run", "--tier", "local")[0] == 3


def test_a_missing_tier_is_said_before_the_plan(live: Client, project: str, tmp_path: Path, cli: Cli) -> None:
    trainer(tmp_path / "r/checkpoint-10", 10)
    code, out, err = cli("scan", str(tmp_path), "--project", project, "--no-dry-run")
    assert (code, out) == (2, "")
    assert "Say --tier local or --tier shared" in err
