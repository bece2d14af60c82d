"""Many candidates looked at: a few here, a store's by threads, a local tree's by processes.

Reading a header costs milliseconds of Python, and Python runs on one core: a tree of a hundred thousand checkpoints
is looked at by one process for each core. They speak JSON, and one that dies over a file costs that file only.
"""

import contextlib
import json
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any

from cairn.digests.local import CORES
from cairn.scan.find import Candidate
from cairn.scan.look import Look, Unknown, look_at
from cairn.scan.walk import StoreTree, Tree

Answer = Look | Unknown
# Starting processes takes longer than looking at so many.
LOOKED_AT_HERE = 64
CHUNK = 16
STORE_READERS = 32
AHEAD = 4


def look_at_all(tree: Tree, candidates: Iterable[Candidate]) -> Iterator[Answer]:
    """Every candidate looked at, in their order; only a few wait at a time."""
    rest = iter(candidates)
    if isinstance(tree, StoreTree):
        yield from _in_order(STORE_READERS, lambda some: _look_here(tree, some), rest, chunk=1)
        return
    for each in islice(rest, LOOKED_AT_HERE):
        yield from look_at(tree, each)
    first = next(rest, None)
    if first is None:
        return
    try:
        workers = _Workers(tree, CORES)
    except OSError:  # where no further process is allowed, this one looks
        yield from _in_order(1, lambda some: _look_here(tree, some), _chain(first, rest), chunk=CHUNK)
        return
    with workers:
        yield from _in_order(CORES, workers.look_at, _chain(first, rest), chunk=CHUNK)


def _in_order(
    readers: int, look: Callable[[Sequence[Candidate]], list[Answer]], rest: Iterator[Candidate], *, chunk: int
) -> Iterator[Answer]:
    with ThreadPoolExecutor(readers) as pool:
        waiting: deque[Future[list[Answer]]] = deque()
        while some := list(islice(rest, chunk)):
            waiting.append(pool.submit(look, some))
            if len(waiting) >= readers * AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _look_here(tree: Tree, some: Sequence[Candidate]) -> list[Answer]:
    return [answer for each in some for answer in look_at(tree, each)]


def _chain(first: Candidate, rest: Iterator[Candidate]) -> Iterator[Candidate]:
    yield first
    yield from rest


class _Workers:
    """Processes that look at candidates below one root. A context manager: they end with it."""

    def __init__(self, tree: Tree, count: int) -> None:
        """Raises OSError where a process cannot be started."""
        self._tree = tree
        self._free: queue.Queue[_Process] = queue.Queue()
        try:
            for _ in range(count):
                self._free.put(_Process(tree.root))
        except OSError:
            self.close()
            raise

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while not self._free.empty():
            self._free.get().close()

    def look_at(self, some: Sequence[Candidate]) -> list[Answer]:
        answers = self._ask(some)
        if answers is not None:
            return answers
        if len(some) > 1:
            return [answer for each in some for answer in self.look_at([each])]
        return [Unknown(some[0].path, "the process that read it died over it")]

    def _ask(self, some: Sequence[Candidate]) -> list[Answer] | None:
        """None where the process died; another then takes its place."""
        with self._process() as process:
            return process.ask(some)

    @contextmanager
    def _process(self) -> Iterator["_Process"]:
        process = self._free.get()
        try:
            yield process
        finally:
            self._free.put(self._replaced(process) if process.died else process)

    def _replaced(self, process: "_Process") -> "_Process":
        """A new one; where none can be started, the dead one, which answers that it is."""
        process.close()
        try:
            return _Process(self._tree.root)
        except OSError:
            return process


class _Process:
    def __init__(self, root: str) -> None:
        command = [sys.executable, "-m", "cairn.scan.worker", root]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603
        self.died = False
        if self.ask(()) is None:
            self.close()
            raise OSError("a process that looks at checkpoints cannot be started")

    def ask(self, some: Sequence[Candidate]) -> list[Answer] | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([_to_plain(each) for each in some]).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError):  # its pipes may be closed already
            line = b""
        if not line.endswith(b"\n"):
            self.died = True
            return None
        return [_answer(each) for each in json.loads(line)]

    def close(self) -> None:
        self._process.kill()
        with contextlib.suppress(ValueError):  # closed before
            self._process.communicate()


def _to_plain(candidate: Candidate) -> dict[str, Any]:
    return {**vars(candidate), "files": [(each.path, each.bytes, each.modified_at) for each in candidate.files]}


def _answer(plain: dict[str, Any]) -> Answer:
    if len(plain) == len(Unknown.__dataclass_fields__):
        return Unknown(**plain)
    return Look(**{**plain, "notes": tuple(plain["notes"]), "parents": tuple(plain["parents"])})
