"""Signing in by the printed link or a pasted token, and signing out."""

import secrets
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from api.deps import SESSION_COOKIE, SettingsDep, WriteSessionDep
from registry import tokens
from registry.config import Settings
from registry.tokens import SESSION_LIFETIME, Unauthenticated
from ui.access import FormViewerDep, check_csrf, viewer_of
from ui.contexts.problems import LoginContext
from ui.links import local_path
from ui.respond import go_to, show

router = APIRouter(include_in_schema=False)

# A form that is filled in before there is a session has a cookie of its own to be checked against.
FORM_COOKIE = "cairn_login"


@router.get("/login")
def login_page(
    request: Request, session: WriteSessionDep, settings: SettingsDep, code: str = "", next: str = ""
) -> Response:
    """With a code: signs in and goes on. Without: asks for a token. Who is signed in already goes on."""
    try:
        if code:
            return _signed_in(request, settings, tokens.redeem_login_code(session, code), local_path(next))
    except Unauthenticated as error:
        problem = error.message
    else:
        problem = ""
    try:
        viewer_of(request, session)
    except Unauthenticated:
        return _form(request, settings, next, problem, status=401 if problem else 200)
    return go_to(local_path(next))


@router.post("/login")
def login(
    request: Request,
    session: WriteSessionDep,
    settings: SettingsDep,
    token: Annotated[str, Form()] = "",
    csrf: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "",
) -> Response:
    """A session for a pasted token."""
    check_csrf(request.cookies.get(FORM_COOKIE, ""), csrf)
    try:
        cookie = tokens.open_web_session(session, token)
    except Unauthenticated:
        problem = "No token like that is valid here. It starts with cairn_ and is 49 characters long."
        return _form(request, settings, next, problem, status=401)
    return _signed_in(request, settings, cookie, local_path(next))


@router.post("/logout")
def logout(request: Request, session: WriteSessionDep, viewer: FormViewerDep) -> RedirectResponse:
    """Ends this browser's session; the token itself stays valid."""
    tokens.close_web_session(session, request.cookies.get(SESSION_COOKIE, ""))
    response = go_to("/login")
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


def _signed_in(request: Request, settings: Settings, cookie: str, path: str) -> RedirectResponse:
    """Lax, not strict: a link to a page from a chat or a tracker should find its reader signed in."""
    response = go_to(path)
    lifetime = int(SESSION_LIFETIME.total_seconds())
    response.set_cookie(
        SESSION_COOKIE, cookie, max_age=lifetime, httponly=True, samesite="lax", secure=_secure(request, settings)
    )
    return response


def _form(request: Request, settings: Settings, next: str, problem: str, *, status: int) -> Response:
    known = request.cookies.get(FORM_COOKIE, "")
    cookie = known or secrets.token_urlsafe(32)
    page = LoginContext(next=local_path(next), problem=problem)
    response = show("login.html", page, title="Sign in", csrf=tokens.csrf_token(cookie), status=status)
    if not known:
        response.set_cookie(
            FORM_COOKIE, cookie, httponly=True, samesite="strict", path="/login", secure=_secure(request, settings)
        )
    return response


def _secure(request: Request, settings: Settings) -> bool:
    return request.url.scheme == "https" or settings.base_url.startswith("https://")
