"""Who is asking: found by the token of a request, and remembered for a moment.

A training job that reports steadily would otherwise have its token looked up with every call, which costs as much as a
fifth of a registration. A token that is revoked is refused a tenth of a second later at most.
"""

import time
from hashlib import sha256
from typing import Final

from registry.tokens import Caller

MOMENT: Final = 0.1  # seconds
MOST: Final = 1_000  # callers that are remembered


class RecentCallers:
    """Callers by the hash of their token; of the secret itself nothing is kept."""

    def __init__(self) -> None:
        self._found: dict[bytes, tuple[float, Caller]] = {}

    def get(self, secret: str) -> Caller | None:
        found = self._found.get(_hash(secret))
        return found[1] if found is not None and time.monotonic() < found[0] else None

    def put(self, secret: str, caller: Caller) -> None:
        if len(self._found) >= MOST:
            self._found = {}
        self._found[_hash(secret)] = (time.monotonic() + MOMENT, caller)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
