"""The real application over the database of a test."""

import copy
import functools
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import State

from api.main import create_app
from registry.config import Settings
from registry.db import Database


def application(database: Database, settings: Settings) -> FastAPI:
    """A copy of the one application of the process, with a state of its own.

    An application that was built and has answered is never freed, nor is what its database keeps; a copy is. Routes,
    middleware and the description (0.7 s) are made once for all copies.
    """
    app = copy.copy(_whole(settings.max_body_bytes))
    app.state = State({**app.state._state, "settings": settings, "database": database})
    return app


@functools.cache
def _whole(max_body_bytes: int) -> FastAPI:
    """With what is built of its settings; its own database is never opened."""
    app = create_app(Settings(Path(), "sqlite:///never-opened.db", max_body_bytes=max_body_bytes))
    app.middleware_stack = app.build_middleware_stack()
    return app
