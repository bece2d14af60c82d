"""The three questions, the commands and the examples of the documentation, against the real service."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.recorder.engine import shut_down

from tests.client.background import end_background, wait_for_the_disk
from tests.client.conftest import Cli
from tests.client.until import LATEST

README = Path(__file__).parents[2] / "client" / "README.md"
PIECES = dict.fromkeys(("weights", "optimizer", "data_position"), "present")
RESULT = {
    "results": {"piqa": {"acc": 0.7123456789012345, "acc_stderr": 0.01, "f1": None}},
    "versions": {"piqa": 0},
    "config": {"model_args": "pretrained=m,revision=step3000", "num_fewshot": 0},
}


def trained(live: Client, project: str, fall: float = 0.3) -> Client:
    """Two runs of scored checkpoints; gsm8k of the first falls at its end."""
    items = []
    for name, offset in (("a", 0.0), ("b", -0.1)):
        for index in range(12):
            value = 0.4 + 0.02 * index + offset - (fall if name == "a" and index >= 9 else 0)
            scores = [
                {"benchmark": bench, "metric": metric, "value": value, "stderr": 0.01, "n_samples": 1000}
                for bench, metric in (("gsm8k", "exact_match"), ("hendrycks_math", "exact_match"), ("piqa", "acc"))
            ]
            items.append(
                {
                    "project": project,
                    "run": name,
                    "step": 1000 * (index + 1),
                    "scores": scores,
                    "pieces": PIECES,
                    "config": {"lr": 1e-4 * (1 + (name == "b"))},
                    "replicas": [{"uri": f"/ckpt/{project}/{name}/{index}", "tier": "shared"}],
                }
            )
    live.register_batch(items)
    return live


def test_lineage_names_parents_and_children(live: Client, project: str) -> None:
    parent = live.register_checkpoint(live.create_run(project, "a"), 1)
    edge = {"checkpoint_id": parent.id, "relation": "fine_tuned_from"}
    child = live.register_checkpoint(live.create_run(project, "b"), 1, parents=[edge])
    up, down = live.lineage(child), live.lineage(parent)
    assert [(each.parent, each.relation, each.lossless) for each in up.ancestors] == [
        (parent.id, "fine_tuned_from", False)
    ]
    assert [each.child for each in down.descendants] == [child.id]
    assert sorted(map(str, up.checkpoints)) == ["a · 1 · 1", "b · 1 · 1"]


def test_a_profile_has_percentiles_and_says_what_was_not_evaluated(live: Client, project: str) -> None:
    run = trained(live, project).find_run(project, "a")
    best = live.list_checkpoints(filter=f"run.id = '{run.id}' and step = 9000").items[0]
    profile = live.profile(best)
    math_ = next(each for each in profile.capabilities if each.capability == "math")
    assert {each.benchmark for each in math_.benchmarks} == {"gsm8k", "hendrycks_math"}
    assert all(each.value == pytest.approx(0.56) for each in math_.benchmarks)
    assert "chat" in profile.not_evaluated


def test_search_says_how_it_understood(live: Client, project: str) -> None:
    answer = trained(live, project).search("strong math", project=project, limit=3)
    assert [(each.capability, each.relation) for each in answer.interpretation.conditions] == [("math", "strong")]
    assert answer.population["size"] >= 20
    assert answer.results
    assert answer.results[0].evidence[0].capability == "math"


def test_rollback_leads_back_before_the_fall(live: Client, project: str) -> None:
    run = trained(live, project).find_run(project, "a")
    answer = live.rollback(run, mode="training", watch={"benchmark": "gsm8k"})
    assert answer.candidates
    assert all((each.checkpoint.step or 0) <= 9000 for each in answer.candidates)
    assert answer.candidates[0].rank == 1
    assert {each.checkpoint.step for each in answer.excluded} >= {10000, 11000, 12000}


def test_compare_names_what_fell_and_what_changed(live: Client, project: str) -> None:
    trained(live, project)
    found = {
        (each.run.name if each.run else "", each.step): each
        for each in live.iter_checkpoints(filter=f"project = '{project}'")
    }
    answer = live.compare(found["a", 9000], found["a", 12000])
    gsm8k = next(each for each in answer.scores if each.benchmark == "gsm8k")
    assert gsm8k.verdict == "regressed"
    assert gsm8k.delta == pytest.approx(-0.24)
    other = live.compare(found["a", 9000], found["b", 9000])
    assert [(each.path, each.change) for each in other.config_changes] == [("lr", "changed")]


def test_the_commands_work_end_to_end(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    trained(live, project)
    recorded = ("record", "--project", project, "--run", "a", "--step", "13000", "--loss", "2.5", "--pieces", "all")
    assert cli(*recorded)[0] == 0
    assert "unchanged" in cli(*recorded)[1]
    assert cli("record", "--project", project, "--run", "a", "--step", "13000", "--loss", "3")[0] == 3
    code, out, _ = cli("find", "--project", project, "--filter", "run.name = 'a'", "--order-by", "step desc")
    assert code == 0
    assert out.splitlines()[1].split("\t")[:3] == [project, "a · 1 · 13000", "2.5"]
    code, out, err = cli("find", "strong math", "--project", project)
    assert "Understood: strong math" in err
    assert out.startswith("checkpoint\tmatch\tmath\tid")
    code, out, err = cli("rollback", "--run", f"{project}/a", "--watch", "gsm8k")
    assert code == 0, err
    assert out.startswith("rank\tcheckpoint")
    code, out, err = cli("compare", f"{project}/a@9000", f"{project}/a@1.12000")
    assert code == 0, err
    assert "regressed" in out
    path = tmp_path / "r.json"
    path.write_text(json.dumps(RESULT))
    code, out, err = cli("evals", str(path), "--project", project, "--run", "e")
    assert code == 0, err
    code, out, _ = cli("run", "list", "--project", project)
    assert {line.split("\t")[0] for line in out.splitlines()[1:]} == {f"{project}/{name}" for name in "abe"}
    code, out, _ = cli("run", "show", f"{project}/e")
    assert "e · 1 · 3000" in out
    assert cli("run", "show", f"{project}/nothing")[0] == 1
    assert cli("find", "--project", "no-such-project")[0] == 1


CHECKPOINTS = Path(__file__).parent / "fixtures" / "checkpoints"
OFFLINE_RUN = Path(__file__).parent / "formats" / "wandb_offline" / "run-fixture.wandb"
# What needs a store, a list, another machine or a worker, or goes on for ever.
ELSEWHERE = (
    *("cairn login", "cairn watch", "cairn scan s3://", "cairn inspect s3://", "OLMo-2-1124-7B.csv"),
    *("cairn import wandb --project", "cairn drill llm/7b-a@4000 --", "cairn drill --due"),
)


@pytest.fixture
def documented(live: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The text of README.md with its folders below one of ours, which holds the files that its examples name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    for name in ("result.json", "results/one.json"):
        (tmp_path / name).write_text(json.dumps(RESULT))
    offline = tmp_path / "wandb" / "offline-run-20260101_000000-fixture"
    offline.mkdir(parents=True)
    shutil.copyfile(OFFLINE_RUN, offline / "run-fixture.wandb")
    for name in ("3000", "4000", "checkpoint-41000"):
        shutil.copytree(CHECKPOINTS / "hf_trainer" / "checkpoint-4", tmp_path / "ckpt" / "7b-a" / name)
    return README.read_text(encoding="utf-8").replace("/mnt/ckpt", "/ckpt").replace("/ckpt", str(tmp_path / "ckpt"))


def test_the_examples_of_the_readme_run(
    documented: str, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_the_disk(monkeypatch)
    blocks = re.findall(r"```python\n(.*?)```", documented, re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    try:
        for block in blocks:
            exec(block, names)
    finally:
        names["client"].close()
        shut_down(LATEST)
        end_background()
    assert "7b-a · 1 · 1000" in capsys.readouterr().out
    lines = documented.replace("\\\n", " ").splitlines()
    commands = [
        shlex.split(line, comments=True)[1:]
        for line in lines
        if line.startswith("    cairn ") and not any(mark in line for mark in ELSEWHERE)
    ]
    assert len(commands) >= 10
    for command in commands:
        globbed = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in command]
        code, _, err = cli(*(word for words in globbed for word in words))
        # 1: nothing among so few checkpoints is strong and weak at once, or worth going back to; no record waits.
        assert code == 0 or (code == 1 and command[0] in ("find", "rollback", "spool")), (command, err)


def test_a_service_that_is_ready_says_so(live: Client) -> None:
    assert live.ready()
