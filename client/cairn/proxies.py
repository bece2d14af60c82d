"""The proxy between here and the service, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY name it.

Never for this machine's own addresses: what listens on the loopback is not reached through somebody else.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from cairn.errors import BadSettings

if TYPE_CHECKING:
    from urllib3 import PoolManager


def pool_through_proxy(url: str, **options: Any) -> "PoolManager":
    """Connections to `url`, through the environment's proxy where it names one. Raises `BadSettings`."""
    import urllib3

    proxy = proxy_for(url)
    if proxy is None:
        return urllib3.PoolManager(**options)
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    try:
        address = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
    except ValueError:
        address = ""
    if parts.scheme not in ("http", "https") or not parts.hostname or not address:
        name = f"{urlsplit(url).scheme.upper()}_PROXY"
        # The value is not shown: it may hold a password.
        raise BadSettings(f"{name} names no proxy that can be used; expected http://host:port.")
    if ":" in parts.hostname:
        address = address.replace(parts.hostname, f"[{parts.hostname}]", 1)
    headers = None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = urllib3.make_headers(proxy_basic_auth=login)
    return urllib3.ProxyManager(f"{parts.scheme}://{address}", proxy_headers=headers, **options)


def proxy_for(url: str) -> str | None:
    """What the environment says about this URL; NO_PROXY is read as everywhere in Python."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    return getproxies().get(parts.scheme)
