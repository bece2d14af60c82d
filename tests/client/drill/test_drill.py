"""`cairn drill`, with a real training: what it says of checkpoints that come back, and of those that do not."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.drill import command as commands
from cairn.drill.reading import StageFailed
from cairn.formats.checkpoints import LocalSource, dcp, inspect
from cairn.replicas import replica
from cairn.types import Drill, Run

from tests.client.conftest import Cli
from tests.client.drill.train import Training
from tests.client.object_store import BUCKET, ObjectStore, running_object_store
from tests.client.until import LATEST, until

TRAIN = str(Path(__file__).with_name("train.py"))
FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
STEP = 60
RECORDED = {"layout": {"world_size": 1}, "environment": {"libraries": {"torch": "2.9.0"}}}


@pytest.fixture
def run(live: Client, project: str) -> Run:
    return live.create_run(project, "7b")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go, so that a test sees what is left behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


class Trained:
    """A training of 90 steps that saved at step 60 on shared storage, and recorded its loss."""

    def __init__(self, live: Client, run: Run, root: Path, **known: Any) -> None:
        training, losses = Training(), []
        self.folder = root / "60"
        for step in range(1, 91):
            losses.append(training.train())
            if step == STEP:
                training.save(self.folder)
        self.losses, self.live = losses, live
        curve = known.pop("curve", True)
        copy = known.pop("copy", None) or replica(self.folder, tier="shared", digest=True)
        self.id = live.register_checkpoint(run, STEP, replicas=[copy], **{**RECORDED, **known}).id
        if curve:
            live.record_series(run, [{"name": "loss", "steps": list(range(1, 91)), "values": losses}])

    def drills(self) -> list[Drill]:
        return [self.live.get_drill(each) for each in self.live.list_drills(checkpoint=self.id)]


@pytest.fixture
def trained(live: Client, run: Run, tmp_path: Path) -> Trained:
    return Trained(live, run, tmp_path / "shared")


def command(*words: str) -> list[str]:
    return ["--", sys.executable, TRAIN, "{path}", "{steps}", "{out}", *words]


def test_a_checkpoint_that_comes_back_is_exact(cli: Cli, trained: Trained, temporary: Path) -> None:
    code, out, err = cli("drill", trained.id, *command("says"))
    assert code == 0, err
    assert "Passed, exact" in err
    (kept,) = trained.drills()
    assert (kept.verdict, kept.exact, kept.steps_run, kept.tier) == ("passed", True, 10, "shared")
    expected = {"read": "passed", "verify": "passed", "files": "not_tried", "run": "passed"}
    assert kept.checks == {**expected, "continuation": "passed", "cold_start": "passed"}
    assert [each["loss"] for each in kept.losses] == trained.losses[60:70]
    assert kept.seconds["read"] > 0
    assert kept.seconds["load"] > 0
    assert kept.seconds["verify"] is None  # read and verified in one pass
    assert kept.host == socket.gethostname()
    assert list(temporary.iterdir()) == []
    assert "losses as recorded" in out


def test_an_attempt_that_was_left_for_a_spike_does_not_fail_the_checkpoint_before_it(
    cli: Cli, live: Client, run: Run, tmp_path: Path
) -> None:
    trained = Trained(live, run, tmp_path / "shared", curve=False)
    spiked = [loss + (5.0 if step >= 66 else 0) for step, loss in enumerate(trained.losses, 1)]
    live.record_series(run, [{"name": "loss", "steps": list(range(1, 91)), "values": spiked}])
    assert cli("drill", trained.id, *command())[0] == 1  # nothing else went on from it yet
    assert "lower on average than those of attempt 1" in trained.drills()[0].reason
    live.start_attempt(run, key="second", resumed_from=trained.id)
    went_on = {"attempt": 2, "name": "loss", "steps": list(range(61, 91)), "values": trained.losses[60:]}
    live.record_series(run, [went_on])
    (copy,) = live.restore_plan(trained.id).copies
    code, _, err = cli("drill", trained.id, "--replica", copy.replica_id, *command())
    assert code == 0, err
    assert "the losses of 10 steps equal those of attempt 2, which resumed from it" in err
    assert live.restore_plan(trained.id).copies[0].feasible


def test_losses_may_come_on_standard_output(cli: Cli, trained: Trained) -> None:
    code, out, err = cli("drill", trained.id, "--steps", "4", "--layout", "world_size=1", "--json", *command("stdout"))
    told = json.loads(out)
    assert (code, told["verdict"], told["steps_run"], told["exact"]) == (0, "passed", 4, None), err
    assert told["layout"]["world_size"] == 1
    assert "the software is not known on both sides" in told["comparison"]


@pytest.mark.parametrize(
    ("word", "check", "said"),
    [
        ("crash", "run", "ended with 1; its last words"),
        ("kill", "run", "ended by signal 9"),
        ("short", "run", "trained 5 of 10 steps"),
        ("cold", "cold_start", "its weights were not loaded"),
        ("nan", "continuation", "is not finite"),
        ("scribble", "run", "changed the copy that it was to load: weights.json"),
    ],
)
def test_what_does_not_come_back_is_recorded_as_failed(
    cli: Cli, trained: Trained, temporary: Path, word: str, check: str, said: str
) -> None:
    code, _, err = cli("drill", trained.id, *command(word))
    assert code == 1, err
    (kept,) = trained.drills()
    assert (kept.verdict, kept.checks[check]) == ("failed", "failed")
    assert said in kept.reason
    assert kept.exact is not True
    assert kept.checks["read"] == "passed"
    assert list(temporary.iterdir()) == []
    if word == "crash":
        assert "size mismatch" in kept.reason
        assert "sk-0123456789abcdef0123" not in kept.reason
    if word == "scribble":
        assert kept.checks["continuation"] == "passed"  # the losses were right, the copy is no longer


def test_a_command_that_hangs_is_ended_when_its_time_is_over(
    cli: Cli, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = commands._wait

    def wait(process: Any, heard: commands._Heard, out: Path, ends: float | None) -> int | None:
        assert ends is not None
        until(lambda: heard.last)  # so long its start may take
        return real(process, heard, out, ends - 600.0)

    monkeypatch.setattr(commands, "_wait", wait)
    code, _, err = cli("drill", trained.id, "--timeout", "10m", *command("hang"))
    assert code == 1, err
    (kept,) = trained.drills()
    assert "did not end within 600 s; its last words: waiting for the other ranks" in kept.reason


def test_a_loss_that_is_read_late_came_before_the_end_of_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the machine is busy, whoever listens may get to it only when the command is over."""
    has_ended = threading.Event()
    real_wait, real_listen = commands._wait, commands._Heard.listen

    def wait(*given: Any) -> int | None:
        code = real_wait(*given)
        has_ended.set()
        return code

    def listen(heard: commands._Heard, *given: Any) -> None:
        has_ended.wait(LATEST)
        time.sleep(0.01)
        real_listen(heard, *given)

    monkeypatch.setattr(commands, "_wait", wait)
    monkeypatch.setattr(commands._Heard, "listen", listen)
    said = json.dumps({"step": 1, "loss": 2.5})
    words = [sys.executable, "-c", f"print('{said}')"]
    done = commands.run_command(words, tmp_path / "out", environ=dict(os.environ))
    assert done.told.by_step
    assert done.first_loss_seconds == done.seconds > 0


