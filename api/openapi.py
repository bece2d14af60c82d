"""The OpenAPI description: what FastAPI derives, with the bodies that we validate ourselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from api.schemas.common import Problem

TEMPLATE = "#/components/schemas/{model}"


def describe(app: FastAPI) -> dict[str, Any]:
    """The description, made once. Every operation needs the bearer token and may answer a problem."""
    if app.openapi_schema:
        return app.openapi_schema
    described = [route for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema]
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _define(schemas, TypeAdapter(Problem))
    for route in described:
        model = _body_model(route.dependant)
        for method in route.methods or ():
            operation = schema["paths"][route.path_format][method.lower()]
            operation["security"] = [{"token": []}] if route.path.startswith("/api/") else []
            if model is not None:
                reference = _define(schemas, TypeAdapter(model))
                operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    app.openapi_schema = schema
    return schema


def _define(schemas: dict[str, Any], adapter: TypeAdapter[Any]) -> dict[str, Any]:
    described = adapter.json_schema(ref_template=TEMPLATE)
    schemas.update(described.pop("$defs", {}))
    if "title" in described and described.get("type") == "object":
        title = described["title"]
        schemas[title] = described
        return {"$ref": TEMPLATE.format(model=title)}
    return described


def _body_model(dependant: Dependant) -> Any:
    for each in dependant.dependencies:
        model = getattr(each.call, "body_model", None) or _body_model(each)
        if model is not None:
            return model
    return None
