"""What lies where: bytes by run, tier and state, and the files of a copy."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import CallerDep, SessionDep, WriterDep, WriteSessionDep
from api.room import room
from api.schemas.common import NO_NUL
from api.schemas.storage import ManifestOut, StorageUsageOut
from registry import ids, runs
from registry.runs import RunNotFound
from registry.storage.files import ReplicaNotFound, project_of_replica, read_manifest
from registry.storage.removal import note_gone
from registry.storage.usage import storage_usage

router = room("storage")

NameQuery = Annotated[str, Query(max_length=512, pattern=NO_NUL)]


@router.get("/storage/usage", response_model=StorageUsageOut)
def get_usage(
    session: SessionDep,
    caller: CallerDep,
    project: NameQuery | None = None,
    run_id: NameQuery | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> Response:
    """Bytes by run, tier and state of the checkpoints, superseded and pending ones apart; of a project, or of a run."""
    project_ids = caller.project_ids
    number = None
    if project is not None:
        project_ids = frozenset({own_project(session, project, caller).id})
    if run_id is not None:
        run = runs.get_brief(session, ids.id_or(run_id, RunNotFound))
        caller.require_project(run.project_id)
        number = run.id
        project_ids = project_ids if project is not None else frozenset({run.project_id})
    return answer(StorageUsageOut.from_rows(storage_usage(session, project_ids=project_ids, run_id=number), limit))


@router.get("/replicas/{replica_id}/manifest", response_model=ManifestOut)
def get_manifest(replica_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """The files of a copy with their sizes and digests, where it was recorded with them."""
    number = ids.id_or(replica_id, ReplicaNotFound)
    project_id = project_of_replica(session, number)
    caller.require_project(project_id)
    return answer(ManifestOut.from_row(read_manifest(session, project_id, number)))


@router.post("/replicas/{replica_id}/gone", status_code=204)
def say_gone(replica_id: str, session: WriteSessionDep, caller: WriterDep) -> Response:
    """Say that somebody removed this copy. Its record stays; trackers are told. Said again it changes nothing."""
    number = ids.id_or(replica_id, ReplicaNotFound)
    caller.require_project(project_of_replica(session, number))
    note_gone(session, number, actor=caller.name)
    return Response(status_code=204)
