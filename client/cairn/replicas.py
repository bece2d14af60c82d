"""What a copy is described by when it is recorded: address, tier, size, and its digests where they are wanted."""

import os
import socket
from typing import Any

from cairn.digests import DEFAULT, digest_tree
from cairn.digests.shapes import Progress
from cairn.errors import Invalid
from cairn.formats.checkpoints import Listing
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.stores import is_url, open_source, refuse_secrets

TIERS = ("local", "shared", "object")


def replica(
    place: str | os.PathLike[str],
    *,
    tier: str | None = None,
    digest: bool | str = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """A copy at a path or URL, for `register_checkpoint(replicas=[...])`: address, tier, bytes and number of files.

    `tier` is local or shared for a folder; a store's is object. With `digest` (True for BLAKE3, or the name of an
    algorithm) every byte is read, and the digest of the whole and a manifest of the files are added. Raises
    `Unreadable` where something cannot be listed or read, or changes meanwhile; `Invalid`; `LibraryMissing`.
    """
    uri = _uri(place)
    known = "object" if is_url(uri) else tier
    if known not in TIERS:
        raise Invalid(f"{uri}: is that folder local or shared? Say tier='local' or tier='shared'.", code="no-tier")
    described: dict[str, Any] = {"uri": uri, "tier": known}
    if known == "local":
        described["host"] = socket.gethostname()
    source = open_source(uri)
    if digest:
        algorithm = DEFAULT if digest is True else str(digest)
        return described | digest_tree(source, algorithm, progress=progress).replica_fields()
    listing = Listing.of(source)
    files = [each for each in listing.files.values() if each.path != SIDECAR]
    return described | {"bytes": sum(each.bytes for each in files), "file_count": len(files)}


def _uri(place: str | os.PathLike[str]) -> str:
    """A path is recorded whole: the service and other hosts have another working folder."""
    text = os.fspath(place)
    if is_url(text):
        refuse_secrets(text)
        return text.rstrip("/")
    return os.path.abspath(text)
