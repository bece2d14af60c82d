"""Checkpoints in object stores (s3://, gs://, az://) and behind HTTP, through obstore: listings and ranges only.

Credentials, endpoint and region come from the environment, as obstore reads them (AWS_ACCESS_KEY_ID, AWS_ENDPOINT,
AWS_SKIP_SIGNATURE for public buckets, GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_BASE_URL, AZURE_STORAGE_ACCOUNT_KEY,
...). A URL never carries any: one with a password or a query is refused, since it would end up in the registry.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from cairn.errors import BadSettings
from cairn.formats.checkpoints import File, LocalSource, OutOfReach, Source, Unreadable
from cairn.formats.checkpoints.shapes import Problem
from cairn.formats.checkpoints.source import MAX_FILES, MAX_READ

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "http", "https")
LISTED_AT_ONCE = 1_000
# Round trips dominate: headers of many shards are asked for side by side.
READERS = 16
CLIENT_OPTIONS = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=60)}
RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
# Where a person sets the address of a store of their own; plain HTTP is used where it says so.
ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_KEY",
}
# Listings tell these by the status in their text alone.
_REFUSED = re.compile(r"status code: 40[13]\b")
_ABSENT = re.compile(r"status code: 404\b")
# What a store says of the object itself: it is gone, or ends before what was asked for.
_OF_THE_OBJECT = re.compile(r"status code: 4(04|10|12|16)\b")
# It may be the wrong store that was asked.
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
T = TypeVar("T")


def is_url(place: str) -> bool:
    """Whether a place is in an object store or behind HTTP, rather than on this machine."""
    return place.partition("://")[0].lower() in SCHEMES and "://" in place


def open_source(place: str) -> Source:
    """Where a checkpoint's files are read from: a folder or file of this machine, or a URL.

    Raises `OutOfReach` for a URL that cannot be used; BadSettings where obstore is not installed.
    """
    scheme, there, _ = place.partition("://")
    if there and not is_url(place):
        raise OutOfReach(f"addresses that begin with {scheme[:20]}:// are not read here")
    return StoreSource(place) if is_url(place) else LocalSource(place)


class StoreSource:
    """The objects below a URL, or the single object that it names. Nothing is asked of the store before `listed`."""

    def __init__(self, url: str, files: Sequence[File] | None = None, *, single: bool = False) -> None:
        """`files`, where they were listed already, are the objects below the URL, or the `single` one that it names."""
        refuse_secrets(url)
        self.name = url.rstrip("/")
        self._store = _connect(self.name.rpartition("/")[0] if single else self.name)
        self._sizes = {each.path: each.bytes for each in files or ()}

    def listed(self) -> tuple[Sequence[File], Sequence[Problem]]:
        problems: list[Problem] = []
        stream = self.stream() if not _is_http(self.name) else iter(())
        files = list(itertools.islice(stream, MAX_FILES))
        if len(files) == MAX_FILES:
            problems.append(Problem("", f"only the first {MAX_FILES:,} files are looked at"))
        if not files:
            files = [self._only_object()]
        self._sizes = {each.path: each.bytes for each in files}
        return files, problems

    def stream(self) -> Iterator[File]:
        """Every object below, in the store's order, a page at a time. Raises `Unreadable`."""
        import obstore

        pages = iter(obstore.list(self._store, chunk_size=LISTED_AT_ONCE))
        while page := self._asked("", lambda: next(pages, None)):
            yield from (_file(each) for each in page if not str(each["path"]).endswith("/"))

    def read(self, path: str, offset: int, length: int) -> bytes:
        import obstore

        end = min(offset + length, self._size(path))
        if length > MAX_READ:
            raise Unreadable(f"{path} was asked for {length:,} bytes at once; at most {MAX_READ:,} are read.")
        if end <= offset:
            return b""
        return bytes(self._asked(path, lambda: obstore.get_range(self._store, path, start=offset, end=end)))

    def read_many(self, wanted: Sequence[tuple[str, int, int]]) -> Sequence[bytes | Unreadable]:
        if len(wanted) < 2:
            return [self._caught(*each) for each in wanted]
        with ThreadPoolExecutor(min(READERS, len(wanted))) as pool:
            return list(pool.map(lambda each: self._caught(*each), wanted))

    def _caught(self, path: str, offset: int, length: int) -> bytes | Unreadable:
        try:
            return self.read(path, offset, length)
        except Unreadable as fault:
            return fault

    def _size(self, path: str) -> int:
        if path not in self._sizes:
            self._sizes[path] = self._head(path).bytes
        return self._sizes[path]

    def _head(self, path: str) -> File:
        import obstore

        return _file({**self._asked(path, lambda: obstore.head(self._store, path)), "path": path})

    def _only_object(self) -> File:
        """The object that the URL names, read from then on through its folder."""
        parent, _, name = self.name.rpartition("/")
        if not urlsplit(parent).netloc:
            raise Unreadable(f"{self.name} holds no object.")
        self._store = _connect(parent)
        try:
            return self._head(unquote(name) if _is_http(self.name) else name)
        except Unreadable as fault:
            lists = "; HTTP has no listing, so give the URL of one file" if _is_http(self.name) else ""
            raise type(fault)(f"{self.name} cannot be listed, and is no object itself{lists}. {fault}") from None

    def _asked(self, path: str, ask: Callable[[], T]) -> T:
        """The store's answer. Raises `Unreadable` with what a person can do about it: `OutOfReach` where the store
        says nothing of the object."""
        from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError

        place = f"{self.name}/{path}" if path and not self.name.endswith(path) else self.name
        kind = Unreadable
        try:
            return ask()
        except (NotFoundError, FileNotFoundError) as fault:
            told = "there is no such object or bucket."
            kind = OutOfReach if _NO_BUCKET.search(str(fault)) else Unreadable
        except (BaseError, OSError, ValueError) as fault:
            told = _first_line(fault)
            kind = Unreadable if _OF_THE_OBJECT.search(told) and not _NO_BUCKET.search(str(fault)) else OutOfReach
            if isinstance(fault, (PermissionDeniedError, UnauthenticatedError)) or _REFUSED.search(told):
                told = f"the store refuses access.{_credentials(self.name)}"
            elif _ABSENT.search(told):
                told = "there is no such object or bucket."
        raise kind(f"{place}: {told}")


