"""`cairn scan` in front of a person: it shows, it asks, and it records what was agreed to."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

from cairn import Client

from tests.client.scan.trees import trainer


def at_a_terminal(*arguments: str, typed: str = "") -> tuple[int, str]:
    """The exit code, and everything that the terminal showed."""
    parent, terminal = pty.openpty()
    command = [sys.executable, "-c", "from cairn.cli import main; main()", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    os.write(parent, typed.encode())
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed: everything was read
        while chunk := os.read(parent, 65536):
            shown += chunk
    os.close(parent)
    return process.wait(60), shown.decode("utf-8", "replace")


def test_a_person_sees_the_plan_and_nothing_is_recorded(live: Client, project: str, tmp_path: Path) -> None:
    trainer(tmp_path / "exp/checkpoint-10", 10)
    code, shown = at_a_terminal("scan", str(tmp_path), "--project", project, "--settle", "0")
    assert code == 0
    assert "exp" in shown
    assert "Nothing was recorded. --no-dry-run records it." in shown
    assert list(live.iter_checkpoints(filter=f"project = '{project}'")) == []


def test_a_person_is_asked_for_the_tier_and_for_consent(live: Client, project: str, tmp_path: Path) -> None:
    trainer(tmp_path / "exp/checkpoint-10", 10)
    command = ("scan", str(tmp_path), "--project", project, "--settle", "0", "--no-dry-run")
    code, shown = at_a_terminal(*command, typed="shared\nn\n")
    assert "Is that folder local or shared?" in shown
    assert f"Record 1 checkpoint in {project}?" in shown
    assert list(live.iter_checkpoints(filter=f"project = '{project}'")) == []
    code, shown = at_a_terminal(*command, typed="shared\ny\n")
    assert code == 0
    assert "Recorded 1 checkpoint." in shown
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert live.get_checkpoint(found).replicas[0]["tier"] == "shared"
