"""The copy read whole, by copying it or in its place, and held against what is recorded of its content."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cairn.digests import FileDigest, digest_tree, verify_tree
from cairn.digests.algorithms import same_digest
from cairn.drill.choosing import Target
from cairn.drill.reachable import out_of_reach
from cairn.fetch import FetchFailed, fetch
from cairn.fetch.fetch import BY_SIZE, WORKERS
from cairn.fetch.pieces import READ_BYTES, files_to_copy, pieces_of
from cairn.formats.checkpoints import File, OutOfReach, Source, Unreadable
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.formats.checkpoints.shapes import path_text
from cairn.stores import open_source
from cairn.types import Manifest

Progress = Callable[[int], None]
# Faults of the folder that is written into: they say nothing about the copy, and no drill is made of them.
OF_THIS_HOST = ("disk-full", "cannot-write", "busy", "link")


class StageFailed(Exception):
    """A stage of the drill failed, which is its result. `stage`: the check that failed; `reason` has no full stop."""

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(reason)
        self.stage, self.reason = stage, reason.removesuffix(".")


@dataclass(frozen=True)
class Read:
    """What was read. `verified_by`: a digest's algorithm, or `size`. `verify_seconds` None: in the same pass."""

    path: str
    bytes: int
    files: int
    read_seconds: float
    verify_seconds: float | None
    verified_by: str

    @property
    def verified(self) -> bool:
        return self.verified_by != BY_SIZE


def read_copy(target: Target, destination: Path | None, progress: Progress) -> Read:
    """Into `destination`, or in its place where that is None. Raises `StageFailed`; `OutOfReach` where this host has
    lost sight of the copy; `FetchFailed`, OSError where it cannot take it."""
    try:
        source = open_source(target.path)
        _same_size(source, target)
        if destination is None:
            return _in_place(source, target, progress)
        return _copied(source, target, destination, progress)
    except OutOfReach:
        raise
    except (Unreadable, StageFailed) as fault:
        if why := out_of_reach(target.path, own_disk=target.own_disk):
            raise OutOfReach(why) from None
        if isinstance(fault, StageFailed):
            raise
        raise StageFailed("read", f"it cannot be read: {path_text(str(fault))}") from None


def _same_size(source: Source, target: Target) -> None:
    """Where no manifest lists the files, their sum is known; whoever recorded it may have counted cairn.json."""
    if target.manifest is not None or target.copy.bytes is None:
        return
    sizes = {each.path: each.bytes for each in source.listed()[0]}
    found = sum(sizes.values())
    if target.copy.bytes not in (found, found - sizes.get(SIDECAR, 0)):
        raise StageFailed("read", f"it holds {found:,} bytes, and {target.copy.bytes:,} are recorded")


def _copied(source: Source, target: Target, destination: Path, progress: Progress) -> Read:
    began, total = time.monotonic(), 0
    copied_at: float | None = None
    size = sum(each.bytes for each in files_to_copy(source.listed()[0], target.manifest))

    def watch(count: int) -> None:
        nonlocal total, copied_at
        total += count
        if copied_at is None and total >= size:
            copied_at = time.monotonic()
        progress(count)

    digest = _whole(target.manifest)
    try:
        done = fetch(source, destination, manifest=target.manifest, digest=digest, progress=watch)
    except FetchFailed as fault:
        if fault.code in OF_THIS_HOST:
            raise
        raise StageFailed("verify", fault.detail) from None
    ended = time.monotonic()
    copied = ended if copied_at is None else copied_at
    return Read(done.path, done.bytes, done.files, copied - began, ended - copied, done.verified_by)


def _in_place(source: Source, target: Target, progress: Progress) -> Read:
    """One pass: what is hashed is read, and the rest is read too."""
    began = time.monotonic()
    listed, problems = source.listed()
    if problems:
        raise Unreadable(f"{problems[0].path} {problems[0].reason}")
    files = files_to_copy(listed, target.manifest)
    if not files:
        raise Unreadable(f"{source.name} holds no file")
    verified_by = _verified(source, target.manifest, progress)
    named = _named(target.manifest)
    hashed = {each.path for each in files} if verified_by != BY_SIZE and not named else {each.path for each in named}
    _read_all(source, [each for each in files if each.path not in hashed], progress)
    if named and len(named) < len(target.manifest.files if target.manifest else ()):
        verified_by = BY_SIZE  # of some files no digest is recorded
    total = sum(each.bytes for each in files)
    return Read(target.path, total, len(files), time.monotonic() - began, None, verified_by)


def _named(manifest: Manifest | None) -> list[FileDigest]:
    if manifest is None or not manifest.algorithm:
        return []
    return [FileDigest(each.path, each.bytes, each.digest) for each in manifest.files if each.digest]


def _whole(manifest: Manifest | None) -> tuple[str, str] | None:
    if manifest is None or not manifest.algorithm or not manifest.digest:
        return None
    return manifest.algorithm, manifest.digest


def _verified(source: Source, manifest: Manifest | None, progress: Progress) -> str:
    """By what the content was verified. Raises `StageFailed`."""
    named, whole = _named(manifest), _whole(manifest)
    if named and manifest is not None and manifest.algorithm:
        wrong = verify_tree(source, named, manifest.algorithm, progress=progress)
        if wrong:
            told = "; ".join(f"{path_text(each.path)} {each.reason}" for each in wrong[:3])
            raise StageFailed("verify", f"{len(wrong)} of {len(named)} files are not what is recorded: {told}")
        return manifest.algorithm
    if whole is not None:
        found = digest_tree(source, whole[0], progress=progress)
        if found.problems:
            raise Unreadable(f"{found.problems[0].path} {found.problems[0].reason}")
        if found.value is None or not same_digest(whole[0], found.value, whole[1]):
            raise StageFailed("verify", f"its {whole[0]} is {found.value}, and {whole[1]} is recorded")
        return whole[0]
    return BY_SIZE


def _read_all(source: Source, files: Sequence[File], progress: Progress) -> None:
    def read(path: str, offset: int, length: int) -> int:
        at, end = offset, offset + length
        while at < end:
            data = source.read(path, at, min(READ_BYTES, end - at))
            if not data:
                raise Unreadable(f"{path_text(path)} ended at byte {at:,}, before its size")
            at += len(data)
        return length

    with ThreadPoolExecutor(WORKERS) as pool:
        for count in pool.map(lambda each: read(each.path, each.offset, each.length), pieces_of(files)):
            progress(count)
