"""Every example of README.md runs as it stands: on the demonstration's data, with the settings it names."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cairn.cli.app import SUMMARIES

from demo.load import load_demo
from tests.client.live import running_service

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
# A failure of any line ends the block; curl alone would take an error's answer for a success. Only `cairn find` may
# end with 1, "no result", and only where the README says so.
STRICT = """set -e
curl() { command curl --fail-with-body "$@"; echo; }
cairn() {
  local code=0; command cairn "$@" || code=$?
  echo "$1 ended with $code"; [ $code = 0 ] || [ $1$code = find1 ]
}
"""


def blocks(section: str) -> list[tuple[str, str]]:
    """Language and text of each example below a heading."""
    text = README.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [(found[1], found[2]) for found in BLOCK.finditer(text)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """That of a shell on the machine where `make demo` runs, with the port and the folder set as for the service."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRN_", "XDG_"))}
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with running_service(tmp_path_factory.mktemp("demo"), load_demo) as (url, home):
        port = str(urlsplit(url).port)
        yield own | {"CAIRN_HOME": str(home), "CAIRN_PORT": port, "HOME": str(home), "PATH": tools}


def run(command: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_commands_of_try_it_answer(environment: dict[str, str], tmp_path: Path) -> None:
    (make, with_curl, with_cairn) = blocks("Try it")
    assert re.findall(r"^make (\w+)", make[1], re.M) == ["demo", "test"]
    if shutil.which("curl") is None:
        pytest.skip("curl is absent")
    answers = run(["bash", "-c", STRICT + with_curl[1]], environment, tmp_path)
    for named in ('"interpretation"', '"candidates"', '"items":[{'):
        assert named in answers
    assert "find 'strong math'" in with_cairn[1]
    shown = run(["bash", "-c", STRICT + with_cairn[1]], environment, tmp_path)
    assert re.findall(r"(\w+) ended with (\d)", shown) == [
        ("find", "0"),
        ("find", "1"),
        ("rollback", "0"),
        ("compare", "0"),
    ]
    assert "找一个数学强但对话弱的 checkpoint'   # exit code 1" in with_cairn[1]
    for named in ("checkpoint\tmatch\tmath\t", "rank\tcheckpoint\t", "benchmark\tmetric\t"):
        assert named in shown


def test_the_examples_of_record_your_own_checkpoints_run(environment: dict[str, str], tmp_path: Path) -> None:
    examples = blocks("Record your own checkpoints")
    assert [language for language, _ in examples] == ["sh", "sh", "python"]
    for language, text in examples:
        command = ["bash", "-c", STRICT + text] if language == "sh" else [sys.executable, "-W", "error", "-c", text]
        for _ in range(2):  # recording the same again is harmless
            run(command, environment, tmp_path)
    shown = run(["cairn", "run", "show", "llm/7b-v3"], environment, tmp_path)
    assert "7b-v3 · 1 · 41000" in shown
    assert "7b-v3 · 1 · 42000" in shown


def test_the_training_loop_records_and_its_run_can_be_resumed(environment: dict[str, str], tmp_path: Path) -> None:
    ((language, loop), (_, shell)) = blocks("In a training loop")
    assert language == "python"
    flushed = "run.flush(60)\nrun.finish()"
    run([sys.executable, "-W", "error", "-c", loop.replace("run.finish()", flushed)], environment, tmp_path)
    shown = run(["cairn", "run", "show", "llm/7b-v4"], environment, tmp_path)
    assert "7b-v4 · 1 · 100" in shown
    stopped = subprocess.run(
        ["bash", "-c", shell.replace("python train.py", "echo started")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (stopped.returncode, stopped.stdout) == (1, "")  # no copy is on this host: nothing starts over it


def test_every_command_of_the_cli_has_its_line() -> None:
    lines = re.findall(r"^\| `cairn (\w+)` \| (.+) \|$", README, re.M)
    assert {name: f"{text}." for name, text in lines} == SUMMARIES
