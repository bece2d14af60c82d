"""Settings, read from the environment once, when a process starts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from registry.errors import Invalid


class BadSetting(Invalid):
    code = "bad-setting"
    title = "A setting cannot be used"


@dataclass(frozen=True)
class Settings:
    """Everything a process needs to know about where it runs. Sizes in bytes."""

    home: Path
    database_url: str
    host: str = "127.0.0.1"
    port: int = 8400
    storage_roots: tuple[str, ...] = ()
    max_body_bytes: int = 32 * 1024 * 1024
    max_batch_items: int = 10_000
    git_mirrors: Path | None = None  # bare repositories by host and path, for what changed between two commits
    tracker_hosts: tuple[str, ...] = ()  # hosts and networks that a worker may call; see registry.integrations.hosts
    worker: bool = True  # `serve` on SQLite starts a worker beside it
    watch_seconds: int = 15  # between two looks for lost and stalled attempts
    lost_after_seconds: int = 120  # without a heartbeat
    stalled_after_seconds: int = 300  # without a step, at least
    public_url: str | None = None  # what a browser types, where a proxy stands in between

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def admin_token_file(self) -> Path:
        return self.home / "admin-token"


def default_home(environ: Mapping[str, str]) -> Path:
    """A folder of the user's own data, as the XDG base directory specification says."""
    base = environ.get("XDG_DATA_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local/share")
    return Path(base) / "cairn"


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Raises BadSetting, naming the variable and what was expected."""
    env = os.environ if environ is None else environ
    home = Path(env.get("CAIRN_HOME") or default_home(env)).absolute()
    return Settings(
        home=home,
        database_url=_database_url(env.get("CAIRN_DATABASE_URL") or f"sqlite:///{home / 'cairn.db'}"),
        host=env.get("CAIRN_HOST") or "127.0.0.1",
        port=_whole_number(env, "CAIRN_PORT", 8400, at_most=65_535),
        storage_roots=_storage_roots(env.get("CAIRN_STORAGE_ROOTS") or ""),
        max_body_bytes=_whole_number(env, "CAIRN_MAX_BODY_BYTES", 32 * 1024 * 1024),
        max_batch_items=_whole_number(env, "CAIRN_MAX_BATCH_ITEMS", 10_000),
        git_mirrors=_git_mirrors(env.get("CAIRN_GIT_MIRRORS") or ""),
        tracker_hosts=tuple(filter(None, (each.strip() for each in env.get("CAIRN_TRACKER_HOSTS", "").split(",")))),
        worker=_switch(env, "CAIRN_WORKER", True),
        watch_seconds=_whole_number(env, "CAIRN_WATCH_SECONDS", 15),
        lost_after_seconds=_whole_number(env, "CAIRN_LOST_AFTER_SECONDS", 120),
        stalled_after_seconds=_whole_number(env, "CAIRN_STALLED_AFTER_SECONDS", 300),
        public_url=_public_url(env.get("CAIRN_PUBLIC_URL") or ""),
    )


def _storage_roots(text: str) -> tuple[str, ...]:
    """Folders and object-store URLs, separated by commas (a URL holds colons)."""
    roots = tuple(root.strip() for root in text.split(",") if root.strip())
    for root in roots:
        if not (root.startswith("/") or "://" in root):
            raise BadSetting(f"CAIRN_STORAGE_ROOTS names {root!r}; expected absolute folders or URLs, comma between.")
    return roots


def _git_mirrors(text: str) -> Path | None:
    if text and not os.path.isabs(text):
        raise BadSetting(f"CAIRN_GIT_MIRRORS is {text!r}; expected an absolute folder of bare repositories.")
    return Path(text) if text else None


def _public_url(text: str) -> str | None:
    if text and not text.startswith(("http://", "https://")):
        raise BadSetting(f"CAIRN_PUBLIC_URL is {text!r}; expected http://… or https://….")
    return text.rstrip("/") or None


def _database_url(text: str) -> str:
    """The URL, if it is of a database that is spoken to here; a message never shows its password."""
    from sqlalchemy import make_url  # here: `cairn-server --help` needs no database
    from sqlalchemy.exc import ArgumentError

    wanted = "expected sqlite:////folder/cairn.db or postgresql+psycopg://user:password@host/database"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise BadSetting(f"CAIRN_DATABASE_URL cannot be read: {wanted}.") from None
    shown = url.render_as_string(hide_password=True)
    if url.drivername not in ("sqlite", "postgresql", "postgresql+psycopg"):
        raise BadSetting(f"CAIRN_DATABASE_URL is {shown!r}: {wanted}.")
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise BadSetting(f"CAIRN_DATABASE_URL is {shown!r}, which would be forgotten at the end: {wanted}.")
    return text


def _switch(env: Mapping[str, str], name: str, default: bool) -> bool:
    text = env.get(name, "").lower()
    if text not in ("", "0", "1", "true", "false", "on", "off"):
        raise BadSetting(f"{name} is {text!r}; expected 1 or 0.")
    return default if not text else text in ("1", "true", "on")


def _whole_number(env: Mapping[str, str], name: str, default: int, *, at_most: int = 2**40) -> int:
    text = env.get(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= at_most:
        raise BadSetting(f"{name} is {text!r}; expected a whole number from 1 to {at_most}.")
    return int(text)
