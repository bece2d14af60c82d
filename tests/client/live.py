"""The real service on the loopback, for one test module: uvicorn in a thread over a SQLite file."""

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from registry import tokens
from registry.config import read_settings
from registry.db import Database
from tests.application import application
from tests.databases import fresh_database


@contextmanager
def running_service(home: Path, prepare: Callable[[Database], object] | None = None) -> Iterator[tuple[str, Path]]:
    """Its URL, and the folder in which it left the admin token. `prepare` fills the database first."""
    settings = read_settings({"CAIRN_HOME": str(home), "CAIRN_TRACKER_HOSTS": "wandb.example.org"})
    home.mkdir(parents=True, exist_ok=True)
    with fresh_database("sqlite", home) as database:
        with database.write() as session:
            tokens.ensure_admin_token(session, settings.admin_token_file)
        if prepare is not None:
            prepare(database)
        config = uvicorn.Config(application(database, settings), host="127.0.0.1", port=0, log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive(), "the service ended while it started"
            assert time.monotonic() < deadline, "the service did not start within 20 s"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        # The first answer loads what later ones have: on a busy machine longer than a client waits for a proof.
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/identity?nonce={'0' * 64}", timeout=60) as warm:
            warm.read()
        try:
            yield f"http://127.0.0.1:{port}", home
        finally:
            server.should_exit = True
            thread.join(20)
