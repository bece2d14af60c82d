"""Times of a filter: ISO 8601 with a zone, or a plain date, which means its midnight in UTC."""

import re
from datetime import UTC, datetime
from typing import Final

TIME_WORDS: Final = "a time with zone such as '2026-11-01T10:00:00Z', or a date such as '2026-11-01'"
_SHAPE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(?P<zone>Z|[+-]\d{2}:\d{2})?)?",
    re.ASCII | re.IGNORECASE,
)


def read_time(text: str) -> datetime | str:
    """The moment in UTC, or what is wrong with the text, in words that follow it."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return "is no ISO 8601 time"
    try:
        moment = datetime.fromisoformat(text.upper())
        if moment.tzinfo is None:
            if shape[1] is not None:
                return "has no zone"
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return "is no moment of the calendar"
