"""What all commands have in common: how they end, and where their output goes."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.cli.answers import CHECKPOINT, EMPTY, PAGE, PROBLEM
from tests.client.conftest import Cli, FaultServer, Reply

pytestmark = pytest.mark.usefixtures("scripted")


@pytest.mark.parametrize(("status", "code"), [(401, 3), (403, 3), (404, 1), (409, 3), (422, 2), (500, 3)])
def test_the_exit_code_tells_whose_turn_it_is(cli: Cli, faults: FaultServer, status: int, code: int) -> None:
    faults.replies = [Reply(status, {"type": "/problems/invented", "title": "No", "status": status}, PROBLEM)]
    ended, _, err = cli("compare", "0c1", "0c2")
    assert ended == code
    assert ("cairn login" in err) == (status == 401)
    assert "secret-token" not in err


def test_a_call_that_the_service_does_not_know_is_no_empty_result(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(404, {"type": "/problems/not-found", "detail": "Not Found"}, PROBLEM)]
    code, _, err = cli("compare", "0c1", "0c2")
    assert code == 3
    assert "does not know POST /api/v1/compare. Is it older than this client" in err


def test_control_characters_of_others_do_not_reach_the_terminal(cli: Cli, faults: FaultServer) -> None:
    evil = {**CHECKPOINT, "run": {"id": "0r1", "name": "a\x1b]0;owned\x07\tb\nc"}}
    faults.replies = [Reply(body={"items": [{"checkpoint": evil}], "next_cursor": None})]
    _, out, _ = cli("find")
    assert len(out.splitlines()) == 2
    assert "\x1b" not in out
    assert "\x07" not in out


def test_login_checks_the_token_before_keeping_it(
    cli: Cli, faults: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CAIRN_URL", "CAIRN_TOKEN"):
        monkeypatch.delenv(name)
    login = Path(os.environ["HOME"]) / ".config/cairn/login.json"
    faults.replies = [Reply(401, {"title": "Unknown token"}, PROBLEM)]
    assert cli("login", "--url", faults.url, "--token", "wrong")[0] == 3
    assert not login.exists()
    faults.replies = [Reply(body=EMPTY)]
    code, out, err = cli("login", "--url", faults.url, "--token", "-", stdin="right\n")
    assert code == 0
    assert "right" not in out + err
    assert login.stat().st_mode & 0o777 == 0o600
    faults.seen.clear()
    cli("find")
    assert faults.seen[0].headers["Authorization"] == "Bearer right"


def test_nobody_there_ends_with_3(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    code, _, err = cli("rollback", "--alias", "p/a")
    assert code == 3
    assert "Nobody answers" in err


def test_every_command_takes_json_and_has_help(cli: Cli) -> None:
    for command in ("login", "record", "find", "rollback", "compare", "evals"):
        code, out, _ = cli(command, "--help")
        assert code == 0
        assert "--json" in out
    assert "Exit codes:" in cli("--help")[1]


def test_without_click_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['click'] = None\nimport cairn.cli\ncairn.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "pip install 'cairn-client[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_id_stays_in_one_piece_on_a_narrow_terminal(faults: FaultServer) -> None:
    named = {**CHECKPOINT, "id": "0a1b2c3d4e5f6", "run": {"id": "0r1", "name": "[red]a-run-with-a-long-name[/red]"}}
    faults.replies = [Reply(body={"items": [{"checkpoint": named}], "next_cursor": None})]
    env = {**os.environ, "CAIRN_URL": faults.url, "CAIRN_TOKEN": "t", "COLUMNS": "60", "TERM": "xterm"}
    parent, terminal = pty.openpty()
    code = "from cairn.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, "find"], env=env, stdout=terminal, timeout=60, check=True)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed: everything was read
        while chunk := os.read(parent, 65536):
            shown += chunk
    os.close(parent)
    assert b"0a1b2c3d4e5f6" in shown
    assert b"[red]" in shown, "names are text, never markup"


# Where the output goes

CAIRN = f"{sys.executable} -c 'from cairn.cli import main; main()'"


def at_a_shell(command: str, faults: FaultServer) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "CAIRN_URL": faults.url, "CAIRN_TOKEN": "t"}
    bash = ["bash", "-c", command]
    return subprocess.run(bash, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_reader_that_has_seen_enough_is_no_error(faults: FaultServer) -> None:
    items = [{"checkpoint": {**CHECKPOINT, "id": f"c{index}"}} for index in range(1000)]
    faults.replies = [Reply(body={"items": items * 10, "next_cursor": None})]
    done = at_a_shell(f"{CAIRN} find --limit 1000 | head -1; echo ${{PIPESTATUS[0]}}", faults)
    header, code = done.stdout.splitlines()
    assert header.startswith("project\tcheckpoint")
    assert (code, done.stderr) == ("0", ""), "1 would mean: no result"


def test_output_that_cannot_be_written_is_told_apart_from_a_wrong_option(faults: FaultServer) -> None:
    for command in ("find", "find --json"):
        faults.replies = [Reply(body=PAGE)]
        done = at_a_shell(f"{CAIRN} {command} > /dev/full", faults)
        assert (done.returncode, done.stderr) == (3, "cairn: the output cannot be written: No space left on device.\n")


@pytest.mark.parametrize("streams", [">&-", ">&- <&-"])
def test_closed_output_is_said_and_a_job_ends_with_its_own_code(
    faults: FaultServer, tmp_path: Path, streams: str
) -> None:
    for command in ("find", "find --json", "--version"):
        faults.replies = [Reply(body=PAGE)]
        done = at_a_shell(f"{CAIRN} {command} {streams}", faults)
        said = "cairn: the output cannot be written: it was closed before the command began.\n"
        assert (done.returncode, done.stderr) == (3, said), command
    faults.replies = [Reply(500)]
    job = f"export CAIRN_SPOOL={tmp_path}; {CAIRN} exec --run p/r -- sh -c 'echo lost; echo told >&2; exit 5' {streams}"
    done = at_a_shell(job, faults)
    assert done.returncode == 5
    assert "told\n" in done.stderr
    assert "Traceback" not in done.stderr
