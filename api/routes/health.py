"""Whether the service lives, whether it is ready, and whether it is the one that it should be. No token needed."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

import migrations
from api.deps import DatabaseDep, SettingsDep
from api.problems import problem_response, translate
from registry import tokens
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


@router.get("/health/identity", include_in_schema=False)
async def identity(
    request: Request, settings: SettingsDep, nonce: Annotated[str, Query(pattern="^[0-9a-f]{32,128}$")]
) -> Response:
    """Proof for a client on this machine that this is the service of its CAIRN_HOME, before it sends the token."""
    # Here and not in a thread: clients wait for it on every new connection, and the file has one line.
    host, port = request.scope["server"]  # where this connection ends, not where the caller says it went
    return JSONResponse({"proof": tokens.identity_proof(settings.admin_token_file, f"{host}:{port}", nonce)})
