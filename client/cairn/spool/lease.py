"""Who owns a spool: a chain of lease files, of which each can be made once and the last one counts.

`lease-000001` names the process that made the spool and is touched every few seconds. Whoever finds its owner dead
takes the spool over by making `lease-000002`: through a hard link, which is atomic on NFS too, so that of any number
who try at once exactly one succeeds. Where links are not supported the file is created exclusively instead.

An owner on this kernel and in this process namespace is dead when its process is gone (number and start time). Of any
other the lease must have grown older than `EXPIRY_SECONDS` on the clock of the file system, not of either host.
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from cairn.spool.owner import RELEASED, Owner

RENEW_SECONDS = 15.0
EXPIRY_SECONDS = 180.0
TRUST_SECONDS = EXPIRY_SECONDS / 2  # after so long without a renewal an owner no longer believes that it is one
_NAME = re.compile(r"lease-(\d{6})")


class Lease:
    """The right to a spool folder, as long as nobody has taken it over."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number = folder, number
        self._path = folder / _name(number)

    def renew(self) -> bool:
        """Says that the owner lives. False where somebody has taken the spool over, or it is gone."""
        try:
            os.utime(self._path)
        except FileNotFoundError:
            return False
        return not (self.folder / _name(self.number + 1)).exists()

    def is_held(self) -> bool:
        """Whether the folder is still there and nobody has taken it over."""
        return self._path.exists() and not (self.folder / _name(self.number + 1)).exists()

    def release(self) -> None:
        """The owner gives the spool up: whoever comes next may have it at once."""
        scratch = self.folder / f".lease-{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            scratch.write_text(Owner.nobody().to_json(), encoding="utf-8")
            os.replace(scratch, self._path)


def begin(folder: Path) -> None:
    """The first lease, in a folder that nobody else can find yet. Raises OSError."""
    if not _make(folder, 1):
        raise FileExistsError(f"{folder} has an owner already")


def clock() -> float:
    """Seconds that go on while the host is suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def claim(folder: Path, *, now: Callable[[Path], float] | None = None) -> Lease | None:
    """The lease of a folder whose owner is dead; None where it is held or others were quicker.

    Raises OSError where the folder cannot be written.
    """
    newest = newest_lease(folder)
    if is_alive(folder, newest, now=now):
        return None
    return Lease(folder, newest + 1) if _make(folder, newest + 1) else None


def newest_lease(folder: Path) -> int:
    """The number of the lease that counts; 0 where there is none. Raises OSError."""
    found = (_NAME.fullmatch(name) for name in os.listdir(folder))
    return max((int(each[1]) for each in found if each), default=0)


def read_owner(folder: Path, number: int) -> Owner | None:
    """Who holds a lease; None where that cannot be read."""
    try:
        return Owner.from_json((folder / _name(number)).read_text("utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_alive(folder: Path, number: int, *, now: Callable[[Path], float] | None = None) -> bool:
    """Whether the owner still works. In doubt it does: a spool is rather sent late than by two."""
    if not number:
        return _is_young(folder, now or file_system_time)
    owner = read_owner(folder, number)
    if owner is not None and owner.is_near:
        return owner.lives()
    if owner is not None and owner.started == RELEASED:
        return False
    try:
        renewed = os.stat(folder / _name(number)).st_mtime
        return (now or file_system_time)(folder) - renewed < EXPIRY_SECONDS
    except OSError:
        return False  # the folder is gone: nobody owns it, and nobody will


def is_silent(folder: Path, number: int, *, now: Callable[[Path], float] | None = None) -> bool:
    """Whether an owner elsewhere has missed its renewals but may still live: soon one will know."""
    owner = read_owner(folder, number)
    if owner is not None and (owner.is_near or owner.started == RELEASED):
        return False
    try:
        age = (now or file_system_time)(folder) - os.stat(folder / _name(number)).st_mtime
    except OSError:
        return False
    return 2.5 * RENEW_SECONDS < age < EXPIRY_SECONDS


def _is_young(folder: Path, now: Callable[[Path], float]) -> bool:
    """A folder without any lease may be somebody's who is about to put one there. The clock is read beside it: a probe
    inside would make the folder younger."""
    try:
        return now(folder.parent) - os.stat(folder).st_mtime < EXPIRY_SECONDS
    except OSError:
        return True


def file_system_time(folder: Path) -> float:
    """What the clock of the folder's file system says: two hosts need not agree on the time. Raises OSError."""
    probe = folder / f".now-{secrets.token_hex(4)}"
    handle = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.utime(handle)
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
        os.unlink(probe)


def _name(number: int) -> str:
    return f"lease-{number:06d}"


def _make(folder: Path, number: int) -> bool:
    content = Owner.of_this_process().to_json().encode()
    scratch = folder / f".lease-{secrets.token_hex(8)}"
    target = folder / _name(number)
    handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(handle, content)
        os.close(handle)
        try:
            os.link(scratch, target)
        except FileExistsError:
            return _is_same(scratch, target)  # the answer of an NFS server may have been lost and asked for again
        except OSError:
            return _make_without_links(target, content)
        return True
    finally:
        with contextlib.suppress(OSError):
            os.unlink(scratch)


def _is_same(scratch: Path, target: Path) -> bool:
    try:
        return os.path.samefile(scratch, target)
    except OSError:
        return False


def _make_without_links(target: Path, content: bytes) -> bool:
    try:
        handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return True
