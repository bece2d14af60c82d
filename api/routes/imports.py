"""Import eval result files."""

from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile
from starlette.responses import Response

from api.answers import answer
from api.deps import DatabaseDep, WriterDep
from api.routes.checkpoints import own_checkpoint
from api.schemas.imports import ImportOut
from registry.evals.imports import Target, Upload, import_read, read_uploads
from registry.projects import ProjectNotFound, find_project
from registry.types import INT64_MAX

router = APIRouter(tags=["imports"])

NameField = Annotated[str | None, Form(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+$")]


@router.post("/imports", response_model=ImportOut)
def import_files(
    database: DatabaseDep,
    caller: WriterDep,
    file: Annotated[list[UploadFile], File()],
    format: Annotated[str, Form(max_length=64)] = "auto",
    checkpoint_id: Annotated[str | None, Form(max_length=64)] = None,
    project: Annotated[str | None, Form(pattern=r"^[A-Za-z0-9._-]{1,128}$")] = None,
    run: NameField = None,
    step: Annotated[int | None, Form(ge=0, le=INT64_MAX)] = None,
    model: NameField = None,
) -> Response:
    """Import result files, into `checkpoint_id` or into the checkpoints at project, run and step.

    The format is found by content. A file is imported whole or not at all; `skipped` says what was left out and why.
    Without a step, each file's own counts, and a file of several steps (a trainer_state.json, a table) goes to the
    checkpoint of each. With a step or a checkpoint, only that one's scores are taken from a file of several. `model`
    picks one of the models of a file that holds several. Files of one HELM run are read together: give them names
    with their folder.
    """
    uploads = [Upload(each.filename or f"file {at}", each.file.read()) for at, each in enumerate(file)]
    read = read_uploads(uploads, format=format)
    # Opened here, not by a dependency: on SQLite others would wait for the write while the files are parsed.
    with database.write() as session:
        number = None
        if checkpoint_id is not None:
            _, number = own_checkpoint(session, checkpoint_id, caller)
        elif project is not None and caller.project_ids is not None:
            try:
                caller.require_project(find_project(session, project).id)
            except ProjectNotFound:
                caller.require_every_project()
        reports = import_read(session, read, Target(number, project, run, step, model))
    return answer(ImportOut.from_reports(reports))
