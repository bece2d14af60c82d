"""`cairn evals` against the real service: whose the results are, what is shown first, what is sent, how it ends."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.results.places import run_names

from tests.client.conftest import Cli
from tests.client.formats.evals import samples

pytestmark = pytest.mark.usefixtures("live")


def result(step: int | None = 3000, value: float = 0.5, model: str = "org/model-1b") -> bytes:
    args = f"pretrained={model}" + ("" if step is None else f",revision=step{step}")
    document = {"results": {"piqa": {"acc": value}}, "versions": {"piqa": 0}, "config": {"model_args": args}}
    return json.dumps(document).encode()


def write(folder: Path, **files: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)


def steps_of(live: Client, project: str) -> dict[tuple[str, int], float]:
    found = live.iter_checkpoints(filter=f"project = '{project}'", fields=["scores.piqa"])
    return {(each.run.name, each.step): each.values.get("scores.piqa") for each in found if each.run}  # type: ignore[misc]


def test_a_file_goes_to_the_step_that_it_states_in_the_run_that_is_named(
    cli: Cli, live: Client, project: str, tmp_path: Path
) -> None:
    write(tmp_path, r__json=result())
    code, out, err = cli("evals", str(tmp_path / "r.json"), "--project", project, "--run", "a")
    assert code == 0, err
    assert f"lm-eval-v03, 1 scores → {project}/a@3000, new (by --run, revision)" in err
    assert out.splitlines()[1].split("\t")[1:5] == ["lm-eval-v03", "1", "1", "0"]
    assert steps_of(live, project) == {("a", 3000): 0.5}
    code, out, err = cli("evals", str(tmp_path / "r.json"), "--checkpoint", f"{project}/a@3000")
    assert (code, out.splitlines()[1].split("\t")[2:4]) == (0, ["1", "0"]), "the same again adds nothing"


def test_a_step_that_differs_from_the_file_s_own_is_remarked(
    cli: Cli, live: Client, project: str, tmp_path: Path
) -> None:
    write(tmp_path, r__json=result())
    code, _, err = cli("evals", str(tmp_path / "r.json"), "--project", project, "--run", "a", "--step", "7")
    assert code == 0
    assert "(by --run, --step (revision says 3000))" in err
    assert "revision says step 3000; recorded at step 7, as it was asked for" in err
    assert steps_of(live, project) == {("a", 7): 0.5}


def test_a_dry_run_and_a_guess_write_nothing(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    write(tmp_path, r__json=result())
    path = str(tmp_path / "r.json")
    code, out, err = cli("evals", path, "--project", project, "--dry-run")
    assert (code, out) == (0, "")
    assert f"→ {project}/model-1b@3000, new (by the model org/model-1b (a new run), revision)" in err
    assert "Nothing was written." in err
    code, _, err = cli("evals", path, "--project", project)
    assert code == 2
    assert "would go to" in err
    assert "Say --yes" in err
    assert steps_of(live, project) == {}
    assert cli("evals", path, "--project", project, "--yes")[0] == 0
    assert steps_of(live, project) == {("model-1b", 3000): 0.5}


def test_the_run_is_found_by_the_model_s_path_and_the_checkpoint_by_its_copy(
    cli: Cli, live: Client, project: str, tmp_path: Path
) -> None:
    run = f"run-{project[-40:]}"
    copy = f"/ckpt/{project}/odd-name"
    live.register_batch(
        [
            {"project": project, "run": run, "step": 9000},
            {"project": project, "run": run, "step": 42, "replicas": [{"uri": copy, "tier": "shared"}]},
        ]
    )
    write(tmp_path, a__json=result(None, 0.1, f"/ckpt/{run}/checkpoint-9000"), b__json=result(None, 0.2, copy))
    code, out, err = cli("evals", str(tmp_path), "--json", "--dry-run")
    assert code == 0, err
    planned = {Path(each["file"]).name: each for each in json.loads(out)["plan"]}
    assert planned["a.json"]["checkpoint"] == f"{project}/{run}@9000"
    assert planned["b.json"]["checkpoint"] == f"{project}/{run}@42"
    assert (planned["a.json"]["new_steps"], planned["b.json"]["found_by"]) == ([], f"the copy at {copy}")
    assert cli("evals", str(tmp_path), "--yes")[0] == 0
    assert steps_of(live, project) == {(run, 9000): 0.1, (run, 42): 0.2}


def test_a_run_that_two_projects_have_is_not_chosen(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    run = f"twice-{project[-40:]}"
    live.register_batch([{"project": each, "run": run, "step": 1} for each in (project, f"{project[:90]}-b")])
    write(tmp_path, r__json=result(5, model=f"org/{run}"))
    code, _, err = cli("evals", str(tmp_path / "r.json"), "--yes")
    assert code == 2
    assert f"A run '{run}' is in {project[:90]}" in err
    assert "say --project" in err


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("/ckpt/run-7/checkpoint-9000", "run-7"),
        ("/ckpt/run-7/checkpoint-9000/hf", "run-7"),
        ("/ckpt/run-7/global_step12/", "run-7"),
        ("EleutherAI/pythia-1b", "pythia-1b"),
        ("internlm2-step1000-hf", "internlm2"),
        ("org/model-step900", "model"),
        ("gpt2", "gpt2"),
        ("step5", "step5"),
    ],
)
def test_a_model_s_path_names_a_run(path: str, first: str) -> None:
    assert next(run_names(path)) == first


def test_a_folder_of_many_files_gives_one_summary_and_a_reason_for_each_refused(
    cli: Cli, live: Client, project: str, tmp_path: Path
) -> None:
    for step in range(120):
        write(tmp_path / f"r{step % 3}", **{f"step{step}__json": result(step, step / 200)})
    write(tmp_path, broken__json=b'{"results": ', other__json=b'{"a": 1}', weights__safetensors=b"\0" * 99)
    write(
        tmp_path / "helm" / samples.HELM_FOLDER,
        **{Path(name).name.replace(".", "__"): content for name, content in samples.HELM.items()},
    )
    code, out, err = cli("evals", str(tmp_path), "--project", project, "--run", "a")
    assert code == 2
    assert "123 files imported: 122 scores, 122 of them new, into 121 checkpoints. 2 refused." in err
    assert f"{tmp_path}/broken.json: The file is no JSON" in err
    assert f"{tmp_path}/other.json: Not a result file" in err
    assert "1 files that end like no result file were not opened." in err
    assert len(out.splitlines()) == 1 + 123
    assert len(steps_of(live, project)) == 121


def test_what_the_service_refuses_is_told_for_each_file(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    write(tmp_path, a__csv=b"checkpoint,benchmark,value\n0000000000000,piqa,0.5\n", b__json=result())
    code, out, err = cli("evals", str(tmp_path), "--project", project, "--run", "a")
    assert code == 2
    assert "has no checkpoint 0000000000000" in err
    assert len(out.splitlines()) == 3
    only = cli("evals", str(tmp_path / "a.csv"), "--project", project, "--run", "a")
    assert only[0] == 2
    assert "a.csv: project" in only[2]
    assert steps_of(live, project) == {("a", 3000): 0.5}


def test_several_steps_and_several_models_of_one_file(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    write(tmp_path, s__json=samples.encoded(samples.TRAINER_STATE), o__csv=samples.OPENCOMPASS.encode())
    code, out, err = cli("evals", str(tmp_path / "s.json"), "--project", project, "--run", "a")
    assert code == 0, err
    assert f"{project}/a, 2 steps 1000 to 2000, 2 of them new" in err
    assert out.splitlines()[1].split("\t")[2:] == ["6", "6", "0", "2 checkpoints"]
    where = ("--project", project, "--run", "a")
    code, _, err = cli("evals", str(tmp_path / "o.csv"), *where)
    assert code == 2
    assert "results of 2 models (model-step1000-hf, model-step2000-hf); say --model" in err
    code, out, err = cli("evals", str(tmp_path / "o.csv"), *where, "--model", "model-step2000-hf")
    assert code == 0, err
    assert out.splitlines()[1].split("\t")[2] == "2"


def test_rows_that_name_their_run_need_no_run(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    write(tmp_path, t__csv=b"run,step,task,value\na,1,piqa,0.25\nb,2,piqa,0.5\n")
    assert cli("evals", str(tmp_path / "t.csv"), "--project", project)[0] == 0
    assert steps_of(live, project) == {("a", 1): 0.25, ("b", 2): 0.5}


def test_a_file_larger_than_a_request_is_sent_as_its_scores(
    cli: Cli, live: Client, project: str, tmp_path: Path
) -> None:
    row = samples.sample(0, 1.0, filtered_resps=["x" * 400_000])
    path = tmp_path / "samples_gsm8k.jsonl"
    path.write_bytes(samples.lines([{**row, "doc_id": doc, "acc": float(doc % 2)} for doc in range(90)]))
    assert path.stat().st_size > 33 * 2**20
    code, _, err = cli("evals", str(path), "--project", project, "--run", "a", "--step", "5")
    assert code == 0, err
    (checkpoint,) = live.iter_checkpoints(filter=f"project = '{project}'")
    (score,) = live.list_scores(checkpoint)
    assert (score.benchmark, score.metric, score.value, score.n_samples) == ("gsm8k", "acc", 0.5, 90)
    assert (score.harness, "items_digest" in score.comparability) == ("lm-evaluation-harness", True)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--checkpoint", "c", "--step", "1"),
        ("--checkpoint", "c", "--project", "p"),
        ("--run", "r"),
        ("--project", "p", "--run", "r", "--step", "-1"),
    ],
)
def test_contradicting_targets_are_a_usage_error(cli: Cli, tmp_path: Path, wrong: tuple[str, ...]) -> None:
    write(tmp_path, r__json=result())
    assert cli("evals", str(tmp_path / "r.json"), *wrong)[0] == 2


def test_what_cannot_be_placed_says_what_to_give(cli: Cli, project: str, tmp_path: Path) -> None:
    write(tmp_path, a__json=result(None, model="org/unheard-of"), b__md=samples.MARKDOWN.partition("\n")[2].encode())
    code, _, err = cli("evals", str(tmp_path), "--project", project, "--run", "a")
    assert code == 2
    assert err.count("say --step") == 2
    code, _, err = cli("evals", str(tmp_path))
    assert code == 2
    assert "No run is named like its model 'org/unheard-of'; say --project and --run, or --checkpoint." in err
    assert "does not say which model was evaluated" in err


def test_a_folder_without_results_says_so(cli: Cli, project: str, tmp_path: Path) -> None:
    code, out, err = cli("evals", str(tmp_path), "--project", project, "--run", "a")
    assert (code, out) == (1, "")
    assert "No result file was found" in err


def test_odd_files_in_a_folder_do_not_stop_the_others(cli: Cli, live: Client, project: str, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write(folder, good__json=result())
    (tmp_path / "outside.json").write_bytes(result())
    (folder / "leads-out.json").symlink_to(tmp_path / "outside.json")
    (folder / "loop").symlink_to(folder)
    (folder / "dangling.json").symlink_to(folder / "absent.json")
    os.mkfifo(folder / "pipe.json")
    Path(os.fsdecode(os.path.join(os.fsencode(folder), b"odd\xff.json"))).write_bytes(result(4000))
    with (folder / "huge.json").open("wb") as file:
        file.truncate(3 * 2**30)
    code, _, err = cli("evals", str(folder), "--project", project, "--run", "a")
    assert code == 2
    assert "leads-out.json: It is a link that leads out of the folder." in err
    assert "dangling.json: No such file or directory" in err
    assert "pipe.json: It is no regular file." in err
    assert "huge.json: The file has 3,221,225,472 bytes" in err
    assert steps_of(live, project) == {("a", 3000): 0.5, ("a", 4000): 0.5}


def test_on_a_terminal_the_plan_is_shown_and_asked_for(live: Client, project: str, tmp_path: Path) -> None:
    write(tmp_path, r__json=result())
    command = ["-c", "from cairn.cli import main; main()", "evals", str(tmp_path), "--project", project, "--run", "a"]
    for word, recorded in (("n", {}), ("y", {("a", 3000): 0.5})):
        shown = on_a_terminal(command, word)
        assert f"{project}/a@3000, new" in shown.replace("\r\n", "")
        assert "Import up to 1 scores?" in shown
        assert steps_of(live, project) == recorded


def on_a_terminal(command: list[str], word: str) -> str:
    """What the program shows to somebody who types one word when asked."""
    parent, terminal = pty.openpty()
    env: dict[str, Any] = {**os.environ, "TERM": "xterm", "COLUMNS": "500"}
    with subprocess.Popen(
        [sys.executable, *command], stdin=terminal, stdout=terminal, stderr=terminal, env=env
    ) as program:
        os.close(terminal)
        shown, deadline = b"", time.monotonic() + 60
        while time.monotonic() < deadline:
            if not select.select([parent], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(parent, 65536)
            except OSError:  # the other end is closed: everything was read
                break
            shown += piece
            if b"?" in piece:
                os.write(parent, word.encode() + b"\n")
        program.wait(60)
    os.close(parent)
    return shown.decode()
