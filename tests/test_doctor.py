"""`cairn-server doctor` names what is wrong with an installation and the next move, and changes nothing."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.test_server import Home, fresh_home, home, serving

__all__ = ["home"]
OF_THE_MACHINE = {"space", "database", "clock"}  # a full disk or a busy processor is warned of wherever the tests run


def examined(home: Home, *options: str, **settings: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and what was found by subject."""
    done = home.run("doctor", "--json", *options, **settings)
    assert done.stderr == ""
    return done.returncode, {each["subject"]: each for each in json.loads(done.stdout)}


def test_a_service_that_is_well_has_no_warning(home: Home) -> None:
    with serving(home) as service:
        code, found = examined(home, "--whole", CAIRN_PORT=str(service._pool.port))
    assert code == 0
    assert {each["health"] for subject, each in found.items() if subject not in OF_THE_MACHINE} == {"ok"}
    assert {"home", "space", "admin token", "database", "schema", "service", "workers", "jobs"} <= set(found)


def test_what_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    code, found = examined(home, CAIRN_PORT="1")
    assert code == 1
    assert (found["home"]["health"], found["database"]["health"]) == ("fault", "fault")
    assert "cairn-server restore" in found["database"]["advice"]
    assert found["service"]["health"] == "warning"
    assert not home.folder.exists()


def test_a_database_at_another_schema_is_a_fault_with_the_way_out(home: Home) -> None:
    assert home.run("migrate", "--to", "0005").returncode == 0
    code, found = examined(home)
    assert (code, found["schema"]["health"]) == (1, "fault")
    assert "0005" in found["schema"]["said"]
    assert "cairn-server migrate" in found["schema"]["advice"]
    assert "workers" not in found


def test_an_empty_database_has_no_schema(home: Home) -> None:
    home.folder.mkdir(parents=True)
    (home.folder / "cairn.db").touch()
    code, found = examined(home)
    assert code == 1
    assert "no schema" in found["schema"]["said"]


def test_a_database_that_is_away_is_said_without_its_password(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    done = home.run("doctor", CAIRN_DATABASE_URL="postgresql+psycopg://cairn:hunter2@127.0.0.1:1/cairn")
    assert done.returncode == 1
    assert "does not answer" in done.stdout
    assert "CAIRN_DATABASE_URL" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_a_damaged_file_is_found_where_every_page_is_read(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    assert home.run("token", "list").returncode == 0
    file = home.folder / "cairn.db"
    size, noise = file.stat().st_size, random.Random(1)
    with file.open("r+b") as out:
        for page in range(20, size // 4096, 7):
            out.seek(page * 4096)
            out.write(noise.randbytes(4096))
    code, found = examined(home, "--whole")
    assert code == 1
    worst = found.get("contents") or found["database"]
    assert worst["health"] == "fault"
    assert "cairn-server restore" in worst["advice"]


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    home.folder.mkdir(mode=0o700)
    (home.folder / "cairn.db").write_bytes(b"not a database at all" * 1000)
    code, found = examined(home)
    assert (code, found["database"]["health"]) == (1, "fault")


def test_another_program_on_the_port_is_no_service(tmp_path: Path) -> None:
    from http.server import HTTPServer, SimpleHTTPRequestHandler
    from threading import Thread

    server = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        _, found = examined(fresh_home(tmp_path), CAIRN_PORT=str(server.server_port))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found["service"]["health"] == "fault"
    assert "404" in found["service"]["said"]


def test_people_read_a_line_each_and_the_next_move_below(home: Home) -> None:
    assert home.run("token", "list").returncode == 0
    done = home.run("doctor", CAIRN_PORT="1")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert any(line.startswith("ok       admin token") for line in lines)
    assert any("→ `cairn-server serve` starts it." in line for line in lines)


def test_a_bad_setting_is_one_line(tmp_path: Path) -> None:
    done = fresh_home(tmp_path).run("doctor", CAIRN_PORT="none")
    assert done.returncode == 1
    assert "CAIRN_PORT is 'none'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_token_that_others_may_read_is_a_fault(tmp_path: Path, mode: int) -> None:
    home = fresh_home(tmp_path)
    assert home.run("token", "list").returncode == 0
    (home.folder / "admin-token").chmod(mode)
    code, found = examined(home)
    assert (code, found["admin token"]["health"]) == (1, "fault")
    assert found["admin token"]["advice"].startswith("chmod 600 ")
