"""What routes and pages ask for: a session, a caller, a validated body.

The request's session is a `yield` dependency of function scope: it commits before the reply is sent, so that a
commit that fails is never answered with 201.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, Final, get_args, get_origin

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.orm import Session

from api.callers import RecentCallers
from api.problems import CALLER, InvalidFields, UnsupportedMedia, invalid_fields
from api.schemas.common import Patch
from api.unknown_fields import said_of
from registry import strict_json, tokens
from registry.config import Settings
from registry.db import Database
from registry.errors import FieldError
from registry.strict_json import escape
from registry.tokens import Caller
from registry.types import Scope

SMALL_BODY: Final = 65_536  # bytes that are read faster than they are handed to another thread
SESSION_COOKIE = "cairn_session"
Limit = Annotated[int, Query(ge=1, le=1_000)]
AnyLimit = Annotated[int | None, Query(ge=1, le=1_000)]  # of a list that comes whole where no limit is asked
Cursor = Annotated[str | None, Query(max_length=32_000)]


async def get_database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


DatabaseDep = Annotated[Database, Depends(get_database)]
SettingsDep = Annotated[Settings, Depends(get_settings)]


# The dependencies of every call ask the application themselves: each further node costs a request 0.1 ms.
async def read_session(request: Request) -> AsyncIterator[Session]:
    session = request.app.state.database.open_read()
    try:
        yield session
    finally:
        await _finish(session.close)


async def write_session(request: Request) -> AsyncIterator[Session]:
    session = request.app.state.database.open_write()
    try:
        yield session
    except BaseException:
        await _finish(session.close)
        raise
    if session.in_transaction():  # else the route committed in its own thread, and the session holds no connection
        await _finish(partial(_commit, session))


def _commit(session: Session) -> None:
    with session:
        session.commit()


async def _finish(work: Callable[[], None]) -> None:
    """End a session in a thread of its own kind.

    Requests that wait for the one connection that writes may hold every ordinary thread; the one that has it must
    still be able to give it back.
    """
    await to_thread.run_sync(work, limiter=_finishers())


@lru_cache(maxsize=1)
def _finishers() -> CapacityLimiter:
    return CapacityLimiter(16)


# SessionDep reads; WriteSessionDep commits when the route ends well.
SessionDep = Annotated[Session, Depends(read_session, scope="function")]
WriteSessionDep = Annotated[Session, Depends(write_session, scope="function")]


def bearer(request: Request) -> str | None:
    """The token of the Authorization header; None where there is none."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() or None if scheme.lower() == "bearer" else None


async def get_caller(request: Request) -> Caller:
    """Whoever's token the request carries. Raises Unauthenticated."""
    secret: str = bearer(request) or ""
    recent: RecentCallers = request.app.state.callers
    known = recent.get(secret)
    if known is None:
        known = await run_in_threadpool(_authenticate, request.app.state.database, secret)
        recent.put(secret, known)
    request.scope[CALLER] = known.name
    return known


def _authenticate(database: Database, secret: str) -> Caller:
    with database.read() as session:
        return tokens.authenticate(session, secret)


def caller_with(scope: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    async def check(caller: Annotated[Caller, Depends(get_caller)]) -> Caller:
        caller.require(scope)
        return caller

    return check


CallerDep = Annotated[Caller, Depends(caller_with(Scope.READ))]
WriterDep = Annotated[Caller, Depends(caller_with(Scope.WRITE))]
AdminDep = Annotated[Caller, Depends(caller_with(Scope.ADMIN))]


async def refuse_unknown_query(request: Request) -> None:
    """Raises InvalidFields for a query parameter that the route does not have, and for one that is given twice where
    one counts: neither a typo nor a second filter may widen an answer."""
    if not request.query_params:
        return
    several = dict(_queried(request.scope["route"].dependant))
    given = Counter(name for name, _ in request.query_params.multi_items())
    errors = [
        FieldError(f"/query/{escape(name)}", message)
        for name, count in given.items()
        if (message := _refusal(name, count, several))
    ]
    if errors:
        raise InvalidFields(f"At {errors[0].pointer}: {errors[0].message}.", errors=errors)


def _queried(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Each query parameter of a route, and whether it takes several values."""
    for field in dependant.query_params:
        annotation = field.field_info.annotation
        yield field.alias, any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
    for each in dependant.dependencies:
        yield from _queried(each)


def _refusal(name: str, count: int, several: Mapping[str, bool]) -> str | None:
    if name not in several:
        known = f"known here: {', '.join(sorted(several))}" if several else "this takes none"
        return f"unknown query parameter; {known}"
    return None if count == 1 or several[name] else f"given {count} times; expected once"


async def raw_body(request: Request) -> bytes:
    """The body; api.limits stops reading where it becomes too large."""
    return await request.body()


RawBody = Annotated[bytes, Depends(raw_body)]


def refuse_compressed(request: Request) -> None:
    """Raises UnsupportedMedia."""
    if "content-encoding" in request.headers:
        raise UnsupportedMedia("The body is compressed; send it as it is.")


def json_body(model: Any, *, optional: bool = False) -> Any:
    """A dependency that reads a JSON body strictly into `model`: `body: Annotated[RunIn, json_body(RunIn)]`.

    The text is read once by `strict_json` (duplicate keys, bare NaN, 1e999 and half surrogates are refused with
    their place, numbers keep their text), then validated strictly: `true` is no number, "1" is no integer.
    `optional`: no body at all is an empty object.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    fixed = model.fixed() if isinstance(model, type) and issubclass(model, Patch) else ()

    async def read(request: Request) -> Any:
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if not (kind == "application/json" or kind.endswith("+json")):
            raise UnsupportedMedia(f"The body is {kind[:80]!r}; expected application/json.")
        refuse_compressed(request)
        raw = await request.body()
        if optional and not raw:
            return parse(b"{}")
        if len(raw) <= SMALL_BODY:
            return parse(raw)
        return await run_in_threadpool(parse, raw)

    def parse(raw: bytes) -> Any:
        return validate(adapter, strict_json.loads(raw), fixed=fixed)

    read.__dict__["body_models"] = {"application/json": model}  # api.openapi describes the body from it
    return Depends(read)


def validate(adapter: TypeAdapter[Any], value: Any, *, prefix: str = "", fixed: Collection[str] = ()) -> Any:
    """Raises InvalidFields with a JSON pointer for each refused value. `fixed`: fields that exist and never change."""
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError as error:
        told = partial(said_of, adapter, fixed=fixed)
        errors = error.errors(include_url=False, include_input=False)
        raise invalid_fields(errors, value, prefix=prefix, unknown=told) from None
    except RecursionError:
        raise strict_json.MalformedJson("The body is nested too deeply.") from None
