"""The web pages, which an application mounts behind the API's routes."""

from fastapi import FastAPI
from starlette.routing import BaseRoute

from ui import problems


def install_problems(app: FastAPI) -> None:
    """Problems as pages for browsers, after the API's own problem handlers."""
    problems.install(app)


def routes() -> list[BaseRoute]:
    """Every page and the static files. They are imported here: whoever serves decides when."""
    from ui import assets
    from ui.pages import (
        aliases,
        benchmarks,
        bisect,
        checkpoint,
        compare,
        find,
        findings,
        incidents,
        jobs,
        login,
        problem_kinds,
        provenance,
        records,
        rollback,
        run,
        runs,
        trackers,
    )

    rooms = (
        login,
        runs,
        run,
        checkpoint,
        find,
        compare,
        rollback,
        benchmarks,
        findings,
        aliases,
        incidents,
        trackers,
        jobs,
        problem_kinds,
        bisect,
        provenance,
        records,
        assets,
    )
    return [route for room in rooms for route in room.router.routes]
