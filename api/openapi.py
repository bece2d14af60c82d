"""The OpenAPI description: what FastAPI derives, with the bodies that we validate ourselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from api.later import LaterRoutes
from api.room import DescribedRoute
from api.schemas.common import Problem

TEMPLATE = "#/components/schemas/{model}"


def describe(app: FastAPI, later: LaterRoutes) -> dict[str, Any]:
    """The description, made once, of every route of a room.

    Every operation of theirs needs the bearer token and may answer a problem.
    """
    if app.openapi_schema:
        return app.openapi_schema
    later.load()
    routes = [route for route in app.routes if isinstance(route, DescribedRoute)]
    for route in routes:
        route.describe()
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=routes)
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _define(schemas, TypeAdapter(Problem))
    for route in routes:
        models = _body_models(route.dependant)
        for method in route.methods or ():
            operation = schema["paths"][route.path_format][method.lower()]
            operation["security"] = [{"token": []}]
            if {"200", "201"} <= operation["responses"].keys():  # the same shape, whether it was made now or before
                operation["responses"]["201"]["content"] = operation["responses"]["200"]["content"]
            if models:
                content = {kind: {"schema": _define(schemas, TypeAdapter(model))} for kind, model in models.items()}
                operation["requestBody"] = {"required": True, "content": content}
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


def _body_models(dependant: Dependant) -> dict[str, Any]:
    """Media type to model of the body that a dependency of the route reads (`api.deps.json_body`)."""
    for each in dependant.dependencies:
        models: dict[str, Any] = getattr(each.call, "body_models", None) or _body_models(each)
        if models:
            return models
    return {}