def test_without_a_command_only_the_reading_is_proven(cli: Cli, trained: Trained) -> None:
    code, _, err = cli("drill", trained.id)
    assert code == 0, err
    (kept,) = trained.drills()
    tried = {name for name, result in kept.checks.items() if result != "not_tried"}
    assert (kept.verdict, kept.exact, tried) == ("passed", None, {"read", "verify"})
    assert kept.software == {}


def test_a_command_that_writes_no_losses_proves_no_continuation(cli: Cli, trained: Trained) -> None:
    assert cli("drill", trained.id, *command("silent"))[0] == 0
    (kept,) = trained.drills()
    assert (kept.checks["run"], kept.checks["continuation"], kept.steps_run) == ("passed", "not_tried", 0)
    assert kept.seconds["load"] is None


def test_a_copy_into_a_folder_is_what_is_loaded(cli: Cli, trained: Trained, tmp_path: Path) -> None:
    into = tmp_path / "nvme"
    into.mkdir()
    assert cli("drill", trained.id, "--into", str(into), *command("scribble"))[0] == 1
    assert json.loads((trained.folder / "weights.json").read_text())  # the copy itself was never opened for writing
    assert list(into.iterdir()) == []
    code, _, err = cli("drill", trained.id, "--into", str(into), "--keep", *command())
    assert code == 0, err
    (kept,) = into.iterdir()
    assert (kept / "checkpoint" / "weights.json").read_bytes() == (trained.folder / "weights.json").read_bytes()
    assert len((kept / "losses.jsonl").read_text().splitlines()) == 10
    assert f"Kept: {kept}" in err
    assert trained.drills()[0].seconds["verify"] is not None


