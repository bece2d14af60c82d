"""The command of a drill, word by word: what stands for {path}, {step}, {steps} and {out} is never read by a shell."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cairn.errors import Invalid

_NAME = re.compile(r"\{(path|step|steps|out)\}")


class UnusableCommand(Invalid):
    """A command that cannot be run as it is written; nothing was tried."""


@dataclass(frozen=True)
class Placeholders:
    """Where the checkpoint is, its step, how many steps to train, and the file that losses are written to."""

    path: str
    step: int
    steps: int
    out: Path

    def fill(self, words: Sequence[str]) -> list[str]:
        """In one pass: what a value holds is never taken for a placeholder; all other braces stay."""
        return [_NAME.sub(lambda found: str(getattr(self, found[1])), word) for word in words]


def check_command(words: Sequence[str], *, loads: bool = True) -> None:
    """Raises `UnusableCommand` before anything is read: a command that is not there proves nothing of a checkpoint."""
    if shutil.which(words[0]) is None and not _NAME.search(words[0]):
        raise UnusableCommand(f"There is no program {words[0]!r} to run.", code="not-sendable")
    if loads and not any("{path}" in word for word in words):
        raise UnusableCommand(
            "The command has no {path}, so it would not load this checkpoint. Say with {path} where the copy is, with "
            "{out} where losses go; {step} is the checkpoint's, {steps} how many to train.",
            code="not-sendable",
        )
