"""What a look at one part of the installation found."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    OK = "ok"
    WARNING = "warning"  # it works, and will not for ever, or not for everybody
    FAULT = "fault"


@dataclass(frozen=True)
class Found:
    """`said` is what is there, `advice` the next move, empty where none is needed."""

    subject: str
    health: Health
    said: str
    advice: str = ""


def ok(subject: str, said: str) -> Found:
    return Found(subject, Health.OK, said)


def warning(subject: str, said: str, advice: str) -> Found:
    return Found(subject, Health.WARNING, said, advice)


def fault(subject: str, said: str, advice: str) -> Found:
    return Found(subject, Health.FAULT, said, advice)
