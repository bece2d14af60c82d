"""Reading when a checkpoint was saved: 'after 2026-11-01', 'since yesterday', 最近7天, 11月1日之前. Days are in UTC."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from registry.search.conditions import FieldCondition
from registry.search.draft import Draft
from registry.search.numbers import read_quantity
from registry.search.patterns import pattern_of

_MONTH_NAMES: Final = (
    ("jan", "january"),
    ("feb", "february"),
    ("mar", "march"),
    ("apr", "april"),
    ("may",),
    ("jun", "june"),
    ("jul", "july"),
    ("aug", "august"),
    ("sep", "sept", "september"),
    ("oct", "october"),
    ("nov", "november"),
    ("dec", "december"),
)
_MONTHS: Final = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names}
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + ")"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE: Final = (
    r"(?P<iso>\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?!\d))"
    r"|(?P<zh>[一二三四五六七八九十]{1,2}月[一二三四五六七八九十]{1,3}[日号]|(?:\d{4}\s?年\s?)?\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?|\d{4}\s?年)"
    rf"|(?P<en>{_MONTH}\.?\s+{_DAY}(?:,?\s+\d{{4}})?|{_DAY}\s+{_MONTH}\.?(?:\s+\d{{4}})?|{_MONTH}\s+\d{{4}})\b"
    r"|(?P<near>\b(?:today|yesterday|this week|last week|this month|last month)\b"
    r"|今天|昨天|前天|本周|这周|上周|本月|这个月|上个月|上月)"
)
_SECOND: Final = re.sub(r"\?P<(\w+)>", r"?P<to_\1>", _DATE)  # the same again in one pattern
_RANGES: Final = (
    pattern_of(
        rf"(?:\b(?:saved\s+)?between\s+|介于\s*|在\s*)(?:{_DATE})\s*(?:\b(?:and|to)\b|[和与到至~–-])\s*(?:{_SECOND})"
    ),
    pattern_of(
        rf"(?:\b(?:saved\s+)?from\s+|自从?\s*|从\s*)?(?:{_DATE})\s*(?:\b(?:to|until|till|through)\b|[到至~–-])\s*(?:{_SECOND})"
    ),
)
_BETWEEN_ENDS: Final = pattern_of(r"\s*(?:之间|期间|为止)?\s*(?:保存|存)?的?")
_DATES: Final = (
    ("before", pattern_of(rf"\b(?:before|prior to|earlier than|older than)\s+(?:{_DATE})")),
    ("before", pattern_of(rf"(?:{_DATE})\s*(?:之前|以前|前)")),
    ("until", pattern_of(rf"(?:\b(?:until|up to|by|no later than)\s+|截至\s*|截止\s*)(?:{_DATE})(?:\s*为止)?")),
    ("after", pattern_of(rf"\b(?:after|later than|newer than|more recent than)\s+(?:{_DATE})")),
    ("after", pattern_of(rf"(?:{_DATE})\s*(?:之后|以后|后)")),
    ("since", pattern_of(rf"(?:\b(?:since|from)\s+|自从?\s*|从\s*)(?:{_DATE})(?:\s*(?:onwards?\b|以来|开始|起))?")),
    ("since", pattern_of(rf"(?:{_DATE})\s*(?:以来|开始|起)")),
    ("on", pattern_of(rf"(?:\b(?:saved\s+)?(?:on|in|during)\s+|在\s*)?(?:{_DATE})(?:\s*(?:保存|存))?的?")),
)
_PAST = pattern_of(
    r"(?:\b(?:in\s+|over\s+|within\s+)?(?:the\s+)?(?:(?:last|past)\s+(?=\d|hour\b)|past\s+)|\bwithin\s+(?=\d)|最近\s*|过去\s*|近\s*)"
    r"(?P<count>\d{1,4}|[一两二三四五六七八九十]+)?\s*(?:个\s*)?"
    r"(?P<unit>hours?|days?|weeks?|months?|小时|天|日|周|星期|月)"
)
_AGE = pattern_of(
    r"\b(?P<age>older|earlier|newer|younger|more recent|later) than\s+(?P<count>\d{1,4}|an?\b)\s*"
    r"(?P<unit>hours?|days?|weeks?|months?)\b(?:\s+ago\b)?"
)
_AGO = pattern_of(
    r"\b(?P<age>more|less) than\s+(?P<count>\d{1,4}|an?\b)\s*(?P<unit>hours?|days?|weeks?|months?)\s+(?:ago|old)\b"
)
_UNIT_DAYS: Final = (("hour 小时", 1 / 24), ("day 天 日", 1.0), ("week 周 星期", 7.0), ("month 月", 30.0))


def take_dates(draft: Draft, now: datetime) -> None:
    """Take dates out of the draft as conditions on `saved_at`; `now` (UTC) gives 'yesterday' its meaning."""
    for pattern in (_AGE, _AGO):
        for match in draft.matches(pattern):
            older = match["age"] in ("older", "earlier", "more")
            draft.take(*match.span(), _at("<" if older else ">", now - _span(match)))
    for match in draft.matches(_PAST):
        draft.take(*match.span(), _at(">=", now - _span(match)))
    for pattern in _RANGES:
        for match in draft.matches(pattern):
            _take_range(draft, match, now)
    for relation, pattern in _DATES:
        for match in draft.matches(pattern):
            if (days := _interval(match.groupdict(), now)) is not None:
                draft.take(*match.span(), *_conditions(relation, *days))


def _take_range(draft: Draft, match: re.Match[str], now: datetime) -> None:
    """Both ends are included."""
    said = match.groupdict()
    ends = [
        _interval(each, now) for each in (said, {name: said.get(f"to_{name}") for name in ("iso", "zh", "en", "near")})
    ]
    known = sorted(each for each in ends if each is not None)
    if len(known) == 2:
        tail = _BETWEEN_ENDS.match(draft.low, match.end())
        end = tail.end() if tail else match.end()
        draft.take(match.start(), end, _at(">=", known[0][0]), _at("<", known[1][1]))


def _conditions(relation: str, start: datetime, end: datetime) -> list[FieldCondition]:
    """'after' a day begins when the day has ended; 'since' and 'until' include it."""
    match relation:
        case "before":
            return [_at("<", start)]
        case "until":
            return [_at("<", end)]
        case "after":
            return [_at(">=", end)]
        case "since":
            return [_at(">=", start)]
        case _:
            return [_at(">=", start), _at("<", end)]


def _at(relation: str, moment: datetime) -> FieldCondition:
    return FieldCondition("saved_at", relation, moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _span(match: re.Match[str]) -> timedelta:
    unit = match["unit"].rstrip("s")
    days = next(days for words, days in _UNIT_DAYS if unit in words.split())
    return timedelta(days=days * (1 if match["count"] in (None, "a", "an") else read_quantity(match["count"])))


def _interval(match: Mapping[str, str | None], now: datetime) -> tuple[datetime, datetime] | None:
    """The first moment of the day, week, month or year named, and the first one after it; None for no such day."""
    if near := match["near"]:
        return _near(near, now.replace(hour=0, minute=0, second=0, microsecond=0))
    year, month, day = _parts(match)
    try:
        if year is None:  # the latest such date that is not in the future
            guess = datetime(now.year, month or 1, day or 1, tzinfo=UTC)
            year = now.year if guess <= now else now.year - 1
        start = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if day:
            return start, start + timedelta(days=1)
        return start, _next_month(start) if month else start.replace(year=year + 1)
    except (ValueError, OverflowError):
        return None


def _parts(match: Mapping[str, str | None]) -> tuple[int | None, int | None, int | None]:
    if iso := match["iso"]:
        year, month, *rest = (int(part) for part in re.split(r"[-/.]", iso))
        return year, month, rest[0] if rest else None
    if zh := match["zh"]:
        numbers = re.findall(r"(\d+|[一二三四五六七八九十]+)\s?([年月日号])", zh)
        found = {unit: int(read_quantity(number)) for number, unit in numbers}
        return found.get("年"), found.get("月"), found.get("日", found.get("号"))
    words = match["en"] or ""
    numbers = [int(number) for number in re.findall(r"\d+", words)]
    month = next(number for name, number in _MONTHS.items() if re.search(rf"\b{name}\b", words))
    named_year = next((number for number in numbers if number > 31), None)
    return named_year, month, next((number for number in numbers if number <= 31), None)


def _near(words: str, today: datetime) -> tuple[datetime, datetime]:
    day, week, month = timedelta(days=1), today - timedelta(days=today.weekday()), today.replace(day=1)
    last_month = (month - day).replace(day=1)
    ends = (
        ("today 今天", today, today + day),
        ("yesterday 昨天", today - day, today),
        ("前天", today - 2 * day, today - day),
        ("this_week 本周 这周", week, week + 7 * day),
        ("last_week 上周", week - 7 * day, week),
        ("this_month 本月 这个月", month, _next_month(month)),
        ("last_month 上个月 上月", last_month, month),
    )
    return next((start, end) for names, start, end in ends if words.replace(" ", "_") in names.split())


def _next_month(first: datetime) -> datetime:
    return (first + timedelta(days=31)).replace(day=1)
