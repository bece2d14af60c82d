"""Looks again and again, until it is told to stop. A service or a root that is away is waited for."""

import random
import threading
from collections.abc import Iterator

from cairn.client import Client
from cairn.errors import CairnError, ConnectionFailed, TooManyRequests, Unavailable
from cairn.formats.checkpoints import Unreadable
from cairn.watch.events import Event
from cairn.watch.watcher import Watcher

MOST_WAIT_SECONDS = 300.0


def watch(watcher: Watcher, client: Client, stop: threading.Event, *, poll_seconds: float) -> Iterator[Event]:
    """Events as they come, a look every `poll_seconds`, until `stop` is set.

    Raises `CairnError` where the service refuses what no waiting mends (no token, no right).
    """
    wait, away = poll_seconds, ""
    while not stop.is_set():
        try:
            yield from watcher.look(client)
            if away:
                yield Event("away", "back: going on where it was left")
            wait, away = poll_seconds, ""
        except (ConnectionFailed, Unavailable, TooManyRequests, Unreadable) as fault:
            reason = fault.detail if isinstance(fault, CairnError) else str(fault)
            wait = min(max(wait * 2, 1.0), max(MOST_WAIT_SECONDS, poll_seconds))
            if reason != away:
                yield Event("away", f"{reason} Trying again; what appears meanwhile is recorded then.")
            away = reason
        stop.wait(wait * random.uniform(0.9, 1.1))  # noqa: S311 - spreads the calls of many watchers
