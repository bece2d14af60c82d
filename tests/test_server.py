"""`cairn-server` as a process of its own: what a start leaves, what a kill cannot take, what a mistake says."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import urllib3
from sqlalchemy import make_url

from api.opening import open_database
from api.server import where_the_token_lies
from migrations import HEAD
from registry.config import BadSetting, default_home, read_settings
from tests.client.until import until
from tests.databases import BACKENDS, run_sql
from tests.ports import held_port

COMMAND = str(Path(sys.executable).with_name("cairn-server"))
LINK = re.compile(r"http://127\.0\.0\.1:\d+(/login\?code=\S+)")


@dataclass
class Home:
    """Where a service keeps its things, and how its commands are called."""

    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        environment = self.environment | settings
        return subprocess.run(
            [COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    @property
    def admin_token(self) -> str:
        return (self.folder / "admin-token").read_text().strip()


def fresh_home(folder: Path) -> Home:
    own = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")}
    return Home(folder / "home", own | {"CAIRN_HOME": str(folder / "home")})


@pytest.fixture(params=BACKENDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """A home that no service has ever used, over an empty database."""
    home = fresh_home(tmp_path)
    if request.param == "sqlite":
        yield home
        return
    server, name = request.getfixturevalue("postgresql_url"), f"server_{os.getpid()}_{os.urandom(4).hex()}"
    run_sql(server, f"CREATE DATABASE {name}")
    home.environment["CAIRN_DATABASE_URL"] = make_url(server).set(database=name).render_as_string(hide_password=False)
    yield home
    run_sql(server, f"DROP DATABASE {name} WITH (FORCE)")


class Service:
    """A running service, and calls to it, each on a connection of its own: an idle one may be closed at any moment."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path, token: str) -> None:
        self.process, self.log, self.token = process, log, token
        self._pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=8, retries=False, timeout=60)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token or self.token}", "Connection": "close"}
        raw = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(method, f"/api/v1{path}", body=raw, headers=headers)
        return answer.status, json.loads(answer.data)

    def page(self, path: str, cookie: str = "") -> urllib3.BaseHTTPResponse:
        headers = {"Connection": "close"} | ({"Cookie": cookie} if cookie else {})
        return self._pool.request("GET", path, headers=headers, redirect=False)

    def printed(self, pattern: "re.Pattern[str]") -> str:
        found = pattern.search(self.log.read_text())
        assert found, self.log.read_text()
        return found[1]


@contextmanager
def serving(home: Home) -> Iterator[Service]:
    with held_port() as port:
        log = home.folder.parent / f"log-{port}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [COMMAND, "serve"], env=home.environment | {"CAIRN_PORT": str(port)}, stdout=out, stderr=out
            )
        try:
            _wait_until_ready(process, port, log)
            yield Service(process, port, log, home.admin_token)
        finally:
            workers = _children_of(process.pid) if process.poll() is None else []
            process.kill()
            for each in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.wait(60)
            until(lambda: not any(is_running(each) for each in workers))


def _children_of(parent: int) -> list[int]:
    """The worker beside a service, which would hold the database for a moment longer than that."""
    found: list[int] = []
    for each in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            found += map(int, each.read_text().split())
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            answer = urllib3.request("GET", f"http://127.0.0.1:{port}/health/ready", retries=False, timeout=5)
        except urllib3.exceptions.HTTPError:
            time.sleep(0.05)
            continue
        assert (answer.status, json.loads(answer.data)) == (200, {"status": "ready", "schema": HEAD})
        return
    raise AssertionError(log.read_text())


def test_the_first_start_makes_the_schema_the_admin_token_and_a_link_that_works_once(home: Home) -> None:
    with serving(home) as service:
        file = home.folder / "admin-token"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
        assert service.call("GET", "/projects") == (200, {"items": [], "next_cursor": None})
        assert service.call("GET", "/projects", token="cairn_no")[0] == 401
        link = service.printed(LINK)
        assert str(file) in service.log.read_text()
        assert home.admin_token not in service.log.read_text()
        first = service.page(link)
        assert first.status == 303
        cookie = first.headers["set-cookie"].partition(";")[0]
        assert service.page("/", cookie).status < 400
        second = service.page(link)
        assert second.status == 401
        assert "used before" in second.data.decode()
        assert urllib3.request("GET", f"http://127.0.0.1:{service._pool.port}/health/live").status == 200


