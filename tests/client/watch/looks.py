"""One look at a root by a watcher that has just been started, and what the service then has."""

from collections.abc import Callable
from pathlib import Path

from cairn import Client
from cairn.types import Checkpoint
from cairn.watch import Event

Look = Callable[..., list[Event]]


def recorded(client: Client, project: str) -> list[Checkpoint]:
    return list(client.iter_checkpoints(filter=f"project = '{project}'", order_by="run.name, attempt, step"))


def identities(client: Client, project: str) -> list[tuple[str, int | None, int | None, str | None]]:
    return [
        (each.run.name if each.run else "", each.attempt, each.step, each.state) for each in recorded(client, project)
    ]


def superseded(client: Client, project: str) -> dict[tuple[int | None, int | None], bool | None]:
    return {(each.attempt, each.step): each.superseded for each in recorded(client, project)}


def kinds(events: list[Event]) -> list[str]:
    return [each.kind for each in events]


def ckpt(tmp_path: Path, name: str) -> Path:
    return tmp_path / "ckpt" / name
