"""Whether the service lives, is ready, and is the one that it should be: no token needed. Its figures need one."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

import migrations
from api.deps import CallerDep, DatabaseDep, SettingsDep
from api.measuring import Answered, exposition
from api.problems import problem_response, translate
from registry import tokens
from registry.db import Database
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


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request, caller: CallerDep, database: DatabaseDep) -> Response:
    """Figures for Prometheus: of the registry at this moment, and of what this process has answered.

    With a token of scope read that is bound to no project, as `authorization: {credentials_file: …}` of a scrape.
    """
    if caller.project_ids is not None:
        raise tokens.ProjectForbidden(f"Token {caller.name!r} is bound to projects; figures are of all of them.")
    answered = request.app.state.requests.copy()
    body = await run_in_threadpool(_figures, database, answered, request.app.version)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


def _figures(database: Database, answered: Answered, version: str) -> bytes:
    from registry.health.figures import read_figures

    with database.read() as session:
        return exposition(read_figures(session), answered, version)
