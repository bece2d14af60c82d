"""How answers are shown: a table for a person, tab-separated text for a pipe, JSON for a program.

Names come from other people, so control characters are replaced before they reach a terminal.
"""

import errno
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from cairn import wire

if TYPE_CHECKING:
    from rich.console import Console

    from cairn.types import CheckpointRef

SENTENCE = 24  # letters; longer texts are folded within their column
FOLDED = 1.5  # so many times the terminal's width can be folded and still be read


class ReaderGone(Exception):
    """Whoever read our output (head, less) has seen enough."""


class CannotWrite(Exception):
    """Standard output takes no more: a full disk, a closed descriptor."""


class Output:
    """Standard output, whose faults are told apart from those of files that a command reads.

    No OSError leaves it: click would end the program with 1 for a closed pipe, which here means 'no result'.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None else _Closed()

    def write(self, text: str) -> int:
        with _output_faults():
            return self._stream.write(text)

    def flush(self) -> None:
        with _output_faults():
            self._stream.flush()

    def give_up(self) -> None:
        """Python would complain once more while closing the stream, and change the exit code."""
        if not isinstance(self._stream, _Closed):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Closed(io.StringIO):
    """What stands for a standard output that was closed before we began (`>&-`)."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it was closed before the command began")


def fill_closed_descriptors() -> None:
    """Of standard input, output and error: the next file to be opened would take the place of one that is closed, and
    a job's output go into it."""
    for place in (0, 1, 2):
        try:
            os.fstat(place)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != place:
                os.dup2(opened, place)
                os.close(opened)
            os.set_inheritable(place, True)


@contextmanager
def _output_faults() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise CannotWrite(f"the output cannot be written: {error.strerror}.") from error


_TO_THE_SECOND = re.compile(r"(?<=T\d\d:\d\d:\d\d)\.\d+Z$")  # for a person; a pipe gets the whole time
F = TypeVar("F", bound=Callable[..., Any])
Row = Sequence[Any]


def json_option(command: F) -> F:
    """`--json`, the same for every command."""
    return click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(command)


def print_json(value: Any) -> None:
    click.echo(json.dumps(json.loads(wire.encode(value)), ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """A remark for the person, kept out of what a pipe carries on."""
    click.echo(clean(text), err=True)


def say_if_cut(count: int, limit: int) -> None:
    """A list that ends at its limit may go on: nobody should take it for the whole."""
    if count == limit:
        say(f"{limit} {'is' if limit == 1 else 'are'} shown; there may be more: --limit.")


def print_rows(columns: Sequence[str], rows: Iterable[Row]) -> None:
    """A table on a terminal, tab-separated lines with one header line otherwise."""
    texts = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [list(columns), *texts]:
            click.echo("\t".join(line))
        return
    from rich.console import Console, JustifyMethod
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    texts = [[_TO_THE_SECOND.sub("Z", cell) for cell in row] for row in texts]
    # A column in which nothing is known is left out: a terminal is narrow.
    known = [index for index in range(len(columns)) if any(row[index] for row in texts)]
    if _wide(columns, texts, known) > FOLDED * console.width:
        _print_cards(console, columns, texts, known)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index in known:
        right = all(_is_number(row[index]) for row in texts)
        # An id is for copying: it stays in one piece. All else folds on to the next line rather than being cut.
        in_one_piece = columns[index] == "id"
        justify: JustifyMethod = "right" if right else "left"
        table.add_column(Text(columns[index]), justify=justify, overflow="fold", no_wrap=in_one_piece)
    for row in texts:
        table.add_row(*(Text(row[index]) for index in known))
    console.print(table)


def _wide(columns: Sequence[str], texts: Sequence[Sequence[str]], known: Sequence[int]) -> int:
    """How wide the table wants to be; of sentences only a part counts, for they fold well."""
    from rich.cells import cell_len

    widest = (max(cell_len(text) for text in (columns[index], *(row[index] for row in texts))) for index in known)
    return sum(min(width, SENTENCE) + 2 for width in widest)


def _print_cards(
    console: "Console", columns: Sequence[str], texts: Sequence[Sequence[str]], known: Sequence[int]
) -> None:
    """A block for each row, a line for each thing that is known of it: for terminals too narrow for the table."""
    from rich.table import Table
    from rich.text import Text

    for place, row in enumerate(texts):
        if place:
            console.print()
        card = Table(box=None, pad_edge=False, show_header=False)
        card.add_column(style="bold", overflow="fold")
        card.add_column(overflow="fold")
        for index in known:
            if row[index]:
                card.add_row(Text(columns[index]), Text(row[index]))
        console.print(card)


def print_facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Name and value, line by line; what is not known is left out."""
    print_rows(("field", "value"), [(name, value) for name, value in pairs if value not in (None, "", {}, ())])


def checkpoint_cells(checkpoint: "CheckpointRef") -> tuple[str, str]:
    """How a checkpoint is written everywhere: `run · attempt · step`, and its id."""
    return str(checkpoint), checkpoint.id


def clean(text: str) -> str:
    """`text` without control characters other than the line break."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def counted(amount: int, noun: str) -> str:
    """1 checkpoint, 3 checkpoints."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def points(fraction: float | None) -> str:
    """0.873 -> '87 %'."""
    return "" if fraction is None or not math.isfinite(fraction) else f"{fraction * 100:.0f} %"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value:.6g}"
    if isinstance(value, datetime):
        return str(json.loads(wire.encode(value)))
    if isinstance(value, (dict, list, tuple)):
        value = json.dumps(json.loads(wire.encode(value)), ensure_ascii=False)
    return clean(str(value)).replace("\n", " ")


def _is_number(text: str) -> bool:
    try:
        float(text.removesuffix(" %") or 0)
    except ValueError:
        return False
    return True
