"""One member of a zip archive from somebody else: nothing is written to disk, and never more is unpacked than allowed.

The directory of an archive is read by Python's `zipfile`, which keeps some 600 bytes for each entry: its size is
looked at first, so that a small file cannot claim millions of entries.
"""

import io
import struct
import zipfile
import zlib
from typing import BinaryIO

from cairn.formats.refusals import Refused

MAX_DIRECTORY = 8 * 1024 * 1024  # bytes: about 100,000 entries
MAX_MEMBER = 32 * 1024 * 1024
_END = struct.Struct("<4s4H2LH")
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, ValueError, NotImplementedError)


def names(file: BinaryIO) -> list[str]:
    """The names of the members. Raises `Refused`."""
    with _opened(file) as found:
        return found.namelist()


def member(file: BinaryIO, name: str, *, max_bytes: int = MAX_MEMBER) -> bytes:
    """The content of one member, at most `max_bytes` of it whatever its header says. Raises `Refused`."""
    with _opened(file) as found:
        try:
            with found.open(name) as stream:
                content = stream.read(max_bytes + 1)
        except RuntimeError as fault:  # encrypted, or a method that this Python lacks
            raise Refused(f"{name} in the archive cannot be unpacked: {fault}.") from None
        except _BROKEN as fault:
            raise Refused(f"{name} in the archive is broken: {str(fault)[:120]}.") from None
    if len(content) > max_bytes:
        raise Refused(f"{name} in the archive unpacks to more than {max_bytes:,} bytes.")
    return content


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    _check_directory(file)
    try:
        return zipfile.ZipFile(file)
    except _BROKEN as fault:
        raise Refused(f"The zip archive is broken: {str(fault)[:120]}.") from None


def _check_directory(file: BinaryIO) -> None:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 65_536 - _END.size))
    tail = file.read(65_536 + _END.size)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        raise Refused("The zip archive is cut short: it has no directory at its end.")
    directory = _END.unpack_from(tail, at)[5]
    if directory > MAX_DIRECTORY:  # a zip64 archive says 4 GB here
        raise Refused(f"The zip archive has a directory of more than {MAX_DIRECTORY:,} bytes.")
