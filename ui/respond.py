"""Answers to a browser: a rendered page with its headers. Nothing from another host, no inline script or style."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse

from registry.db import now
from registry.tokens import Caller
from ui.assets import asset_url
from ui.contexts import Shell
from ui.render import render

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Kept only for going back: what it shows may have changed, and belongs to whoever is signed in.
    "Cache-Control": "private, no-cache",
}


@dataclass(frozen=True)
class Viewer:
    """Who looks: the caller behind the session cookie, and the token that each of its forms carries."""

    caller: Caller
    csrf: str
    notices: tuple[str, ...] = ()  # parameters of the address that the page does not have


def show(
    template: str,
    page: Any,
    *,
    title: str,
    section: str = "",
    viewer: Viewer | None = None,
    csrf: str = "",
    notices: Iterable[str] = (),
    status: int = 200,
) -> HTMLResponse:
    """A whole page; `page` is the template's own context, `notices` what of the address was not understood."""
    shell = Shell(
        title=title,
        section=section,
        signed_in_as=viewer.caller.name if viewer else None,
        csrf=viewer.csrf if viewer else csrf,
        stylesheet=asset_url("cairn.css"),
        script=asset_url("cairn.js"),
        icon=asset_url("icon.svg"),
        now=now(),
        notices=(*(viewer.notices if viewer else ()), *notices),
    )
    return HTMLResponse(render(template, shell, page), status_code=status, headers=HEADERS)


def go_to(path: str) -> RedirectResponse:
    """On to another page with GET, so that going back and reloading repeat nothing."""
    return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})