@pytest.mark.parametrize("into", [False, True])
def test_a_damaged_copy_fails_before_anything_is_run(cli: Cli, trained: Trained, tmp_path: Path, into: bool) -> None:
    """Whether it is read in its place or copied."""
    place = trained.folder / "weights.json"
    place.write_bytes(place.read_bytes()[:-1] + b" ")
    code, _, err = cli("drill", trained.id, *(["--into", str(tmp_path)] if into else []), *command())
    assert code == 1, err
    (kept,) = trained.drills()
    assert (kept.verdict, kept.checks["verify"], kept.checks["run"]) == ("failed", "failed", "not_tried")
    assert "weights.json has another content" in kept.reason
    assert not list(tmp_path.glob("cairn-drill-*"))


def test_a_copy_that_is_gone_or_cut_fails_as_a_restore_would(cli: Cli, trained: Trained) -> None:
    place = trained.folder / "weights.json"
    place.write_bytes(place.read_bytes()[:-5])
    assert cli("drill", trained.id, *command())[0] == 1
    assert "are recorded" in trained.drills()[0].reason
    shutil.rmtree(trained.folder)
    assert cli("drill", trained.id, "--replica", trained.drills()[0].replica_id or "", *command())[0] == 1
    kept = trained.drills()[0]
    assert (kept.checks["read"], kept.checks["verify"], kept.bytes_read) == ("failed", "not_tried", None)


