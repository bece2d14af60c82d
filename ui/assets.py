"""Static files under a name that holds their content's hash, so that a browser may keep them for ever."""

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, HTTPException, Response

FOLDER = Path(__file__).parent / "static"
TYPES = {"cairn.css": "text/css", "cairn.js": "text/javascript", "icon.svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@cache
def content(name: str) -> tuple[str, bytes]:
    """(hash, bytes) of one of our files, read once a process."""
    body = (FOLDER / name).read_bytes()
    return hashlib.sha256(body).hexdigest()[:16], body


def asset_url(name: str) -> str:
    return f"/static/{content(name)[0]}/{name}"


@router.get("/static/{digest}/{name}")
def asset(digest: str, name: str) -> Response:
    """One file. A page from before an upgrade gets the newer file, for this time only."""
    if name not in TYPES:
        raise HTTPException(404)
    current, body = content(name)
    lasting = "public, max-age=31536000, immutable" if digest == current else "no-store"
    headers = {"Cache-Control": lasting, "X-Content-Type-Options": "nosniff"}
    return Response(body, media_type=f"{TYPES[name]}; charset=utf-8", headers=headers)


@router.get("/favicon.ico")
def favicon() -> Response:
    """Asked for by browsers whatever the page says."""
    return asset(content("icon.svg")[0], "icon.svg")
