"""One HTTP call, bounded: it answers, or raises a `CairnError`, within the timeout and a few retries.

Only calls that may be repeated without harm are repeated: after a lost connection, and after 429, 502, 503 and
504, as `Retry-After` asks. A redirect is followed on the same host only; the token never goes to another one.
Services on other machines are reached through the proxy that the environment names (cairn.proxies).
"""

import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit

from cairn import wire
from cairn.drilled import refuse_to_send
from cairn.errors import CairnError, ConnectionFailed, error_from_answer
from cairn.reading import UnexpectedAnswer
from cairn.settings import Settings, is_loopback

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

RETRY_STATUSES = frozenset({429, 502, 503, 504})
MAX_ANSWER_BYTES = 256 * 1024 * 1024
MAX_REDIRECTS = 3
MAX_CONNECT_SECONDS = 5.0
USER_AGENT = "cairn-client/0.1"


@dataclass(frozen=True)
class Retries:
    """At most `count` repeats, none begun later than `wait_seconds` after the first try: a call ends at the
    latest `wait_seconds` plus one timeout after it began."""

    count: int = 4
    wait_seconds: float = 30.0
    first_pause_seconds: float = 0.2


@dataclass(frozen=True)
class Call:
    """What to send. `idempotent` calls may be repeated when it is unknown whether they arrived."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    idempotent: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


class Transport:
    """Connections to one service, shared by threads, made anew after a fork."""

    def __init__(self, settings: Settings, *, timeout: float, retries: Retries) -> None:
        self.settings = settings
        self.timeout = timeout
        self.retries = retries
        self._pool: PoolManager | None = None
        self._pid = 0

    def send(self, call: Call) -> Any:
        """The decoded answer, None where it is empty. Raises `CairnError`."""
        refuse_to_send(call.method, call.path)
        latest = time.monotonic() + self.retries.wait_seconds
        for tried in range(self.retries.count + 1):
            try:
                return self._once(call)
            except CairnError as error:
                pause = self._pause(error, tried)
                if not call.idempotent or not _may_pass(error) or tried == self.retries.count:
                    raise
                if time.monotonic() + pause > latest:
                    raise
            time.sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.clear()

    def _pause(self, error: CairnError, tried: int) -> float:
        """Seconds to the next try: what the service asked for, else doubling with jitter."""
        backoff: float = self.retries.first_pause_seconds * 2.0**tried * random.uniform(0.75, 1.25)  # noqa: S311
        return max(error.retry_after or 0.0, backoff)

    def _once(self, call: Call) -> Any:
        url = self.settings.url + call.path
        deadline = time.monotonic() + self.timeout
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._exchange(call, url, deadline)
            try:
                body = _body(call, answer, deadline)  # a connection with an unread rest cannot be reused
                if answer.status not in (301, 302, 303, 307, 308):
                    return _decoded(call, self.settings.url, answer, body)
                url = self._redirected(call, url, answer)
            finally:
                answer.release_conn()
        raise ConnectionFailed(f"{self.settings.url} redirects in a circle.", request=str(call))

    def _exchange(self, call: Call, url: str, deadline: float) -> "BaseHTTPResponse":
        import urllib3

        left = max(deadline - time.monotonic(), 0.001)
        try:
            return self._connections().request(
                call.method,
                url,
                body=call.body,
                headers=self._headers(call),
                timeout=urllib3.Timeout(connect=min(left, MAX_CONNECT_SECONDS), read=left),
                redirect=False,
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as fault:
            raise _failed(call, self.settings.url, fault) from fault

    def _connections(self) -> "PoolManager":
        # A forked data-loader worker must not share a socket with its parent.
        if self._pool is None or self._pid != os.getpid():
            self._pool, self._pid = self._new_pool(num_pools=2, maxsize=8), os.getpid()
        return self._pool

    def _new_pool(self, **options: Any) -> "PoolManager":
        import urllib3

        if self.settings.needs_proof and self.settings.token:
            from cairn.identity import proving_pool

            return proving_pool(self.settings.token, **options)
        if is_loopback(self.settings.url):
            return urllib3.PoolManager(**options)
        from cairn.proxies import pool_through_proxy

        return pool_through_proxy(self.settings.url, **options)

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {"Accept": "application/json, application/problem+json", "User-Agent": USER_AGENT}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if self.settings.token:
            headers["Authorization"] = f"Bearer {self.settings.token}"
        return headers

    def _redirected(self, call: Call, url: str, answer: "BaseHTTPResponse") -> str:
        target = urljoin(url, answer.headers.get("Location", ""))
        if _origin(target) != _origin(url):
            raise ConnectionFailed(
                f"{self.settings.url} redirects to {_origin(target)}. The token was not sent there; "
                "if that is the service, set CAIRN_URL to it.",
                status=answer.status,
                request=str(call),
            )
        if call.method != "GET" and answer.status not in (307, 308):
            raise ConnectionFailed(
                f"{self.settings.url} redirects a {call.method}; nothing was sent on. Check CAIRN_URL.",
                status=answer.status,
                request=str(call),
            )
        return target


def query(path: str, **parameters: Any) -> str:
    """`path` with those parameters that are not None; a tuple gives one parameter for each of its values."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _body(call: Call, answer: "BaseHTTPResponse", deadline: float) -> bytes:
    """The whole body, however slowly it drips in, but not beyond the deadline."""
    import urllib3

    chunks: list[bytes] = []
    size = 0
    try:
        while chunk := answer.read1(1 << 16):
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_ANSWER_BYTES or time.monotonic() > deadline:
                answer.close()
                why = "is too large" if size > MAX_ANSWER_BYTES else "did not end in time"
                raise ConnectionFailed(f"The answer {why} ({size:,} bytes read).", request=str(call))
    except (urllib3.exceptions.HTTPError, OSError) as fault:
        answer.close()
        raise ConnectionFailed(f"The answer was cut off after {size:,} bytes.", request=str(call)) from fault
    return b"".join(chunks)


def _decoded(call: Call, url: str, answer: "BaseHTTPResponse", body: bytes) -> Any:
    if answer.status >= 400:
        wait = _retry_after(answer.headers)
        raise error_from_answer(answer.status, body, retry_after=wait, request=str(call), url=url)
    if not body:
        return None
    try:
        return wire.decode(body)
    except (ValueError, RecursionError):
        kind = answer.headers.get("Content-Type", "no content type")
        raise UnexpectedAnswer(
            f"The answer is no JSON ({kind}). Is CAIRN_URL that of a Cairn service?",
            status=answer.status,
            request=str(call),
        ) from None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from now; the header holds seconds or a date."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _may_pass(error: CairnError) -> bool:
    lost = isinstance(error, ConnectionFailed) and not error.status and not error.code
    return lost or error.status in RETRY_STATUSES


def _failed(call: Call, url: str, fault: Exception) -> ConnectionFailed:
    """The fault in words that say what to look at."""
    import urllib3

    if isinstance(fault, urllib3.exceptions.ProxyError):
        why = f"The proxy that HTTP_PROXY or HTTPS_PROXY names does not lead to {url}: {fault}"
    elif isinstance(fault, urllib3.exceptions.NewConnectionError):
        why = f"Nobody answers at {url}. Is the service running (cairn-server serve), is CAIRN_URL right?"
    elif isinstance(fault, (urllib3.exceptions.TimeoutError, TimeoutError)):
        why = f"{url} did not answer in time."
    elif isinstance(fault, urllib3.exceptions.SSLError):
        why = f"No trusted connection to {url}: {fault}"
    else:
        why = f"The connection to {url} was lost: {fault}"
    return ConnectionFailed(why, request=str(call))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
