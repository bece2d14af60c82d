"""What importing the client costs a training job, and what it may pull in."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import cairn
import pytest

FORBIDDEN = ("registry", "api", "ui", "migrations", "numpy", "fastapi", "sqlalchemy", "torch")


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


def least_seconds(code: str) -> float:
    """Processor time, the least of ten tries, as of a machine that imports asyncio in 50 ms: a busy machine slows the
    processor itself down, and what is imported beside it tells by how much."""
    tries = [(seconds_of(code), seconds_of("import asyncio")) for _ in range(10)]
    least, beside = min(each for each, _ in tries), min(each for _, each in tries)
    return least * min(1.0, 0.050 / beside)


def seconds_of(code: str) -> float:
    return float(run_python(f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"))


def test_importing_cairn_takes_less_than_150_milliseconds() -> None:
    assert least_seconds("import cairn") < 0.150


def test_the_client_itself_takes_little_more_and_no_connection_pool_before_the_first_call() -> None:
    assert least_seconds("import cairn; cairn.Client") < 0.300
    code = "import sys, cairn; cairn.Client('http://127.0.0.1:9', 't'); print('urllib3' in sys.modules)"
    assert run_python(code) == "False"


def test_the_client_imports_nothing_of_the_service() -> None:
    code = f"import sys, cairn; cairn.Client; print([n for n in {FORBIDDEN!r} if n in sys.modules])"
    assert run_python(code) == "[]"


def test_the_readers_need_the_standard_library_only() -> None:
    code = (
        "import sys; import cairn.formats; "
        "print([n for n in ('urllib3', 'click', 'rich', 'cairn.client') if n in sys.modules])"
    )
    assert run_python(code) == "[]"


EVERY_MODULE = """
import importlib, pkgutil, cairn
for each in pkgutil.walk_packages(cairn.__path__, "cairn."):
    if not each.name.startswith("cairn.callbacks."):
        importlib.import_module(each.name)
print("all")
"""


def test_every_module_but_the_callbacks_can_be_imported_by_python_3_10() -> None:
    paths = os.pathsep.join((str(Path(cairn.__file__).parents[1]), sysconfig.get_path("purelib")))
    environment = {**os.environ, "PYENV_VERSION": "3.10", "PYTHONPATH": paths}
    found = shutil.which("python3.10")
    if found is None or subprocess.run([found, "-c", ""], env=environment, capture_output=True, check=False).returncode:
        pytest.skip("there is no python3.10 on this machine")
    command = [found, "-B", "-c", EVERY_MODULE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "all\n", done.stderr
