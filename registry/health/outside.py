"""What settings name outside the database: storage roots, mirrors of code, credentials of trackers."""

import os
from collections.abc import Iterator
from pathlib import Path

from registry.config import Settings
from registry.health.shapes import Found, fault, ok, warning
from registry.integrations.credentials import BadCredentials, read_file
from registry.provenance.git_mirrors import list_mirrors


def look_outside(settings: Settings, credentials: str | None) -> Iterator[Found]:
    """`credentials`: what CAIRN_TRACKER_CREDENTIALS says."""
    yield from (_root(root) for root in settings.storage_roots)
    if settings.git_mirrors is not None:
        yield _mirrors(settings.git_mirrors)
    if credentials:
        yield _credentials(Path(credentials))


def _root(root: str) -> Found:
    if "://" in root:
        return ok("storage root", f"{root} (an object store is not called from here)")
    if not os.path.isdir(root):
        advice = "Is it mounted on this host? CAIRN_STORAGE_ROOTS names it."
        return fault("storage root", f"{root} is no folder here.", advice)
    if not os.access(root, os.R_OK | os.X_OK):
        return fault("storage root", f"{root} cannot be read by this user.", "Let this user read it.")
    return ok("storage root", root)


def _mirrors(folder: Path) -> Found:
    if not folder.is_dir():
        said = f"{folder} is no folder."
        return fault("code mirrors", said, "CAIRN_GIT_MIRRORS names it; compare shows no commits without.")
    count = sum(1 for _ in list_mirrors(folder))
    if not count:
        advice = f"git clone --mirror https://HOST/ORG/REPO.git {folder}/HOST/ORG/REPO.git"
        return warning("code mirrors", f"{folder} holds no bare repository.", advice)
    return ok("code mirrors", f"{count} in {folder}")


def _credentials(file: Path) -> Found:
    try:
        hosts = read_file(file)
    except BadCredentials as error:
        return fault("tracker credentials", error.message, "CAIRN_TRACKER_CREDENTIALS names the file.")
    return ok("tracker credentials", f"{file}, for {', '.join(sorted(hosts)) or 'no host'}")
