"""Whether files of `torch.save` are whole, as far as their ends tell: a zip that was cut short has no directory.

Of each file the last bytes are read, never its numbers. A shard of a run on thousands of ranks is looked at like
the first one.
"""

from collections.abc import Sequence

from cairn.formats.checkpoints.shapes import Problem
from cairn.formats.checkpoints.source import Listing

_END = b"PK\x05\x06"
_END_BYTES = 22
_ZIP = b"PK\x03\x04"


def cut_short(listing: Listing, paths: Sequence[str]) -> list[Problem]:
    """One problem for each file that is empty, or a zip without its end."""
    problems = [Problem(path, "is empty") for path in paths if listing.size(path) == 0]
    some = [path for path in paths if listing.size(path) > 0]
    tails = _ends(listing, some)
    doubtful = [path for path, tail in zip(some, tails, strict=True) if tail[:4] != _END]
    heads = listing.exact_many([(path, 0, min(8, listing.size(path))) for path in doubtful])
    for path, head in zip(doubtful, heads, strict=True):
        if not isinstance(head, bytes):
            problems.append(Problem(path, f"cannot be read: {head}"))
        elif head[:4] == _ZIP:
            problems.append(Problem(path, "was cut short: it is a zip without its end"))
        elif not head.strip(b"\0"):
            problems.append(Problem(path, "holds nothing but zeros at its beginning"))
    return sorted(problems, key=lambda each: each.path)


def _ends(listing: Listing, paths: Sequence[str]) -> list[bytes]:
    asked = [(path, max(0, listing.size(path) - _END_BYTES), min(_END_BYTES, listing.size(path))) for path in paths]
    return [each if isinstance(each, bytes) else b"" for each in listing.exact_many(asked)]
