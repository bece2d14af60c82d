"""The application: routes, pages, problem handlers."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute

from api import limits, openapi, problems
from api.callers import RecentCallers
from api.deps import CallerDep
from api.later import LaterRoutes
from api.measuring import Measured, Requests
from api.room import PREFIX
from api.routes import aliases, checkpoints, health, incidents, jobs, runs, storage, trackers
from registry.config import Settings
from registry.db import Database
from ui import pages

VERSION = "0.1.0"
DESCRIPTION = """A checkpoint registry linked to experiment tracking.

Ids are opaque strings. Times are ISO 8601 in UTC, sizes bytes, durations seconds. Non-finite numbers travel as the
strings "NaN", "Infinity", "-Infinity". Errors are RFC 9457 problems. Unknown fields are refused.
"""


def routes_of_records() -> list[BaseRoute]:
    """What training jobs and orchestrators call: there from the first moment."""
    rooms = (runs, checkpoints, aliases, incidents, storage, trackers, jobs, health)
    return [route for room in rooms for route in room.router.routes]


def routes_of_decisions() -> list[BaseRoute]:
    """What weighs evidence, and the pages. numpy, statistics and templates are half of what there is to load."""
    from api.routes import (
        benchmarks,
        bisects,
        decisions,
        drills,
        imports,
        lineage,
        provenance,
        records,
        recovery,
        watches,
    )

    rooms = (imports, decisions, benchmarks, recovery, drills, lineage, bisects, provenance, records, watches)
    return [*(route for room in rooms for route in room.router.routes), *pages.routes()]


def keep_decision(*asked: Any) -> int:
    """Pages keep answers through the routes' own questions."""
    from api.routes import records

    return records.keep(*asked)


def description_of(app: FastAPI) -> Callable[[CallerDep], JSONResponse]:
    """The route that answers the OpenAPI description, to whoever has a token."""

    def describe(caller: CallerDep) -> JSONResponse:
        return JSONResponse(app.openapi())

    return describe


def create_app(settings: Settings, database: Database | None = None) -> FastAPI:
    """The service over a database that is at the newest schema."""
    app = FastAPI(
        title="Cairn",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.settings = settings
    app.state.keep_decision = keep_decision
    app.state.database = database or Database(settings.database_url)
    app.state.callers = RecentCallers()
    app.state.requests = Requests()
    problems.install(app)
    pages.install_problems(app)
    later = LaterRoutes(app, routes_of_decisions)
    app.router.routes.extend(routes_of_records())
    app.add_api_route(f"{PREFIX}/openapi.json", description_of(app), include_in_schema=False)
    app.router.routes.append(later)
    app.state.later = later
    app.add_middleware(limits.BodyLimit, limit=settings.max_body_bytes)
    app.add_middleware(Measured, requests=app.state.requests)
    app.openapi = lambda: openapi.describe(app, later)  # type: ignore[method-assign]
    return app
