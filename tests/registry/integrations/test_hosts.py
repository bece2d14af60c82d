"""Which addresses a worker calls: those that are listed, and no other."""

import socket
from typing import Any

import pytest

from registry.integrations.hosts import HostNotAllowed, check_target, is_listed
from registry.integrations.shapes import TrackerAnswerUnknown, TrackerUnreachable


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names resolve to, as a name server would say."""
    known: dict[str, list[str]] = {}

    def resolve(host: str, port: int, **options: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(-2, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


def test_nothing_is_called_where_nothing_is_listed(names: dict[str, list[str]]) -> None:
    names["mlflow.example.org"] = ["93.184.216.34"]
    for url in ("https://mlflow.example.org", "http://127.0.0.1:5000", "http://[::1]", "http://169.254.169.254/latest"):
        with pytest.raises(HostNotAllowed, match="CAIRN_TRACKER_HOSTS"):
            check_target(url, ())


def test_a_listed_name_is_called_at_the_address_that_was_checked(names: dict[str, list[str]]) -> None:
    names["mlflow.example.org"] = ["93.184.216.34"]
    target = check_target("https://MLflow.example.org./base/x", ["mlflow.example.org"])
    assert (target.scheme, target.host, target.port) == ("https", "mlflow.example.org", 443)
    assert (target.address, target.path, target.authority) == ("93.184.216.34", "/base/x", "mlflow.example.org")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1"],
)
def test_a_listed_name_that_leads_inside_is_not_called(names: dict[str, list[str]], address: str) -> None:
    names["evil.example.org"] = [address]
    with pytest.raises(HostNotAllowed, match="private network"):
        check_target("https://evil.example.org", ["evil.example.org"])


@pytest.mark.parametrize("address", ["::1", "fe80::1", "fc00::1", "::ffff:10.0.0.1"])
def test_inside_is_also_inside_over_ipv6(names: dict[str, list[str]], address: str) -> None:
    names["evil.example.org"] = [address]
    with pytest.raises(HostNotAllowed):
        check_target("https://evil.example.org", ["evil.example.org"])


def test_an_inner_address_is_called_where_its_network_is_listed_too(names: dict[str, list[str]]) -> None:
    names["mlflow.corp"] = ["10.2.3.4"]
    allowed = ["mlflow.corp", "10.2.0.0/16"]
    assert check_target("http://mlflow.corp:5000", allowed).address == "10.2.3.4"
    names["mlflow.corp"] = ["10.3.3.4"]
    with pytest.raises(HostNotAllowed):
        check_target("http://mlflow.corp:5000", allowed)


def test_a_name_with_a_port_means_that_port_alone(names: dict[str, list[str]]) -> None:
    names["mlflow.example.org"] = ["93.184.216.34"]
    assert check_target("http://mlflow.example.org:5000", ["mlflow.example.org:5000"]).port == 5000
    with pytest.raises(HostNotAllowed):
        check_target("http://mlflow.example.org:22", ["mlflow.example.org:5000"])


def test_localhost_that_is_listed_means_this_machine(names: dict[str, list[str]]) -> None:
    names["localhost"] = ["127.0.0.1"]
    assert check_target("http://localhost:5000", ["localhost"]).address == "127.0.0.1"
    assert check_target("http://127.0.0.1:5000", ["127.0.0.1"]).address == "127.0.0.1"


def test_a_name_that_nobody_knows_is_tried_again_later(names: dict[str, list[str]]) -> None:
    with pytest.raises(TrackerUnreachable, match="not known"):
        check_target("https://gone.example.org", ["gone.example.org"])


@pytest.mark.parametrize(
    "url", ["", "mlflow.example.org", "file:///etc/passwd", "http://", "gopher://x", "http://[::1"]
)
def test_what_is_no_web_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises(TrackerAnswerUnknown):
        check_target(url, ["mlflow.example.org"])


def test_whether_a_host_is_listed_can_be_told_without_asking_for_its_addresses() -> None:
    assert is_listed("http://mlflow.example.org:5000/x", ["mlflow.example.org"])
    assert is_listed("http://10.2.3.4", ["10.2.0.0/16"])
    assert not is_listed("http://other.example.org", ["mlflow.example.org"])
    assert not is_listed("nonsense", ["mlflow.example.org"])
