"""Several calls to a tracker at once, a few so that it does not suffer; their answers in the order of the asking."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from registry.integrations.http import AT_ONCE

A = TypeVar("A")
B = TypeVar("B")


def in_order(call: Callable[[A], B], items: Iterable[A]) -> Generator[B, None, None]:
    """What `call` gives for each item. No more than AT_ONCE answers wait to be taken, so that memory stays bounded."""
    remaining = iter(items)
    with ThreadPoolExecutor(AT_ONCE, "tracker") as threads:
        waiting: deque[Future[B]] = deque(threads.submit(call, item) for item in islice(remaining, AT_ONCE))
        try:
            while waiting:
                found = waiting.popleft().result()
                waiting.extend(threads.submit(call, item) for item in islice(remaining, 1))
                yield found
        finally:
            for each in waiting:
                each.cancel()
