"""How answers are written: a shape, serialised once, with its status."""

from secrets import token_hex
from typing import Annotated, Any, Final

from pydantic import BaseModel, PlainSerializer, SerializationInfo, WithJsonSchema
from starlette.responses import Response

from registry import strict_json

# Where a value is to be written with the text of its numbers kept, this stands until the rest is serialised.
MARK: Final = f"kept:{token_hex(16)}:"


def _keep(value: Any, info: SerializationInfo) -> Any:
    if value is None or info.context is None:
        return value
    info.context.append(strict_json.canonical(value))
    return f"{MARK}{len(info.context) - 1}"


# A free-form value that leaves as it came: 1.50 stays 1.50, and 1e2 stays 1e2.
AsSent = Annotated[Any, PlainSerializer(_keep), WithJsonSchema({})]


def answer(shape: BaseModel, status: int = 200) -> Response:
    """The shape as JSON. The routes declare their shapes as `response_model` for the description."""
    kept: list[str] = []
    text = shape.model_dump_json(by_alias=True, context=kept)
    for at, value in enumerate(kept):
        text = text.replace(f'"{MARK}{at}"', value, 1)
    return Response(text, status, media_type="application/json")


def created(shape: BaseModel, was_made: bool) -> Response:
    """201 for what was made just now, 200 for what was there already."""
    return answer(shape, 201 if was_made else 200)


CREATED: dict[int | str, dict[str, Any]] = {201: {"description": "Made just now; 200 where it was there already."}}
