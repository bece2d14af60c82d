"""The parent's side of `mapped.py`: files by mapping, as far as that works."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cairn.formats.checkpoints import File

CHILD = Path(__file__).with_name("mapped.py")


def digests_by_mapping(place: Callable[[str], str], files: Sequence[File]) -> Iterator[tuple[File, str]]:
    """The BLAKE3 digests of files that are at `place` of their paths; those that it cannot answer are left out."""
    try:
        child = _start()
    except (OSError, ImportError, ValueError):
        return
    questions = b"".join(
        b"%d\0%d\0%s\n" % (number, each.bytes, place(each.path).encode("utf-8", "surrogateescape").hex().encode())
        for number, each in enumerate(files)
    )
    asking = threading.Thread(target=_ask, args=(child, questions), daemon=True)
    asking.start()
    assert child.stdout is not None
    try:
        for line in child.stdout:
            number, _, value = line.strip().partition(b" ")
            if line.endswith(b"\n") and value != b"!":
                yield files[int(number)], value.decode()
    finally:
        child.kill()
        asking.join()
        child.stdout.close()
        child.wait()


def _start() -> "subprocess.Popen[bytes]":
    import blake3

    library = str(Path(blake3.__file__).parent.parent)
    command = [sys.executable or "", "-I", "-S", str(CHILD), library]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)  # noqa: S603


def _ask(child: "subprocess.Popen[bytes]", questions: bytes) -> None:
    assert child.stdin is not None
    with contextlib.suppress(OSError), child.stdin as pipe:
        pipe.write(questions)
