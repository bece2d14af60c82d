"""Digests of files of this machine, on all cores: large ones mapped by a process of its own, the rest by reading."""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from cairn.digests.algorithms import DEFAULT, hasher
from cairn.digests.mapping import digests_by_mapping
from cairn.digests.shapes import FileDigest, Progress
from cairn.formats.checkpoints import File, Unreadable
from cairn.formats.checkpoints.shapes import Problem

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
MIB = 1024 * 1024
# Below this, files are hashed side by side, one thread each; above, one after another on all cores.
LARGE_BYTES = 32 * MIB
# What one thread reads at once: larger pieces leave the cache before they are hashed.
PIECE_BYTES = MIB
MAX_WINDOW_BYTES = 64 * MIB
# A disk answers faster when it is asked several things at once, even with few cores.
READERS = min(32, CORES + 2)
# From here on, a process that maps large files (20 ms to start) is sooner done than reading them.
MAPPED_FROM_BYTES = 128 * MIB
# Of tiny files, threads would only wait for each other: one reads them, each with a single call.
TINY_BYTES = 32 * 1024
# Handing a thread one small file costs more than hashing it.
HANDFUL_FILES, HANDFUL_BYTES = 128, 4 * MIB

FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

Answer = FileDigest | Problem


def digest_files(root: str, files: Sequence[File], algorithm: str, progress: Progress) -> Iterator[Answer]:
    """One answer for each file, in any order. `root` is a folder, or the one file itself."""
    base = _Base(root)
    tiny: list[File] = []
    small: list[File] = []
    large: list[File] = []
    for each in files:
        in_pieces = small if each.bytes < LARGE_BYTES or algorithm != DEFAULT else large
        (tiny if each.bytes <= TINY_BYTES else in_pieces).append(each)
    yield from _digest_tiny_files(base, tiny, algorithm, progress)
    if sum(each.bytes for each in large) >= MAPPED_FROM_BYTES:
        for each, value in digests_by_mapping(base.place, tuple(large)):
            large.remove(each)
            progress(each.bytes)
            yield FileDigest(each.path, each.bytes, value)
    with ThreadPoolExecutor(READERS) as pool:
        yield from (guarded(each, partial(_digest_large, base, pool, progress)) for each in large)
        handfuls = _handfuls(sorted(small, key=lambda each: -each.bytes))
        digest = partial(_digest_small, base, algorithm, progress)
        for answers in pool.map(lambda some: [guarded(each, digest) for each in some], handfuls):
            yield from answers


def guarded(file: File, digest: Callable[[File], str]) -> Answer:
    """What a digest fails with is a problem of that file alone."""
    try:
        return FileDigest(file.path, file.bytes, digest(file))
    except OSError as fault:
        return Problem(file.path, f"cannot be read: {fault.strerror or fault}")
    except Unreadable as fault:
        return Problem(file.path, str(fault))


def _handfuls(files: Sequence[File]) -> Iterator[list[File]]:
    some: list[File] = []
    size = 0
    for each in files:
        some.append(each)
        size += each.bytes
        if len(some) >= HANDFUL_FILES or size >= HANDFUL_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _digest_tiny_files(base: "_Base", files: Sequence[File], algorithm: str, progress: Progress) -> Iterator[Answer]:
    """Four system calls for each: open, read, look, close. Whatever is not as it was listed is read with care."""
    new = partial(hasher, algorithm)
    with_care = partial(_digest_small, base, algorithm, progress)
    for each in files:
        data = _unchanged(base, each)
        if data is None:
            yield guarded(each, with_care)
            continue
        found = new()
        found.update(data)
        progress(each.bytes)
        yield FileDigest(each.path, each.bytes, found.hexdigest())


