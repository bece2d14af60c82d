"""The code that runs: commit, branch, whether files differ from it, a digest of the difference, and its remote."""

import os
import re
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from cairn.capture.commands import said_by
from cairn.capture.secrets import mask_text

SECONDS = 8.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def code(folder: str | None = None) -> dict[str, Any]:
    """`{commit, dirty, diff_digest, remote, branch}`, as far as they can be told within `SECONDS`.

    `diff_digest` is the SHA-256 of `git diff HEAD`. Files that git does not know are not looked at: a training's
    own output lies among them. Without the program the commit is read from the repository's files.
    """
    place = folder or script_folder()
    ends = time.monotonic() + SECONDS

    def git(*arguments: str) -> str | None:
        out = said_by(["git", "-C", place, *arguments], seconds=max(ends - time.monotonic(), 0.1))
        return None if out is None else out.decode("utf-8", "replace").strip()

    commit = git("rev-parse", "HEAD")
    if commit is None or not _COMMIT.fullmatch(commit):
        found = _from_files(Path(place))
        return {"commit": found} if found else {}
    said: dict[str, Any] = {"commit": commit}
    branch = git("rev-parse", "--abbrev-ref", "HEAD")
    if branch and branch != "HEAD":
        said["branch"] = branch
    if remote := git("remote", "get-url", "origin"):
        said["remote"] = mask_text(remote)[:4_096]
    status = git("status", "--porcelain", "--untracked-files=no")
    if status is not None:
        said["dirty"] = bool(status)
    if status:
        difference = said_by(["git", "-C", place, "diff", "HEAD"], seconds=max(ends - time.monotonic(), 0.1))
        if difference is not None:
            said["diff_digest"] = f"sha256:{sha256(difference).hexdigest()}"
    return said


def script_folder() -> str:
    """Where the running script lies; the working folder where there is none."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(os.path.abspath(path)) if isinstance(path, str) else os.getcwd()


def _from_files(folder: Path) -> str | None:
    for each in (folder, *folder.parents):
        head = _text(each / ".git" / "HEAD")
        if head is None:
            continue
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else None
        name = head[5:]
        found = _text(each / ".git" / name)
        if found is None:
            lines = (_text(each / ".git" / "packed-refs") or "").splitlines()
            found = next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), None)
        return found if found and _COMMIT.fullmatch(found) else None
    return None


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(1_000_000).decode("utf-8", "replace").strip()
    except OSError:
        return None
