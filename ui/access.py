"""Who looks at a page: the session cookie, and the check that a form came from one of our own pages."""

from typing import Annotated

from fastapi import Depends, Form, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session

from api.deps import SESSION_COOKIE, SessionDep, WriteSessionDep
from api.problems import CALLER
from registry import tokens
from registry.errors import Forbidden
from registry.tokens import Caller
from registry.types import Scope
from ui import filters
from ui.respond import Viewer


class FormNotOurs(Forbidden):
    code = "form-not-ours"
    title = "This form is not from this session"


def unknown_parameters(request: Request) -> tuple[str, ...]:
    """A notice for each parameter of the address that the page does not have: it was left out, and that is said."""
    route = request.scope.get("route")
    known = _parameters(route.dependant) if isinstance(route, APIRoute) else set(request.query_params)
    return tuple(
        f"This page has no parameter ‘{filters.middle(name, 40)}’: it was left out."
        for name in dict.fromkeys(request.query_params)
        if name not in known
    )


def _parameters(dependant: Dependant) -> set[str]:
    nested = (_parameters(each) for each in dependant.dependencies)
    return {each.alias for each in dependant.query_params}.union(*nested)


def viewer_of(request: Request, session: Session) -> Viewer:
    """Raises Unauthenticated, which leads a browser to the sign-in page."""
    cookie = request.cookies.get(SESSION_COOKIE, "")
    caller = tokens.authenticate_cookie(session, cookie)
    request.scope[CALLER] = caller.name
    viewer = Viewer(caller, tokens.csrf_token(cookie), unknown_parameters(request))
    request.state.viewer = viewer  # a problem page keeps the frame of whoever is signed in
    return viewer


def get_viewer(request: Request, session: SessionDep) -> Viewer:
    viewer = viewer_of(request, session)
    viewer.caller.require(Scope.READ)
    return viewer


ViewerDep = Annotated[Viewer, Depends(get_viewer)]


def check_csrf(cookie: str, given: str) -> None:
    """Raises FormNotOurs where a form carries another token than the cookie's."""
    if not cookie or not tokens.is_csrf_token(cookie, given):
        raise FormNotOurs(
            "The form was filled in under another session, or did not come from these pages. Nothing was changed; "
            "load the page again and send it once more."
        )


def get_form_viewer(request: Request, session: WriteSessionDep, csrf: Annotated[str, Form()] = "") -> Viewer:
    """For forms that change something, in the session that will. Raises Unauthenticated, FormNotOurs."""
    viewer = viewer_of(request, session)
    check_csrf(request.cookies.get(SESSION_COOKIE, ""), csrf)
    return viewer


FormViewerDep = Annotated[Viewer, Depends(get_form_viewer)]


def may_write(caller: Caller) -> bool:
    """Whether a page offers what changes something."""
    try:
        caller.require(Scope.WRITE)
    except Forbidden:
        return False
    return True