def _unchanged(base: "_Base", file: File) -> bytes | None:
    """All of a file that after reading still has the size and time with which it was listed."""
    try:
        handle = base.open_plain(file.path)
    except OSError:
        return None
    try:
        data = os.read(handle, file.bytes + 1)
        now = os.fstat(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    as_listed = len(data) == now.st_size == file.bytes and now.st_mtime == file.modified_at
    return data if as_listed and stat.S_ISREG(now.st_mode) else None


def _digest_small(base: "_Base", algorithm: str, progress: Progress, file: File) -> str:
    found = hasher(algorithm)
    buffer = memoryview(bytearray(max(1, min(PIECE_BYTES, file.bytes))))
    with _Opened(base, file) as opened:
        while opened.left and (length := opened.read_at(buffer, opened.at)):
            opened.at += length
            found.update(buffer[:length])
            progress(length)
    return found.hexdigest()


def _digest_large(base: "_Base", pool: ThreadPoolExecutor, progress: Progress, file: File) -> str:
    """One file on all cores: while one window is hashed, threads read the next."""
    found = hasher(DEFAULT, threads=CORES)
    size = min(MAX_WINDOW_BYTES, 2 * PIECE_BYTES * CORES)
    filled, empty = memoryview(bytearray(size)), memoryview(bytearray(size))
    with _Opened(base, file) as opened:
        reading = _fill(pool, opened, filled, 0)
        while length := sum(each.result() for each in reading):
            opened.at += length
            reading = _fill(pool, opened, empty, opened.at) if opened.left and length == size else []
            found.update(filled[:length])
            filled, empty = empty, filled
            progress(length)
    return found.hexdigest()


def _fill(pool: ThreadPoolExecutor, opened: "_Opened", window: memoryview, offset: int) -> "list[Future[int]]":
    return [
        pool.submit(opened.read_at, window[start : start + PIECE_BYTES], offset + start)
        for start in range(0, len(window), PIECE_BYTES)
    ]


class _Base:
    """The root, its links followed once."""

    def __init__(self, root: str) -> None:
        self.real = os.path.realpath(root)
        self.is_folder = os.path.isdir(self.real)

    def open_plain(self, path: str) -> int:
        """A handle to read from, of what is no link itself. Raises OSError."""
        return os.open(self.place(path), FLAGS)

    def open(self, path: str) -> int:
        """The same, through links that stay below the root. Raises OSError, `Unreadable`."""
        try:
            return self.open_plain(path)
        except OSError as fault:
            if fault.errno != errno.ELOOP:
                raise
        real = os.path.realpath(self.place(path), strict=True)
        if not real.startswith(self.real.rstrip("/") + "/"):
            raise Unreadable("is a link that leads out of the checkpoint's folder, so it is not followed")
        return os.open(real, FLAGS)

    def place(self, path: str) -> str:
        return f"{self.real}/{path}" if self.is_folder else self.real


class _Opened:
    """A file below the root, which at the end must not have changed and be fully read.

    `at` counts the bytes read from its beginning, `left` those that are still to come.
    """

    def __init__(self, base: _Base, file: File) -> None:
        self._base, self._path, self._listed = base, file.path, file.bytes
        self.at = 0

    def __enter__(self) -> "_Opened":
        self._handle = self._base.open(self._path)
        self._before = os.fstat(self._handle)
        if not stat.S_ISREG(self._before.st_mode):
            os.close(self._handle)
            raise Unreadable("is no regular file")
        if self._before.st_size != self._listed:
            os.close(self._handle)
            raise Unreadable(f"changed: it was listed with {self._listed:,} bytes and has {self._before.st_size:,}")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        after = os.fstat(self._handle)
        os.close(self._handle)
        size = self._before.st_size
        if kind is None and (self.left or (after.st_size, after.st_mtime_ns) != (size, self._before.st_mtime_ns)):
            now = min(self.at, after.st_size) if self.left else after.st_size
            raise Unreadable(f"changed while it was read ({size:,} bytes when it was opened, {now:,} then)")

    @property
    def left(self) -> int:
        return self._before.st_size - self.at

    def read_at(self, buffer: memoryview, offset: int) -> int:
        """Fills the buffer; fewer bytes only at the file's end."""
        done = 0
        while done < len(buffer) and (length := os.preadv(self._handle, [buffer[done:]], offset + done)):
            done += length
        return done
