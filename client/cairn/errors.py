"""What can go wrong in a call, as exceptions. Every one is a `CairnError`.

The service answers RFC 9457 problems; the exception is rebuilt from the problem's `type`, or from the status
where the type is one that this client does not know yet. An answer that is no such problem is not the service's word,
whatever its status: a proxy that has nobody behind it for a while answers 404, too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FieldProblem:
    """One refused value: where it stands (a JSON pointer, '' for the whole) and what was expected there."""

    pointer: str
    message: str


class CairnError(Exception):
    """Base of everything that this package raises. `status` is 0 where no answer came.

    `code` is stable and made for programs (`run-not-found`); `detail` and `errors` are made for people;
    `retry_after` is in seconds; `extras` holds the problem's further members.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        code: str = "",
        title: str = "",
        errors: tuple[FieldProblem, ...] = (),
        retry_after: float | None = None,
        request: str = "",
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.title = title
        self.errors = errors
        self.retry_after = retry_after
        self.request = request
        self.extras = dict(extras or {})

    def __str__(self) -> str:
        """First what happened, then each refused value, then how to find it again."""
        lines = [self.detail or self.title or type(self).__name__]
        lines += [f"  {each.pointer or '(the whole body)'}: {each.message}" for each in self.errors[:SHOWN]]
        more = len(self.errors) - SHOWN + _whole(self.extras.get("errors_left_out"))
        if more > 0:
            lines.append(f"  and {more} more")
        if self.retry_after is not None:
            lines.append(f"  Try again in {self.retry_after:g} seconds.")
        answer = " ".join(part for part in (str(self.status or ""), self.code) if part)
        trace = ", ".join(part for part in (answer, self.request) if part)
        return "\n".join(lines) + (f"\n  [{trace}]" if trace else "")


class NotFound(CairnError):
    """No such project, run, checkpoint, alias or page."""


class Conflict(CairnError):
    """What was sent contradicts what is recorded."""


class AttemptWouldRestart(Conflict):
    """A new attempt would start from zero over committed checkpoints: say `resumed_from`, or `restart=True`."""


class CheckpointExists(Conflict):
    """Other content is recorded for this (run, attempt, step, kind); `extras` names the differing fields."""


class Invalid(CairnError):
    """Values that cannot be accepted; `errors` names each."""


class Malformed(Invalid):
    """A request that could not be read: bad syntax, a filter with a mistake."""


class Forbidden(CairnError):
    """The token is known but may not do this."""


class InDrill(Forbidden):
    """`cairn drill` has started this process, and what it asked for would leave a trace in a run."""


class Unauthenticated(CairnError):
    """No token, or one that the service does not know."""


class TooLarge(CairnError):
    """The body is larger than the service takes."""


class TooManyRequests(CairnError):
    """Slow down; `retry_after` says for how long."""


class Unavailable(CairnError):
    """The service cannot work now, or something in between answers for it; `retry_after` says when to try again."""


class ConnectionFailed(CairnError):
    """No usable answer: refused, cut off, too slow, or not a Cairn service. It may have been carried out."""


class BadSettings(CairnError):
    """The URL, token or login file cannot be used."""


# The kinds that the service promises, and the leaves that a program is likely to catch by name.
BY_CODE: dict[str, type[CairnError]] = {
    "not-found": NotFound,
    "conflict": Conflict,
    "attempt-would-restart": AttemptWouldRestart,
    "checkpoint-exists": CheckpointExists,
    "invalid": Invalid,
    "malformed": Malformed,
    "invalid-filter": Malformed,
    "forbidden": Forbidden,
    "unauthenticated": Unauthenticated,
    "too-large": TooLarge,
    "too-many-requests": TooManyRequests,
    "unavailable": Unavailable,
}
BY_STATUS: dict[int, type[CairnError]] = {
    400: Malformed,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
TOO_LARGE = 413  # also by a proxy's own limit: sent again as it is, the same body will meet it again
# What is not there has a code of its own (`run-not-found`); the bare one means that the path itself is unknown.
NO_SUCH_CALL = "not-found"
SHOWN = 10
TYPE_PREFIX = "/problems/"
STANDARD = frozenset({"type", "title", "status", "detail", "errors", "instance"})


def error_from_answer(
    status: int, body: bytes, *, retry_after: float | None = None, request: str = "", url: str = ""
) -> CairnError:
    """The exception for an answer of 400 or above, whatever its body is. `url`: where the service should be."""
    problem = _problem(body)
    if problem is None:
        kind: type[CairnError] = TooLarge if status == TOO_LARGE else Unavailable
        said = " ".join(body[:200].decode("utf-8", "replace").split())
        detail = (
            f"{url or 'The server'} answered {status}, and not in Cairn's words: something else answers there "
            f"(a proxy while the service is away?), or CAIRN_URL is wrong. It said {said or 'nothing'}."
        )
        return kind(detail, status=status, retry_after=retry_after, request=request)
    code = _text(problem.get("type")).rpartition(TYPE_PREFIX)[2]
    kind = BY_CODE.get(code) or BY_STATUS.get(status, CairnError)
    detail = _text(problem.get("detail")) or _text(problem.get("title")) or f"The server answered {status}."
    if code == NO_SUCH_CALL:
        detail = f"The service does not know {request}. Is it older than this client, or CAIRN_URL wrong?"
    return kind(
        detail,
        status=status,
        code=code,
        title=_text(problem.get("title")),
        errors=_fields(problem.get("errors")),
        retry_after=retry_after,
        request=request,
        extras={key: value for key, value in problem.items() if key not in STANDARD},
    )


def _problem(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(value, dict) and TYPE_PREFIX in _text(value.get("type"))
    return value if ours else None


def _fields(errors: Any) -> tuple[FieldProblem, ...]:
    found = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return tuple(FieldProblem(_text(each.get("pointer")), _text(each.get("detail"))) for each in found)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
