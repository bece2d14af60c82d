"""Whether this host can read a copy, and whether it is whole: what is there against what is recorded of it.

Only listings are read, and where nothing is recorded the headers; contents are not, since that takes as long as
loading them.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from cairn.client import Client
from cairn.errors import BadSettings, CairnError
from cairn.formats.checkpoints import File, Listing, Source, Unreadable, Unrecognised, inspect_listing
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.stores import is_url, open_source
from cairn.types import CopyOption, Manifest

FILE_SCHEME = "file://"


@dataclass(frozen=True)
class Reach:
    """Where this host finds a copy. `fault` says why it cannot use it; '' where it can. `remark` is good to know."""

    path: str
    fault: str = ""
    remark: str = ""


def reach(copy: CopyOption, host: str, client: Client) -> Reach:
    """Looks at a copy from here. Never raises for what is wrong with the copy."""
    uri, expected_bytes, expected_files = copy.uri, copy.bytes, copy.file_count
    if copy.parts:
        own = [part for part in copy.parts if part.host == host]
        if not own:
            return Reach(uri, f"this host ({host}) holds no part of it")
        uri, expected_bytes, expected_files = own[0].uri, own[0].bytes, None
    elif copy.tier == "local" and copy.host != host:
        return Reach(uri, f"it is on the disks of {copy.host}, and this is {host}")
    path = path_of(uri)
    if wrong := _unusable_name(path):
        return Reach(path, wrong)
    try:
        files, beside, hidden = _files(open_source(path), path)
    except (Unreadable, BadSettings, OSError) as fault:
        return Reach(path, f"it cannot be read here: {fault}")
    if wrong := _not_permitted(path, files):
        return Reach(path, wrong)
    whole = not copy.parts and copy.has_manifest
    if expected_bytes is None and expected_files is None and not whole:
        return Reach(path, f"it cannot be read here: {hidden}") if hidden else _by_its_own_word(path)
    wrong = _differs(files, expected_bytes, expected_files)
    if wrong and beside and not _differs([*files, *beside], expected_bytes, expected_files):
        wrong = ""  # whoever recorded it counted its cairn.json too
    if wrong and hidden:
        return Reach(path, f"{wrong}; {hidden}")
    if whole and (wrong or expected_bytes is None or expected_files is None):
        wrong = _against_manifest(files, client, copy.replica_id, wrong)
    return Reach(path, wrong)


def unreadable(path: str) -> str:
    """Why this host cannot use what lies at a path of its own; '' where it can."""
    if wrong := _unusable_name(path):
        return wrong
    try:
        files, _, _ = _files(open_source(path), path)
    except (Unreadable, BadSettings, OSError) as fault:
        return f"it cannot be read here: {fault}"
    return _not_permitted(path, files)


def path_of(uri: str) -> str:
    """The path behind a file URL; another URL, or a path, as it is."""
    return unquote(urlsplit(uri).path) if uri.startswith(FILE_SCHEME) else uri


def _unusable_name(path: str) -> str:
    """A path is printed for a script to use: one word that means the same everywhere."""
    if not path.isprintable():
        return "its path holds control characters"
    if "://" not in path and not os.path.isabs(path):
        return "its path is relative, and to what is not recorded"
    return ""


def _files(source: Source, path: str) -> tuple[list[File], list[File], str]:
    """The files, the `cairn.json` beside them, and what could not be listed, such as a link that leads out: if the rest
    is what was recorded, so was that then. Raises `Unreadable` where nothing is there."""
    listed, problems = source.listed()
    hidden = f"{problems[0].path or path} {problems[0].reason}" if problems else ""
    files = [each for each in listed if each.path != SIDECAR]
    if not files:
        raise Unreadable(hidden or f"{path} is empty")
    return files, [each for each in listed if each.path == SIDECAR], hidden


def _not_permitted(path: str, files: Sequence[File]) -> str:
    if is_url(path):
        return ""
    places = [path] if os.path.isfile(path) else [os.path.join(path, each.path) for each in files]
    shut = next((place for place in places if not os.access(place, os.R_OK)), None)
    return f"{shut} may not be read by this user" if shut else ""


def _differs(files: Sequence[File], expected_bytes: int | None, expected_files: int | None) -> str:
    found = sum(each.bytes for each in files)
    if expected_files is not None and len(files) != expected_files:
        return f"it holds {len(files):,} files, and {expected_files:,} are recorded"
    if expected_bytes is not None and found != expected_bytes:
        return f"it holds {found:,} bytes, and {expected_bytes:,} are recorded"
    return ""


def _against_manifest(files: Sequence[File], client: Client, replica_id: str, fault: str) -> str:
    """The file that is missing or of another size, by name; `fault` where the manifest cannot be had."""
    try:
        manifest = client.manifest(replica_id)
    except CairnError as error:
        return fault or f"the list of its files cannot be had: {error.detail}"
    return differs_from(manifest, files) or fault


def differs_from(manifest: Manifest, files: Sequence[File]) -> str:
    """The first file that a manifest lists and that is missing or of another size; '' where none is."""
    sizes = {each.path: each.bytes for each in files}
    for each in manifest.files:
        found = sizes.get(each.path)
        if found is None and not (len(files) == len(manifest.files) == 1):  # a single file is named by its folder
            return f"{each.path} is missing"
        found = files[0].bytes if found is None else found
        if found != each.bytes:
            return f"{each.path} has {found:,} bytes, and {each.bytes:,} are recorded"
    return ""


def _by_its_own_word(path: str) -> Reach:
    """Where neither sizes nor files are recorded: what the checkpoint's own files say of being whole."""
    try:
        found = inspect_listing(Listing.of(open_source(path)))
    except Unrecognised:
        return Reach(path, remark="neither its size nor its format is known, so whether it is whole was not checked")
    except (Unreadable, OSError) as fault:
        return Reach(path, f"it cannot be read here: {fault}")
    if found.complete is False:
        missing = f"{found.missing[0]} is missing" if found.missing else "files are cut short or disagree"
        return Reach(path, f"it is not whole: {missing}")
    return Reach(path, remark="its size is not recorded; its own files do not say that anything is missing")
