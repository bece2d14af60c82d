"""Follows the opcodes of a pickle without doing what they say.

Nothing is imported, called or constructed but plain values: a class or function becomes a `Global` (its name), a
call or an object becomes a `Record` (what would have been called, with what). So a hostile pickle can only cost
time and memory, and both are bounded: by the size of the pickle, and by a budget that every opcode draws on.
Opcodes as in Python's own `pickletools`; the extension registry and out-of-band buffers are refused, since no
checkpoint uses them.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cairn.formats.checkpoints.shapes import Unreadable


class PickleFault(Unreadable):
    """Not a whole pickle, or not one that this machine follows."""


class UnsafePickle(PickleFault):
    """A pickle that would run something when it is loaded as pickles are."""


@dataclass(frozen=True, slots=True)
class Global:
    """A class or function, by name only."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


_NO_PAIRS: Mapping[Any, Any] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Record:
    """What would have been `of(*args)`, with the state, entries and pairs that were then put into it."""

    of: Global
    args: tuple[Any, ...] = ()
    state: Any = None
    entries: Sequence[Any] = ()
    pairs: Mapping[Any, Any] = field(default_factory=lambda: _NO_PAIRS)

    @property
    def name(self) -> str:
        return str(self.of)


@dataclass(frozen=True, slots=True, eq=False)
class Persistent:
    """What is kept outside of the pickle: for torch, where the numbers of a tensor are."""

    id: Any


# One opcode costs 1 (8 bytes on the stack), one that makes an object more, by its bytes: with 16 million, the worst
# of every kind stays below 200 MB. Measured with pickles of nothing but lists, dictionaries, sets, numbers, calls.
BUDGET = 16_000_000
NUMBER_COST, OBJECT_COST, SET_COST = 4, 8, 24
# Python's hashes of numbers repeat beyond this; a dictionary of such keys would take hours.
_MAX_NUMBER_KEY = 2**61 - 2
# Wider than any counter or state of a generator; printing an integer of megabytes would take hours.
_MAX_INT_BYTES = 64


class Machine:
    """Follows one pickle: `allow` is asked about every global as it is named, and raises for those it refuses;
    `make` may answer a plain value for a call, or None for a `Record`."""

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        allow: Callable[[Global], None],
        make: Callable[[Global, tuple[Any, ...]], Any] = lambda of, args: None,
        budget: int = BUDGET,
    ) -> None:
        self.data, self.allow, self.make, self.budget = memoryview(data), allow, make, budget
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []  # where in the stack the open lists begin
        self.persistent: list[Persistent] = []
        self.memo: dict[int, Any] = {}
        self._globals: dict[tuple[str, str], Global] = {}

    def run(self) -> Any:
        """The value, with `at` behind the pickle's end. Raises `PickleFault`, or what `allow` raises."""
        data, stack, length = self.data, self.stack, len(self.data)
        try:
            while self.at < length:
                code = data[self.at]
                self.at += 1
                self.budget -= 1
                if code == 0x2E:  # STOP
                    return stack.pop()
                handler = _HANDLERS[code]
                if handler is None:
                    raise PickleFault(f"opcode {code:#04x} at byte {self.at - 1:,} is none that checkpoints use")
                if self.budget < 0:
                    raise PickleFault("the pickle holds more than is followed here")
                handler(self)
        except PickleFault:
            raise
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error, UnicodeError) as fault:
            raise PickleFault(f"the pickle makes no sense at byte {self.at:,} ({type(fault).__name__})") from None
        raise PickleFault(f"the pickle ends at byte {length:,} without its end mark: it was cut short")

    # Arguments behind an opcode

    def take(self, length: int) -> memoryview:
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise PickleFault(f"the pickle ends at byte {len(self.data):,}, before byte {end:,}: it was cut short")
        part = self.data[self.at : end]
        self.at = end
        return part

    def number(self, format: struct.Struct) -> Any:
        at = self.at
        self.at = at + format.size
        try:
            return format.unpack_from(self.data, at)[0]
        except struct.error:
            raise PickleFault(f"the pickle ends at byte {len(self.data):,}: it was cut short") from None

    def line(self) -> bytes:
        start = self.at
        window = 256
        while (end := bytes(self.data[start : start + window]).find(b"\n")) < 0:
            if start + window >= len(self.data):
                self.take(window)  # says where the pickle ends
            window *= 8
        self.at = start + end + 1
        return bytes(self.data[start : start + end])

    def made(self, value: Any, cost: int = OBJECT_COST) -> None:
        self.budget -= cost
        self.stack.append(value)

    def since_mark(self) -> list[Any]:
        at = self.marks.pop()
        if at > len(self.stack):
            raise IndexError
        found = self.stack[at:]
        del self.stack[at:]
        self.budget -= len(found)
        return found

    # Opcodes that name and call

    def named(self, module: str, name: str) -> Global:
        key = (module, name)
        if key not in self._globals:
            self.allow(found := Global(module, name))
            self._globals[key] = found
        return self._globals[key]

    def called(self, of: Any, args: Any) -> Any:
        if not isinstance(args, tuple):
            raise TypeError
        if not isinstance(of, Global):
            raise UnsafePickle("it would call what it has made itself: refused, nothing of it was run")
        value = self.make(of, args)
        return Record(of, args) if value is None else value

    def fill(self, target: Any, pairs: list[Any]) -> None:
        if len(pairs) % 2:
            raise ValueError
        if isinstance(target, Record) and not isinstance(target.pairs, dict):
            target.pairs = {}
        into = target.pairs if isinstance(target, Record) else target
        if not isinstance(into, dict):
            raise TypeError
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            into[hashable(key)] = value

    def append(self, target: Any, values: list[Any]) -> None:
        if isinstance(target, Record) and not isinstance(target.entries, list):
            target.entries = []
        into = target.entries if isinstance(target, Record) else target
        if not isinstance(into, list):
            raise TypeError
        into.extend(values)

    def build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, Record):
            target.state = state
        elif not isinstance(target, dict):  # OrderedDict's own attributes (torch's `_metadata`) are left out
            raise TypeError


