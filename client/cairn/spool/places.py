"""Where spools lie: one folder per process below one root, so that whoever comes next finds what was left.

ROOT/20261129-183000-node7-4711-9f2c/   records-000001.log  done  prepared.log  lease-000001
ROOT/refused/                           what the service refused, with its reason
"""

import contextlib
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

REFUSED = "refused"
_NAME = re.compile(r"\d{8}-\d{6}-[A-Za-z0-9._-]{1,80}-\d+-[0-9a-f]{8}")


def roots(environ: Mapping[str, str] | None = None) -> list[Path]:
    """`CAIRN_SPOOL`, else `$XDG_STATE_HOME/cairn/spool` (~/.local/state); then a folder of this user for want of it."""
    env = os.environ if environ is None else environ
    if env.get("CAIRN_SPOOL"):
        return [Path(env["CAIRN_SPOOL"])]
    base = env.get("XDG_STATE_HOME")
    found = []
    with contextlib.suppress(RuntimeError):  # no home folder at all
        found.append(
            (Path(base) if base else Path(env.get("HOME") or Path.home()) / ".local" / "state") / "cairn" / "spool"
        )
    return [*found, _of_this_user()]


def local_folder() -> Path:
    """A folder of this user on this host's own disk, for what concerns this host only. Raises OSError."""
    folder = _of_this_user()
    folder.mkdir(exist_ok=True, mode=0o700)
    _refuse_foreign(folder)
    return folder


def new_folder(root: Path, begin: Callable[[Path], None]) -> Path:
    """A folder of this process, which others cannot read: configs and paths stand in it. Raises OSError.

    It gets its name only once `begin` has put the first lease into it. Otherwise whoever looks at that moment for what
    the dead have left finds a folder without an owner, takes it, and throws it away as empty.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    _refuse_foreign(root)
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:80] or "host"
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{host}-{os.getpid()}-{secrets.token_hex(4)}"
    scratch, folder = root / f".{name}", root / name
    scratch.mkdir(mode=0o700)
    try:
        begin(scratch)
        os.rename(scratch, folder)
    except OSError:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return folder


def spool_folders(root: Path) -> Iterator[Path]:
    """Every process's folder below a root, the oldest first."""
    try:
        names = sorted(name for name in os.listdir(root) if _NAME.fullmatch(name))
    except OSError:
        return
    yield from (root / name for name in names)


def is_spool(folder: Path) -> bool:
    """Whether this is a folder of a process's records, by its name and by what lies in it."""
    if not _NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False
    return any(name.startswith(("records-", "lease-")) for name in os.listdir(folder))


def _of_this_user() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"cairn-spool-{user}"


def _refuse_foreign(root: Path) -> None:
    """In a folder that everybody may write to, somebody else could have made it first and read along."""
    if not hasattr(os, "getuid"):
        return
    found = os.lstat(root)
    if root.parent == Path(tempfile.gettempdir()) and (
        stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise PermissionError(f"{root} belongs to somebody else or is open to others.")
