"""Follows a large pickle of known records in bounded memory: what is not referred to again is let go at once.

A pickle remembers every object it makes, in case it is named again; of half a million parts hardly one is. So the
data is searched first for the numbers that could be asked for again (a superset: any byte that looks like the
opcode), and only those are remembered. Records take up what they need when they are built, pairs of them are
handed over as they appear, and a guard looks at the memory in use, since a hostile pickle retains on purpose.
"""

import os
import re
import struct
import sys
from collections.abc import Callable
from typing import Any

from cairn.formats.checkpoints.pickle_machine import _HANDLERS, Global, Machine, PickleFault, hashable

# With the pickle itself (96 MiB at most), and what the program had before, this stays below 300 MB.
MAX_GROWTH = 150 * 1024 * 1024
MAX_BYTES = 96 * 1024 * 1024
_LOOK_EVERY = 10_000  # bytes: every opcode has one at least
_MOST_AT_ONCE = 100_000
_ASKED_FOR = re.compile(rb"(?=h(.)|j(.{4})|g([0-9]{1,10})\n)", re.DOTALL)

_SENSELESS = (KeyError, ValueError, TypeError, AttributeError, struct.error, UnicodeError)

Pair = Callable[[Any, Any], bool]
Make = Callable[[Global], "Built | None"]
Plain = Callable[[Global, tuple[Any, ...]], Any]


class Built:
    """A record that is filled once, by its state."""

    __slots__ = ()

    def build(self, state: Any) -> None:
        """Takes up what it needs. Raises ValueError, TypeError, KeyError, AttributeError for what makes no sense."""


class _Memo(dict[int, Any]):
    """Counts every object that is remembered, and keeps those that are asked for again."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.count = 0
        self.wanted = {_number(*found.groups()) for found in _ASKED_FOR.finditer(data)}

    def __len__(self) -> int:
        return self.count

    def __setitem__(self, key: int, value: Any) -> None:
        self.count += 1
        if key in self.wanted:
            super().__setitem__(key, value)


def _number(short: bytes | None, long: bytes | None, text: bytes | None) -> int:
    return int.from_bytes(short or long or b"", "little") if text is None else int(text)


class _Follower(Machine):
    def __init__(self, data: bytes | bytearray, allow: Callable[[Global], None], make: Make, plain: Plain) -> None:
        super().__init__(data, allow)
        self.memo: _Memo = _Memo(data)
        self.wanted = self.memo.wanted
        self.known, self.plain = make, plain
        self.pair: Pair = lambda key, value: False
        self._began_with = _memory_in_use()

    def run(self) -> Any:
        """As `Machine`; the opcodes that nine tenths of a metadata consist of are followed here, twice as fast."""
        data, stack, marks, memo, wanted = self.data, self.stack, self.marks, self.memo, self.wanted
        look_at = 0
        try:
            while True:
                if self.at >= look_at:
                    look_at = self.at + _LOOK_EVERY
                    self.look()
                at = self.at
                code = data[at]
                if code == 0x94:  # MEMOIZE
                    if memo.count in wanted:
                        memo[memo.count] = stack[-1]
                    else:
                        memo.count += 1
                    self.at = at + 1
                elif code == 0x68:  # BINGET
                    stack.append(memo[data[at + 1]])
                    self.at = at + 2
                elif code == 0x6A:  # LONG_BINGET
                    stack.append(memo[int.from_bytes(data[at + 1 : at + 5], "little")])
                    self.at = at + 5
                elif code == 0x4B:  # BININT1
                    stack.append(data[at + 1])
                    self.at = at + 2
                elif code == 0x28:  # MARK
                    marks.append(len(stack))
                    self.at = at + 1
                elif code == 0x7D:  # EMPTY_DICT
                    stack.append({})
                    self.at = at + 1
                elif code == 0x29:  # EMPTY_TUPLE
                    stack.append(())
                    self.at = at + 1
                elif code == 0x4D:  # BININT2
                    stack.append(data[at + 1] | data[at + 2] << 8)
                    self.at = at + 3
                elif code == 0x62:  # BUILD
                    self.build()
                    self.at = at + 1
                elif code == 0x2E:  # STOP
                    self.at = at + 1
                    return stack.pop()
                else:
                    self.at = at + 1
                    handler = _HANDLERS[code]
                    if handler is None:
                        raise PickleFault(f"opcode {code:#04x} at byte {at:,} is none that checkpoints use")
                    handler(self)
        except PickleFault:
            raise
        except IndexError:
            raise PickleFault(f"the pickle makes no sense at byte {self.at:,}, or was cut short there") from None
        except _SENSELESS as fault:
            raise PickleFault(f"the pickle makes no sense at byte {self.at:,} ({type(fault).__name__})") from None

    def called(self, of: Any, args: Any) -> Any:
        if not isinstance(of, Global) or not isinstance(args, tuple):
            raise TypeError
        found = self.known(of)
        return self.plain(of, args) if found is None else found

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, Built):
            target.build(state)
        elif not isinstance(target, dict):
            raise TypeError

    def fill(self, target: Any, pairs: list[Any]) -> None:
        if len(pairs) % 2 or not isinstance(target, dict):
            raise TypeError
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if self.pair(key, value):
                continue
            target[hashable(key)] = value

    def made(self, value: Any, cost: int = 1) -> None:
        self.stack.append(value)

    def look(self) -> None:
        """What is taken is bounded by looking at it. Raises `PickleFault` where it is too much."""
        waiting = len(self.stack) + len(self.marks)
        if waiting > _MOST_AT_ONCE or _memory_in_use() - self._began_with > MAX_GROWTH:
            raise PickleFault("the pickle takes more memory than the metadata of any checkpoint would")


def follow(data: bytes | bytearray, allow: Callable[[Global], None], make: Make, plain: Plain, pair: Pair) -> Any:
    """The value of a pickle. `allow` raises for globals it does not know; `make` answers the record for a class, or
    None for a plain value, which `plain` then makes; `pair` takes up an entry of a dictionary, or leaves it there.
    Raises `PickleFault`, and what `allow` raises."""
    machine = _Follower(data, allow, make, plain)
    machine.pair = pair
    return machine.run()


def _memory_in_use() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        # Elsewhere: blocks of the allocator, some hundred bytes each.
        return sys.getallocatedblocks() * 100
