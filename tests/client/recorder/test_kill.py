"""`kill -9` at any moment: nothing that was acknowledged as spooled is lost, and nothing is recorded twice."""

from pathlib import Path

from cairn import Client

from tests.client.recorder.killing import kill_often


def test_ten_kills_lose_nothing_and_double_nothing(
    live: Client, project: str, service: tuple[str, Path], spool: Path
) -> None:
    kill_often(live, project, service, spool, kills=10, seed=20261129)
