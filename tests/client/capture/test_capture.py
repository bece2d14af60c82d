"""What a job finds out about itself: only what is there, bounded in time, never by importing a library."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cairn.capture import commands, folder, git, libraries, machine, parallel, scheduler, trackers

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def _programs_may_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a training gives them: a busy machine would leave out what they say."""
    monkeypatch.setattr(git, "SECONDS", 120.0)
    monkeypatch.setattr(machine, "SECONDS", 120.0)


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, Git]:
    place = tmp_path / "code"
    place.mkdir()

    def run(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *who, *arguments], cwd=place, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    (place / "train.py").write_text("lr = 1\n")
    run("add", ".")
    run("commit", "-qm", "first")
    return place, run


def test_the_commit_the_branch_and_whether_files_differ(repository: tuple[Path, Git]) -> None:
    place, run = repository
    run("remote", "add", "origin", "https://ana:hunter2@git.example/code.git")
    clean = git.code(str(place))
    assert clean == {
        "commit": run("rev-parse", "HEAD"),
        "branch": "main",
        "dirty": False,
        "remote": "https://***@git.example/code.git",
    }
    (place / "output.log").write_text("not of the code")
    assert git.code(str(place))["dirty"] is False
    (place / "train.py").write_text("lr = 2\n")
    dirty = git.code(str(place / "."))
    assert (dirty["dirty"], dirty["commit"]) == (True, clean["commit"])
    assert dirty["diff_digest"].startswith("sha256:")
    assert git.code(str(place))["diff_digest"] == dirty["diff_digest"]
    (place / "train.py").write_text("lr = 3\n")
    assert git.code(str(place))["diff_digest"] != dirty["diff_digest"]


def test_without_git_the_commit_is_read_from_files(
    repository: tuple[Path, Git], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, run = repository
    commit = run("rev-parse", "HEAD")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert git.code(str(place)) == {"commit": commit}
    (place / ".git" / "packed-refs").write_text(f"{commit} refs/heads/main\n")
    (place / ".git" / "refs" / "heads" / "main").unlink()
    assert git.code(str(place)) == {"commit": commit}


def test_outside_of_any_repository_nothing_is_said(tmp_path: Path) -> None:
    assert git.code(str(tmp_path)) == {}


def script(place: Path, name: str, text: str) -> None:
    path = place / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_gpus_are_those_that_nvidia_smi_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "nvidia-smi", "echo 'NVIDIA H100 80GB HBM3, 81559, 550.54.15, GPU-1'; echo 'odd line'")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = machine.machine()
    assert found["gpus"] == [{"name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559, "uuid": "GPU-1"}]
    assert found["gpu_driver"] == "550.54.15"
    assert found["cpus"] >= 1
    script(tmp_path, "nvidia-smi", "exit 9")
    assert "gpus" not in machine.machine()


def test_a_program_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    script(tmp_path, "slow", "exec sleep 600")
    began = time.monotonic()
    assert commands.said_by([str(tmp_path / "slow")], seconds=0.2) is None
    assert time.monotonic() - began < 60
    assert commands.said_by(["no-such-program"], seconds=1) is None


def test_versions_come_from_metadata_and_import_nothing() -> None:
    code = (
        "import sys; from cairn.capture import libraries; found = libraries.libraries(); "
        "assert found['numpy'] and found['cairn-client'], found; print('numpy' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False False"
    assert "torch" in libraries.KNOWN


def test_the_scheduler_and_the_rank_are_read_from_the_environment() -> None:
    slurm = {
        "SLURM_JOB_ID": "4711",
        "SLURM_RESTART_COUNT": "2",
        "SLURM_JOB_NODELIST": "gpu[08-10,12],login1",
        "SLURM_PROCID": "5",
        "SLURM_NTASKS": "64",
        "NCCL_DEBUG": "INFO",
        "NCCL_SECRET_TOKEN": "abc",
        "HF_TOKEN": "hf_secret",
    }
    said = scheduler.scheduler(slurm)
    assert (said["slurm"]["job_id"], said["slurm"]["restart_count"]) == ("4711", "2")
    assert said["variables"] == {"NCCL_DEBUG": "INFO", "NCCL_SECRET_TOKEN": "***"}
    assert scheduler.nodes(slurm) == ["gpu08", "gpu09", "gpu10", "gpu12", "login1"]
    assert (scheduler.rank(slurm), scheduler.world_size(slurm), scheduler.job_key(slurm)) == (5, 64, "slurm-4711")
    assert scheduler.rank({**slurm, "RANK": "0"}) == 0
    assert (scheduler.rank({}), scheduler.world_size({}), scheduler.job_key({}), scheduler.scheduler({})) == (
        0,
        None,
        "",
        {},
    )
    torchrun = scheduler.scheduler({"TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_RESTART_COUNT": "1", "WORLD_SIZE": "8"})
    assert torchrun["torchrun"] == {"run_id": "job", "restart_count": "1", "world_size": "8"}
    pod = scheduler.scheduler({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "train-0", "POD_NAMESPACE": "ml"})
    assert pod["kubernetes"] == {"pod": "train-0", "namespace": "ml"}


@pytest.mark.parametrize("text", ["", "a[1-", "a[9-1]", "[]", "a[x-y],b", "a[1-99999999999]", ",,,"])
def test_any_list_of_nodes_ends(text: str) -> None:
    assert len(scheduler.expand_nodes(text, most=1_000)) <= 1_000


def test_the_layout_is_what_loaded_libraries_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parallel.layout({}) == {}
    assert parallel.layout({"WORLD_SIZE": "16"}) == {"world_size": 16}
    torch = SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 64)
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    degrees = dict(zip(parallel._MEGATRON.values(), (8, 4, 2, 1, 1), strict=True))
    ready: dict[str, Any] = {name: (lambda degree=degree: degree) for name, degree in degrees.items()}
    monkeypatch.setitem(
        sys.modules,
        "megatron.core.parallel_state",
        SimpleNamespace(model_parallel_is_initialized=lambda: True, **ready),
    )
    assert parallel.layout({}) == {"world_size": 64, "tp": 8, "pp": 4, "dp": 2, "cp": 1, "ep": 1}
    monkeypatch.setitem(sys.modules, "megatron.core.parallel_state", SimpleNamespace())  # half set up
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace(is_initialized=lambda: False))
    assert parallel.layout({}) == {}


def test_trackers_that_misbehave_are_no_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @property
        def id(self) -> str:
            raise RuntimeError("not ready")

    def fail() -> None:
        raise RuntimeError("no server")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=Broken()))
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(active_run=fail))
    assert trackers.active_trackers() == []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace())
    monkeypatch.delitem(sys.modules, "mlflow")
    assert trackers.active_trackers() == []


