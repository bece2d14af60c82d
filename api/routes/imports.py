"""Import eval result files."""

import inspect
from typing import Annotated

from fastapi import Depends, File, Form, Request, UploadFile
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import DatabaseDep, WriterDep
from api.problems import InvalidFields, UnsupportedMedia
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.imports import ImportOut
from registry.errors import FieldError, Invalid
from registry.evals.imports import Target, Upload, import_read, read_uploads
from registry.strict_json import escape
from registry.types import INT64_MAX

router = room("imports")

NameField = Annotated[str | None, Form(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+$")]


class TwoTargets(Invalid):
    code = "two-import-targets"
    title = "Which checkpoint the results belong to is said twice"


async def refuse_other_forms(request: Request) -> None:
    """Raises UnsupportedMedia for what is no form with files, and InvalidFields for a form field that is not known: a
    typo must not send results elsewhere."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("multipart/form-data", "application/x-www-form-urlencoded"):  # of the second, `file` is missing
        raise UnsupportedMedia(
            f"The body is {kind[:80] or 'of no type'!r}; expected multipart/form-data with one or more `file`, as "
            "`curl -F file=@results.json -F project=p -F run=r` or `cairn evals results.json` send it."
        )
    form = await request.form()
    known = set(inspect.signature(import_files).parameters) - {"database", "caller"}
    errors = [
        FieldError(f"/{escape(name)}", f"unknown form field; known here: {', '.join(sorted(known))}")
        for name in dict.fromkeys(form)
        if name not in known
    ]
    errors += [
        FieldError(f"/file/{at}", "expected a file: a part of the form with a file name")
        for at, each in enumerate(form.getlist("file"))
        if isinstance(each, str)
    ]
    if errors:
        raise InvalidFields(f"At {errors[0].pointer}: {errors[0].message}.", errors=errors)


@router.post("/imports", response_model=ImportOut, dependencies=[Depends(refuse_other_forms)])
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
            if (project, run, step) != (None, None, None):
                raise TwoTargets("Give either checkpoint_id, or project, run and step: they may name different ones.")
            _, number = own_checkpoint(session, checkpoint_id, caller)
        elif project is not None and caller.project_ids is not None:
            own_project(session, project, caller)
        reports = import_read(session, read, Target(number, project, run, step, model))
    return answer(ImportOut.from_reports(reports))
