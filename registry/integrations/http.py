"""Calls to a tracker over HTTP: only to hosts that are listed, each answer bounded in size and time.

Redirects are followed a few times where each next address is allowed too; credentials go to the tracker's own host and
port alone. What goes wrong is raised as one of the tracker errors, in words that hold no secret.
"""

import json
import ssl
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning, SSLError

from registry.errors import Invalid
from registry.integrations.credentials import Credential
from registry.integrations.hosts import Target, check_target
from registry.integrations.shapes import (
    TrackerAnswerUnknown,
    TrackerCertificateUntrusted,
    TrackerRefused,
    TrackerRunNotFound,
    TrackerUnreachable,
)

AT_ONCE: Final = 4  # calls to one tracker
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 60.0
MAX_REDIRECTS: Final = 5
MAX_ANSWER: Final = 64 * 1024 * 1024  # bytes
MAX_SAID: Final = 300  # characters of a tracker's own message that are kept


class TrackerRedirected(Invalid):
    code = "tracker-redirected"
    title = "The tracker sends us on and on, or elsewhere"


class AnswerTooLarge(TrackerAnswerUnknown):
    code = "tracker-answer-too-large"
    title = "The tracker's answer is too large to be read"


@dataclass(frozen=True)
class Answer:
    status: int
    location: str | None
    data: bytes


class TrackerHttp:
    """One tracker's address: `call` gives the JSON that it answers. Threads may share it."""

    def __init__(self, uri: str, allowed: Sequence[str], credential: Credential) -> None:
        self._uri, self._allowed, self._credential = uri, allowed, credential
        self._pools: dict[tuple[str, str, int], urllib3.HTTPConnectionPool] = {}
        self._lock = threading.Lock()
        self._home: Target | None = None

    def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()
    ) -> Any:
        """The answer of a call. Raises HostNotAllowed, TrackerRedirected, or a tracker error."""
        answer = self._send(method, path, body, query)
        try:
            return json.loads(answer.data) if answer.data else {}
        except ValueError:
            raise TrackerAnswerUnknown(f"{self._shown(path)} answered with something that is no JSON.") from None

    def text(self, path: str, query: Mapping[str, Any]) -> str:
        """A small text file, such as an artifact's metadata."""
        return self._send("GET", path, None, query).data.decode("utf-8", "replace")

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def _send(self, method: str, path: str, body: Any, query: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> Answer:
        url = f"{self._uri.rstrip('/')}/{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        raw = None if body is None else json.dumps(body).encode()
        for _ in range(MAX_REDIRECTS + 1):
            target = check_target(url, self._allowed)
            self._home = self._home or target
            answer = self._one(method, url, target, raw)
            if answer.status not in (301, 302, 303, 307, 308):
                return self._checked(answer, path)
            if not answer.location or (method != "GET" and answer.status not in (307, 308)):
                raise TrackerRedirected(f"{self._shown(path)} sends us elsewhere; link the run by its final address.")
            url = urljoin(url, answer.location)
        raise TrackerRedirected(f"{self._shown(path)} sends us on more than {MAX_REDIRECTS} times, as in a circle.")

    def _one(self, method: str, url: str, target: Target, raw: bytes | None) -> Answer:
        parts = urlsplit(url)
        headers = {"Host": target.authority, "Accept": "application/json", "User-Agent": "cairn-registry"}
        if raw is not None:
            headers["Content-Type"] = "application/json"
        home = self._home
        secret = self._credential.authorization
        if (
            secret
            and home is not None
            and (target.scheme, target.host, target.port)
            == (
                home.scheme,
                home.host,
                home.port,
            )
        ):
            headers["Authorization"] = secret
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            with self._without_warning():
                answer = self._pool(target).request(
                    method, path, body=raw, headers=headers, redirect=False, retries=False, preload_content=False
                )
            data = answer.read(MAX_ANSWER + 1, decode_content=True)
            answer.release_conn()
        except SSLError as error:
            raise _tls_problem(target, error) from None
        except (HTTPError, OSError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise _tls_problem(target, error) from None
            where = f"{target.host}:{target.port}"
            raise TrackerUnreachable(f"{where} does not answer ({type(error).__name__}). It is tried again.") from None
        if len(data) > MAX_ANSWER:
            raise AnswerTooLarge(f"{self._shown(parts.path)} answered with more than {MAX_ANSWER} bytes.")
        return Answer(answer.status, answer.headers.get("Location"), data)

    @contextmanager
    def _without_warning(self) -> Iterator[None]:
        """No warning of certificates where somebody chose not to check them; what silences it is the whole process's,
        so such calls go one after the other."""
        if not self._credential.insecure_tls:
            yield
            return
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRequestWarning)
            yield

    def _pool(self, target: Target) -> urllib3.HTTPConnectionPool:
        key = (target.scheme, target.address, target.port)
        if key not in self._pools:  # of two threads that come here at once, the pool of the second is used from then on
            self._pools[key] = self._new_pool(target)
        return self._pools[key]

    def _new_pool(self, target: Target) -> urllib3.HTTPConnectionPool:
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        if target.scheme != "https":
            return urllib3.HTTPConnectionPool(target.address, target.port, timeout=timeout, maxsize=AT_ONCE)
        insecure = self._credential.insecure_tls
        context = ssl.create_default_context()
        if insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return urllib3.HTTPSConnectionPool(
            target.address,
            target.port,
            timeout=timeout,
            maxsize=AT_ONCE,
            ssl_context=context,
            server_hostname=target.host,
            assert_hostname=False if insecure else target.host,
            cert_reqs="CERT_NONE" if insecure else "CERT_REQUIRED",
        )

    def _checked(self, answer: Answer, path: str) -> Answer:
        status, where = answer.status, self._shown(path)
        if 200 <= status < 300:
            return answer
        code, said = _problem_of(answer)
        if status in (401, 403):
            word = "asks for credentials" if status == 401 else "does not permit this"
            raise TrackerRefused(f"{where} {word} ({status}). Give the worker credentials for this host.")
        if status == 429 or status >= 500:
            raise TrackerUnreachable(f"{where} answered {status}. It is tried again.", status=status, tracker_code=code)
        if status == 404 and code in ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND"):
            raise TrackerRunNotFound(f"{where}: {said}", tracker_code=code)
        raise TrackerAnswerUnknown(f"{where} answered {status}: {said}", tracker_code=code, status=status)

    def _shown(self, path: str) -> str:
        parts = urlsplit(self._uri)
        return f"{parts.hostname}{':' + str(parts.port) if parts.port else ''} ({path.partition('?')[0][:80]})"


def _problem_of(answer: Answer) -> tuple[str, str]:
    """The tracker's own code and message; raw SQL and whatever follows is cut off."""
    try:
        found = json.loads(answer.data)
        code, said = str(found.get("error_code", "")), str(found.get("message", ""))
    except (ValueError, AttributeError):
        return "", "no answer of such a tracker"
    return code, said.splitlines()[0][:MAX_SAID] if said.strip() else "no message"


def _tls_problem(target: Target, error: Exception) -> Exception:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return TrackerCertificateUntrusted(
            f"{target.host}:{target.port} shows a certificate that is not trusted here. Add its authority to the "
            "system's, or name a file with it in SSL_CERT_FILE of the worker."
        )
    return TrackerUnreachable(f"{target.host}:{target.port} does not speak TLS with us. It is tried again.")
