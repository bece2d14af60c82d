"""`cairn show` and `cairn run show` against the real service: what a person decides by, at a terminal."""

import json

import pytest
from cairn import Client
from cairn.cli import output
from cairn.types import Checkpoint, Run

from tests.client.conftest import Cli


@pytest.fixture
def run(live: Client, project: str) -> Run:
    return live.create_run(project, "r", kind="pretrain", team="red")


@pytest.fixture
def saved(live: Client, run: Run) -> Checkpoint:
    """The second attempt went back to step 1000; what the first saved later is superseded."""
    live.start_attempt(run, key="a")
    gsm8k = {"benchmark": "gsm8k", "metric": "exact_match", "value": 0.5, "stderr": 0.01, "n_samples": 1000}
    own = {"benchmark": "our-suite", "metric": "acc", "value": 0.25}
    first = live.register_checkpoint(
        run,
        1000,
        loss=2.5,
        pieces={"weights": {"state": "present", "evidence": "model.safetensors"}, "optimizer": "absent"},
        replicas=[{"uri": "/ckpt/r/1000", "tier": "shared", "bytes": 2_000_000_000, "file_count": 3}],
        scores=[gsm8k, own],
        notes="before the data change",
        tags={"phase": "stable"},
    )
    live.register_checkpoint(run, 2000)
    live.start_attempt(run, key="b", resumed_from=first, reason="a spike of the loss")
    live.register_checkpoint(run, 1500)
    return first


def rows(out: str) -> dict[str, list[str]]:
    return {line.split("\t")[0]: line.split("\t") for line in out.splitlines()}


def test_a_run_is_shown_with_attempts_newest_scores_and_checkpoints(cli: Cli, run: Run, saved: Checkpoint) -> None:
    code, out, _ = cli("run", "show", str(run))
    assert code == 0
    shown = rows(out)
    assert shown["newest checkpoint"][1].startswith("step 1500 of attempt 2, id ")
    assert shown["newest scores"][1].startswith("step 1000 of attempt 1")
    assert shown["1"][-2] == "beyond step 1000"
    assert shown["2"][-3:] == ["step 1000 of attempt 1", "", "a spike of the loss"]
    assert shown["checkpoint"][:3] == ["checkpoint", "loss", "gsm8k.exact_match"]
    assert shown["r · 1 · 1000"][1:4] == ["2.5", "0.5", "committed"]
    assert shown["r · 1 · 2000"][1:4] == ["", "", "superseded"]
    answer = json.loads(cli("run", "show", run.id, "--json")[1])
    assert [each["number"] for each in answer["attempts"]] == [1, 2]
    assert answer["newest_scored"]["checkpoint"]["id"] == saved.id
    assert [each["step"] for each in answer["checkpoints"]] == [1500, 2000, 1000]


def test_an_attempt_from_which_another_went_on_runs_no_more(cli: Cli, run: Run, saved: Checkpoint) -> None:
    shown = rows(cli("run", "show", str(run))[1])
    assert (shown["1"][1], shown["2"][1]) == ("ended, nobody said how", "running")


def test_a_checkpoint_that_is_suspect_is_not_called_committed(
    cli: Cli, live: Client, run: Run, saved: Checkpoint
) -> None:
    newest = next(each for each in live.iter_checkpoints(filter=f"run.id = '{run.id}' and step = 1500"))
    live._send("PUT", f"/checkpoints/{newest.id}/suspicion", {"suspect": True, "reason": "odd"}, idempotent=True)
    shown = rows(cli("run", "show", str(run))[1])
    assert "suspect" in shown["r · 2 · 1500"]
    assert "committed" not in shown["r · 2 · 1500"]


def test_an_attempt_of_which_nobody_spoke_is_not_called_running(cli: Cli, live: Client, project: str) -> None:
    run = live.create_run(project, "filled-in")
    live.register_checkpoint(run, 100)
    shown = rows(cli("run", "show", str(run))[1])
    assert shown["attempts"][1] == "1, nobody reports its state"
    assert shown["1"][1] == "not reported"


def test_the_last_step_made_and_the_last_saved_are_both_shown_where_they_differ(
    cli: Cli, live: Client, project: str
) -> None:
    run = live.create_run(project, "killed")
    live.start_attempt(run, key="a", restart=True)
    live.register_checkpoint(run, 30)
    live.record_series(run, [{"name": "loss", "steps": [30], "values": [1.0]}])
    assert rows(cli("run", "show", str(run))[1])["1"][4] == "30"
    live.record_series(run, [{"name": "loss", "steps": [36, 37], "values": [1.0, 1.0]}])
    assert rows(cli("run", "show", str(run))[1])["1"][4] == "37, saved 30"