def test_a_kill_takes_nothing_that_was_acknowledged_and_the_next_start_goes_on(home: Home) -> None:
    acknowledged: dict[int, str] = {}
    with serving(home) as service:
        service.call("POST", "/projects", {"name": "p"})
        run = service.call("POST", "/runs", {"project": "p", "name": "r"})[1]["id"]
        token = home.admin_token
        killed = threading.Event()

        def record(first: int) -> None:
            for step in range(first, 10_000, 4):
                try:
                    body = {"step": step, "scores": {"gsm8k": 0.5}, "tags": {"a": "b"}}
                    status, answer = service.call("POST", f"/runs/{run}/checkpoints", body)
                except (urllib3.exceptions.HTTPError, OSError):
                    assert killed.is_set()
                    return
                assert status == 201, answer
                acknowledged[step] = answer["id"]

        threads = [threading.Thread(target=record, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(acknowledged) >= 40 or service.process.poll() is not None)
        assert service.process.poll() is None, service.log.read_text()
        killed.set()
        os.kill(service.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(60)
    with serving(home) as service:
        assert home.admin_token == token  # not made again
        kept: dict[int, str] = {}
        listing, cursor = "/checkpoints?limit=500&fields=scores.gsm8k,tags.a", ""
        for _ in range(100):
            page = service.call("GET", f"{listing}{cursor}")[1]
            for item in page["items"]:
                assert (item["values"], item["state"]) == ({"scores.gsm8k": 0.5, "tags.a": "b"}, "committed")
                kept[item["step"]] = item["id"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert acknowledged.items() <= kept.items()
        assert len(kept) - len(acknowledged) <= 4  # at most what each thread had in flight
        again = {"step": 0, "scores": {"gsm8k": 0.5}, "tags": {"a": "b"}}
        assert service.call("POST", f"/runs/{run}/checkpoints", again)[0] == 200


def test_a_term_signal_ends_the_service_in_order(home: Home) -> None:
    with serving(home) as service:
        service.process.terminate()
        assert service.process.wait(60) in (0, -signal.SIGTERM)
        assert "Traceback" not in service.log.read_text()


def test_the_service_itself_opens_a_lost_incident_and_a_heartbeat_closes_it(home: Home) -> None:
    home.environment |= {"CAIRN_WATCH_SECONDS": "1", "CAIRN_LOST_AFTER_SECONDS": "2"}
    with serving(home) as service:
        service.call("POST", "/projects", {"name": "p"})
        _, run = service.call("POST", "/runs", {"project": "p", "name": "r"})
        service.call("POST", f"/runs/{run['id']}/attempts", {"key": "a"})
        path = f"/runs/{run['id']}/attempts/1"
        service.call("PATCH", path, {"heartbeat_at": utc_now(), "step": 7})
        incidents = until(lambda: service.call("GET", "/incidents?open=true")[1]["items"], 180)
        assert [(each["kind"], each["last_step"], each["opened_by"]) for each in incidents] == [("lost", 7, "cairn")]
        service.call("PATCH", path, {"heartbeat_at": utc_now(), "step": 8})
        _, closed = service.call("GET", f"/incidents/{incidents[0]['id']}")
        assert closed["state"] == "recovered"
        assert closed["recovery_seconds"] > 2


def utc_now() -> str:
    return datetime.now(UTC).isoformat()


def test_migrate_goes_up_and_down(home: Home) -> None:
    for arguments, revision in (((), HEAD), (("--down", "--to", "base"), "None"), (("--to", "head"), HEAD)):
        done = home.run("migrate", *arguments)
        assert (done.returncode, done.stdout) == (0, f"The database is at schema {revision}.\n")
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700


def test_tokens_are_made_listed_and_revoked(home: Home) -> None:
    made = home.run("token", "create", "robot", "--scope", "read")
    assert made.returncode == 0
    secret = made.stdout.strip()
    lines = home.run("token", "list").stdout.splitlines()
    admin, robot = (line.split() for line in lines)
    assert (admin[1], admin[-1]) == ("admin", "admin")
    assert (robot[1], robot[-1]) == ("read", "robot")
    assert secret not in "".join(lines)
    with serving(home) as service:
        assert service.call("GET", "/projects", token=secret)[0] == 200
        assert service.call("POST", "/projects", {"name": "p"}, token=secret)[0] == 403
        assert service.call("POST", "/projects", {"name": "p"})[0] == 201
        bound = home.run("token", "create", "p-only", "--project", "p").stdout.strip()
        assert service.call("POST", "/projects", {"name": "p"}, token=bound)[0] == 200
        assert home.run("token", "revoke", robot[0]).stdout == "Revoked.\n"
        assert service.call("GET", "/projects", token=secret)[0] == 401
    states = {line.split()[-1]: line for line in home.run("token", "list").stdout.splitlines()}
    assert "revoked" in states["robot"]
    assert "only p " in states["p-only"]
    audit = home.run("audit").stdout
    assert [line.split()[2] for line in audit.splitlines()][:2] == ["token.revoke", "token.create"]
    assert secret not in audit
    assert audit.splitlines()[0].split()[3:] == ["-", robot[0]]  # of no project, and which token it was
    assert len(home.run("audit", "--subject", robot[0]).stdout.splitlines()) == 2
    assert home.run("audit", "--project", "p").stdout == ""
    assert "is no id" in home.run("audit", "--subject", "x").stderr
    short = home.run("token", "create", "week", "--days", "7").stdout.strip()
    assert short.startswith("cairn_")
    assert ", until 2" in next(line for line in home.run("token", "list").stdout.splitlines() if "week" in line)
    assert home.run("token", "create", "never", "--days", "0").returncode == 2
    last = home.run("token", "revoke", admin[0])
    assert (last.returncode, last.stdout) == (0, "Revoked.\n")
    assert "No admin token is left" in last.stderr


def test_a_database_is_for_its_owner_alone_in_a_folder_that_is_not(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    home.folder.mkdir(mode=0o755)
    assert home.run("migrate").returncode == 0
    for file in home.folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_process_that_comes_and_goes_leaves_the_log_to_the_one_that_stays(tmp_path: Path) -> None:
    database = open_database(read_settings({"CAIRN_HOME": str(tmp_path)}))
    file = str(database.url.database)
    log = Path(f"{file}-wal").stat()
    look = "import sqlite3, sys; all = sqlite3.connect(sys.argv[1]); all.execute('SELECT * FROM project'); all.close()"
    subprocess.run([sys.executable, "-c", look, file], check=True, timeout=60)
    assert os.path.samestat(Path(f"{file}-wal").stat(), log)
    database.dispose()


def test_a_fresh_login_link_can_be_had_at_any_time(home: Home) -> None:
    with serving(home) as service:
        path = LINK.search(home.run("login-link", CAIRN_PORT="8400").stdout)
        assert path is not None
        assert service.page(path[1]).status == 303
    (home.folder / "admin-token").unlink()
    gone = home.run("login-link")
    assert (gone.returncode, gone.stderr.count("\n")) == (1, 1)
    assert "token" in gone.stderr


PASSWORD = "hidden-word"


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (["serve"], {"CAIRN_PORT": "abc"}, "CAIRN_PORT is 'abc'"),
        (["serve"], {"CAIRN_PORT": "70000"}, "from 1 to 65535"),
        (["serve"], {"CAIRN_MAX_BODY_BYTES": "-1"}, "CAIRN_MAX_BODY_BYTES"),
        (["serve"], {"CAIRN_DATABASE_URL": "nonsense"}, "CAIRN_DATABASE_URL"),
        (["token", "list"], {"CAIRN_DATABASE_URL": "sqlite://"}, "forgotten"),
        (["serve"], {"CAIRN_DATABASE_URL": f"mysql://a:{PASSWORD}@b/c"}, "mysql://a:***@b/c"),
        (["serve"], {"CAIRN_DATABASE_URL": "sqlite:////nowhere/at/all.db"}, "does not answer"),
        (["serve"], {"CAIRN_DATABASE_URL": f"postgresql+psycopg://a:{PASSWORD}@127.0.0.1:1/b"}, "does not answer"),
        (["serve"], {"CAIRN_HOME": "/dev/null"}, "CAIRN_HOME is '/dev/null'"),
        (["migrate", "--to", "nonsense"], {}, "nonsense"),
        (["token", "revoke", "nonsense"], {}, "No such token"),
        (["token", "create", "x", "--project", "nowhere"], {}, "no project 'nowhere'"),
    ],
)
def test_a_mistake_is_one_line_and_no_traceback(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], said: str
) -> None:
    done = fresh_home(tmp_path).run(*arguments, **settings)
    told = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert (done.returncode, len(told)) == (1, 1), done.stderr
    assert said in told[0]
    assert PASSWORD not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_start_says_where_a_token_lies_only_where_it_does(tmp_path: Path) -> None:
    home = fresh_home(tmp_path)
    settings = read_settings({"CAIRN_HOME": str(home.folder)})
    database = open_database(settings)
    assert where_the_token_lies(settings, database) == f"The admin token lies in {settings.admin_token_file}"
    settings.admin_token_file.unlink()
    told = where_the_token_lies(settings, database)
    assert told.startswith(f"No token of this registry lies in {settings.admin_token_file}.")
    assert "`cairn-server token create NAME --scope admin`" in told
    settings.admin_token_file.write_text("of another registry")
    assert where_the_token_lies(settings, database) == told
    database.dispose()


def test_a_port_that_is_taken_ends_the_service_with_a_reason(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = fresh_home(tmp_path).run("serve", CAIRN_PORT=str(taken.getsockname()[1]))
    assert done.returncode not in (0, None)
    assert "Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


# Settings


def test_settings_have_defaults_below_the_user_s_data_folder(tmp_path: Path) -> None:
    settings = read_settings({"HOME": str(tmp_path)})
    assert settings.home == tmp_path / ".local/share/cairn" == default_home({"HOME": str(tmp_path)})
    assert settings.database_url == f"sqlite:///{settings.home / 'cairn.db'}"
    assert (settings.host, settings.port, settings.storage_roots) == ("127.0.0.1", 8400, ())
    assert settings.base_url == "http://127.0.0.1:8400"
    assert default_home({"XDG_DATA_HOME": "/data", "HOME": "/h"}) == Path("/data/cairn")


def test_every_setting_is_read_from_its_variable(tmp_path: Path) -> None:
    settings = read_settings(
        {
            "CAIRN_HOME": str(tmp_path),
            "CAIRN_DATABASE_URL": "postgresql+psycopg://u:p@h:5433/d",
            "CAIRN_HOST": "::1",
            "CAIRN_PORT": "9000",
            "CAIRN_STORAGE_ROOTS": "/mnt/a, s3://bucket/b,",
            "CAIRN_PUBLIC_URL": "https://cairn.example/",
            "CAIRN_WATCH_SECONDS": "5",
            "CAIRN_LOST_AFTER_SECONDS": "30",
        }
    )
    assert (settings.home, settings.database_url) == (tmp_path, "postgresql+psycopg://u:p@h:5433/d")
    assert (settings.host, settings.port, settings.storage_roots) == ("::1", 9000, ("/mnt/a", "s3://bucket/b"))
    assert settings.base_url == "https://cairn.example"
    assert (settings.watch_seconds, settings.lost_after_seconds) == (5, 30)
    assert read_settings({"CAIRN_HOST": "::1", "HOME": "/h"}).base_url == "http://[::1]:8400"


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "٣", " 80", "1e3", "9" * 30])
def test_a_port_is_a_plain_number(text: str) -> None:
    with pytest.raises(BadSetting, match="CAIRN_PORT"):
        read_settings({"CAIRN_PORT": text, "HOME": "/h"})
