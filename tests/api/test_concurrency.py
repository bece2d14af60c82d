"""Several writers at once, and a database that is away."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from starlette.testclient import TestClient

from registry import models
from registry.config import Settings
from registry.db import Database
from tests.api.conftest import client_of
from tests.application import application
from tests.databases import fresh_database


def test_two_writers_of_the_same_checkpoint_make_one_row_and_both_learn_its_id(
    committed_database: Database, tmp_path: Path
) -> None:
    with client_of(committed_database, tmp_path) as client:
        client.post("/api/v1/projects", json={"name": "p"})
        run_id = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]

        def register(step: int) -> tuple[int, str]:
            body = {"step": step // 8, "scores": {"gsm8k": 0.5}, "config": {"lr": 1}, "tags": {"a": "b"}}
            answer = client.post(f"/api/v1/runs/{run_id}/checkpoints", json=body)
            return answer.status_code, answer.json().get("id", answer.text)

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(register, range(160)))
    assert {status for status, _ in answers} == {200, 201}
    assert sum(status == 201 for status, _ in answers) == 20
    assert len({identity for _, identity in answers}) == 20
    with committed_database.read() as session:
        assert session.scalar(select(func.count()).select_from(models.Checkpoint)) == 20
        assert session.scalar(select(func.count()).select_from(models.Score)) == 20


def test_batches_that_overlap_from_many_threads_all_succeed(committed_database: Database, tmp_path: Path) -> None:
    with client_of(committed_database, tmp_path) as client:

        def send(shift: int) -> int:
            items = [
                {"project": "p", "run": f"r{step % 3}", "step": step, "scores": {"gsm8k": 0.1, "mmlu": 0.2}}
                for step in range(shift * 10, shift * 10 + 40)
            ]
            return client.post("/api/v1/checkpoints:batch", json=items if shift % 2 else items[::-1]).status_code

        with ThreadPoolExecutor(6) as pool:
            assert set(pool.map(send, range(12))) == {200}
    with committed_database.read() as session:
        assert session.scalar(select(func.count()).select_from(models.Checkpoint)) == 150


def test_a_database_that_is_away_is_503_with_retry_after(tmp_path: Path) -> None:
    away = Database("postgresql+psycopg://nobody@127.0.0.1:1/none")
    app = application(away, Settings(tmp_path, str(away.url)))
    with TestClient(app, raise_server_exceptions=False) as client:
        for path in ("/api/v1/checkpoints", "/health/ready"):
            answer = client.get(path, headers={"Authorization": "Bearer cairn_x"})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert answer.json()["type"] == "/problems/database-unavailable"
        assert client.get("/health/live").status_code == 200
    away.dispose()


def test_a_database_at_another_schema_is_not_ready(tmp_path: Path) -> None:
    empty = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    with TestClient(application(empty, Settings(tmp_path, str(empty.url)))) as client:
        answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/schema-behind")
    empty.dispose()


@pytest.mark.parametrize("put", ["nothing", "another file"])
def test_a_database_file_that_is_gone_takes_no_records_until_it_is_back(tmp_path: Path, put: str) -> None:
    """An open file can be written without its name: what was acknowledged then, nobody would find again."""
    with fresh_database("sqlite", tmp_path, None) as database, client_of(database, tmp_path) as client:
        item = {"project": "p", "run": "r", "step": 1}
        assert client.post("/api/v1/checkpoints:batch", json=[item]).status_code == 200
        file, aside = Path(str(database.url.database)), tmp_path / "aside"
        file.rename(aside)
        if put == "another file":
            file.write_bytes(aside.read_bytes())
        for answer in (
            client.post("/api/v1/checkpoints:batch", json=[{**item, "step": 2}]),
            client.get("/api/v1/checkpoints"),
            client.get("/health/ready"),
        ):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert f"The database file {file} was moved, removed or replaced" in answer.json()["detail"]
        aside.rename(file)
        assert client.get("/health/ready").status_code == 200
        assert client.post("/api/v1/checkpoints:batch", json=[{**item, "step": 3}]).status_code == 200
        assert [each["step"] for each in client.get("/api/v1/checkpoints?order_by=step").json()["items"]] == [1, 3]


def test_after_the_database_dropped_its_connections_one_answer_is_503_and_the_next_is_right(
    committed_database: Database, tmp_path: Path
) -> None:
    if committed_database.is_sqlite:
        pytest.skip("SQLite has no server that could drop a connection")
    with client_of(committed_database, tmp_path) as client:
        assert client.get("/api/v1/projects").status_code == 200
        with committed_database.write() as session:
            session.execute(
                text(
                    "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"  # returns when they are gone
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        statuses = [client.get("/api/v1/projects").status_code for _ in range(20)]
        assert set(statuses) <= {200, 503}
        assert statuses.count(503) <= 2
        assert statuses[-1] == 200
