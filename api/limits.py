"""A limit on every body, whatever its route does with it: refused by its declared length, or where it passes it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import TooLarge, refuse


class BodyLimit:
    """ASGI middleware. A body of more than `limit` bytes answers 413, and no more than the limit is ever read."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app, self.limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if declared.isdigit() and int(declared) > self.limit:
            await refuse(scope, self._refusal(int(declared)))(scope, receive, send)
            return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise self._refusal(received)
            return message

        await self.app(scope, limited, send)

    def _refusal(self, size: int) -> TooLarge:
        return TooLarge(f"The body has {size} bytes or more; at most {self.limit} are read. Send smaller batches.")
