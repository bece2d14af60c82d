"""A `.wandb` file from a place on, item after item, in the memory of one record."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from cairn.formats.refusals import Refused
from cairn.formats.wandb_offline import records
from cairn.formats.wandb_offline.artifacts import read_artifact
from cairn.formats.wandb_offline.frames import HEADER_BYTES, Frames, has_header
from cairn.formats.wandb_offline.shapes import INDEX, Artifact, Facts, Row

# The beginning of a file says what the run is; it is read again where reading goes on further behind.
HEAD_BYTES = 256 * 1024
AXIS_ROWS = 200


@dataclass
class Stream:
    """The rows and artifacts of a file; `facts` and `offset` grow while it is iterated. A context manager.

    With `rows=False` the history is passed over, and with `summary=False` what the run keeps saying of its last step:
    each saves about half of the time. `unread` counts records that were whole and yet could not be understood.
    """

    path: Path
    start: int = 0
    rows: bool = True
    summary: bool = True
    facts: Facts = field(default_factory=Facts)
    unread: int = 0
    restarted: bool = False  # the file is shorter than the place to read on from: it was read from its beginning

    def __post_init__(self) -> None:
        self._file: BinaryIO = self.path.open("rb")
        try:
            size = self._file.seek(0, 2)
            self._file.seek(0)
            self.headed = has_header(self._file.read(HEADER_BYTES))
            if self.start > size:
                self.start, self.restarted = 0, True
            if self.start > HEADER_BYTES:
                _read_head(self._file, self.facts, min(self.start, HEAD_BYTES))
            self._frames = Frames(self._file, self.start)
        except BaseException:
            self._file.close()
            raise
        self._index: int | None = None
        left_out = {records.HISTORY: not self.rows, records.SUMMARY: not self.summary}
        self._kinds = frozenset(kind for kind in records.KINDS if not left_out.get(kind))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def offset(self) -> int:
        """Where to read on: behind the last item that was given."""
        return self._frames.offset

    @property
    def torn(self) -> bool:
        return self._frames.torn

    def __iter__(self) -> Iterator[Row | Artifact]:
        seen = 0
        for frame in self._frames:
            seen += 1
            try:
                yield from self._items(frame.data)
            except ValueError:
                self.unread += 1
        if not self.headed and not seen and self.start <= HEADER_BYTES:
            raise Refused(f"{self.path} is no file of W&B: it does not begin with ':W&B' and holds no whole record.")

    def _items(self, record: bytes) -> Iterator[Row | Artifact]:
        found = records.kind_of(record, self._kinds)
        if found is None:
            return
        kind, body = found
        if kind == records.HISTORY:
            if (row := records.read_row(body, self._index)) is not None:
                self._index = row.index
                yield row
        elif kind == records.ARTIFACT:
            yield read_artifact(body, self._index)
        else:
            records.apply(self.facts, kind, body)


def _read_head(file: BinaryIO, facts: Facts, limit: int) -> None:
    """What the beginning of a file says of its run."""
    for frame in Frames(file):
        if frame.end > limit:
            return
        with suppress(ValueError):
            found = records.kind_of(frame.data)
            if found is not None and found[0] not in (records.HISTORY, records.ARTIFACT, records.EXIT):
                records.apply(facts, *found)


def read_head(path: Path) -> Facts:
    """What the beginning of a file says of its run, whatever the file's length. Raises OSError."""
    facts = Facts()
    with path.open("rb") as file:
        _read_head(file, facts, HEAD_BYTES)
    return facts


def find_axis(path: Path) -> str:
    """The name of the numbers that are the training's step: as metrics are defined, or as the first rows have it."""
    with Stream(path, summary=False) as stream:
        rows = (item for item in stream if isinstance(item, Row))
        first = [row for row, _ in zip(rows, range(AXIS_ROWS), strict=False)]
        return records.known_axis(first) if stream.facts.axis == INDEX else stream.facts.axis
