"""Which addresses may be called: only those that are listed in CAIRN_TRACKER_HOSTS.

An entry is a host (`mlflow.example.org`, with `:port` if only that one is meant), or an address or network of a
company's own (`10.2.0.0/16`), or a folder of this machine that may be read (`/data/mlruns`). A listed name that
resolves to a private or loopback address is called only where that address is listed too: otherwise whoever rules the
name would reach into our network. The address that was checked is the one that is called.
"""

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from registry.errors import FieldError, Forbidden, Invalid
from registry.integrations.shapes import TrackerAnswerUnknown, TrackerUnreachable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = ("127.0.0.0/8", "::1/128")


class HostNotAllowed(Forbidden):
    code = "tracker-host-not-allowed"
    title = "This host may not be called"


class HostNotListed(Invalid):
    """Said to whoever asks for it, before anything is called; a worker's own list is asked again then."""

    code = "tracker-host-not-listed"
    title = "This host is not among those that may be called"


@dataclass(frozen=True)
class Target:
    """Where to connect: `address` is what `host` resolved to when it was checked."""

    scheme: str
    host: str
    port: int
    address: str
    path: str  # of the URL, without a slash at its end

    @property
    def authority(self) -> str:
        """For a Host header: the port only where it does not go without saying."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def check_target(url: str, allowed: Sequence[str]) -> Target:
    """Raises HostNotAllowed, TrackerAnswerUnknown for what is no address, TrackerUnreachable for an unknown name."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower().rstrip("."), parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in _PORTS or not host:
        raise TrackerAnswerUnknown("The link's address is no http:// or https:// address; link the run again.")
    port = port or _PORTS[parts.scheme]
    names, networks = _listed(allowed)
    literal = _address(host)
    if literal is None and not ({host, f"{host}:{port}"} & names):
        raise _refused(host, port)
    for address in [literal] if literal is not None else _resolve(host, port):
        inside = any(address in network for network in networks)
        by_name = literal is not None and bool({host, f"{host}:{port}"} & names)
        if inside or by_name or (literal is None and _is_public(address)):
            return Target(parts.scheme, host, port, str(address), parts.path.rstrip("/"))
    if literal is not None:
        raise _refused(host, port)
    message = f"{host} resolves to an address of a private network, which is not listed"
    raise HostNotAllowed(
        f"{message}. Add the address or its network to CAIRN_TRACKER_HOSTS of the worker, if it is meant.",
        errors=[FieldError("", message)],
    )


def is_listed(url: str, allowed: Sequence[str]) -> bool:
    """Whether the address could be called as far as its text tells, without asking for its name's addresses."""
    if folder_of(url):
        return _is_below(Path(folder_of(url)).resolve(), allowed)
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return False
    names, networks = _listed(allowed)
    literal = _address(host)
    within = literal is not None and any(literal in network for network in networks)
    return bool({host, f"{host}:{port}"} & names) or within


def check_folder(url: str, allowed: Sequence[str]) -> Path:
    """The folder of a path or `file://` address, if it lies below a listed one. Raises HostNotAllowed."""
    path = Path(folder_of(url)).resolve()
    if not path.is_dir() or not _is_below(path, allowed):
        message = "this is no folder that may be read"
        raise HostNotAllowed(
            f"{message}. Add its path to CAIRN_TRACKER_HOSTS of the worker, if it is meant and lies on its machine.",
            errors=[FieldError("", message)],
        )
    return path


def folder_of(url: str) -> str:
    """The path of an address that is one on this machine; '' for all others."""
    path = url.removeprefix("file://") if url.startswith("file:///") else url
    return path if path.startswith("/") else ""


def _is_below(path: Path, allowed: Sequence[str]) -> bool:
    return any(path.is_relative_to(Path(entry.strip()).resolve()) for entry in allowed if entry.strip().startswith("/"))


def require_listed(url: str, allowed: Sequence[str], pointer: str) -> None:
    """Raises HostNotListed at the place of the value that names the address."""
    if not is_listed(url, allowed):
        host = folder_of(url) or urlsplit(url).hostname or "this address"
        message = f"{host} is not listed in CAIRN_TRACKER_HOSTS"
        raise HostNotListed(
            f"{message}. Whoever runs the service adds {host} to that list (with commas between), for the service and "
            "its workers alike, and starts them again.",
            errors=[FieldError(pointer, message)],
        )


def _refused(host: str, port: int) -> HostNotAllowed:
    message = f"{host}:{port} is not among the hosts that may be called"
    return HostNotAllowed(
        f"{message}. Add {host} to CAIRN_TRACKER_HOSTS of the worker, if it is meant.", errors=[FieldError("", message)]
    )


def _listed(allowed: Sequence[str]) -> tuple[set[str], list[Network]]:
    names, networks = set(), []
    for entry in (each.strip().lower() for each in allowed):
        try:
            networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
        except ValueError:
            names.add(entry)
            if entry.partition(":")[0] == "localhost":
                networks += [ipaddress.ip_network(each) for each in _LOOPBACK]
    return names, networks


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_global and not address.is_multicast


def _resolve(host: str, port: int) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise TrackerUnreachable(f"The name {host} is not known here just now.") from None
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
