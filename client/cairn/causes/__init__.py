"""Why a job stopped, read from the end of its log, its exit code and the signals it was sent. Standard library only.

A root cause wins over what follows from it, wherever it stands: an NCCL timeout after another rank ran out of memory
is that lack of memory. Of failures that may be either, the first in time wins over the flood after it. What the job
survived (it made further steps afterwards) is no cause. Where nothing is recognised the cause stays unknown.
"""

import signal as signals
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cairn.causes.mentions import is_mention
from cairn.causes.progress import Rising
from cairn.causes.rules import CONSEQUENCE, FAILURE, ROOT, RULES, Rule
from cairn.causes.tracebacks import RAISED, Traceback

UNKNOWN: Final = "unknown"
MAX_LINE: Final = 2_000  # characters of a line that are looked at, from each end
SHOWN: Final = 5  # lines that are given as evidence
SURVIVED: Final = 2  # rising steps after which the job had survived what came before
_WORDS: Final = tuple(dict.fromkeys(word for rule in RULES for word in rule.words))
_NATIVE: Final = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")
_ASKED: Final = {"SIGINT": "user-interrupt", "SIGTERM": "scheduler", "SIGHUP": "user-interrupt"}


@dataclass(frozen=True)
class Guess:
    """A cause by its name, and the lines that say so, the first of them first."""

    cause: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Match:
    rule: Rule
    line: str


def guess(lines: Iterable[str], *, signal: str | None = None, asked: str | None = None) -> Guess:
    """The likeliest cause. `signal`: what ended the job; `asked`: the last signal that was sent to it on purpose."""
    found = _matches(lines)
    roots = [match for match in found if match.rule.level == ROOT]
    if roots:
        return _as_guess(roots, found)
    if asked in _ASKED:
        return Guess(_ASKED[asked or ""], (f"{asked} was sent to the job",))
    failures = [match for match in found if match.rule.level == FAILURE]
    if failures:
        return _as_guess(failures, found)
    if signal in _NATIVE:
        return Guess("native-crash", (f"the job ended by {signal}",))
    if signal == "SIGINT":
        return Guess("user-interrupt", ("the job ended by SIGINT",))
    consequences = [match for match in found if match.rule.level == CONSEQUENCE]
    return _as_guess(consequences, found) if consequences else Guess(UNKNOWN)


def match_of(line: str) -> Rule | None:
    """The rule that speaks for a line."""
    short = line if len(line) <= 2 * MAX_LINE else line[:MAX_LINE] + " " + line[-MAX_LINE:]
    lower = short.lower()
    present = {word for word in _WORDS if word in lower}
    for rule in RULES if present else ():
        if not present.isdisjoint(rule.words):
            found = rule.pattern.search(short)
            if found is not None and not is_mention(short, *found.span()):
                return rule
    return None


def signal_name(number: int) -> str:
    """'SIGKILL' for 9; a number without a name is called by it."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _matches(lines: Iterable[str]) -> list[_Match]:
    found: list[_Match] = []
    traceback, rising = Traceback(), Rising()
    for line in lines:
        place = traceback.read(line)
        rule = None if place == Traceback.SOURCE else match_of(line)
        if rule is None and place == Traceback.RAISED:
            rule = RAISED
        if rule is not None:
            found.append(_Match(rule, line.strip()))
            rising = Rising()
        elif found and rising.read(line) == SURVIVED:
            found.clear()
    return found


def _as_guess(candidates: Sequence[_Match], found: Sequence[_Match]) -> Guess:
    cause = candidates[0].rule.cause
    said = [match.line[:500] for match in found if match.rule.cause == cause]
    return Guess(cause, tuple(dict.fromkeys(said))[:SHOWN])
