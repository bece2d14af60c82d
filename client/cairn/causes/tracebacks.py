"""Where in a Python traceback a line stands: what the program's own text says there is no report of a fault."""

import re
from typing import Final

from cairn.causes.rules import BEGIN, FAILURE, Rule

_FRAME: Final = re.compile(r'( +)File "[^"]*", line \d+')
_EXCEPTION: Final = re.compile(BEGIN + r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?::|\s*$)")
# An exception that its name does not show as one: it stands where a traceback ends.
RAISED: Final = Rule("python-exception", FAILURE, (), _EXCEPTION, "Python", "mypackage.BadBatch: batch 12 is corrupt")


class Traceback:
    """Reads lines in their order, and says of each what it is."""

    ELSEWHERE, SOURCE, RAISED = "elsewhere", "source", "raised"

    def __init__(self) -> None:
        self._source = ""  # what lines of source begin with, while within a frame
        self._frames = False

    def read(self, line: str) -> str:
        frame = _FRAME.search(line) if ", line " in line else None
        if frame is not None:
            self._source, self._frames = line[: frame.end(1)] + "  ", True
            return self.ELSEWHERE
        if not self._frames:
            return self.ELSEWHERE
        if line.startswith(self._source):
            return self.SOURCE
        ended = _EXCEPTION.match(line) is not None
        self._frames = not ended
        return self.RAISED if ended else self.ELSEWHERE
