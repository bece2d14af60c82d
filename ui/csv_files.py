"""Tables as CSV files. Every digit is kept; a text that a spreadsheet would run as a formula is made text again."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fastapi.responses import StreamingResponse

from ui import filters

Cell = str | int | float | datetime | None


def csv_file(name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> StreamingResponse:
    """A download of these rows; `name` without ending."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:100] or "table"
    headers = {
        "Content-Disposition": f'attachment; filename="{safe}.csv"',
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(lines(header, rows), media_type="text/csv; charset=utf-8", headers=headers)


def lines(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """The file, a few hundred rows at a time."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([_text(cell) for cell in header])
    for count, row in enumerate(rows, 1):
        writer.writerow([_text(cell) for cell in row])
        if count % 500 == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _text(cell: Cell) -> str:
    if isinstance(cell, datetime):
        return filters.machine_time(cell)
    if isinstance(cell, int | float) or cell is None:
        return filters.exact(cell)
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