def _credentials(url: str) -> str:
    name = CREDENTIALS.get(_family(url))
    return f" Credentials come from the environment, e.g. {name}." if name else ""


def _family(url: str) -> str:
    """`s3`, `gs`, `az` or `http`: whose names the environment uses."""
    scheme = urlsplit(url).scheme
    return {"s3a": "s3", "https": "http"}.get(scheme, "az" if scheme.startswith("a") else scheme)


def refuse_secrets(url: str) -> None:
    """Raises `OutOfReach` for a URL that carries a password, a query or a fragment."""
    parts = urlsplit(url)
    if parts.query or parts.fragment or ("@" in parts.netloc and parts.scheme not in ("abfs", "abfss")):
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise OutOfReach(f"{shown} comes with a query, a password or a fragment: only plain addresses are recorded.")


def _connect(url: str) -> "ObjectStore":
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise BadSettings("Object stores need obstore. Install it with: pip install 'cairn-client[stores]'") from None
    options: Any = {**CLIENT_OPTIONS, **({"allow_http": True} if _plain_http(url) else {})}
    try:
        store: ObjectStore = from_url(url, client_options=options, retry_config=RETRIES)
        return store
    except (BaseError, ValueError, OSError, ImportError) as fault:
        raise OutOfReach(f"{url} cannot be opened: {_first_line(fault)}") from None


def _plain_http(url: str) -> bool:
    said = next((os.environ[name] for name in ENDPOINTS.get(_family(url), ()) if os.environ.get(name)), "")
    return url.startswith("http://") or said.startswith("http://")


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https")


def _file(found: Mapping[str, Any]) -> File:
    modified = found.get("last_modified")
    return File(str(found["path"]), int(found["size"]), modified.timestamp() if modified is not None else None)


def _first_line(fault: Exception) -> str:
    return next(iter(str(fault).splitlines()), type(fault).__name__)[:300]
