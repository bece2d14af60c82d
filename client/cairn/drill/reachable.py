"""Whether this host can read the place of a copy at all. Where it cannot, that is no evidence against the copy."""

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from cairn.errors import BadSettings
from cairn.formats.checkpoints import File, OutOfReach, Unreadable, path_text
from cairn.formats.checkpoints.shapes import Problem
from cairn.stores import is_url, open_source


def out_of_reach(path: str, *, own_disk: bool = False) -> str:
    """Why nothing can be said of the copy from here; '' where what is found, or missing, is the copy's own affair.

    `own_disk`: the path is recorded as one of this very host. Else it may lie on a file system that is not mounted
    here, which shows by the folder that it was in.
    """
    if "://" not in path and not os.path.isabs(path):
        return "its path is relative, and to what is not recorded"
    try:
        files, problems = open_source(path).listed()
    except (OutOfReach, BadSettings) as fault:
        return path_text(str(fault)).removesuffix(".")
    except Unreadable:
        return "" if own_disk or is_url(path) else _not_mounted(path)
    return "" if is_url(path) else _not_permitted(path, files, problems)


def store_of(path: str) -> str:
    """The bucket or server of a URL: where one copy there is refused, so are the others. '' for a path."""
    parts = urlsplit(path)
    return f"{parts.scheme}://{parts.netloc}" if is_url(path) else ""


def _not_mounted(path: str) -> str:
    folder = os.path.dirname(path.rstrip("/"))
    if os.path.lexists(path) or os.path.isdir(folder):
        return ""
    return f"neither it nor its folder {path_text(folder)} is there, so its file system may not be mounted on this host"


def _not_permitted(path: str, files: Sequence[File], problems: Sequence[Problem]) -> str:
    shown = [path] if os.path.isfile(path) else [os.path.join(path, each.path) for each in files]
    hidden = [place for each in problems if os.path.isdir(place := os.path.join(path, each.path))]
    shut = next((place for place in shown if not os.access(place, os.R_OK)), None)
    shut = shut or next((place for place in hidden if not os.access(place, os.R_OK | os.X_OK)), None)
    return f"{path_text(shut)} may not be read by this user" if shut else ""
