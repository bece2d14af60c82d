"""Content digests: one per file, and one of the whole, computed on all cores.

The digest of the whole is the same algorithm over one line per file, the files in the order of their paths' bytes:

    path NUL size NUL digest LF

with the path relative to the checkpoint's folder and `/` between its parts, the size in decimal and the digest in
lower-case hexadecimal. A `cairn.json` in the folder itself is left out of both: it holds these digests.

BLAKE3 is the default, since it alone hashes one file on several cores. The others are what producers may have used.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence

from cairn.digests import local, remote
from cairn.digests.algorithms import ALGORITHMS, DEFAULT, LibraryMissing, hasher, same_digest
from cairn.digests.shapes import FileDigest, Progress, TreeDigest
from cairn.formats.checkpoints import File, LocalSource, Source
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.formats.checkpoints.shapes import Problem

__all__ = [
    "ALGORITHMS",
    "DEFAULT",
    "FileDigest",
    "LibraryMissing",
    "TreeDigest",
    "digest_of_digests",
    "digest_tree",
    "hasher",
    "same_digest",
    "verify_tree",
]

Place = str | os.PathLike[str] | Source


def digest_tree(place: Place, algorithm: str = DEFAULT, *, progress: Progress | None = None) -> TreeDigest:
    """The digests of a folder, a file, or another source. `progress` receives numbers of bytes as they are read.

    A file that cannot be read, or that changes while it is read, is a problem of that file, and then there is no
    digest of the whole. Raises `Unreadable` where nothing can be listed; `LibraryMissing`.
    """
    hasher(algorithm)
    source = _source(place)
    listed, problems = source.listed()
    files = [each for each in listed if each.path != SIDECAR]
    answers = list(_digest(source, files, algorithm, progress))
    found = sorted((each for each in answers if isinstance(each, FileDigest)), key=lambda each: _raw(each.path))
    problems = (*problems, *(each for each in answers if isinstance(each, Problem)))
    value = None if problems else digest_of_digests(found, algorithm)
    return TreeDigest(algorithm, value, tuple(found), tuple(problems))


def digest_of_digests(files: Iterable[FileDigest], algorithm: str = DEFAULT) -> str:
    """The digest of the whole, as the module says."""
    whole = hasher(algorithm)
    for each in sorted(files, key=lambda each: _raw(each.path)):
        whole.update(b"%s\0%d\0%s\n" % (_raw(each.path), each.bytes, each.value.encode()))
    return whole.hexdigest()


def verify_tree(
    place: Place, expected: Sequence[FileDigest], algorithm: str = DEFAULT, *, progress: Progress | None = None
) -> tuple[Problem, ...]:
    """What differs from a manifest: files that are missing, of another size or content, or cannot be read.

    Files that the manifest does not name are not looked at. Digests may be in hexadecimal or base64.
    """
    hasher(algorithm)
    source = _source(place)
    listed = {each.path: each for each in source.listed()[0]}
    wanted = {each.path: each for each in expected}
    problems = [fault for each in expected if (fault := _differs(listed.get(each.path), each)) is not None]
    faulty = {each.path for each in problems}
    same_size = [listed[path] for path in wanted if path not in faulty]
    for found in _digest(source, same_size, algorithm, progress):
        if isinstance(found, Problem):
            problems.append(found)
        elif not same_digest(algorithm, found.value, wanted[found.path].value):
            problems.append(Problem(found.path, f"has another content: its {algorithm} is {found.value}"))
    return tuple(sorted(problems, key=lambda each: _raw(each.path)))


def _differs(found: File | None, expected: FileDigest) -> Problem | None:
    """What a listing alone tells."""
    if found is None:
        return Problem(expected.path, "is missing")
    if found.bytes != expected.bytes:
        return Problem(expected.path, f"has {found.bytes:,} bytes, not {expected.bytes:,}")
    return None


def _source(place: Place) -> Source:
    return LocalSource(place) if isinstance(place, (str, os.PathLike)) else place


def _digest(
    source: Source, files: Sequence[File], algorithm: str, progress: Progress | None
) -> Iterator[FileDigest | Problem]:
    report = _one_at_a_time(progress)
    if isinstance(source, LocalSource):
        return local.digest_files(source.name, files, algorithm, report)
    return remote.digest_files(source, files, algorithm, report)


def _one_at_a_time(progress: Progress | None) -> Progress:
    lock = threading.Lock()

    def report(length: int) -> None:
        if progress is not None:
            with lock:
                progress(length)

    return report


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
