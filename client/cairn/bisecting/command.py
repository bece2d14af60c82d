"""The command that evaluates a checkpoint: split once as a shell would, filled in word by word, run without a shell."""

import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cairn.errors import Invalid

STANDARD_ERROR = 2
NAMES = ("path", "checkpoint", "items", "output")


class UnusableCommand(Invalid):
    """A command that cannot be run as it is written."""


@dataclass(frozen=True)
class Placeholders:
    """What stands for {path}, {checkpoint}, {items} and {output}: where a copy of the checkpoint is, its id, how many
    items to ask, and the folder that results are read from."""

    path: str
    checkpoint: str
    items: int
    output: Path


class Template:
    """A command with placeholders. What they stand for is never read by a shell: a space or a `;` in it is a letter."""

    def __init__(self, text: str) -> None:
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise UnusableCommand(f"The command cannot be split into words: {error}.", code="not-sendable") from None
        if not self._words:
            raise UnusableCommand("The command is empty.", code="not-sendable")
        for needed in ("{path}", "{output}"):
            if needed not in text:
                raise UnusableCommand(
                    f"The command has no {needed}. Say with {{path}} where the checkpoint is, with {{output}} where "
                    "results go; {items} is how many to ask, {checkpoint} the id.",
                    code="not-sendable",
                )

    def filled(self, known: Placeholders) -> list[str]:
        """The words with each placeholder replaced; all other braces stay."""
        values = {"{" + name + "}": str(getattr(known, name)) for name in NAMES}
        return [_filled(word, values) for word in self._words]


def _filled(word: str, values: dict[str, str]) -> str:
    """In one pass: what a value holds is never taken for a placeholder."""
    done, rest = "", word
    while rest:
        places = [(rest.find(name), name) for name in values if name in rest]
        if not places:
            return done + rest
        at, name = min(places)
        done, rest = done + rest[:at] + values[name], rest[at + len(name) :]
    return done


def path_of(uri: str) -> str:
    """A file address as a path; other addresses as they are."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else uri


def run_command(words: Sequence[str]) -> int:
    """Runs it to its end, with our own input closed; its words go to standard error. ^C reaches it as it reaches us."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=STANDARD_ERROR) as process:  # noqa: S603
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
