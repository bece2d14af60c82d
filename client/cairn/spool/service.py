"""For which service records are: nobody else's gets them."""

from urllib.parse import urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_same(one: str, other: str) -> bool:
    """Whether two addresses are of one service. This machine has several names, at the same port it is the same."""
    return one == other or (_place(one) == _place(other) != ("", "", None, ""))


def _place(url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url, "", None, ""
    return parts.scheme, "localhost" if host in LOOPBACK else host, port, parts.path.rstrip("/")