def test_without_digests_the_content_is_not_called_verified(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    training = Trained(live, run, tmp_path, copy={"uri": str(tmp_path / "60"), "tier": "shared"})
    code, _, err = cli("drill", training.id)
    assert code == 0
    assert "sizes only" in err
    (kept,) = training.drills()
    assert (kept.checks["read"], kept.checks["verify"]) == ("passed", "not_tried")
    sized = {"uri": str(tmp_path / "60"), "tier": "shared", "bytes": 5}
    other = live.register_checkpoint(run, 61, replicas=[sized])
    assert cli("drill", other.id)[0] == 1
    assert "5 are recorded" in next(live.list_drills(checkpoint=other)).reason


def test_a_cold_start_beside_it_tells_a_load_that_did_nothing(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    training = Trained(live, run, tmp_path, curve=False, loss=0.1)
    cold = f"{sys.executable} {TRAIN} - {{steps}} {{out}}"
    assert cli("drill", training.id, "--cold", cold, *command())[0] == 0
    assert training.drills()[0].checks["cold_start"] == "passed"
    assert cli("drill", training.id, "--cold", cold, *command("cold"))[0] == 1
    assert "its weights were not loaded" in training.drills()[0].reason


def test_files_that_are_another_checkpoint_are_found_out(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "hf_trainer" / "checkpoint-2"
    assert source.is_dir()
    step = inspect(LocalSource(str(source))).step
    assert step is not None
    copy = replica(source, tier="shared", digest=True)
    right = live.register_checkpoint(run, step, replicas=[copy], format=inspect(LocalSource(str(source))).format)
    assert cli("drill", right.id)[0] == 0
    assert next(live.list_drills(checkpoint=right)).checks["files"] == "passed"
    other = live.register_checkpoint(run, step + 1, replicas=[copy])
    assert cli("drill", other.id)[0] == 1
    kept = next(live.list_drills(checkpoint=other))
    assert f"its files are of step {step}, and step {step + 1} is recorded" in kept.reason
    named = live.register_checkpoint(run, step, replicas=[copy], format=dcp.NAME, kind="light")
    assert cli("drill", named.id)[0] == 1
    assert f"{dcp.NAME} is recorded" in next(live.list_drills(checkpoint=named)).reason


def test_a_piece_that_the_training_keeps_elsewhere_is_not_missed_in_the_files(cli: Cli, live: Client, run: Run) -> None:
    source = FIXTURES / "safetensors_single"
    for step, said in enumerate(("said by the training; the files say absent: model.safetensors", "optimizer.pt")):
        pieces = {"weights": "present", "optimizer": {"state": "present", "evidence": said}}
        number = live.register_checkpoint(run, step, replicas=[replica(source, tier="shared")], pieces=pieces).id
        code, _, err = cli("drill", number)
        assert code == step, err
    assert "recorded with optimizer" in err


def test_a_narrower_word_for_the_same_format_is_the_same(cli: Cli, live: Client, run: Run) -> None:
    source = FIXTURES / "megatron" / "torch_dist" / "iter_0000020"
    assert inspect(LocalSource(str(source))).format == "megatron-torch-dist"
    copy = replica(source, tier="shared")
    number = live.register_checkpoint(run, 20, replicas=[copy], format="megatron")
    code, _, err = cli("drill", number.id)
    assert code == 0, err
    assert next(live.list_drills(checkpoint=number)).checks["files"] == "passed"


def test_what_this_host_could_never_read_is_no_failure(cli: Cli, live: Client, run: Run, tmp_path: Path) -> None:
    none = live.register_checkpoint(run, 1)
    code, out, err = cli("drill", none.id)
    assert (code, out) == (1, "")
    assert "no copy of it is recorded" in err
    away = {"uri": "/nvme/2", "tier": "local", "host": "another", "bytes": 1}
    elsewhere = live.register_checkpoint(run, 2, replicas=[away])
    code, _, err = cli("drill", elsewhere.id)
    assert code == 1
    assert "on the disks of another" in err
    assert list(live.list_drills(run=run)) == []


@pytest.mark.parametrize(
    ("uri", "tier", "said"),
    [
        ("hf://EleutherAI/pythia@step113000", "object", "addresses that begin with hf:// are not read here"),
        ("s3://cairn-drill-nowhere/60", "object", "s3://cairn-drill-nowhere/60"),
        ("/no-such-mount/run/60", "shared", "may not be mounted on this host"),
        ("run/60", "shared", "its path is relative"),
    ],
)
def test_a_copy_that_cannot_be_read_from_here_is_no_evidence_against_it(
    cli: Cli, live: Client, run: Run, monkeypatch: pytest.MonkeyPatch, uri: str, tier: str, said: str
) -> None:
    """No such kind of address, no store that answers, no such file system: nothing was tried."""
    with socket.socket() as silent:  # bound, and listening to nobody
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        copy_there = {"uri": uri, "tier": tier, "bytes": 5}
        number = live.register_checkpoint(run, STEP, replicas=[copy_there], pieces={"weights": "present"}).id
        (copy,) = live.restore_plan(number).copies
        for words in ([number], [number, "--replica", copy.replica_id], ["--due", "7d", "--run", run.id]):
            code, out, err = cli("drill", *words)
            assert (code, out) == (1, ""), err
            assert said in err
            assert ".." not in err
    assert list(live.list_drills(run=run)) == []


def test_a_copy_that_this_user_may_not_read_is_no_evidence_against_it(
    cli: Cli, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).endswith("weights.json"))
    code, _, err = cli("drill", trained.id)
    assert code == 1, err
    assert "weights.json may not be read by this user" in err
    assert trained.drills() == []


def test_a_folder_that_is_gone_from_the_disk_of_this_host_is_evidence(
    cli: Cli, live: Client, run: Run, tmp_path: Path
) -> None:
    uri = str(tmp_path / "gone" / "60")
    copy = {"uri": uri, "tier": "local", "host": socket.gethostname(), "bytes": 5}
    number = live.register_checkpoint(run, STEP, replicas=[copy]).id
    code, _, err = cli("drill", number)
    assert code == 1, err
    (kept,) = live.list_drills(checkpoint=number)
    assert (kept.verdict, kept.checks["read"]) == ("failed", "failed")
    assert "directory.." not in err
    assert kept.reason.endswith("No such file or directory")


def test_a_copy_that_another_host_can_read_is_tried_with_the_one_that_is_here(
    cli: Cli, live: Client, run: Run, tmp_path: Path
) -> None:
    away = {"uri": "hf://org/model@60", "tier": "object", "bytes": 1}
    Training().save(tmp_path / "60")
    number = live.register_checkpoint(run, STEP, replicas=[away, replica(tmp_path / "60", tier="shared")]).id
    code, _, err = cli("drill", number)
    assert code == 0, err
    assert [(each.tier, each.verdict) for each in live.list_drills(checkpoint=number)] == [("shared", "passed")]


def test_a_copy_that_goes_out_of_sight_while_it_is_read_is_no_evidence_against_it(
    cli: Cli, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object, **__: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def lose(*_: object) -> str:
        monkeypatch.setattr("os.scandir", stale)
        raise StageFailed("verify", "1 of 2 files are not what is recorded: weights.json cannot be read")

    monkeypatch.setattr("cairn.drill.reading._verified", lose)
    code, _, err = cli("drill", trained.id)
    monkeypatch.undo()
    assert code == 1, err
    assert "Nothing is recorded" in err
    assert "Stale file handle" in err
    assert trained.drills() == []


def test_a_copy_is_drilled_by_its_id_whatever_the_plan_says(cli: Cli, live: Client, trained: Trained) -> None:
    (copy,) = live.restore_plan(trained.id).copies
    (trained.folder / "weights.json").rename(trained.folder / "aside")
    assert cli("drill", trained.id)[0] == 1
    (trained.folder / "aside").rename(trained.folder / "weights.json")
    code, _, err = cli("drill", trained.id)
    assert code == 1
    assert "its last drill failed" in err  # until one has passed, the plan does not take it
    assert len(trained.drills()) == 1
    code, _, err = cli("drill", trained.id, "--replica", copy.replica_id)
    assert code == 0, err
    assert "The plan would not take this copy" in err
    assert cli("drill", trained.id)[0] == 0
    code, _, err = cli("drill", trained.id, "--replica", "0" * 13)
    assert code == 1
    assert "it has no copy" in err


def test_a_forgotten_optimizer_hides_in_the_noise_and_is_never_called_exact(cli: Cli, trained: Trained) -> None:
    assert cli("drill", trained.id, *command("forget", "says"))[0] == 0
    (kept,) = trained.drills()
    assert (kept.checks["continuation"], kept.exact) == ("passed", False)
    assert "the first loss is the recorded one: the weights came back, the optimizer" in kept.comparison
    assert cli("drill", trained.id, "--tolerance", "0.05", *command("forget"))[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "no-such-program", "{path}"], "no program"),
        (["--", sys.executable, TRAIN], "has no {path}"),
        (["--cold", "true"], "about a COMMAND"),
        (["--timeout", "5m"], "about a COMMAND"),
        (["--steps", "0", *command()], "0"),
        (["--layout", "zz=1", *command()], "no degree"),
        (["--cold", "'", *command()], "cannot be split"),
    ],
)
def test_a_wrong_question_is_no_drill(cli: Cli, trained: Trained, words: list[str], said: str) -> None:
    code, out, err = cli("drill", trained.id, *words)
    assert (code, out) == (2, ""), err
    assert said in err
    assert trained.drills() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_drill_leaves_nothing_behind(trained: Trained, tmp_path: Path, number: signal.Signals) -> None:
    into = tmp_path / "into"
    into.mkdir()
    words = ["drill", trained.id, "--into", str(into), "--keep", *command("hang")]
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from cairn.cli.app import run; sys.exit(run())", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ.copy(),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"waiting for the other ranks" in line:
            break
    child = _child_of(process.pid)
    process.send_signal(number)
    assert process.wait(LATEST) == 130
    process.stderr.close()
    assert list(into.iterdir()) == []
    assert trained.drills() == []
    until(lambda: not Path(f"/proc/{child}").exists())  # the command does not outlive its drill


