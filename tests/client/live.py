"""The real service on the loopback, for one test module: uvicorn in a thread over a SQLite file."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3
import uvicorn

from registry import tokens
from registry.config import read_settings
from registry.db import Database
from tests.application import application
from tests.client.until import LATEST, until
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
        app = application(database, settings)
        app.state.later.load()  # on a busy machine this takes longer than some clients wait
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                host="127.0.0.1",
                port=0,
                log_level="warning",
                timeout_keep_alive=600,  # a connection that ends at the moment of a call fails who tries once
            )
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        until(lambda: server.started or not thread.is_alive())
        assert thread.is_alive(), "the service ended while it started"
        port = server.servers[0].sockets[0].getsockname()[1]
        # The first answer loads what later ones have: on a busy machine longer than a client waits for a proof.
        url = f"http://127.0.0.1:{port}"
        assert urllib3.request("GET", f"{url}/health/identity?nonce={'0' * 64}", timeout=LATEST).status == 200
        try:
            yield url, home
        finally:
            server.should_exit = True
            thread.join(LATEST)
