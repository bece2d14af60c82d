"""The application: routes, pages, problem handlers."""

from collections.abc import Callable

from fastapi import Depends, FastAPI
from starlette.responses import JSONResponse

from api import limits, openapi, problems
from api.deps import CallerDep, get_caller, refuse_unknown_query
from api.routes import (
    aliases,
    benchmarks,
    bisects,
    checkpoints,
    decisions,
    health,
    imports,
    incidents,
    jobs,
    lineage,
    provenance,
    records,
    recovery,
    runs,
    storage,
    trackers,
    watches,
)
from registry.config import Settings
from registry.db import Database
from ui.pages import mount_pages

VERSION = "0.1.0"
PREFIX = "/api/v1"
ROUTERS = [
    room.router
    for room in (
        runs,
        checkpoints,
        lineage,
        imports,
        decisions,
        benchmarks,
        aliases,
        incidents,
        recovery,
        storage,
        trackers,
        jobs,
        bisects,
        provenance,
        records,
        watches,
    )
]
DESCRIPTION = """A checkpoint registry linked to experiment tracking.

Ids are opaque strings. Times are ISO 8601 in UTC, sizes bytes, durations seconds. Non-finite numbers travel as the
strings "NaN", "Infinity", "-Infinity". Errors are RFC 9457 problems. Unknown fields are refused.
"""


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
    app.state.keep_decision = records.keep  # pages keep answers through the routes' own questions
    app.state.database = database or Database(settings.database_url)
    problems.install(app)
    for router in ROUTERS:  # the caller is known before a byte of the body is read
        checks = [Depends(get_caller), Depends(refuse_unknown_query)]
        app.include_router(router, prefix=PREFIX, responses=problems.RESPONSES, dependencies=checks)
    app.add_api_route(f"{PREFIX}/openapi.json", description_of(app), include_in_schema=False)
    app.include_router(health.router)
    mount_pages(app)
    app.add_middleware(limits.BodyLimit, limit=settings.max_body_bytes)
    app.openapi = lambda: openapi.describe(app, ROUTERS, PREFIX)  # type: ignore[method-assign]
    return app