MOUNTS = """rootfs / ext4 rw 0 0
node:/export /mnt/shared\\040disk nfs4 rw 0 0
lustre /scratch lustre rw 0 0
overlay /var/lib/docker/overlay2/x overlay rw 0 0
s3 /buckets fuse.s3fs rw 0 0
portal /run/user/0/doc fuse.portal rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("/mnt/shared disk/run/1", "shared"),
        ("/scratch/a", "shared"),
        ("/scratchy/a", "local"),
        ("/buckets/a", "shared"),
        ("/home/a", "local"),
        ("/run/user/0/doc/x", "local"),
    ],
)
def test_the_tier_is_that_of_the_file_system(path: str, tier: str, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert folder.tier_of(path, str(tmp_path / "mounts")) == tier


def test_a_path_that_says_nothing_is_recorded_by_its_address() -> None:
    found = folder.describe(["/nowhere/step-5", "s3://key:secret@bucket/step-5/"], step=5)
    assert [each["uri"] for each in found.fields["replicas"]] == ["/nowhere/step-5", "s3://***@bucket/step-5"]
    assert (found.complete, "pieces" in found.fields) == (None, False)
    (note,) = found.notes
    assert note.startswith("/nowhere/step-5 is not there on ")


CAPTURED = {
    "git": lambda body: body["facts"].get("code", {}).get("commit"),
    "machine": lambda body: body["attempt"].get("environment", {}).get("python"),
    "libraries": lambda body: body["attempt"].get("environment", {}).get("libraries"),
    "scheduler": lambda body: body["attempt"].get("environment", {}).get("slurm"),
    "layout": lambda body: body["attempt"].get("layout"),
}


@pytest.mark.parametrize("off", [None, *CAPTURED])
def test_what_is_sent_of_a_start_is_all_but_what_was_switched_off(
    off: str | None, repository: tuple[Path, Git], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cairn.recorder.prepare import Prepared

    secret = "hf_" + "s3cret" * 5
    monkeypatch.setenv("NCCL_AUTH_TOKEN", secret)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(git, "script_folder", lambda: str(repository[0]))
    torch = SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 64)
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    record = {"host": "node1", "capture": {off: False} if off else {}}
    body = Prepared(lambda said: None, own=True).start(record)
    assert [name for name, find in CAPTURED.items() if not find(body)] == ([off] if off else [])
    assert secret not in str(body)
