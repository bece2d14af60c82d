"""The benchmark table of a project: what its benchmarks measure, and how their figures read."""

from typing import Annotated, Literal

from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep, json_body
from api.paging import one_page, text_after
from api.room import room
from api.schemas.benchmarks import BenchmarkEntryOut, BenchmarkIn, BenchmarkPage
from registry.errors import Malformed
from registry.evals.table import editing, listing

router = room("benchmarks")

MAX_NAME = 512


class NameTooLong(Malformed):
    code = "benchmark-name"
    title = "That cannot be the name of a benchmark"


@router.get("/projects/{project}/benchmarks", response_model=BenchmarkPage)
def list_benchmarks(
    project: str,
    session: SessionDep,
    caller: CallerDep,
    only: Literal["all", "occurring", "unmapped"] = "all",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """The benchmarks by name: the shipped table with what the project says instead, and what occurs beside it.

    `only=unmapped`: those with results that no capability claims, each with a proposal where there is one.
    """
    own = own_project(session, project, caller)
    query = ("benchmarks", own.id, only, caller.token_id)
    found = listing.list_benchmarks(session, own.id, after=text_after(cursor, *query), limit=limit + 1, only=only)
    rows, more = one_page(found, limit, lambda row: [row.name], *query)
    items = [BenchmarkEntryOut.from_entry(row) for row in rows]
    return answer(BenchmarkPage.model_construct(items=items, next_cursor=more))


@router.get("/projects/{project}/benchmarks/{name:path}", response_model=BenchmarkEntryOut)
def get_benchmark(project: str, name: str, session: SessionDep, caller: CallerDep) -> Response:
    """One benchmark, by its name in the table or as results wrote it."""
    return _entry(session, own_project(session, project, caller).id, name)


@router.put("/projects/{project}/benchmarks/{name:path}", response_model=BenchmarkEntryOut)
def put_benchmark(
    project: str,
    name: str,
    body: Annotated[BenchmarkIn, json_body(BenchmarkIn)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Say what a benchmark is in this project. What is left out, the shipped table says again.

    It counts from the next answer on: in searches, profiles, filters, rollbacks and comparisons.
    """
    own = own_project(session, project, caller)
    editing.put_benchmark(session, own.id, _named(name), body.model_dump(), actor=caller.name)
    session.flush()
    return _entry(session, own.id, name)


@router.patch("/projects/{project}/benchmarks/{name:path}", response_model=BenchmarkEntryOut)
def patch_benchmark(
    project: str,
    name: str,
    body: Annotated[BenchmarkIn, json_body(BenchmarkIn)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Change some of what a project says of a benchmark: null takes back what was said, what is left out stays."""
    own = own_project(session, project, caller)
    said = body.model_dump(include=body.model_fields_set)
    editing.patch_benchmark(session, own.id, _named(name), said, actor=caller.name)
    session.flush()
    return _entry(session, own.id, name)


def _named(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME or any(ord(letter) < 32 or letter == "\x7f" for letter in name):
        raise NameTooLong(f"A name has 1 to {MAX_NAME} visible characters.")
    return name


def _entry(session: Session, project_id: int, name: str) -> Response:
    return answer(BenchmarkEntryOut.from_entry(listing.get_benchmark(session, project_id, name)))
