"""A bar of bytes for what takes longer than a moment: on a terminal only, and not before a second has passed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from cairn.cli.output import clean

PATIENCE_SECONDS = 1.0


@contextmanager
def bytes_bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Receives numbers of bytes as they are done."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    began, done = time.monotonic(), 0
    with ExitStack() as until_end:
        shown: list[tuple[Any, Any]] = []

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if not shown and time.monotonic() - began > PATIENCE_SECONDS:
                shown.append(_started(until_end, title, total))
            for bar, task in shown:
                bar.update(task, completed=done)

        yield advance


def _started(until_end: ExitStack, title: str, total: int | None) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn(clean(title)), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    bar = until_end.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    return bar, bar.add_task(title, total=total)
