"""The copying itself."""

import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from cairn.digests import FileDigest, digest_tree, verify_tree
from cairn.digests.algorithms import same_digest
from cairn.digests.shapes import Progress
from cairn.errors import CairnError, Invalid
from cairn.fetch.journal import Journal
from cairn.fetch.pieces import READ_BYTES, Piece, files_to_copy, pieces_of
from cairn.formats.checkpoints import File, Source, Unreadable
from cairn.formats.checkpoints.shapes import path_text
from cairn.types import Manifest

WORKERS = 8
SPARE_BYTES = 16 * 1024 * 1024  # left on the disk
BY_SIZE = "size"


class FetchFailed(CairnError):
    """The copy is not whole; what has been copied is kept beside the destination, and the next try goes on from it."""


@dataclass(frozen=True)
class Fetched:
    """A whole copy. `verified_by`: the digest's algorithm, or `size` where no digest is recorded. Bytes.

    `bytes_copied` leaves out what an earlier try had copied.
    """

    path: str
    files: int
    bytes: int
    bytes_copied: int
    verified_by: str


def fetch(
    source: Source,
    destination: str | os.PathLike[str],
    *,
    manifest: Manifest | None = None,
    digest: tuple[str, str] | None = None,
    workers: int = WORKERS,
    progress: Progress | None = None,
) -> Fetched:
    """Copies every file of `source` into the folder `destination`, which must not be there.

    `manifest` is held against the files before and after; without one, `digest` (algorithm, value) of the whole is.
    `progress` receives numbers of bytes, of copying and of verifying. Raises `Invalid` where the destination is there,
    `Unreadable` where the source cannot be read or is not what the manifest says, `FetchFailed`, OSError.
    """
    target = Path(os.path.abspath(destination))
    if os.path.lexists(target):
        raise Invalid(f"{target} is there already, and nothing is overwritten. Name another folder.", code="exists")
    listed, problems = source.listed()
    if problems:
        raise Unreadable(f"{path_text(problems[0].path)} {problems[0].reason}")
    files = files_to_copy(listed, manifest)
    if not files:
        raise Unreadable(f"{source.name} holds no file")
    partial = target.with_name(f"{target.name}.partial")
    with Journal(partial, source.name, files) as journal:
        todo = [piece for piece in pieces_of(files) if (piece.path, piece.offset) not in journal.done]
        if progress is not None:
            progress(sum(each.bytes for each in files) - sum(piece.length for piece in todo))
        _require_room(partial, sum(piece.length for piece in todo))
        _copy(source, journal, todo, workers, progress)
        checked = _verify(journal, files, manifest, digest, progress)
        _name(journal.files, target)
        journal.remove()
    total = sum(each.bytes for each in files)
    return Fetched(str(target), len(files), total, sum(piece.length for piece in todo), checked)


def _require_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed + SPARE_BYTES > free:
        raise FetchFailed(
            f"{folder.parent} has {free:,} bytes left, and {needed:,} are to be copied.", code="disk-full"
        )


def _copy(source: Source, journal: Journal, pieces: Sequence[Piece], workers: int, progress: Progress | None) -> None:
    """Raises what the first piece failed with; the others that are under way are still written and noted."""
    for parent in {os.path.dirname(piece.path) for piece in pieces}:
        _make_folder(journal.files, parent)
    failed: BaseException | None = None
    with ThreadPoolExecutor(max(1, workers)) as pool:
        running = {pool.submit(_copy_piece, source, journal.files, piece): piece for piece in pieces}
        try:
            for each in as_completed(running):
                if each.cancelled():
                    continue
                fault = each.exception()
                if fault is None:
                    journal.note(running[each])
                    if progress is not None:
                        progress(running[each].length)
                elif failed is None:
                    failed = fault
                    _cancel(running)
        finally:
            _cancel(running)  # on ^C too: what has begun ends, the rest is for the next time
    if isinstance(failed, OSError):
        told = (
            f"{journal.files} cannot be written: {failed.strerror or failed}. What was copied is kept for the next try."
        )
        raise FetchFailed(told, code="cannot-write") from failed
    if failed is not None:
        raise failed


def _cancel(running: Iterable["Future[None]"]) -> None:
    for each in running:
        each.cancel()


def _make_folder(base: Path, relative: str) -> None:
    """Folder by folder, never through a link that somebody put there."""
    place = base
    for part in filter(None, relative.split("/")):
        place = place / part
        place.mkdir(exist_ok=True)
        if place.is_symlink():
            raise FetchFailed(f"{place} is a link; remove it and fetch again.", code="link")


def _copy_piece(source: Source, folder: Path, piece: Piece) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(folder / piece.path, flags, 0o644)
    try:
        at, end = piece.offset, piece.offset + piece.length
        while at < end:
            data = source.read(piece.path, at, min(READ_BYTES, end - at))
            if not data:
                raise Unreadable(f"{path_text(piece.path)} ended at byte {at:,}, before its size")
            rest = memoryview(data)
            while rest:
                written = os.pwrite(handle, rest, at)
                rest, at = rest[written:], at + written
        os.fsync(handle)
    finally:
        os.close(handle)


def _verify(
    journal: Journal,
    files: Sequence[File],
    manifest: Manifest | None,
    digest: tuple[str, str] | None,
    progress: Progress | None,
) -> str:
    """By what the copy was verified. Raises `FetchFailed`, having forgotten what is wrong."""
    folder = journal.files
    wrong = {each.path: "has another size" for each in files if _size(folder / each.path) != each.bytes}
    algorithm = manifest.algorithm if manifest is not None else None
    listed = [each for each in manifest.files if each.digest] if manifest is not None and algorithm else []
    if not wrong and manifest is not None and algorithm and listed:
        expected = [FileDigest(each.path, each.bytes, each.digest or "") for each in listed]
        wrong = {each.path: each.reason for each in verify_tree(folder, expected, algorithm, progress=progress)}
    if not wrong and not listed and digest is not None:
        wrong = _against_whole(folder, digest, files, progress)
    if wrong:
        journal.forget(list(wrong))
        told = "; ".join(f"{path_text(path)} {reason}" for path, reason in list(wrong.items())[:3])
        raise FetchFailed(
            f"The copy is not what is recorded: {told}. {len(wrong)} of {len(files)} files were thrown away; run it "
            "again to copy them anew, or take another copy.",
            code="not-verified",
        )
    if listed and algorithm and len(listed) == len(manifest.files if manifest is not None else ()):
        return algorithm
    return digest[0] if digest is not None and not listed else BY_SIZE


def _against_whole(
    folder: Path, digest: tuple[str, str], files: Sequence[File], progress: Progress | None
) -> dict[str, str]:
    """Every file is suspect where only the digest of the whole is known and differs."""
    found = digest_tree(folder, digest[0], progress=progress)
    if found.value is not None and same_digest(digest[0], found.value, digest[1]):
        return {}
    return {each.path: f"is part of a whole whose {digest[0]} differs" for each in files}


def _size(path: Path) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def _name(files: Path, target: Path) -> None:
    """Durable first, then visible; what appeared under that name meanwhile stays."""
    for folder, _, _ in os.walk(files):
        _sync(Path(folder))
    if os.path.lexists(target):
        raise Invalid(f"{target} appeared meanwhile, and nothing is overwritten; the copy is {files}.", code="exists")
    os.rename(files, target)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
