"""A job of `cairn exec` on a terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

from cairn import Client

from tests.client.program import PATIENT
from tests.client.supervise.jobs import WAITING, attempts, script
from tests.client.until import LATEST


def _read_all(descriptor: int) -> bytes:
    found = b""
    while select.select([descriptor], [], [], LATEST)[0]:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:
            return found
        if not chunk:
            return found
        found += chunk
    raise AssertionError(found)


def test_on_a_terminal_the_job_has_one_of_the_same_size(live: Client, project: str, home: Path) -> None:
    text = r"""
import os, sys
print(os.isatty(1), os.isatty(2), tuple(os.get_terminal_size(1)))
os.write(1, b"raw\n\x1b[1mbold\x1b[0m\r")
"""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST  # what the terminal itself would add
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    command = [*PATIENT, "exec", "--run", f"{project}/r", "--", *script(home, text)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    assert _read_all(ours) == b"True True (100, 40)\nraw\n\x1b[1mbold\x1b[0m\r"
    assert process.wait(LATEST) == 0
    os.close(ours)
    assert attempts(live, project)[0].state == "finished"


def test_ctrl_c_on_a_terminal_reaches_the_job_once(live: Client, project: str, home: Path) -> None:
    ours, theirs = pty.openpty()
    # Taken by the process itself: code between fork and exec may wait for ever for a lock of another thread.
    take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    command = [*PATIENT, "exec", "--run", f"{project}/r", "--", *script(home, WAITING)]
    process = subprocess.Popen(
        [sys.executable, "-c", take, *command], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(ours, 1000)
    os.write(ours, b"\x03")
    rest = _read_all(ours)
    assert rest.count(b"got SIGINT") == 1
    assert process.wait(LATEST) == 3
    os.close(ours)
