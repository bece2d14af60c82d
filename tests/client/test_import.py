"""What importing the client costs a training job, and what it may pull in."""

import subprocess
import sys

FORBIDDEN = ("registry", "api", "ui", "migrations", "numpy", "fastapi", "sqlalchemy", "torch")


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_importing_cairn_takes_less_than_150_milliseconds() -> None:
    # Processor time, and the first of ten tries that shows it: a busy machine slows the processor itself down.
    code = "import time; t = time.process_time(); import cairn; cairn.Client; print(time.process_time() - t)"
    assert any(float(run_python(code)) < 0.150 for _ in range(10))


def test_the_client_imports_nothing_of_the_service() -> None:
    code = f"import sys, cairn; cairn.Client; print([n for n in {FORBIDDEN!r} if n in sys.modules])"
    assert run_python(code) == "[]"


def test_the_readers_need_the_standard_library_only() -> None:
    code = (
        "import sys; import cairn.formats; "
        "print([n for n in ('urllib3', 'click', 'rich', 'cairn.client') if n in sys.modules])"
    )
    assert run_python(code) == "[]"
