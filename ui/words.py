"""The domain's words as a page says them: steps in groups, and a link's next move instead of a call of the API."""

import re

from registry.errors import RegistryError
from ui import filters

# What to do next on the pages, for messages that name calls of the API.
NEXT = {
    "project-not-found": "The list of runs shows the projects that exist.",
    "run-not-found": "The list of runs shows those that exist.",
    "checkpoint-not-found": "Find lists those that exist.",
    "alias-not-found": "Aliases lists those that exist.",
    "attempt-not-found": "The page of the run lists its attempts.",
}
_CALL = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE)\b|/api/v1/")
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_MINUTES = re.compile(r"\b(\d{1,9})(?:\.\d+)? min\b")
_AMOUNT = re.compile(r"(?<![\w.,\u202f])(\d[\d,]*) (steps?)\b")
_STEPS = re.compile(r"\b([Ss]teps?|lies beyond) (\d[\d,]*)(?: (and|to) (\d[\d,]*))?\b")


def for_people(code: str, message: str) -> str:
    """The message without its sentences about calls of the API; where one was, what to do on the pages instead."""
    sentences = _SENTENCES.split(message)
    kept = [each for each in sentences if not _CALL.search(each)]
    if len(kept) == len(sentences):
        return message
    return " ".join([*kept, *([NEXT[code]] if code in NEXT else [])]) or message


def message_of(error: RegistryError) -> str:
    return for_people(error.code, error.message)


def grouped_steps(text: str) -> str:
    """A sentence of the domain with its steps in groups of three, as on all pages: step 113 000, 1 240 steps."""
    return _AMOUNT.sub(lambda found: f"{filters.grouped(_whole(found[1]))} {found[2]}", _STEPS.sub(_grouped, text))


def long_spans(text: str) -> str:
    """A sentence of the domain with spans of two hours and more as everywhere on the pages: 18 h 45 min."""
    return _MINUTES.sub(lambda found: filters.duration(int(found[1]) * 60) if int(found[1]) >= 120 else found[0], text)


def _grouped(found: re.Match[str]) -> str:
    second = f" {found[3]} {filters.grouped(_whole(found[4]))}" if found[3] else ""
    return f"{found[1]} {filters.grouped(_whole(found[2]))}{second}"


def _whole(digits: str) -> int:
    return int(digits.replace(",", ""))
