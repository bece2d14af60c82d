"""How a file of routes begins: `router = room("runs")`."""

from typing import Any, Final

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from fastapi.utils import create_model_field

from api import problems
from api.deps import get_caller, refuse_unknown_query

PREFIX: Final = "/api/v1"


class DescribedRoute(APIRoute):
    """A route whose `response_model` is for the description alone: answers leave as finished bytes (`api.answers`).

    Without it FastAPI builds a serializer for each route at the start, which nothing would ever use.
    """

    def __init__(self, path: str, endpoint: Any, *, response_model: Any = None, **options: Any) -> None:
        super().__init__(path, endpoint, response_model=None, **options)
        self.answers = response_model

    def describe(self) -> None:
        """Give the route its model back, as FastAPI's generator of descriptions looks for it."""
        if self.answers:
            name = f"Response_{self.unique_id}"
            self.response_field = create_model_field(name, self.answers, mode="serialization")


def room(tag: str) -> APIRouter:
    """The router of a subject. Its routes have their whole path, and the caller is known before a body is read.

    What `include_router` would add is said here: it would build every route once more, at the first request.
    """
    checks = [Depends(get_caller), Depends(refuse_unknown_query)]
    return APIRouter(
        prefix=PREFIX, tags=[tag], dependencies=checks, responses=problems.RESPONSES, route_class=DescribedRoute
    )
