"""Calls take anything, answer what they promise, and raise nothing."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import cairn
import pytest
from cairn.recorder import Recorder, Silent, engine
from cairn.spool.backlog import Backlog
from cairn.spool.places import roots, spool_folders

from registry.names import run_name
from tests.client.recorder.jobs import HEAD
from tests.client.test_import import least_seconds, run_python
from tests.client.until import LATEST, until


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __fspath__(self) -> str:
        raise RuntimeError("no path")


@pytest.fixture(autouse=True)
def _nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CAIRN_TOKEN", "a-token")


def records(run: Recorder | Silent) -> list[dict[str, Any]]:
    assert isinstance(run, Recorder)
    run.drain()
    return written(run)


def written(run: Recorder | Silent) -> list[dict[str, Any]]:
    assert isinstance(run, Recorder)
    folder = run._engine.writer.folder
    assert folder is not None
    return [each.record for each in Backlog(folder).records()]


def test_a_path_is_recorded_whole_and_an_empty_one_is_no_folder(
    said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = cairn.start("p", "r", capture=False)
    for step, path in enumerate(("a/../b", "file:///ckpt/a%20b", "s3://b/1", ["x", "s3://b/2"])):
        run.saved(path, step=step)
    assert not any("path" in each for each in said)
    run.saved("", step=8)
    run.saved(" ", step=9)
    found = {each["step"]: each["paths"] for each in records(run) if each["kind"] == "saved"}
    here = str(tmp_path)
    assert [found[step] for step in range(4)] == [[f"{here}/b"], ["/ckpt/a b"], ["s3://b/1"], [f"{here}/x", "s3://b/2"]]
    assert found[8] == found[9] == []
    until(lambda: any("'path' could not be kept" in each for each in said))


def test_an_option_that_start_does_not_know_ends_no_training(said: list[str]) -> None:
    """A script that was written for another version."""
    run = cairn.start("p", "r", capture=False, owner="ana", colour="red")
    first = next(each for each in records(run) if each["kind"] == "start")
    assert (first["owner"], "colour" in first) == ("ana", False)
    assert any("knows no option 'colour'" in each for each in said)


def test_nothing_that_is_handed_over_raises(said: list[str]) -> None:
    odd: list[Any] = [None, object(), Hostile(), "text", b"x", float("nan"), [], {}, -1, 10**30, lambda: 1]
    run: Any = cairn.start("p", "r", capture=False, config=Hostile(), data=Hostile(), tags=Hostile(), layout=object())
    for value in odd:
        run.saving(value)
        run.saved(value, step=value)
        run.saved("/x", step=1, loss=value, tokens=value, epoch=value, cursor=value, scores=value, metrics=value)
        run.saved(
            "/x", step=2, tags=value, pieces=value, layout=value, config=value, data=value, kind=value, tier=value
        )
        run.log(value, loss=1.0)
        run.log(3, loss=value)
        run.scored(value, value)
        run.resume_receipt(value, pieces=value)
    run.finish(object())
    run.saved("/x", step=9)
    engine.shut_down(1)
    assert said


@pytest.mark.parametrize(
    "given",
    [dict, lambda: {"project": "p"}, lambda: {"project": "p", "run": "r", "rank": "x"}, lambda: {"project": Hostile()}],
)
def test_a_start_that_cannot_be_recorded_gives_a_recorder_that_does_nothing(
    given: Callable[[], dict[str, Any]], said: list[str], spool: Path
) -> None:
    run = cairn.start(**given())
    assert isinstance(run, Silent)
    assert run.saved("/x", step=1) is False
    run.log(1, loss=1.0)
    run.finish()
    assert any("nothing will be recorded" in each for each in said)
    assert not spool.exists()


@pytest.mark.parametrize(("variable", "value"), [("RANK", "3"), ("SLURM_PROCID", "1"), ("OMPI_COMM_WORLD_RANK", "2")])
def test_other_ranks_get_what_does_nothing_and_begin_no_thread(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, spool: Path
) -> None:
    monkeypatch.setenv(variable, value)
    for module in ("wandb", "mlflow"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    run = cairn.start("p", "r")
    assert isinstance(run, Silent)
    with run:
        assert run.saving(1) is run.saved("/x", step=1) is run.scored(1, {"a": 1}) is run.resume_receipt() is False
    assert run.flush()
    assert not spool.exists()


def test_secrets_never_reach_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hf_" + "s3cret" * 5
    monkeypatch.setenv("NCCL_AUTH_TOKEN", secret)
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", "--hub-token", secret, f"--api_key={secret}"])
    config = {"hub": {"token": secret, "url": f"https://ana:{secret}@hub.example"}, "num_key_value_heads": 8}
    run = cairn.start("p", "r", config=config, tags={"note": secret}, environment={"x": secret}, reason=secret)
    where = [f"s3://key:{secret}@bucket/1", f"https://store.example/1?X-Amz-Signature={secret}"]
    run.saved(where, step=1, config=config, tags={"api_key": "abcdefgh"}, notes=f"with {secret}")
    run.finish()
    text = str(records(run))
    assert secret not in text
    assert "abcdefgh" not in text
    assert "'num_key_value_heads': 8" in text


def test_what_is_captured_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    first = records(cairn.start("p", "r", capture={"command": False, "git": False}))[0]
    assert "command" not in first
    assert first["capture"] == {"git": False, "machine": True, "libraries": True, "scheduler": True, "layout": True}
    monkeypatch.setenv("CAIRN_CAPTURE_OFF", "machine,command")
    second = records(cairn.start("p", "r"))[-1]
    assert (second["capture"]["machine"], second["capture"]["git"], "command" in second) == (False, True, False)


def test_a_number_on_a_device_is_not_waited_for() -> None:
    class OnDevice:
        is_cuda = True
        readers: ClassVar[set[int]] = set()

        def detach(self) -> "OnDevice":
            return self

        clone = detach

        def item(self) -> float:
            OnDevice.readers.add(threading.get_ident())
            time.sleep(0.2)  # the GPU has a step to finish first
            return 2.5

    run = cairn.start("p", "r", capture=False)
    run.log(1, loss=OnDevice())
    assert run.saved("/x", step=1, loss=OnDevice()) is False
    assert threading.get_ident() not in OnDevice.readers
    until(lambda: {each["kind"] for each in written(run)} >= {"points", "saved"})
    kept = {each["kind"]: each for each in written(run)}
    assert kept["points"]["curves"]["loss"]["values"] == [2.5]
    assert kept["saved"]["loss"] == 2.5


def test_the_end_without_finish_is_told_as_it_was() -> None:
    quick = "from cairn.spool import sending\nsending.FIRST_PAUSE_SECONDS = 0.0\n"
    for code, ended in (("", ["stopped"]), ("raise ValueError('boom')", ["failed", "stopped"])):
        text = f"{HEAD}{quick}run = cairn.start('p', 'r', capture=False)\n{code}"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=LATEST, check=False)
        assert done.returncode == (1 if code else 0)
        states = [
            each.record["changes"]["state"]
            for folder in spool_folders(roots()[0])
            for each in Backlog(folder).records()
            if each.record["kind"] == "finish"
        ]
        assert sorted(states) == ended


def test_a_with_block_finishes_as_it_ended() -> None:
    with pytest.raises(ValueError, match="boom"), cairn.start("p", "r", capture=False) as run:
        raise ValueError("boom")
    assert records(run)[-1]["changes"]["state"] == "failed"


def test_starting_costs_an_import_little_and_pulls_in_nothing_heavy() -> None:
    assert least_seconds("import cairn; cairn.start") < 0.150
    heavy = ("torch", "numpy", "urllib3", "click", "wandb", "mlflow")
    assert run_python(f"import sys, cairn; cairn.start; print([n for n in {heavy} if n in sys.modules])") == "[]"


@pytest.mark.parametrize("said", ["caf\u00e9 7b", "cafe\u0301 7b", "  caf\u00e9\n7b ", "\u200b caf\u00e9 7b"])
def test_a_run_has_the_name_here_that_the_service_keeps(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """What waits on this host is found again by the run's name."""
    monkeypatch.setenv("CAIRN_DRILL", "p/r@1")  # nothing is recorded
    assert cairn.start("p", said).run == run_name(said.replace("\u200b", "").replace("\n", " ")) == "caf\u00e9 7b"
