"""The command line as a whole: help, version, completion, unknown commands, and how every command ends."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from cairn.cli import progress
from cairn.cli.app import COMMANDS, SUMMARIES
from cairn.cli.app import cli as whole
from cairn.cli.quantities import DURATION, LAYOUT, size

from tests.client.conftest import Cli, FaultServer, Reply

# What the contract names; others may come, none of these may go.
CONTRACT = (
    *("login", "run", "record", "inspect", "scan", "evals", "watch", "link", "import", "resume", "fetch", "find"),
    *("rollback", "compare", "why", "reproduce", "lineage", "du", "drill", "incident", "exec", "spool", "plan"),
)
# A command line of each that asks the service for something.
ASKING = {
    "compare": ("00000000000a1", "00000000000a2"),
    "du": (),
    "fetch": ("00000000000a1", "/tmp/never-made-by-a-test"),
    "find": ("strong math",),
    "incident": ("list",),
    "lineage": ("00000000000a1",),
    "link": ("p/r",),
    "plan": ("00000000000a1",),
    "record": ("--project", "p", "--run", "r", "--step", "1"),
    "reproduce": ("00000000000a1", "/tmp/never-made-by-a-test"),
    "resume": ("--run", "p/r"),
    "rollback": ("--run", "p/r"),
    "run": ("list",),
    "show": ("00000000000a1",),
    "why": ("00000000000a1", "00000000000a2"),
}
# Their own tests show how these end: what they do first needs files, a terminal, a job, or no service at all.
OTHERS = ("completion", "drill", "evals", "exec", "import", "inspect", "login", "scan", "spool", "watch")


@pytest.fixture
def elsewhere(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    monkeypatch.setenv("CAIRN_URL", faults.url)
    monkeypatch.setenv("CAIRN_TOKEN", "secret-token")
    return faults


@pytest.mark.parametrize("name", sorted({*COMMANDS, *CONTRACT}))
def test_every_command_is_there_and_describes_itself(cli: Cli, name: str) -> None:
    command = whole.get_command(click.Context(whole), name)
    assert command is not None
    assert command.help
    code, out, _ = cli(name, "--help")
    assert code == 0
    assert "Usage:" in out


def _leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(name, command)]
    context = click.Context(command)
    children = [(each, command.get_command(context, each)) for each in command.list_commands(context)]
    return [leaf for each, child in children if child is not None for leaf in _leaves(child, f"{name} {each}")]


WITHOUT_JSON = ("completion", "exec")  # a script, and a job's own output


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(WITHOUT_JSON)))
def test_every_command_takes_json(name: str) -> None:
    command = whole.get_command(click.Context(whole), name)
    assert command is not None
    for label, leaf in _leaves(command, name):
        options = {each for parameter in leaf.params for each in parameter.opts}
        assert "--json" in options, label


def test_every_command_is_asked_here_or_elsewhere() -> None:
    assert {*ASKING, *OTHERS} == set(COMMANDS)


def test_the_list_of_commands_names_only_what_is_there() -> None:
    assert set(COMMANDS) <= set(SUMMARIES), "add a summary, so that the help need not import the command"
    for text in SUMMARIES.values():
        assert text.endswith(".")
        assert len(text) < 80


@pytest.mark.parametrize("name", sorted(ASKING))
def test_a_service_that_refuses_or_is_away_ends_every_command_with_3(
    cli: Cli, elsewhere: FaultServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    arguments = (name, *ASKING[name])
    elsewhere.replies = [Reply(403, {"type": "/problems/scope-missing", "title": "No", "status": 403})]
    code, out, err = cli(*arguments)
    assert (code, out) == (3, ""), err
    assert err.startswith("cairn: ")
    if name != "resume":  # which then looks on this machine
        monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
        code, out, err = cli(*arguments)
        assert (code, out) == (3, ""), err


@pytest.mark.parametrize("name", sorted(set(ASKING) - {"find"}))
def test_what_is_not_there_ends_every_command_with_1(cli: Cli, elsewhere: FaultServer, name: str) -> None:
    missing = {"type": "/problems/run-not-found", "title": "No such run", "status": 404, "detail": "There is none."}
    elsewhere.replies = [Reply(404, missing)]
    code, out, err = cli(name, *ASKING[name])
    assert (code, out) == (1, ""), err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_unknown_option_ends_every_command_with_2(cli: Cli, name: str) -> None:
    code, out, err = cli(name, "--no-such-option")
    assert (code, out) == (2, "")
    assert "no-such-option" in err.lower()


@pytest.mark.parametrize(("wrong", "meant"), [("resum", "resume"), ("linage", "lineage"), ("ecals", "evals")])
def test_an_unknown_command_is_answered_with_what_was_meant(cli: Cli, wrong: str, meant: str) -> None:
    code, out, err = cli(wrong)
    assert (code, out) == (2, "")
    assert "Did you mean" in err
    assert meant in err
    code, _, err = cli("xyzzy")
    assert code == 2
    assert "lists the commands" in err


def test_the_version_is_that_of_the_distribution(cli: Cli) -> None:
    code, out, _ = cli("--version")
    assert code == 0
    assert re.fullmatch(r"cairn \d+\.\d+\.\d+\n", out)


def test_the_help_imports_no_command() -> None:
    code = "import sys; from cairn.cli.app import run; run(['--help']); print(*sys.modules, sep='\\n', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "cairn.cli.app" in loaded
    assert not {each for each in loaded if each.startswith("cairn.cli.commands.")}
    assert not loaded & {"cairn.client", "cairn.types", "rich", "urllib3", "yaml", "blake3", "obstore"}


@pytest.mark.parametrize(
    ("shell", "marks"), [("bash", "complete -o"), ("zsh", "#compdef cairn"), ("fish", "complete --no-files")]
)
def test_a_completion_script_is_printed(cli: Cli, shell: str, marks: str) -> None:
    code, out, _ = cli("completion", shell)
    assert code == 0
    assert marks in out
    assert "_CAIRN_COMPLETE" in out
    assert cli("completion", "tcsh")[0] == 2


def completed(*words: str) -> list[str]:
    """What bash would offer for the last word."""
    program = Path(sys.executable).with_name("cairn")
    environment = {
        **os.environ,
        "_CAIRN_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("cairn", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True, timeout=60)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("re") == [name for name in sorted(COMMANDS) if name.startswith("re")]
    assert "--layout" in completed("resume", "--l")
    assert completed("fetch", "--tier", "s") == ["shared"]


def test_a_bar_of_bytes_is_shown_on_a_terminal_once_it_takes_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for is_terminal, patience, shown in ((True, 0.0, True), (True, 60.0, False), (False, 0.0, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience)
        with progress.bytes_bar("Fetching", 1000) as advance:
            advance(400)
            advance(600)
        assert ("Fetching" in capsys.readouterr().err) is shown


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("0.5h", 1800), ("2D", 172_800)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "10 m", "-5", "0", "1e9", "m", "10x", "99999999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        DURATION.convert(text, None, None)


def test_layouts_are_read() -> None:
    assert LAYOUT.convert("tp=4, pp=2,world_size=64", None, None) == {"tp": 4, "pp": 2, "world_size": 64}
    for wrong in ("", "tp", "tp=0", "tp=-1", "tp=2.5", "np=2", "tp=1,tp=1", "tp=4;pp=2"):
        with pytest.raises(click.BadParameter):
            LAYOUT.convert(wrong, None, None)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (98_540_000_000, "98.5 GB"), (999_999, "1 MB")]
)
def test_sizes_are_shown_in_three_digits(count: int, text: str) -> None:
    assert size(count) == text
