from pathlib import Path

import pytest
from cairn import Client
from cairn.watch import Event, Watched, Watcher

from tests.client.watch.looks import Look


@pytest.fixture
def look(live: Client, project: str, tmp_path: Path) -> Look:
    """One look at the root by a watcher that has just been started."""

    def look(client: Client | None = None, **options: object) -> list[Event]:
        given = {"tier": "shared", "quiet_seconds": 0.0, **options}
        what = Watched(str(tmp_path / "ckpt"), project, "r", **given)  # type: ignore[arg-type]
        with Watcher(what, tmp_path / "state" / "watch.db") as watcher:
            return list(watcher.look(client or live))

    (tmp_path / "ckpt").mkdir()
    return look