def test_a_mistaken_name_of_a_benchmark_hides_no_other(cli: Cli, live: Client, run: Run) -> None:
    for step, name in ((1, "gsm8k"), (2, "gsm8k"), (3, "gsmk8")):
        score = {"benchmark": name, "metric": "exact_match", "value": step / 10, "n_samples": 1319}
        live.register_checkpoint(run, step, scores=[score])
    shown = rows(cli("run", "show", str(run))[1])
    assert shown["checkpoint"][2:4] == ["gsm8k.exact_match", "gsmk8"]
    assert [shown[f"r · 1 · {step}"][2:4] for step in (1, 2, 3)] == [["0.1", ""], ["0.2", ""], ["", "0.3"]]


def test_a_run_that_was_never_evaluated_says_so(cli: Cli, live: Client, run: Run) -> None:
    live.register_checkpoint(run, 10)
    assert rows(cli("run", "show", str(run))[1])["newest scores"][1] == "nothing was evaluated yet"


def test_a_checkpoint_is_shown_with_evidence_copies_scores_and_lineage(
    cli: Cli, live: Client, run: Run, saved: Checkpoint
) -> None:
    tuned = live.create_run(run.project, "sft")
    edge = {"checkpoint_id": saved.id, "relation": "fine_tuned_from"}
    child = live.register_checkpoint(tuned, 1, parents=[edge])
    code, out, _ = cli("show", f"{run}@1000")
    assert code == 0
    shown = rows(out)
    assert shown["note"][1] == "before the data change"
    assert shown["weights"] == ["weights", "present", "model.safetensors"]
    assert shown["optimizer"][1] == "absent"
    assert shown["random_state"][1] == "unknown"
    assert shown["/ckpt/r/1000"][1:7] == ["shared", "", "present", "unverified", "2 GB", "3"]
    assert shown["math"][-1] == "gsm8k"
    assert shown["gsm8k"][1:6] == ["exact_match", "", "0.5", "0.01", "1000"]
    assert out.index("\ngsm8k\t") < out.index("\nour-suite\t")  # those of a capability first
    assert shown["child, fine-tuned from"][1:] == [f"{tuned.project}/sft · 1 · 1", child.id]
    assert rows(cli("show", f"{run}@1.2000")[1])["superseded"][1] == "a newer attempt went back to before this step"
    answer = json.loads(cli("show", saved.id, "--json")[1])
    assert set(answer) == {"checkpoint", "profile", "lineage", "suspicion", "findings"}


def test_what_speaks_against_a_checkpoint_is_said(cli: Cli, live: Client, run: Run) -> None:
    live.stand_watch(run, watch={"benchmark": "gsm8k"})
    for step, value in enumerate([0.6] * 6 + [0.3], 1):
        score = {"benchmark": "gsm8k", "metric": "exact_match", "value": value, "n_samples": 1319}
        fallen = live.register_checkpoint(run, 1000 * step, scores=[score])
    for _ in range(2):
        attempt = live.start_attempt(run, resumed_from=fallen)
        live.open_incident(run, attempt=attempt.number, cause="corrupt-checkpoint", checkpoint=fallen)
    code, out, aside = cli("show", fallen.id)
    assert code == 0
    assert "failed alike before they had saved anything" in rows(out)["suspect"][1]
    assert "No copy of its files is recorded." in aside


def test_a_checkpoint_that_is_not_there_names_what_could_be_meant(cli: Cli, run: Run) -> None:
    for asked, told in {
        str(run): f"`cairn run show {run}` lists a run's",
        f"{run}@7": "lists those of the run",
        "0000000000000": "A checkpoint is named by its id",
    }.items():
        code, out, aside = cli("show", asked)
        assert (code, out) == (1, "")
        assert told in aside


def test_a_terminal_too_narrow_for_a_table_gets_a_block_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    columns = tuple(f"column {number}" for number in range(8))
    row = [f"value {number} of this row" for number in range(8)]
    monkeypatch.setenv("COLUMNS", "60")
    output.print_rows(columns, [row, row])
    narrow = capsys.readouterr().out.splitlines()
    assert len(narrow) == 8 + 1 + 8
    assert "column 0" in narrow[0]
    assert "value 0 of this row" in narrow[0]
    monkeypatch.setenv("COLUMNS", "200")
    output.print_rows(columns, [row, row])
    assert len(capsys.readouterr().out.splitlines()) == 3