def hashable(key: Any, depth: int = 0) -> Any:
    """The same, where it may be a key: hashing a tuple of a million levels would end the process."""
    if isinstance(key, (int, float)) and abs(key) > _MAX_NUMBER_KEY:
        raise PickleFault("the pickle has a dictionary with a key larger than any that checkpoints use")
    if isinstance(key, (str, int, float, bytes, Global, Persistent, Record, frozenset)) or key is None:
        return key
    if isinstance(key, tuple) and depth < 8:
        return tuple(hashable(part, depth + 1) for part in key)
    raise TypeError


_U1, _U2, _U4, _U8 = (struct.Struct(f"<{letter}") for letter in "BHIQ")
_I4, _F8 = struct.Struct("<i"), struct.Struct(">d")
_Handler = Callable[[Machine], None]
_HANDLERS: list[_Handler | None] = [None] * 256


def _opcode(code: int) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        _HANDLERS[code] = handler
        return handler

    return register


def _constants() -> None:
    """Opcodes that put a fixed or a short value on the stack."""
    for code, value in ((0x4E, None), (0x88, True), (0x89, False), (0x29, ())):
        _HANDLERS[code] = lambda m, value=value: m.stack.append(value)  # type: ignore[misc]
    for code, kind in ((0x5D, list), (0x7D, dict)):
        _HANDLERS[code] = lambda m, kind=kind: m.made(kind())  # type: ignore[misc]
    _HANDLERS[0x8F] = lambda m: m.made(set(), SET_COST)
    _HANDLERS[0x4B] = lambda m: m.stack.append(m.number(_U1))
    for code, format in ((0x4A, _I4), (0x4D, _U2), (0x47, _F8)):
        _HANDLERS[code] = lambda m, format=format: m.made(m.number(format), NUMBER_COST)  # type: ignore[misc]
    for code, format in ((0x58, _U4), (0x8C, _U1), (0x8D, _U8)):  # unicode
        _HANDLERS[code] = lambda m, format=format: m.made(_text(m.take(m.number(format))))  # type: ignore[misc]
    for code, format in ((0x54, _I4), (0x55, _U1)):  # strings of Python 2
        _HANDLERS[code] = lambda m, format=format: m.made(str(m.take(m.number(format)), "latin-1"))  # type: ignore[misc]
    for code, format in ((0x42, _U4), (0x43, _U1), (0x8E, _U8), (0x96, _U8)):
        _HANDLERS[code] = lambda m, format=format: m.made(bytes(m.take(m.number(format))))  # type: ignore[misc]
    for code, format in ((0x8A, _U1), (0x8B, _I4)):  # long
        _HANDLERS[code] = lambda m, format=format: _long(m, m.number(format))  # type: ignore[misc]
    for code, length in ((0x85, 1), (0x86, 2), (0x87, 3)):
        _HANDLERS[code] = lambda m, length=length: _tuple(m, length)  # type: ignore[misc]
    for code, format in ((0x68, _U1), (0x6A, _U4)):  # get
        _HANDLERS[code] = lambda m, format=format: m.stack.append(m.memo[m.number(format)])  # type: ignore[misc]
    for code, format in ((0x71, _U1), (0x72, _U4)):  # put
        _HANDLERS[code] = lambda m, format=format: _put(m, m.number(format))  # type: ignore[misc]
    for code, format in ((0x80, _U1), (0x95, _U8)):  # protocol, frame: what they promise is not needed
        _HANDLERS[code] = lambda m, format=format: m.number(format)  # type: ignore[misc]


def _text(data: memoryview) -> str:
    return str(data, "utf-8", "surrogatepass")


