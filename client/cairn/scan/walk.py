"""Every file of a tree or bucket, one after another, each folder's files together. Nothing is kept in memory."""

import os
import stat
from collections.abc import Iterator
from typing import Protocol

from cairn.formats.checkpoints import File, Listing, LocalSource, Unreadable
from cairn.formats.checkpoints.shapes import Problem, path_text
from cairn.scan.names import SKIPPED_FOLDERS
from cairn.stores import StoreSource, is_url


class Tree(Protocol):
    """Where a scan looks. Paths are relative to its root, with `/`."""

    root: str

    def walk(self) -> Iterator[File | Problem]:
        """Every file, and what could not be looked at. Raises `Unreadable` where the root itself cannot be listed."""

    def listing(self, path: str, files: list[File], *, single: bool = False) -> Listing:
        """The listing of a folder below the root, whose files the walk has met (relative to it), or of a `single`
        file."""

    def uri(self, path: str) -> str:
        """How the registry names a place below the root."""


def open_tree(root: str) -> Tree:
    """A folder of this machine, or a URL of an object store."""
    return StoreTree(root) if is_url(root) else LocalTree(root)


class LocalTree:
    """A folder. Links are never entered: what they point at below the root is met under its own name."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._real = os.path.realpath(root)

    def walk(self) -> Iterator[File | Problem]:
        if not os.path.isdir(self._real):
            raise Unreadable(f"{path_text(self.root)} is no folder.")
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            below: list[str] = []
            try:
                with os.scandir(os.path.join(self._real, folder)) as entries:
                    for entry in entries:
                        found = self._met(entry, folder + entry.name, below)
                        if found is not None:
                            yield found
            except OSError as fault:
                if not folder:
                    raise Unreadable(f"{path_text(self.root)} cannot be listed: {fault.strerror or fault}.") from None
                yield Problem(folder.rstrip("/"), f"the folder cannot be listed: {fault.strerror or fault}")
            waiting += below

    def listing(self, path: str, files: list[File], *, single: bool = False) -> Listing:
        return Listing(LocalSource(self._below(path)), {each.path: each for each in files})

    def uri(self, path: str) -> str:
        return self._below(path)

    def _below(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    def _met(self, entry: os.DirEntry[str], path: str, below: list[str]) -> File | Problem | None:
        try:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    below.append(path + "/")
                return None
            if entry.is_symlink() and self._leads_elsewhere(entry):
                return None
            found = entry.stat()
        except OSError as fault:
            return Problem(path, f"cannot be looked at: {fault.strerror or fault}")
        except Unreadable as fault:
            return Problem(path, str(fault))
        return File(path, found.st_size, found.st_mtime) if stat.S_ISREG(found.st_mode) else None

    def _leads_elsewhere(self, entry: os.DirEntry[str]) -> bool:
        """Whether a link points at a folder below the root. Raises `Unreadable` where it leads out, OSError where it
        leads nowhere or in a circle."""
        real = os.path.realpath(entry.path, strict=True)
        if real != self._real and not real.startswith(self._real.rstrip("/") + "/"):
            raise Unreadable("is a link that leads out of the scanned folder, so it is not followed")
        return os.path.isdir(real)


class StoreTree:
    """A bucket, or what lies below a prefix of it. Stores list in order, so each folder's objects come together."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._source = StoreSource(self.root)

    def walk(self) -> Iterator[File | Problem]:
        if self.root.startswith(("http://", "https://")):
            raise Unreadable(f"{self.root} cannot be scanned: HTTP has no listing. Scan a list of its URLs (a CSV).")
        return self._source.stream()

    def listing(self, path: str, files: list[File], *, single: bool = False) -> Listing:
        return Listing(StoreSource(self.uri(path), files, single=single), {each.path: each for each in files})

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root
