"""Where the service is and who is asking. First that applies: argument, environment, saved login, admin token.

A saved token goes only to the URL that it was saved for, and the admin token of this machine only to a listener on
this machine that has proven to be its service (cairn.identity): no other place can make the client send one along.
"""

import contextlib
import ipaddress
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cairn.errors import BadSettings

EXAMPLE_URL = "http://127.0.0.1:8400"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", "8400"
# A service that listens on every address of this machine is reached on the loopback.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked about, not bound to
API = "/api/v1"


@dataclass(frozen=True)
class Settings:
    """`token` is left out of every representation.

    `needs_proof`: the token may be sent only over connections whose other end has proven that it knows it.
    """

    url: str
    token: str | None = field(repr=False)
    token_source: str
    needs_proof: bool = False


def read_settings(
    url: str | None = None, token: str | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of this process. Raises `BadSettings` naming what cannot be used."""
    env = os.environ if environ is None else environ
    given = url or env.get("CAIRN_URL")
    candidates = (("the argument", token), ("CAIRN_TOKEN", env.get("CAIRN_TOKEN")))
    source, given_token = next(((name, text) for name, text in candidates if text), ("", ""))
    # A job that was told both never depends on what lies in somebody's home folder.
    saved = {} if given and given_token else _read_logins(login_file(env))
    chosen = clean_url(given or service_url(env) or saved.get("default") or EXAMPLE_URL)
    if given_token:
        return Settings(chosen, clean_token(given_token, source), source)
    if kept := saved.get("tokens", {}).get(chosen):
        return Settings(chosen, clean_token(kept, str(login_file(env))), "the saved login")
    admin = _admin_token(env) if is_this_machine(chosen) else None
    return Settings(chosen, admin, "the admin-token file", True) if admin else Settings(chosen, None, "nowhere")


def service_url(env: Mapping[str, str]) -> str | None:
    """Where a service with these settings (CAIRN_HOST, CAIRN_PORT) listens; None where neither is set."""
    host, port = env.get("CAIRN_HOST"), env.get("CAIRN_PORT")
    if not host and not port:
        return None
    if port and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise BadSettings(f"CAIRN_PORT is {port[:80]!r}; expected a whole number from 1 to 65535.")
    host = EVERYWHERE.get(host or DEFAULT_HOST, host or DEFAULT_HOST)
    return f"http://{f'[{host}]' if ':' in host else host}:{port or DEFAULT_PORT}"


def clean_url(url: str) -> str:
    """`http(s)://host[:port][/path]` without a trailing slash, nor the API's own prefix."""
    parts = urlsplit(url.strip())
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadSettings(f"{url[:200]!r} is no URL of a Cairn service; expected e.g. {EXAMPLE_URL}.")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/').removesuffix(API).rstrip('/')}"


def clean_token(token: str, source: str) -> str:
    """A token as one line of visible ASCII: anything else would break the header it travels in."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadSettings(f"The token from {source} is no token: expected one word of visible ASCII characters.")
    return token


def is_this_machine(url: str) -> bool:
    """Whether the service is reached on the loopback, directly and not through something that ends TLS."""
    if urlsplit(url).scheme != "http":
        return False
    return is_loopback(url)


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def login_file(environ: Mapping[str, str] | None = None) -> Path:
    """`$XDG_CONFIG_HOME/cairn/login.json`, by default below ~/.config."""
    env = os.environ if environ is None else environ
    base = env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or Path.home()) / ".config"
    return Path(base) / "cairn" / "login.json"


def save_login(url: str, token: str, environ: Mapping[str, str] | None = None) -> Path:
    """Keeps the token for this URL and makes the URL the default. The file is readable by its owner only."""
    path = login_file(environ)
    logins = _read_logins(path)
    tokens = {**logins.get("tokens", {}), clean_url(url): clean_token(token, "the argument")}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".login-")  # made with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"default": clean_url(url), "tokens": tokens}, file, indent=1)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    return path


def _read_logins(path: Path) -> dict[str, Any]:
    text = _read_private(path)
    if text is None:
        return {}
    try:
        found = json.loads(text)
        tokens = found.get("tokens", {}) if isinstance(found, dict) else None
        texts = [found.get("default", ""), *tokens.values()] if isinstance(tokens, dict) else [None]
        if all(isinstance(each, str) for each in texts):
            return dict(found)
    except ValueError:
        pass
    raise BadSettings(f"{path} cannot be read as a saved login. Delete it and run `cairn login` again.")


def _admin_token(env: Mapping[str, str]) -> str | None:
    """The token that the service wrote at its first start, where this user may read it."""
    data = env.get("XDG_DATA_HOME") or Path(env.get("HOME") or Path.home()) / ".local" / "share"
    path = Path(env.get("CAIRN_HOME") or Path(data) / "cairn") / "admin-token"
    text = _read_private(path)
    return clean_token(text, str(path)) if text and text.strip() else None


def _read_private(path: Path) -> str | None:
    """The text of a secret file, None where there is none; refused where others could have read it."""
    try:
        with path.open(encoding="utf-8") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise BadSettings(f"{path} holds a token and other users can read it. Run: chmod 600 {path}")
            return file.read(1_000_000)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except UnicodeDecodeError:
        raise BadSettings(f"{path} is no text file. Delete it and run `cairn login` again.") from None
