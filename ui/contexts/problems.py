"""What the templates of signing in and of problems may use."""

from dataclasses import dataclass

from ui.contexts.shared import Answer, Fact, Link


@dataclass(frozen=True)
class LoginContext:
    next: str
    problem: str


@dataclass(frozen=True)
class ProblemKind:
    """What one error code means, whoever met it."""

    code: str
    title: str
    status: int
    meaning: str
    href: str


@dataclass(frozen=True)
class ProblemKindsContext:
    """`chosen` is the one asked for; without it, all are listed."""

    answer: Answer
    chosen: ProblemKind | None
    kinds: tuple[ProblemKind, ...]


@dataclass(frozen=True)
class ProblemContext:
    """`code` is '' where there is no page at all, which is no error of ours; `ways` lead on."""

    status: int
    title: str
    message: str
    code: str
    errors: tuple[Fact, ...]
    kept: str
    ways: tuple[Link, ...]
