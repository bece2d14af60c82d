"""The one file that knows errors and HTTP statuses: every failure leaves as an RFC 9457 problem document."""

import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from api.damage import WAY_OUT, damage_of
from api.field_errors import field_errors
from registry.errors import (
    Conflict,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    RegistryError,
    Unavailable,
)
from registry.sqlite_file import FileGone
from registry.tokens import Unauthenticated

log = logging.getLogger("cairn.api")

MEDIA_TYPE: Final = "application/problem+json"
MAX_ERRORS: Final = 100
MAX_PATH: Final = 300  # characters of a path in a line of the log
CALLER: Final = "cairn.caller"  # where the scope of a request keeps the name of its token


class TooLarge(RegistryError):
    code = "body-too-large"
    title = "The body is too large"


class UnsupportedMedia(RegistryError):
    code = "unsupported-media-type"
    title = "The body is of another type"


class InvalidFields(Invalid):
    code = "invalid-fields"
    title = "Some fields cannot be accepted"


class DatabaseAway(Unavailable):
    code = "database-unavailable"
    title = "The database does not answer"


class TooManyRequests(RegistryError):
    code = "too-many-requests"
    title = "Too many requests"


# The first kind that an error is an instance of gives its status.
STATUS: Final[Sequence[tuple[type[RegistryError], int]]] = (
    (Unauthenticated, 401),
    (TooLarge, 413),
    (UnsupportedMedia, 415),
    (TooManyRequests, 429),
    (Malformed, 400),
    (Invalid, 422),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (Unavailable, 503),
)


def status_of(error: RegistryError | type[RegistryError]) -> int:
    kind = error if isinstance(error, type) else type(error)
    return next((status for known, status in STATUS if issubclass(kind, known)), 500)


def document(error: RegistryError) -> dict[str, Any]:
    """The members of a problem document."""
    body: dict[str, Any] = {
        "type": f"/problems/{error.code}",
        "title": error.title,
        "status": status_of(error),
        "detail": error.message,
    }
    if error.errors:
        body["errors"] = [{"pointer": each.pointer, "detail": each.message} for each in error.errors[:MAX_ERRORS]]
        if len(error.errors) > MAX_ERRORS:
            body["errors_left_out"] = len(error.errors) - MAX_ERRORS
    return body | error.extras


def problem_response(error: RegistryError) -> JSONResponse:
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
    return JSONResponse(document(error), status_of(error), headers, media_type=MEDIA_TYPE)


def note_refusal(scope: Scope, status: int, code: str) -> None:
    """One line of the log for a request that is refused: what, where and who. Never a query, a body or a token.

    Whoever looks for why a job's records do not arrive finds it here. The path is as it came, percent-encoded.
    """
    path = (scope.get("raw_path") or scope["path"].encode()).decode("ascii", "backslashreplace")
    caller = scope.get(CALLER)
    who = f", token {caller!r}" if caller else ""
    host = (scope.get("client") or ("?",))[0]
    level = logging.WARNING if status >= HTTPStatus.INTERNAL_SERVER_ERROR else logging.INFO
    log.log(level, "refused %d %s: %s %s%s, from %s", status, code, scope["method"], path[:MAX_PATH], who, host)


def refuse(scope: Scope, error: RegistryError) -> JSONResponse:
    """The answer to a request that fails with this error, and its line of the log."""
    note_refusal(scope, status_of(error), error.code)
    return problem_response(error)


def invalid_fields(
    errors: Sequence[ErrorDetails],
    value: Any = None,
    *,
    prefix: str = "",
    unknown: Callable[[str], str] | None = None,
) -> InvalidFields:
    """The validation library's errors about a value, with JSON pointers and in our words."""
    found = field_errors(errors, value, prefix=prefix, unknown=unknown)
    first = found[0]
    return InvalidFields(f"At {first.pointer[:200] or 'the top'}: {first.message}.", errors=found)


def translate(error: Exception) -> RegistryError | None:
    """A foreign error as one of ours; None where nobody expected it."""
    if isinstance(error, RegistryError):
        return error
    if isinstance(error, RequestValidationError):
        return invalid_fields(cast(Sequence[ErrorDetails], error.errors()))
    if isinstance(error, FileGone):
        return DatabaseAway(error.message)
    if isinstance(error, DBAPIError) and (damage := damage_of(error)):
        return DatabaseAway(f"The registry's database file is damaged: {damage}. On its host, {WAY_OUT}.")
    if isinstance(error, PoolTimeout | InterfaceError | OperationalError):
        return DatabaseAway("The registry's database does not answer. Nothing was changed; try again shortly.")
    if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError) and error.connection_invalidated:
        return DatabaseAway("The connection to the registry's database broke. Nothing was changed; try again shortly.")
    return None


def install(app: FastAPI) -> None:
    """Handle every error of the API, and of what is under no route."""

    def ours(request: Request, error: Exception) -> Response:
        known = translate(error)
        assert known is not None
        if isinstance(known, DatabaseAway):
            log.warning("database unavailable: %s", type(error).__name__)
        return refuse(request.scope, known)

    for kind in (RegistryError, RequestValidationError, PoolTimeout, OperationalError, InterfaceError):
        app.add_exception_handler(kind, ours)

    @app.exception_handler(DBAPIError)
    def database(request: Request, error: DBAPIError) -> Response:
        known = translate(error)
        if known is None:
            log.error("unexpected database error", exc_info=error)
            return unexpected(request.scope)
        log.error("database unavailable: %s", known.message)
        return refuse(request.scope, known)

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "-").replace("'", "")
        detail, headers = error.detail, dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_methods_at(request))
            detail = f"{request.method} is not possible there; possible: {headers['Allow']}."
        elif detail == phrase:
            detail = f"Nothing is at {request.url.path[:MAX_PATH]}."
        note_refusal(request.scope, error.status_code, code)
        body = {"type": f"/problems/{code}", "title": phrase, "status": error.status_code, "detail": detail}
        return JSONResponse(body, error.status_code, headers, media_type=MEDIA_TYPE)

    @app.exception_handler(Exception)
    def anything(request: Request, error: Exception) -> Response:
        return unexpected(request.scope)


def _methods_at(request: Request) -> list[str]:
    """The methods of every route of the path; the framework names those of the first one alone."""
    there = (route for route in request.app.router.routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in there for method in getattr(route, "methods", None) or ()})


def unexpected(scope: Scope) -> JSONResponse:
    note_refusal(scope, 500, "internal-error")
    body = {
        "type": "/problems/internal-error",
        "title": "The registry failed",
        "status": 500,
        "detail": "This is a fault of the registry; its log has the details. What it acknowledged before is kept.",
    }
    return JSONResponse(body, 500, media_type=MEDIA_TYPE)


RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status in (400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
}
