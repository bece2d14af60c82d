"""Whether the service lives, and whether it is ready. No token needed."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

import migrations
from api.deps import DatabaseDep
from api.problems import problem_response, translate
from registry.errors import Unavailable

router = APIRouter(tags=["health"])


class SchemaBehind(Unavailable):
    code = "schema-behind"
    title = "The database is at another schema"


@router.get("/health/live", include_in_schema=False)
def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "live"}


@router.get("/health/ready", include_in_schema=False)
def ready(database: DatabaseDep) -> Response:
    """The database answers and has the schema that this code was written for; else 503 with the reason."""
    try:
        revision = migrations.current_revision(database)
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        return problem_response(known)
    if revision != migrations.HEAD:
        message = f"The database is at schema {revision}, this service needs {migrations.HEAD}."
        return problem_response(SchemaBehind(f"{message} Run 'cairn-server migrate'."))
    return JSONResponse({"status": "ready", "schema": revision})
