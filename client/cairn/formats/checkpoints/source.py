"""Where the files of a checkpoint are: a listing and bounded reads, whatever the storage.

Readers see a `Listing` only. `LocalSource` is the one for folders and files of this machine; object stores have
theirs outside of this package, since it needs a library.
"""

import errno
import io
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cairn.formats.checkpoints.shapes import OutOfReach, Problem, Unreadable, path_text

# More files than any checkpoint has: 10,000 ranks write some 20,000. The rest is not listed, and that is said.
MAX_FILES = 250_000
# No single read is larger: readers ask for headers and small files.
MAX_READ = 64 * 1024 * 1024
# Of many reads, the answers that are held at once.
PORTION_BYTES = 32 * 1024 * 1024
# What is read at once where a file's head is looked at; most headers fit, so that an object store is asked once.
HEAD_BYTES = 64 * 1024
# A file of this size is read in one piece where more than its head is wanted: cheaper than asking a few times.
SMALL_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was listed. `modified_at` is seconds since the epoch: never a reason for an order of steps."""

    path: str
    bytes: int
    modified_at: float | None = None


class Source(Protocol):
    """One checkpoint's place. `name` is its path or URL as a person would write it."""

    @property
    def name(self) -> str: ...

    def listed(self) -> tuple[Sequence[File], Sequence[Problem]]:
        """Every file below, in any order, and what could not be listed. Raises `Unreadable`: nothing can."""

    def read(self, path: str, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`; fewer only at the file's end. Raises `Unreadable`."""

    def read_many(self, wanted: Sequence[tuple[str, int, int]]) -> Sequence[bytes | Unreadable]:
        """The same for many at once (a store asks in parallel): one answer each, in order, never raising."""


class OneByOne(ABC):
    """`read_many` for a source that gains nothing from asking in parallel."""

    @abstractmethod
    def read(self, path: str, offset: int, length: int) -> bytes: ...

    def read_many(self, wanted: Sequence[tuple[str, int, int]]) -> Sequence[bytes | Unreadable]:
        return [self._caught(*each) for each in wanted]

    def _caught(self, path: str, offset: int, length: int) -> bytes | Unreadable:
        try:
            return self.read(path, offset, length)
        except Unreadable as fault:
            return fault


@dataclass(frozen=True)
class Listing:
    """The files below one root, by path in order, and how to read them. `below` gives the same of a subfolder."""

    source: Source
    files: dict[str, File]
    problems: tuple[Problem, ...] = ()
    prefix: str = ""
    _heads: dict[tuple[str, int], bytes] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, source: Source) -> "Listing":
        files, problems = source.listed()
        return cls(source, {each.path: each for each in sorted(files, key=lambda each: each.path)}, tuple(problems))

    @property
    def root(self) -> str:
        """Where this listing begins, as a person would write it."""
        return f"{self.source.name.rstrip('/')}/{self.prefix.rstrip('/')}" if self.prefix else self.source.name

    @property
    def name(self) -> str:
        """The last part of the root: a folder's or a single file's name."""
        return self.root.rstrip("/").rpartition("/")[2]

    @property
    def total_bytes(self) -> int:
        return sum(each.bytes for each in self.files.values())

    def __contains__(self, path: object) -> bool:
        return path in self.files

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def size(self, path: str) -> int:
        return self.files[path].bytes

    def top(self) -> list[str]:
        """The names of files directly in the root."""
        return [path for path in self.files if "/" not in path]

    def folders(self) -> list[str]:
        """The names of folders directly in the root that hold a file somewhere."""
        return list(dict.fromkeys(path.partition("/")[0] for path in self.files if "/" in path))

    def below(self, folder: str) -> "Listing":
        """The listing of a subfolder, its paths relative to it."""
        start = folder.rstrip("/") + "/"
        files = {
            path[len(start) :]: File(path[len(start) :], each.bytes, each.modified_at)
            for path, each in self.files.items()
            if path.startswith(start)
        }
        return Listing(self.source, files, (), self.prefix + start)

    def only(self, paths: Iterable[str]) -> "Listing":
        """The same root with a part of its files."""
        return Listing(self.source, {path: self.files[path] for path in paths}, self.problems, self.prefix)

    def head(self, path: str, length: int = HEAD_BYTES) -> bytes:
        """The first bytes, fewer where the file ends; kept, so that looking twice costs one read."""
        key = (path, length)
        if key not in self._heads:
            if len(self._heads) >= 64:
                self._heads.clear()
            self._heads[key] = self.source.read(self.prefix + path, 0, length)
        return self._heads[key]

    def begins(self, path: str, magic: bytes) -> bool:
        """Whether a file begins with these bytes; one that cannot be read does not."""
        try:
            return self.head(path, 64)[: len(magic)] == magic
        except Unreadable:
            return False

    def exact(self, path: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes. Raises `Unreadable` where the file ends before."""
        if length > MAX_READ:
            raise Unreadable(f"{path_text(path)} asks for {length:,} bytes at once; at most {MAX_READ:,} are read.")
        return _whole(path, offset, length, self.source.read(self.prefix + path, offset, length))

    def exact_many(self, wanted: Sequence[tuple[str, int, int]]) -> Iterator[bytes | Unreadable]:
        """`exact` for many: one answer or one fault each, asked for in portions as they are taken."""
        for some in _portions(wanted):
            got = self.source.read_many([(self.prefix + path, offset, length) for path, offset, length in some])
            yield from map(_answered, some, got)

    def all_of(self, path: str, limit: int) -> bytes:
        """A whole small file. Raises `Unreadable` where it is larger than `limit`."""
        size = self.size(path)
        if size > limit:
            raise Unreadable(f"{path_text(path)} has {size:,} bytes; at most {limit:,} are read of such a file.")
        return self.exact(path, 0, size)

    def open(self, path: str) -> io.BufferedReader:
        """A seekable view for the standard library's readers (zip): a small file at once, others as they are asked."""
        size = self.size(path)
        if size <= SMALL_BYTES:
            return io.BufferedReader(io.BytesIO(self.exact(path, 0, size)))
        return io.BufferedReader(_View(self, path), HEAD_BYTES)


def _whole(path: str, offset: int, length: int, data: bytes) -> bytes:
    if len(data) == length:
        return data
    raise Unreadable(
        f"{path_text(path)} ended at byte {offset + len(data):,} where {offset + length:,} were expected: "
        "it was cut short, or is still being written."
    )


def _portions(wanted: Sequence[tuple[str, int, int]]) -> Iterator[list[tuple[str, int, int]]]:
    """Parts of a list whose answers together are small, or a single one that is not."""
    some: list[tuple[str, int, int]] = []
    size = 0
    for each in wanted:
        if some and size + each[2] > PORTION_BYTES:
            yield some
            some, size = [], 0
        some.append(each)
        size += each[2]
    if some:
        yield some


def _answered(asked: tuple[str, int, int], data: bytes | Unreadable) -> bytes | Unreadable:
    try:
        return data if isinstance(data, Unreadable) else _whole(*asked, data)
    except Unreadable as fault:
        return fault


class _View(io.RawIOBase):
    def __init__(self, listing: Listing, path: str) -> None:
        self._listing, self._path, self._at = listing, path, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, self._listing.size(self._path))[whence]
        if base + offset < 0:
            raise ValueError("before the file's beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        length = min(len(buffer), max(0, self._listing.size(self._path) - self._at), MAX_READ)
        data = self._listing.source.read(self._listing.prefix + self._path, self._at, length) if length else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


# Never through a link that appeared meanwhile, and never waiting at a pipe.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# No access, or a file system whose server does not answer: nothing is said of the files.
_OF_THIS_HOST = frozenset(
    {errno.EACCES, errno.EPERM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH}
    | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


class LocalSource(OneByOne):
    """A folder, or one file, of this machine.

    Links are followed to files below the root only: what leads out, in a circle or nowhere is reported and left.
    A link to a folder is not entered, since a folder below the root is listed under its own name. `links_below` is
    a folder above the root into which links may lead too: a cache keeps its files apart from the names for them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_files: int = MAX_FILES,
        links_below: str | os.PathLike[str] | None = None,
    ) -> None:
        self.name = os.path.abspath(os.fsdecode(path))
        self._real = os.path.realpath(self.name)
        self._bound = self._real if links_below is None else os.path.realpath(os.fsdecode(links_below))
        self._single = not os.path.isdir(self._real)
        self._max_files = max_files

    def listed(self) -> tuple[Sequence[File], Sequence[Problem]]:
        try:
            if self._single:
                return [self._only_file()], []
            return self._walk()
        except OSError as fault:
            raise _fault(f"{path_text(self.name)} cannot be listed", fault) from None

    def read(self, path: str, offset: int, length: int) -> bytes:
        try:
            return _read(self._opened(path), offset, length)
        except OSError as fault:
            raise _fault(f"{path_text(path)} cannot be read", fault) from None

    def _opened(self, path: str) -> int:
        """A handle: of the file itself, or, where a link is in its path, of where that leads below the root."""
        place = self._real if self._single else f"{self._real}/{path}"
        if "/" not in path and path != "..":
            try:
                return os.open(place, _FLAGS)
            except OSError as fault:
                if fault.errno != errno.ELOOP:
                    raise
        return os.open(place if self._single else self._inside(place), _FLAGS)

    def _only_file(self) -> File:
        found = os.stat(self._real)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path_text(self.name)} is neither a folder nor a file.")
        return File(os.path.basename(self.name), found.st_size, found.st_mtime)

    def _walk(self) -> tuple[list[File], list[Problem]]:
        files: list[File] = []
        problems: list[Problem] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._real, folder)) as entries:
                    for entry in entries:
                        self._entry(entry, folder + entry.name, files, problems, waiting)
                        if len(files) >= self._max_files:
                            problems.append(Problem("", f"only the first {self._max_files:,} files are looked at"))
                            return files, problems
            except OSError as fault:
                if not folder:
                    raise
                problems.append(Problem(folder.rstrip("/"), f"the folder cannot be listed: {fault.strerror or fault}"))
        return files, problems

    def _entry(
        self, entry: os.DirEntry[str], path: str, files: list[File], problems: list[Problem], waiting: list[str]
    ) -> None:
        try:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path + "/")
                return
            if entry.is_symlink():
                self._inside(entry.path)
                if entry.is_dir():
                    return
            found = entry.stat()
        except (OSError, Unreadable) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else None
            problems.append(Problem(path, f"cannot be looked at: {reason or fault}"))
            return
        if stat.S_ISREG(found.st_mode):
            files.append(File(path, found.st_size, found.st_mtime))
        else:
            problems.append(Problem(path, "is no regular file, so it is left alone"))

    def _inside(self, place: str) -> str:
        """The real path. Raises `Unreadable` where a link leads out of the root, OSError where it leads nowhere."""
        real = os.path.realpath(place, strict=True)
        if real != self._bound and not real.startswith(self._bound.rstrip("/") + "/"):
            raise Unreadable(f"the link leads out of {path_text(self._bound)}, so it is not followed")
        return real


def _fault(what: str, fault: OSError) -> Unreadable:
    kind = OutOfReach if fault.errno in _OF_THIS_HOST else Unreadable
    return kind(f"{what}: {fault.strerror or fault}.")


def _read(handle: int, offset: int, length: int) -> bytes:
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is no regular file")
        parts = []
        while length > 0 and (data := os.pread(handle, length, offset)):
            parts.append(data)
            offset, length = offset + len(data), length - len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(handle)
