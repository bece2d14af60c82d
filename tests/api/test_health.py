"""Health, and the proof that this is the service of its CAIRN_HOME."""

import hashlib
import hmac
from pathlib import Path

import pytest
from starlette.testclient import TestClient

NONCE = "0123456789abcdef" * 4


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "admin-token").write_text("cairn_secret\n")
    return "cairn_secret"


def proof(secret: str, address: str, nonce: str) -> str:
    return hmac.new(secret.encode(), f"cairn-identity\n{address}\n{nonce}".encode(), hashlib.sha256).hexdigest()


def test_the_proof_is_of_the_file_the_nonce_and_the_address_of_the_connection(client: TestClient, secret: str) -> None:
    answer = client.get("/health/identity", params={"nonce": NONCE}, headers={"Authorization": "", "Host": "evil:1"})
    assert answer.status_code == 200
    assert answer.json() == {"proof": proof(secret, "testserver:80", NONCE)}, "the Host header says nothing"
    other = client.get("/health/identity", params={"nonce": NONCE[::-1]}).json()
    assert other == {"proof": proof(secret, "testserver:80", NONCE[::-1])} != answer.json()
    assert secret not in answer.text + str(answer.headers)


@pytest.mark.parametrize("nonce", ["", "ab", "0" * 31, "0" * 129, "g" * 32, f"{NONCE}\n", "é" * 32])
def test_a_nonce_is_hexadecimal_and_long(client: TestClient, secret: str, nonce: str) -> None:
    answer = client.get("/health/identity", params={"nonce": nonce})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert "proof" not in answer.json()


def test_without_the_file_there_is_no_proof(client: TestClient, tmp_path: Path) -> None:
    for content in (None, b"", b"\xff\xfe", b" \n"):
        if content is not None:
            (tmp_path / "admin-token").write_bytes(content)
        answer = client.get("/health/identity", params={"nonce": NONCE})
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/identity-unknown")