def _long(m: Machine, length: int) -> None:
    if length > _MAX_INT_BYTES:
        raise PickleFault("the pickle has an integer larger than any that checkpoints use")
    m.made(int.from_bytes(m.take(length), "little", signed=True))


def _tuple(m: Machine, length: int) -> None:
    if len(m.stack) < length:
        raise IndexError
    parts = tuple(m.stack[-length:])
    del m.stack[-length:]
    m.made(parts)


def _put(m: Machine, key: int) -> None:
    m.memo[key] = m.stack[-1]
    m.budget -= OBJECT_COST


_constants()


@_opcode(0x94)
def _memoize(m: Machine) -> None:
    _put(m, len(m.memo))


@_opcode(0x70)
def _put_line(m: Machine) -> None:
    _put(m, int(m.line()))


@_opcode(0x67)
def _get_line(m: Machine) -> None:
    m.stack.append(m.memo[int(m.line())])


@_opcode(0x28)
def _mark(m: Machine) -> None:
    m.marks.append(len(m.stack))
    m.budget -= NUMBER_COST


@_opcode(0x30)
def _pop(m: Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


@_opcode(0x31)
def _pop_mark(m: Machine) -> None:
    m.since_mark()


@_opcode(0x32)
def _dup(m: Machine) -> None:
    m.stack.append(m.stack[-1])


@_opcode(0x46)
def _float_line(m: Machine) -> None:
    m.made(float(m.line()), NUMBER_COST)


@_opcode(0x49)
def _int_line(m: Machine) -> None:
    text = m.line()
    m.made({b"00": False, b"01": True}[text] if text in (b"00", b"01") else int(text), NUMBER_COST)


@_opcode(0x4C)
def _long_line(m: Machine) -> None:
    m.made(int(m.line().rstrip(b"L")))


@_opcode(0x53)
def _string_line(m: Machine) -> None:
    m.made(str(m.line()[1:-1], "latin-1"))


@_opcode(0x56)
def _unicode_line(m: Machine) -> None:
    m.made(str(m.line(), "raw-unicode-escape"))


@_opcode(0x50)
def _persistent_line(m: Machine) -> None:
    _persist(m, str(m.line(), "ascii"))


@_opcode(0x51)
def _persistent(m: Machine) -> None:
    _persist(m, m.stack.pop())


def _persist(m: Machine, id: Any) -> None:
    found = Persistent(id)
    m.persistent.append(found)
    m.made(found)


@_opcode(0x63)
def _global(m: Machine) -> None:
    module = str(m.line(), "utf-8")
    m.stack.append(m.named(module, str(m.line(), "utf-8")))


@_opcode(0x93)
def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not (isinstance(name, str) and isinstance(module, str)):
        raise TypeError
    m.stack.append(m.named(module, name))


@_opcode(0x69)
def _inst(m: Machine) -> None:
    module = str(m.line(), "utf-8")
    found = m.named(module, str(m.line(), "utf-8"))
    m.made(m.called(found, tuple(m.since_mark())))


@_opcode(0x6F)
def _obj(m: Machine) -> None:
    of, *args = m.since_mark()
    m.made(m.called(of, tuple(args)))


@_opcode(0x52)
@_opcode(0x81)
def _reduce(m: Machine) -> None:
    args = m.stack.pop()
    m.made(m.called(m.stack.pop(), args))


@_opcode(0x92)
def _new_with_names(m: Machine) -> None:
    names, args = m.stack.pop(), m.stack.pop()
    m.made(found := m.called(m.stack.pop(), args))
    if isinstance(found, Record):
        found.state = names


@_opcode(0x62)
def _build(m: Machine) -> None:
    m.build()


@_opcode(0x61)
def _append(m: Machine) -> None:
    value = m.stack.pop()
    m.append(m.stack[-1], [value])


@_opcode(0x65)
def _appends(m: Machine) -> None:
    values = m.since_mark()
    m.append(m.stack[-1], values)


@_opcode(0x73)
def _set_item(m: Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    m.fill(m.stack[-1], [key, value])


@_opcode(0x75)
def _set_items(m: Machine) -> None:
    pairs = m.since_mark()
    m.fill(m.stack[-1], pairs)


@_opcode(0x90)
def _add_items(m: Machine) -> None:
    values = m.since_mark()
    if not isinstance(target := m.stack[-1], set):
        raise TypeError
    target.update(map(hashable, values))


@_opcode(0x91)
def _frozenset(m: Machine) -> None:
    m.made(frozenset(map(hashable, m.since_mark())), SET_COST)


@_opcode(0x64)
def _dict(m: Machine) -> None:
    pairs = m.since_mark()
    found: dict[Any, Any] = {}
    m.made(found)
    m.fill(found, pairs)


@_opcode(0x6C)
def _list(m: Machine) -> None:
    m.made(m.since_mark())


@_opcode(0x74)
def _tuple_since_mark(m: Machine) -> None:
    m.made(tuple(m.since_mark()))
