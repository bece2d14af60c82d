"""Digests of what lies elsewhere, through a source's own reads, many files at once."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from cairn.digests.algorithms import hasher
from cairn.digests.local import MIB, guarded
from cairn.digests.shapes import FileDigest, Progress
from cairn.formats.checkpoints import File, Source, Unreadable
from cairn.formats.checkpoints.shapes import Problem

READERS = 8
PIECE_BYTES = 8 * MIB


def digest_files(
    source: Source, files: Sequence[File], algorithm: str, progress: Progress
) -> Iterator[FileDigest | Problem]:
    """One answer for each file. Whether a file changed meanwhile, a second listing tells."""
    with ThreadPoolExecutor(READERS) as pool:
        found = list(pool.map(lambda each: guarded(each, partial(_digest, source, algorithm, progress)), files))
    after = {each.path: each for each in source.listed()[0]}
    for file, digest in zip(files, found, strict=True):
        unchanged = isinstance(digest, Problem) or after.get(file.path) == file
        yield digest if unchanged else Problem(file.path, "changed while it was read")


def _digest(source: Source, algorithm: str, progress: Progress, file: File) -> str:
    found, offset = hasher(algorithm), 0
    while offset < file.bytes:
        data = source.read(file.path, offset, min(PIECE_BYTES, file.bytes - offset))
        if not data:
            raise Unreadable(f"ended at byte {offset:,} of {file.bytes:,}")
        found.update(data)
        offset += len(data)
        progress(len(data))
    return found.hexdigest()
