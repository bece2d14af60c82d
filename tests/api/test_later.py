"""What a start does not wait for: the service answers without it, and with it as soon as somebody asks."""

from pathlib import Path

from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient

from api.later import LaterRoutes
from api.main import create_app
from registry.config import Settings


def test_training_jobs_are_answered_before_decisions_and_pages_are_loaded(tmp_path: Path) -> None:
    app = create_app(Settings(tmp_path, "sqlite:///never-opened.db"))
    client = TestClient(app)
    before = len(app.routes)
    assert client.post("/api/v1/runs", json={}).status_code == 401
    assert client.get("/health/live").status_code == 200
    assert len(app.routes) == before
    assert client.get("/login").status_code == 200
    after = len(app.routes)
    assert client.post("/api/v1/rollback", json={}).status_code == 401
    assert client.get("/nowhere").json()["type"] == "/problems/not-found"
    assert client.put("/health/live").status_code == 405
    assert before < after == len(app.routes)


def test_what_could_not_be_loaded_is_tried_again_by_the_next_request() -> None:
    app, router, tries = FastAPI(), APIRouter(), []

    @router.get("/page")
    def page() -> str:
        return "there"

    def find() -> list[object]:
        tries.append(len(app.routes))
        if len(tries) == 1:
            raise ImportError("the disk is away")
        return list(router.routes)

    app.router.routes.append(LaterRoutes(app, find))  # type: ignore[arg-type]
    client = TestClient(app, raise_server_exceptions=False)
    assert [client.get("/page").status_code for _ in range(3)] == [500, 200, 200]
    assert len(tries) == 2
