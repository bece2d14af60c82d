"""Calls to a tracker: each thing that goes wrong has its own error, and no secret leaves or is shown."""

import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from registry.integrations import http as calls
from registry.integrations.credentials import NOTHING, Credential
from registry.integrations.hosts import HostNotAllowed
from registry.integrations.http import AnswerTooLarge, TrackerHttp, TrackerRedirected
from registry.integrations.shapes import (
    TrackerAnswerUnknown,
    TrackerCertificateUntrusted,
    TrackerRefused,
    TrackerRunNotFound,
    TrackerUnreachable,
)
from tests.ports import held_port

Answering = Callable[[str, Mapping[str, str]], tuple[int, Mapping[str, str], bytes]]


class Server:
    """A small server on the loopback that answers as it is told, and remembers the headers of each call."""

    def __init__(self, answering: Answering, context: ssl.SSLContext | None = None) -> None:
        self.seen: list[Mapping[str, str]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append(dict(self.headers))
                status, headers, body = answering(self.path, self.headers)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *arguments: Any) -> None:
                """Nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *arguments: None  # type: ignore[method-assign]
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.scheme = "http" if context is None else "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.http.server_address[1]}"


@contextmanager
def serving(answering: Answering, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(answering, context)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


def answer(status: int = 200, body: Any = None, **headers: str) -> Answering:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda path, seen: (status, headers, raw)


def call(url: str, credential: Credential = NOTHING, method: str = "GET") -> Any:
    client = TrackerHttp(url, ["127.0.0.1"], credential)
    try:
        return client.call(method, "api", {"a": 1} if method == "POST" else None)
    finally:
        client.close()


def test_an_answer_is_read_and_its_non_finite_numbers_too() -> None:
    with serving(answer(body=b'{"a": NaN, "b": [1]}')) as server:
        found = call(server.url)
    assert found["b"] == [1]
    assert found["a"] != found["a"]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b"", TrackerRefused),
        (403, {"error_code": "PERMISSION_DENIED"}, TrackerRefused),
        (404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no run"}, TrackerRunNotFound),
        (404, b"<html>not here</html>", TrackerAnswerUnknown),
        (
            400,
            {"error_code": "BAD_REQUEST", "message": "(sqlite3.IntegrityError) x\n[SQL: secret]"},
            TrackerAnswerUnknown,
        ),
        (429, b"", TrackerUnreachable),
        (500, b"", TrackerUnreachable),
        (503, b"", TrackerUnreachable),
        (200, b"<html>a proxy's page</html>", TrackerAnswerUnknown),
    ],
)
def test_each_way_to_fail_has_its_error(status: int, body: Any, kind: type[Exception]) -> None:
    with serving(answer(status, body)) as server, pytest.raises(kind) as raised:
        call(server.url, Credential(token="s3cret"))
    assert "s3cret" not in str(raised.value)
    assert "[SQL" not in str(raised.value)


def test_a_server_that_is_gone_is_unreachable() -> None:
    with held_port() as port, pytest.raises(TrackerUnreachable, match="does not answer"):
        call(f"http://127.0.0.1:{port}")


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_ANSWER", 1_000)
    with serving(answer(body=b" " * 2_000)) as server, pytest.raises(AnswerTooLarge):
        call(server.url)


def test_a_redirect_is_followed_and_a_circle_is_seen() -> None:
    def once(path: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        return (200, {}, b"{}") if path == "/there" else (302, {"Location": "/there"}, b"")

    with serving(once) as server:
        assert call(server.url) == {}
    with serving(answer(302, b"", Location="/again")) as server, pytest.raises(TrackerRedirected, match="circle"):
        call(server.url)
    assert len(server.seen) == calls.MAX_REDIRECTS + 1


@pytest.mark.parametrize("place", ["http://169.254.169.254/latest", "http://10.0.0.1/", "http://localhost:1/"])
def test_a_redirect_never_leaves_the_list_of_hosts(place: str) -> None:
    with serving(answer(302, b"", Location=place)) as server, pytest.raises(HostNotAllowed):
        call(server.url)


def test_a_redirect_to_no_address_at_all_is_refused() -> None:
    with serving(answer(302, b"", Location="file:///etc/passwd")) as server, pytest.raises(TrackerAnswerUnknown):
        call(server.url)


def test_what_is_sent_is_never_sent_on_to_another_method() -> None:
    with serving(answer(302, b"", Location="/there")) as server, pytest.raises(TrackerRedirected, match="elsewhere"):
        call(server.url, method="POST")


def test_a_credential_goes_to_the_trackers_own_host_and_port_alone() -> None:
    with serving(answer(body={})) as other, serving(answer(307, b"", Location=f"{other.url}/x")) as server:
        call(server.url, Credential(token="s3cret"))
    assert server.seen[0]["Authorization"] == "Bearer s3cret"
    assert "Authorization" not in other.seen[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """A certificate that nobody but itself vouches for."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(cert), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


def test_a_certificate_that_nobody_vouches_for_is_named(certificate: tuple[ssl.SSLContext, Path]) -> None:
    with serving(answer(body={}), certificate[0]) as server:
        with pytest.raises(TrackerCertificateUntrusted, match="SSL_CERT_FILE"):
            call(server.url)
        assert call(server.url, Credential(insecure_tls=True)) == {}


def test_a_certificate_of_a_known_authority_is_trusted(
    certificate: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    with serving(answer(body={"ok": True}), certificate[0]) as server:
        assert call(server.url) == {"ok": True}


def test_plain_http_spoken_to_as_https_is_unreachable_and_no_crash() -> None:
    with serving(answer(body={})) as server, pytest.raises(TrackerUnreachable):
        call(server.url.replace("http://", "https://"))
