"""A bar that counts checkpoints, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cairn.cli.output import clean


@contextmanager
def count_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Nothing where standard error is no terminal. With a total it is given steps, else the number so far."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(clean(what), total=total)
        if total is None:
            yield lambda count: bar.update(task, completed=count)
        else:
            yield lambda count: bar.advance(task, count)
