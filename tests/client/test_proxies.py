"""Services elsewhere are reached through the proxy that the environment names, those of this machine are not."""

import base64

import cairn
import pytest
from cairn import Client, Retries

from tests.client.conftest import FaultServer, Reply

RUN = {"id": "r1", "name": "a", "project": "p"}
ONCE = Retries(count=0)


def through(monkeypatch: pytest.MonkeyPatch, faults: FaultServer, **settings: str) -> None:
    """Makes the scripted server the proxy."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value.replace("PROXY_ADDRESS", faults.url.removeprefix("http://")))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize("value", ["http://PROXY_ADDRESS", "http://PROXY_ADDRESS/", "PROXY_ADDRESS"])
def test_a_service_elsewhere_is_asked_through_the_proxy(
    faults: FaultServer, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    through(monkeypatch, faults, **{name: value})
    faults.replies = [Reply(200, RUN)]
    with Client("http://cairn.example.org", "t", timeout=60, retries=ONCE) as client:
        assert client.get_run("r1").name == "a"
    assert faults.seen[0].path == "http://cairn.example.org/api/v1/runs/r1"
    assert faults.seen[0].headers["Authorization"] == "Bearer t"


def test_a_service_with_tls_is_asked_for_by_a_tunnel_and_the_token_stays_inside(
    faults: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(monkeypatch, faults, HTTPS_PROXY="http://me:p%40ss@PROXY_ADDRESS", HTTP_PROXY="http://127.0.0.1:9")
    faults.replies = [Reply(403, b"no")]
    with (
        Client("https://cairn.example.org", "t", timeout=60, retries=ONCE) as client,
        pytest.raises(cairn.ConnectionFailed, match="proxy that HTTP_PROXY or HTTPS_PROXY names") as caught,
    ):
        client.get_run("r1")
    (asked,) = faults.seen
    assert (asked.method, asked.path) == ("CONNECT", "cairn.example.org:443")
    assert "Authorization" not in asked.headers
    assert asked.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert "p@ss" not in str(caught.value)
    assert "p%40ss" not in str(caught.value)


@pytest.mark.parametrize("no_proxy", ["example.org", ".example.org", "a.b,cairn.example.org", "*"])
def test_no_proxy_names_what_is_asked_directly(
    faults: FaultServer, monkeypatch: pytest.MonkeyPatch, no_proxy: str
) -> None:
    through(monkeypatch, faults, HTTP_PROXY="http://PROXY_ADDRESS", NO_PROXY=no_proxy)
    with (
        Client("http://cairn.example.org:1", "t", timeout=60, retries=ONCE) as client,
        pytest.raises(cairn.ConnectionFailed),
    ):
        client.get_run("r1")
    assert faults.seen == []


def test_this_machine_is_never_asked_through_a_proxy(
    faults: FaultServer, elsewhere: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(monkeypatch, elsewhere, HTTP_PROXY="http://PROXY_ADDRESS", http_proxy="http://PROXY_ADDRESS")
    faults.replies = [Reply(200, RUN)]
    with Client(faults.url, "t", timeout=60, retries=ONCE) as client:
        assert client.get_run("r1").name == "a"
    assert elsewhere.seen == []


@pytest.mark.parametrize("value", ["socks5://:secret@h:1", "http://", "http://h:x", "http://h:99999", "ftp://h"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", value)
    with (
        Client("http://cairn.example.org", "t", timeout=60, retries=ONCE) as client,
        pytest.raises(cairn.BadSettings, match="HTTP_PROXY names no proxy") as caught,
    ):
        client.get_run("r1")
    assert "secret" not in str(caught.value)
