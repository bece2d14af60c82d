"""What a start does not wait for."""

import threading
from collections.abc import Callable, Sequence

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send


class LaterRoutes(BaseRoute):
    """The last route of an application: what none before it knows waits until the others are there.

    `cairn-server` loads them when it has begun to listen. A request that comes sooner loads them itself, in a thread,
    so that those of training jobs are answered meanwhile.
    """

    def __init__(self, app: FastAPI, find: Callable[[], Sequence[BaseRoute]]) -> None:
        self._router = app.router
        self._find = find
        self._lock = threading.Lock()
        self._loaded = False

    def load(self) -> None:
        with self._lock:
            if not self._loaded:
                self._router.routes.extend(self._find())
                self._loaded = True

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.NONE if self._loaded else Match.FULL), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await run_in_threadpool(self.load)
        await self._router(scope, receive, send)
