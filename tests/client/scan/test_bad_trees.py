"""Trees that are hostile, broken or huge: an error for the item, and the rest goes on."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from cairn.scan import scan, workers
from cairn.scan.find import Candidate
from cairn.scan.walk import open_tree

from tests.client.scan.trees import fixture, safetensors, trainer

CLIENT = str(Path(__file__).parents[3] / "client")


def found(root: Path) -> tuple[list[int], dict[str, str]]:
    """The steps, and the problems by place."""
    with scan(str(root), project="p", settle_seconds=0) as plan:
        return [each["step"] for each in plan.items()], dict(plan.problems())


def test_links_that_leave_the_root_loop_or_lead_nowhere_are_refused(tmp_path: Path) -> None:
    trainer(tmp_path / "outside/checkpoint-1", 1)
    root = tmp_path / "root"
    trainer(root / "r/checkpoint-2", 2)
    (root / "r/checkpoint-3").symlink_to(tmp_path / "outside/checkpoint-1")
    (root / "r/up").symlink_to(root)
    (root / "r/loop").symlink_to("loop")
    (root / "r/nowhere").symlink_to("gone")
    steps, problems = found(root)
    assert steps == [2]
    assert set(problems) == {"r/checkpoint-3", "r/loop", "r/nowhere"}
    assert "leads out" in problems["r/checkpoint-3"]


def test_a_link_to_a_checkpoint_below_the_root_is_no_second_one(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-2", 2)
    (tmp_path / "r/latest-checkpoint").symlink_to("checkpoint-2")
    assert found(tmp_path) == ([2], {})


def test_numbers_and_names_that_no_database_holds_cost_one_checkpoint(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-2", 2)
    trainer(tmp_path / f"r/checkpoint-{2**63}", 3)
    huge = {"w": {"dtype": "X", "shape": [2**62, 2**62], "data_offsets": [0, 0]}}
    safetensors(tmp_path / "r/checkpoint-4/model.safetensors", tensors=huge)
    index = {"weight_map": {"w": "\ud800.safetensors", "v": "model-00001-of-00001.safetensors"}}
    (tmp_path / "r/checkpoint-5").mkdir()
    (tmp_path / "r/checkpoint-5/model.safetensors.index.json").write_text(json.dumps(index))
    with scan(str(tmp_path), project="p", settle_seconds=0) as plan:
        assert {each["step"]: each["status"] for each in plan.items()} == {2: "new", 3: "new", 4: "new", 5: "pending"}
        assert dict(plan.problems()) == {}
        assert any("missing: \\ud800.safetensors" in each["note"] for each in plan.items())


def test_a_linked_shard_that_leads_out_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = trainer(tmp_path / "root/r/checkpoint-2", 2)
    (folder / "optimizer.pt").symlink_to(tmp_path / "secret")
    _, problems = found(tmp_path / "root")
    assert list(problems) == ["r/checkpoint-2/optimizer.pt"]


def test_names_that_are_no_utf8_are_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-2", 2)
    trainer(tmp_path / "x/checkpoint-3", 3)
    os.rename(tmp_path / "x", os.fsencode(tmp_path) + b"/\xff")
    trainer(tmp_path / "new\nline/checkpoint-4", 4)
    steps, problems = found(tmp_path)
    assert steps == [2]
    assert len(problems) == 2
    assert "no UTF-8" in problems["\\xff/checkpoint-3"]


def test_a_file_beside_the_weights_may_have_any_name(tmp_path: Path) -> None:
    folder = trainer(tmp_path / "r/checkpoint-2", 2)
    with open(os.fsencode(folder) + b"/notes-\xff.txt", "wb") as file:
        file.write(b"x")
    assert found(tmp_path) == ([2], {})


def test_a_folder_without_permission_is_an_error_of_that_folder() -> None:
    """As nobody, where the tests run as root, to whom nothing is forbidden."""
    script = """
        import json, os, sys
        sys.path.insert(0, sys.argv[1])
        from cairn.scan import scan
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        with scan(sys.argv[2], project="p", settle_seconds=0) as plan:
            print(json.dumps([[each["step"] for each in plan.items()], dict(plan.problems())]))
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        safetensors(root / "r/checkpoint-2/model.safetensors")
        safetensors(root / "r/checkpoint-4/model.safetensors").chmod(0)
        safetensors(root / "closed/checkpoint-3/model.safetensors")
        (root / "closed").chmod(0)
        command = [sys.executable, "-c", textwrap.dedent(script), CLIENT, name]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
        (root / "closed").chmod(0o755)
    assert done.returncode == 0, done.stderr
    steps, problems = json.loads(done.stdout)
    assert steps == [2]
    assert "Permission denied" in problems["closed"]
    assert "checkpoint-4" in " ".join(problems)


def test_a_pickle_that_would_run_code_is_an_error_and_runs_nothing(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-2", 2)
    ran = tmp_path / "ran"
    evil = f"cos\nsystem\n(S'touch {ran}'\ntR.".encode()
    (tmp_path / "r/epoch=0-step=9.ckpt").write_bytes(evil)
    fixture("dcp/fsdp2/step-20", tmp_path / "d/step-20")
    (tmp_path / "d/step-20/.metadata").write_bytes(evil)
    steps, problems = found(tmp_path)
    assert 2 in steps
    assert not ran.exists()
    assert problems or steps != [2]


def test_a_reader_that_dies_costs_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the system ends a process that reads a file made to exhaust its memory."""
    for step in range(1, 40):
        trainer(tmp_path / f"r/checkpoint-{step}", step)
    monkeypatch.setattr(workers, "LOOKED_AT_HERE", 2)
    asked = workers._Process.ask

    def dies_over_the_seventh(process: workers._Process, some: list[Candidate]) -> object:
        if any(each.name == "checkpoint-7" for each in some):
            process._process.kill()
        return asked(process, some)

    monkeypatch.setattr(workers._Process, "ask", dies_over_the_seventh)
    steps, problems = found(tmp_path)
    assert problems == {"r/checkpoint-7": "the process that read it died over it"}
    assert steps == [step for step in range(1, 40) if step != 7]


def test_without_further_processes_this_one_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(1, 6):
        trainer(tmp_path / f"r/checkpoint-{step}", step)
    monkeypatch.setattr(workers, "LOOKED_AT_HERE", 1)
    monkeypatch.setattr(workers.sys, "executable", "/bin/false")
    assert found(tmp_path) == ([1, 2, 3, 4, 5], {})


def test_a_readers_mistake_costs_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cairn.scan import look

    for step in (1, 2):
        trainer(tmp_path / f"r/checkpoint-{step}", step)
    inspect = look.inspect_listing

    def fails(listing: object) -> object:
        if "checkpoint-1" in listing.root:  # type: ignore[attr-defined]
            raise ZeroDivisionError
        return inspect(listing)  # type: ignore[arg-type]

    monkeypatch.setattr(look, "inspect_listing", fails)
    steps, problems = found(tmp_path)
    assert steps == [2]
    assert problems == {"r/checkpoint-1": "the reader failed: ZeroDivisionError: "}


def test_a_folder_that_vanishes_while_it_is_walked_is_an_error_of_that_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "gone").mkdir()
    walk = open_tree(str(tmp_path)).walk()
    first = next(walk)  # the file, while no folder is entered yet, in whatever order they are listed
    (tmp_path / "gone").rmdir()
    rest = [first, *walk]
    assert any(getattr(each, "reason", "").startswith("the folder cannot be listed") for each in rest)
