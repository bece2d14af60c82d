"""Proof that a listener on this machine is the service of this CAIRN_HOME, before the admin token goes to it.

On a shared machine anybody may listen on the service's port while it is down. So every connection that is going to
carry the admin token of the service's own file begins with a question that only a reader of that file can answer:
HMAC-SHA256, keyed with the token, over the address of the connection's other end and a fresh random number. The
address keeps a listener elsewhere from passing the question on to the real service. The token itself is not sent.
"""

import hashlib
import hmac
import re
import secrets
import socket
import time
from typing import TYPE_CHECKING, Any

from cairn.errors import ConnectionFailed

if TYPE_CHECKING:
    from urllib3 import PoolManager

PROOF_SECONDS = 5.0
MAX_PROOF_BYTES = 8192
OK = b"HTTP/1.1 200"
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,4})\r\n", re.IGNORECASE)
PROOF = re.compile(rb'\{"proof": ?"([0-9a-f]{64})"\}')


class Unproven(ConnectionFailed):
    """The listener is not the service whose admin token lies on this machine; the token was not sent."""


def proving_pool(token: str, **options: Any) -> "PoolManager":
    """Connections of plain HTTP that carry nothing before the other end has proven that it knows `token`."""
    from urllib3 import HTTPConnectionPool, PoolManager
    from urllib3.connection import HTTPConnection
    from urllib3.exceptions import ConnectTimeoutError

    class ProvenConnection(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            try:
                demand_proof(self.sock, token)
            except TimeoutError:
                self.close()
                raise ConnectTimeoutError(self, "the other end did not prove who it is in time") from None
            except BaseException:
                self.close()
                raise

    class ProvenPool(HTTPConnectionPool):
        ConnectionCls = ProvenConnection

    pool = PoolManager(**options)
    pool.pool_classes_by_scheme = {"http": ProvenPool}
    return pool


def demand_proof(connection: socket.socket, token: str) -> None:
    """Asks the other end. Raises `Unproven` where it does not know the token, OSError where it says nothing."""
    host, port = connection.getpeername()[:2]
    nonce = secrets.token_hex(32)
    request = f"GET /health/identity?nonce={nonce} HTTP/1.1\r\nHost: {_bracketed(host)}:{port}\r\n\r\n"
    connection.sendall(request.encode("ascii"))
    proof = _proof(connection)
    if not hmac.compare_digest(proof, expected_proof(token, f"{host}:{port}", nonce)):
        raise Unproven(
            f"What listens at {_bracketed(host)}:{port} is not the service whose admin token lies on this machine, "
            "so the token was not sent. Start that service (cairn-server serve, with this CAIRN_HOME and CAIRN_PORT), "
            "or set CAIRN_TOKEN to a token of the service that you mean.",
            code="unproven",
        )


def expected_proof(token: str, address: str, nonce: str) -> str:
    return hmac.new(token.encode(), f"cairn-identity\n{address}\n{nonce}".encode(), hashlib.sha256).hexdigest()


def _proof(connection: socket.socket) -> str:
    """The answer's proof; '' for an answer of another kind. Raises OSError where none comes in time."""
    before = connection.gettimeout()
    deadline = time.monotonic() + min(before or PROOF_SECONDS, PROOF_SECONDS)
    said = b""
    while len(said) < MAX_PROOF_BYTES and said.startswith(OK[: len(said)]):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        chunk = connection.recv(MAX_PROOF_BYTES)
        if not chunk:
            raise ConnectionResetError("closed before it had answered")
        said += chunk
        head, end, body = said.partition(b"\r\n\r\n")
        length = LENGTH.search(head + b"\r\n")
        if end and (length is None or len(body) >= int(length[1])):
            connection.settimeout(before)
            found = PROOF.fullmatch(body)  # all of it: nothing may be left in the connection
            return found[1].decode() if found else ""
    return ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
