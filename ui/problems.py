"""The API's problem documents as pages, for browsers outside /api: same status, same words, and a way on."""

import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from registry.errors import RegistryError
from ui.contexts import Fact, Link
from ui.contexts.problems import ProblemContext
from ui.filters import middle
from ui.links import address

if TYPE_CHECKING:
    from ui.respond import Viewer

# Paths that answer programs, whatever they accept.
PROGRAMS = ("/api/", "/health/", "/metrics", "/static/")
KEPT = {
    4: "Nothing was changed.",
    5: "Nothing that was acknowledged is lost. Training clients keep what they could not send, and send it again.",
}

# The list in which what was not found would be.
LISTS = {
    "checkpoint": Link("Find a checkpoint", "/find"),
    "alias": Link("All aliases", "/aliases"),
    "incident": Link("All interruptions", "/incidents"),
    "finding": Link("All findings", "/findings"),
    "watch": Link("All watches", "/findings#watches"),
    "job": Link("All jobs", "/jobs"),
    "bisect": Link("Compare two checkpoints", "/compare"),
    "decision": Link("All records of decisions", "/decisions"),
    "benchmark": Link("All benchmarks", "/benchmarks"),
}
NO_PAGE = "not-found"  # an address that no route has; every other code names what was not found
SECTIONS = (
    *("runs", "find", "compare", "rollback", "findings", "incidents", "aliases", "decisions", "benchmarks", "jobs"),
    *("checkpoints", "problems", "bisects"),
)
ANOTHER_TOKEN = ("scope-missing", "project-forbidden")
# What to do next, where the message of a program leaves a person without.
ADVICE = {
    "scope-missing": "An administrator makes another token with ‘cairn-server token create NAME --scope write’.",
    "project-forbidden": "Look at a project of its own, or ask an administrator for a token that may see this one.",
    "database-unavailable": "Wait a moment and try again. If it stays so, ask whoever runs the server to look at the "
    "database with ‘cairn-server doctor’.",
}


def wants_page(request: Request) -> bool:
    """Whether a person asks: a browser names text/html first of all."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(PROGRAMS)


def install(app: FastAPI) -> None:
    """Let every handler that is installed by now answer browsers with a page."""
    for kind, handler in list(app.exception_handlers.items()):
        if iscoroutinefunction(handler):  # of the framework, for web sockets: there are none
            continue
        app.exception_handlers[kind] = _as_page(handler)


def _as_page(handler: Callable[..., Any]) -> Callable[[Request, Exception], Response]:
    def handle(request: Request, error: Exception) -> Response:
        response: Response = handler(request, error)
        if not wants_page(request):
            return response
        return problem_page(request, response)

    return handle


def problem_page(request: Request, response: Response) -> Response:
    """The page of a problem document. Who is not signed in is led to where that can be done."""
    from ui.respond import go_to, show  # templates: a start does not wait for them
    from ui.words import for_people

    document = json.loads(bytes(response.body))
    if response.status_code == HTTPStatus.UNAUTHORIZED and request.method == "GET":
        query = f"?{request.url.query}" if request.url.query else ""
        return go_to(address("/login", next=f"{request.url.path}{query}"))
    code = document["type"].rpartition("/")[2]
    if code == NO_PAGE:
        context = _no_page(request.url.path)
    else:
        context = ProblemContext(
            status=response.status_code,
            title=document["title"],
            message=f"{for_people(code, _in_address(str(document.get('detail', ''))))} {ADVICE.get(code, '')}".strip(),
            code=code,
            errors=tuple(Fact(_named(each["pointer"]), each["detail"]) for each in document.get("errors", ())),
            kept=KEPT.get(response.status_code // 100, ""),
            ways=(_next_step(response.status_code, code, request),),
        )
    viewer = _signed_in(request) if code == NO_PAGE else getattr(request.state, "viewer", None)
    page = show("problem.html", context, title=context.title, viewer=viewer, status=response.status_code)
    for name in ("retry-after", "www-authenticate"):
        if name in response.headers:
            page.headers[name] = response.headers[name]
    return page


def _no_page(path: str) -> ProblemContext:
    """What was looked for, the address that it is most like, and where everything begins."""
    first, slash, rest = path.lstrip("/").partition("/")
    near = [name for name in get_close_matches(first.lower(), SECTIONS, n=1, cutoff=0.7) if name != first]
    meant = [Link(f"Did you mean {middle(f'/{name}{slash}{rest}', 80)}?", f"/{name}{slash}{rest}") for name in near]
    return ProblemContext(
        status=HTTPStatus.NOT_FOUND.value,
        title=f"There is no page at ‘{middle(path, 80)}’.",
        message="The address was cut or typed wrongly, or what it led to is gone. Nothing was changed.",
        code="",
        errors=(),
        kept="",
        ways=(*meant, Link("All runs", "/runs"), LISTS["checkpoint"]),
    )


def _signed_in(request: Request) -> "Viewer | None":
    """Whoever looks, where no route asked: the page keeps the frame with the ways on."""
    from ui.access import viewer_of

    try:
        with request.app.state.database.read() as session:
            return viewer_of(request, session)
    except (RegistryError, SQLAlchemyError):
        return None


def _named(pointer: str) -> str:
    """The parameter of an address or the field of a form, without the place that a program would look in."""
    return re.sub(r"^/(?:(?:query|body|path)/)?", "", pointer) or "the whole"


def _in_address(text: str) -> str:
    return re.sub(r"^At /(?:(?:query|body|path)/)?([^:]+):", r"\1:", text)


def _next_step(status: int, code: str, request: Request) -> Link:
    if status == HTTPStatus.UNAUTHORIZED:
        return Link("Sign in", "/login")
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return Link("Try again", f"{request.url.path}?{request.url.query}".rstrip("?"))
    if code in ANOTHER_TOKEN:
        return Link("Sign in with another token", address("/login", next=request.url.path))
    return LISTS.get(code.removesuffix("-not-found"), Link("All runs", "/runs"))
