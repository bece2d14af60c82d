"""How answers are written: a shape, serialised once, with its status."""

from typing import Any

from pydantic import BaseModel
from starlette.responses import Response


def answer(shape: BaseModel, status: int = 200) -> Response:
    """The shape as JSON. The routes declare their shapes as `response_model` for the description."""
    return Response(shape.model_dump_json(by_alias=True), status, media_type="application/json")


def created(shape: BaseModel, was_made: bool) -> Response:
    """201 for what was made just now, 200 for what was there already."""
    return answer(shape, 201 if was_made else 200)


CREATED: dict[int | str, dict[str, Any]] = {201: {"description": "Made just now; 200 where it was there already."}}
