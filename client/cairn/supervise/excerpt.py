"""The end of a log as it is sent: bounded, without colours, without secrets."""

import re
from collections.abc import Sequence
from typing import Final

from cairn.capture.secrets import mask_log

MAX_BYTES: Final = 64 * 1024
_COLOURS: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def excerpt(lines: Sequence[str]) -> str:
    """The last lines, at most 64 KiB of UTF-8."""
    kept: list[str] = []
    size = 0
    for line in reversed(lines):
        shown = clean(line)
        size += len(shown.encode()) + 1
        if size > MAX_BYTES:
            break
        kept.append(shown)
    return "\n".join(reversed(kept))


def clean(line: str) -> str:
    """A line without control sequences, and with everything masked that looks like a secret."""
    plain = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _COLOURS.sub("", line.replace("\t", "    ")))
    return mask_log(plain.encode("utf-8", "replace").decode())
