"""Tables in text: comma, tab or semicolon separated, and the pipe tables of markdown. Cells stay text."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from cairn.formats.refusals import Refused

SEPARATORS = (",", "\t", ";")
MAX_ROWS = 200_000
MAX_COLUMNS = 1_000


@dataclass(frozen=True)
class Table:
    """`rows` are as long as `header`; `line` of a row is its line in the file."""

    header: list[str]
    rows: list[list[str]]
    lines: list[int]


def header_of(text: str) -> list[str]:
    """The cells of the first line that is not blank; none where it is no line of a table."""
    line = next((line for line in text[:65_536].splitlines() if line.strip()), "")
    separator = max(SEPARATORS, key=line.count)
    if not line.count(separator):
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except (csv.Error, StopIteration):
        return []


def read_table(text: str) -> Table:
    """Raises `Refused` for a row that does not fit its header, and for what a table cannot be."""
    first = next((line for line in text[:65_536].splitlines() if line.strip()), "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(SEPARATORS, key=first.count))
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if not header:
                header = [cell.strip() for cell in row]
                _check_header(header)
                continue
            if len(row) != len(header):
                raise Refused(f"Line {reader.line_num} has {len(row)} cells, its header {len(header)}.")
            rows.append([cell.strip() for cell in row])
            lines.append(reader.line_num)
            if len(rows) > MAX_ROWS:
                raise Refused(f"The table has more than {MAX_ROWS:,} rows; split it.")
    except csv.Error as fault:
        raise Refused(f"The table cannot be read at line {reader.line_num}: {fault}.") from None
    return Table(header, rows, lines)


def _check_header(header: list[str]) -> None:
    if len(header) > MAX_COLUMNS:
        raise Refused(f"The table has {len(header):,} columns; at most {MAX_COLUMNS:,} are read.")
    named = [name for name in header if name]
    repeated = next((name for name in named if named.count(name) > 1), None)
    if repeated is not None:
        raise Refused(f"The column {repeated[:40]!r} stands twice in the header.")


def pipe_cells(line: str) -> list[str] | None:
    """The cells of a line of a markdown table, with the space at their left kept; None for any other line."""
    stripped = line.strip()
    if len(stripped) < 2 or not stripped.startswith("|") or not stripped.endswith("|"):
        return None
    return [cell.rstrip() for cell in stripped[1:-1].split("|")]


def is_rule(cells: list[str]) -> bool:
    """The line between header and body: `|---|--:|`."""
    return all(cell.strip() and not cell.strip(" -:") for cell in cells)


def pipe_tables(text: str) -> Iterator[tuple[str, list[str], list[tuple[int, list[str]]]]]:
    """Each markdown table as (the last line of text before it, header, [(line number, cells)])."""
    before, block = "", []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        cells = pipe_cells(line)
        if cells is not None:
            block.append((number, cells))
            continue
        if len(block) >= 2 and is_rule(block[1][1]):
            yield before, [cell.strip() for cell in block[0][1]], block[2:]
            before = ""
        block = []
        if line.strip():
            before = line.strip()
