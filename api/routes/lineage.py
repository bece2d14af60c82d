"""Lineage: which checkpoint came from which, and how."""

from starlette.responses import Response

from api.deps import CallerDep, SessionDep
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.lineage import LineageOut, lineage_json
from registry import lineage
from registry.checkpoints.identities import list_identities

router = room("lineage")


@router.get("/checkpoints/{checkpoint_id}/lineage", response_model=LineageOut)
def get_lineage(checkpoint_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """Ancestors and descendants, nearest first, over recorded edges and over what attempts loaded."""
    project_id, number = own_checkpoint(session, checkpoint_id, caller)
    up, down = lineage.rows_around(session, project_id, number)
    ids = {number, *(end for child, parent, _ in (*up, *down) for end in (child, parent))}
    return Response(lineage_json(number, up, down, list_identities(session, ids)), media_type="application/json")
