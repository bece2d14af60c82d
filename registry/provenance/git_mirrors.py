"""Ask a bare mirror of a code repository what lies between two commits.

Mirrors stand below one configured folder, by host and path of their remote:
`CAIRN_GIT_MIRRORS/github.com/org/repo.git`. Nothing that a caller sends is ever a path, an address or an option: a
remote only chooses among those folders by validated names, and commits are hexadecimal. Git runs with a fixed list of
arguments, without the user's or the system's configuration, hooks, filters, external programs or network, and is
bounded in time and output.
"""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

TIMEOUT_SECONDS: Final = 10.0
MAX_OUTPUT_BYTES: Final = 4 * 1024 * 1024
MAX_COMMITS: Final = 200  # named of those between; the count is of all
MAX_COUNTED: Final = 100_000
HASH = re.compile(r"[0-9a-f]{7,64}")
FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_URL = re.compile(r"(?:https?|ssh|git)://(?:[^/@]*@)?(?P<host>[^/:@]+)(?::\d+)?/(?P<path>.+)")
_SCP = re.compile(r"(?:[^/@:]+@)?(?P<host>[^/:@]+):(?P<path>[^/].*)")
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_STATUS = {"A": "added", "D": "removed", "M": "changed", "T": "changed"}


class NoAnswer(Exception):
    """Git cannot say; the message is why, in words for a person."""


@dataclass(frozen=True, slots=True)
class Commit:
    commit: str
    at: int  # seconds since 1970, as its committer's clock said
    subject: str


@dataclass(frozen=True, slots=True)
class CodeDiff:
    """`files`: (path, added | removed | changed). `commits`: of the candidate and not the baseline, newest first, at
    most MAX_COMMITS of `commit_count`; `left_behind`: how many the baseline has that the candidate has not."""

    files: tuple[tuple[str, str], ...]
    commits: tuple[Commit, ...]
    commit_count: int
    left_behind: int


def place_of(remote: str) -> tuple[str, ...] | None:
    """The folders that a remote's mirror stands in, host first; None where its address is none that can be one."""
    found = _URL.fullmatch(remote) or _SCP.fullmatch(remote)
    if found is None:
        return None
    parts = (found["host"].lower(), *found["path"].strip("/").removesuffix(".git").split("/"))
    if len(parts) > 12 or not all(_SEGMENT.fullmatch(part) for part in parts):
        return None
    return parts


def find_mirror(mirrors: Path, remote: str) -> Path | None:
    """The bare repository that mirrors `remote` below the folder `mirrors`; None where there is none."""
    parts = place_of(remote)
    if parts is None:
        return None
    root = mirrors.resolve()
    for last in (f"{parts[-1]}.git", parts[-1]):
        folder = root.joinpath(*parts[:-1], last)
        if _is_repository(folder) and folder.resolve() == folder:
            return folder
    return None


def list_mirrors(mirrors: Path) -> Iterator[Path]:
    """Every bare repository below the folder `mirrors`."""
    for place, folders, _ in os.walk(mirrors):
        if _is_repository(Path(place)):
            folders.clear()  # what is inside one is git's
            yield Path(place)


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def diff_commits(mirror: Path, old: str, new: str) -> CodeDiff:
    """What changed from commit `old` to commit `new`. Raises NoAnswer. Of full hashes the answer is remembered."""
    for commit in (old, new):
        if not HASH.fullmatch(commit):
            raise NoAnswer(f"{commit[:20]!r} is no commit hash")
    if FULL_HASH.fullmatch(old) and FULL_HASH.fullmatch(new):
        return _remembered(str(mirror), old, new)
    return _diff(str(mirror), old, new)


@lru_cache(maxsize=256)
def _remembered(mirror: str, old: str, new: str) -> CodeDiff:
    return _diff(mirror, old, new)


def _diff(mirror: str, old: str, new: str) -> CodeDiff:
    before, after = (_resolved(mirror, commit) for commit in (old, new))
    listed = _git(mirror, "diff-tree", "-r", "-z", "--name-status", "--no-renames", *_SAFE_DIFF, before, after, "--")
    shown = "--format=%H%x1f%ct%x1f%s"
    log = _git(
        mirror, "log", "-z", f"--max-count={MAX_COMMITS}", "--no-show-signature", shown, f"{before}..{after}", "--"
    )
    counts = _git(
        mirror, "rev-list", "--count", "--left-right", f"--max-count={MAX_COUNTED}", f"{before}...{after}", "--"
    )
    behind, ahead = (int(part) for part in counts.split())
    commits = [line.split("\x1f", 2) for line in log.split("\0") if line.strip()]
    return CodeDiff(
        tuple(_files(listed)),
        tuple(Commit(commit.strip(), int(at), subject[:200]) for commit, at, subject in commits),
        ahead,
        behind,
    )


_SAFE_DIFF = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def _files(listed: str) -> list[tuple[str, str]]:
    fields = listed.split("\0")
    return [(path, _STATUS.get(status[:1], "changed")) for status, path in zip(fields[::2], fields[1::2], strict=False)]


def _resolved(mirror: str, commit: str) -> str:
    """The full hash. Raises NoAnswer where the mirror does not have that commit, or a short hash means several."""
    try:
        full = _git(mirror, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}").strip()
    except NoAnswer:
        raise NoAnswer(f"the mirror has no commit {commit[:12]}: fetch it, or it was never pushed") from None
    if not FULL_HASH.fullmatch(full):
        raise NoAnswer(f"the mirror has no commit {commit[:12]}")
    return full


def _git(mirror: str, *arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        raise NoAnswer("git is not installed beside the service")
    command = [
        *(program, "--no-pager", "--no-optional-locks", "--no-replace-objects", "--git-dir", mirror),
        *("-c", f"safe.directory={mirror}", "-c", "protocol.allow=never", "-c", "core.fsmonitor=false"),
        *("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-c", "log.showSignature=false"),
        *("-c", "core.attributesFile=/dev/null", "-c", "diff.external=", "-c", "core.pager=cat"),
        *arguments,
    ]
    environment = {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ATTR_NOSYSTEM": "1",
    }
    process = subprocess.Popen(  # noqa: S603  a fixed program and options; commits are checked, the folder is ours
        command, cwd="/", env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    timer = threading.Timer(TIMEOUT_SECONDS, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        output = process.stdout.read(MAX_OUTPUT_BYTES + 1)
        if len(output) > MAX_OUTPUT_BYTES:
            raise NoAnswer("the difference is too large to list")
        code = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if code < 0:
        raise NoAnswer(f"git took longer than {TIMEOUT_SECONDS:g} seconds")
    if code != 0:
        raise NoAnswer("git could not read the mirror")
    return output.decode("utf-8", "replace")
