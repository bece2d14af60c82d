"""The folder of a service: whose it is, what room it has, and the admin token in it."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from registry import tokens
from registry.config import Settings
from registry.health.shapes import Found, fault, ok, warning

SCARCE_BYTES: Final = 2 * 1024**3  # below which a busy registry fills its disk within days
NONE_LEFT_BYTES: Final = 100 * 1024**2
MAKE_ANOTHER: Final = "`cairn-server token create NAME --scope admin` makes one; write it there, mode 0600."


def look_at_home(settings: Settings) -> Iterator[Found]:
    home = settings.home
    if not home.is_dir():
        yield fault("home", f"{home} is no folder.", "`cairn-server serve` makes it, or set CAIRN_HOME.")
        return
    yield _access(home)
    yield _space(home)


def look_at_token(session: Session, file: Path) -> Found:
    """The admin token's file: for its owner alone, and of this database."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return warning("admin token", f"{file} is not there or cannot be read.", MAKE_ANOTHER)
    if mode & 0o077:
        return fault("admin token", f"Others may read {file} (mode {mode:04o}).", f"chmod 600 {file}")
    if not tokens.holds_a_token(session, file):
        return warning("admin token", f"{file} holds no token of this database.", MAKE_ANOTHER)
    return ok("admin token", f"{file}, mode {mode:04o}")


def _access(home: Path) -> Found:
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return fault("home", f"{home} cannot be written by this user.", "Run as its owner, or set CAIRN_HOME.")
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o022:
        return warning("home", f"Others may write in {home} (mode {mode:04o}).", f"chmod 700 {home}")
    return ok("home", str(home))


def _space(home: Path) -> Found:
    free = shutil.disk_usage(home).free
    said = f"{free / 1024**3:,.1f} GiB are free where {home} lies."
    if free < NONE_LEFT_BYTES:
        return fault("space", said, "Make room now: without it nothing more can be recorded.")
    if free < SCARCE_BYTES:
        return warning("space", said, "Make room: a full disk ends recording.")
    return ok("space", said)
