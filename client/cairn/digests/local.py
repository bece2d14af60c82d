"""Digests of files on this machine, on all cores: much data by mapping in a process of its own, the rest by reading."""

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
# From here on, a process that maps the files (20 ms to start) is sooner done than reading them.
MAPPED_FROM_BYTES = 128 * MIB
# Of tiny files, threads would only wait for each other: one reads them, each with a single call.
TINY_BYTES = 32 * 1024
# Handing a thread one small file costs more than hashing it.
HANDFUL_FILES, HANDFUL_BYTES = 128, 4 * MIB

Answer = FileDigest | Problem


def digest_files(root: str, files: Sequence[File], algorithm: str, progress: Progress) -> Iterator[Answer]:
    """One answer for each file, in any order. `root` is a folder, or the one file itself."""
    base = _Base(root)
    if algorithm == DEFAULT and base.is_folder and sum(each.bytes for each in files) >= MAPPED_FROM_BYTES:
        left = dict.fromkeys(files)
        for each, value in digests_by_mapping(base.real, files):
            del left[each]
            progress(each.bytes)
            yield FileDigest(each.path, each.bytes, value)
        files = list(left)
    yield from _read_files(base, files, algorithm, progress)


def _read_files(base: "_Base", files: Sequence[File], algorithm: str, progress: Progress) -> Iterator[Answer]:
    large = [each for each in files if each.bytes >= LARGE_BYTES and algorithm == DEFAULT]
    tiny = [each for each in files if each.bytes <= TINY_BYTES]
    small = sorted(set(files) - set(large) - set(tiny), key=lambda each: -each.bytes)
    for each in tiny:
        yield guarded(each, partial(_digest_tiny, base, algorithm, progress))
    with ThreadPoolExecutor(READERS) as pool:
        for each in large:
            yield guarded(each, partial(_digest_large, base, pool, progress))
        digest = partial(_digest_small, base, algorithm, progress)
        for answers in pool.map(lambda some: [guarded(each, digest) for each in some], _handfuls(small)):
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


def _digest_tiny(base: "_Base", algorithm: str, progress: Progress, file: File) -> str:
    found = hasher(algorithm)
    with _Opened(base, file) as opened:
        data = opened.read(file.bytes)
        found.update(data)
    progress(len(data))
    return found.hexdigest()


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

    def open(self, path: str) -> int:
        """A handle to read from. Raises OSError, `Unreadable`."""
        place = f"{self.real}/{path}" if self.is_folder else self.real
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(place, flags)
        except OSError as fault:
            if fault.errno != errno.ELOOP:
                raise
        real = os.path.realpath(place, strict=True)
        if not real.startswith(self.real.rstrip("/") + "/"):
            raise Unreadable("is a link that leads out of the checkpoint's folder, so it is not followed")
        return os.open(real, flags)


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

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`."""
        data = os.read(self._handle, size)
        self.at += len(data)
        return data

    def read_at(self, buffer: memoryview, offset: int) -> int:
        """Fills the buffer; fewer bytes only at the file's end."""
        done = 0
        while done < len(buffer) and (length := os.preadv(self._handle, [buffer[done:]], offset + done)):
            done += length
        return done