def _child_of(parent: int) -> int:
    (found,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(found)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("s3")) as running:
        yield running


def test_a_copy_in_an_object_store_is_fetched_and_run(
    cli: Cli,
    live: Client,
    run: Run,
    tmp_path: Path,
    temporary: Path,
    bucket: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in bucket.environment.items():
        monkeypatch.setenv(key, value)
    training, folder = Training(), tmp_path / "60"
    losses = [training.train() for _ in range(STEP)]
    training.save(folder)
    bucket.put_tree(folder, f"drill/{run.id}")
    number = live.register_checkpoint(
        run, STEP, replicas=[replica(f"s3://{BUCKET}/drill/{run.id}", digest=True)], loss=losses[-1]
    ).id
    code, _, err = cli("drill", number, *command())
    assert code == 0, err
    (kept,) = live.list_drills(checkpoint=number)
    assert (kept.tier, kept.checks["verify"], kept.checks["run"]) == ("object", "passed", "passed")
    assert (kept.steps_run, kept.checks["continuation"]) == (10, "not_tried")
    assert kept.seconds["verify"] is not None
    assert list(temporary.iterdir()) == []


def test_a_store_that_refuses_says_nothing_of_a_copy_and_one_that_lists_nothing_does(
    cli: Cli, live: Client, run: Run, bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uris = [f"s3://{each}/drill/{run.id}/gone" for each in (BUCKET, "cairn-no-such-bucket")]
    copies = [{"uri": uri, "tier": "object", "bytes": 5} for uri in uris]
    here, nowhere = (live.register_checkpoint(run, step, replicas=[copy]).id for step, copy in enumerate(copies))
    for key, value in {**bucket.environment, "AWS_SECRET_ACCESS_KEY": "wrong"}.items():
        monkeypatch.setenv(key, value)
    code, _, err = cli("drill", here)
    assert (code, list(live.list_drills(run=run))) == (1, []), err
    assert "the store refuses access" in err
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.environment["AWS_SECRET_ACCESS_KEY"])
    code, _, err = cli("drill", nowhere)
    assert (code, list(live.list_drills(run=run))) == (1, []), err
    assert cli("drill", here)[0] == 1
    (kept,) = live.list_drills(run=run)
    assert (kept.verdict, kept.checks["read"]) == ("failed", "failed")
