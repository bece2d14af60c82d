"""Whatever a training script hands over, as plain JSON: never raises, never runs long, and says what it left out.

Scalars of numpy and torch become numbers, paths text, data classes and argparse namespaces objects, sets sorted
lists; non-finite numbers become the strings that the service knows. What has no plain form is named by its type.
"""

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any

from cairn.numbers import number_to_wire

MAX_DEPTH = 48
MAX_NODES = 20_000
MAX_TEXT = 16_384
CHARACTERS_A_VALUE = 16  # so many of a text count as one value more, where the conversion is strict
MAX_ARRAY = 4_096
INT_BITS = 1_024


class TooMuch(Exception):
    """More than may be walked through in a call."""


class Plain:
    """One conversion. `left_out` holds the places of what has no plain form, `budget` how many values may follow."""

    def __init__(self, budget: int = MAX_NODES, *, strict: bool = False) -> None:
        self.left_out: list[str] = []
        self._budget = budget
        self._strict = strict
        self._inside: set[int] = set()

    def of(self, value: Any, place: str = "", depth: int = 0) -> Any:
        """The plain form. Raises only `TooMuch`, and that only where the conversion is strict."""
        self._budget -= 1
        if self._budget < 0:
            if self._strict:
                raise TooMuch
            return self._without(place, "of more than can be kept")
        try:
            return self._scalar_or_more(value, place, depth)
        except TooMuch:
            raise
        except Exception as fault:  # somebody else's property, __iter__ or item()
            return self._without(place, f"{type(value).__name__} ({type(fault).__name__})")

    def _scalar_or_more(self, value: Any, place: str, depth: int) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if value.bit_length() <= INT_BITS else str(value)[:MAX_TEXT]
        if kind is float:
            return number_to_wire(value)
        if kind is str:
            return self._text(value, place)
        if isinstance(value, Enum):
            return self.of(value.value, place, depth + 1)
        if isinstance(value, float):  # numpy's own 64-bit float among them
            return number_to_wire(float(value))
        if isinstance(value, int):
            return self.of(int(value), place, depth)
        if isinstance(value, str | PurePath):
            return self._text(str(value), place)
        if isinstance(value, bytes | bytearray):
            return self._without(place, f"{len(value)} bytes")
        return self._compound(value, place, depth)

    def _text(self, value: str, place: str) -> str:
        """Where the conversion is strict nothing is cut off, and what cannot be sent as it is counts as left out."""
        if not self._strict:
            return text(value)
        self._budget -= len(value) // CHARACTERS_A_VALUE
        if self._budget < 0:
            raise TooMuch
        said = sendable(value)
        return said if said == value else self._without(place, "text that cannot be sent as it is")

    def _compound(self, value: Any, place: str, depth: int) -> Any:
        if depth > MAX_DEPTH or id(value) in self._inside:
            return self._without(place, "nested in itself or too deep")
        self._inside.add(id(value))
        try:
            if isinstance(value, Mapping) or _is_mapping(value):
                return self._mapping(value, place, depth)
            if isinstance(value, list | tuple):
                named = getattr(value, "_asdict", None)
                return self._mapping(named(), place, depth) if callable(named) else self._list(value, place, depth)
            if isinstance(value, set | frozenset):
                return self._list(sorted(value, key=str), place, depth)
            if callable(getattr(value, "tolist", None)):
                return self._array(value, place, depth)
            return self._object(value, place, depth)
        finally:
            self._inside.discard(id(value))

    def _mapping(self, value: Any, place: str, depth: int) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for key in list(islice(value.keys(), max(self._budget, 0) + 1)):
            if self._is_full(place):
                break
            asked = str(key.value if isinstance(key, Enum) else key)
            name = text(asked)[:500]
            if self._strict and (name != asked or name in said):
                self.left_out.append(place or "a key")
            said.setdefault(name, self.of(value[key], f"{place}.{name}" if place else name, depth + 1))
        return said

    def _list(self, value: Any, place: str, depth: int) -> list[Any]:
        said: list[Any] = []
        for at, each in enumerate(value):
            if self._is_full(place):
                break
            said.append(self.of(each, f"{place}.{at}" if place else str(at), depth + 1))
        return said

    def _array(self, value: Any, place: str, depth: int) -> Any:
        """numpy and torch, scalars and arrays alike."""
        size = getattr(value, "size", None)
        count = size if isinstance(size, int) else getattr(value, "numel", lambda: 1)()
        if count > MAX_ARRAY:
            shape = tuple(getattr(value, "shape", ()))
            return self._without(place, f"{type(value).__name__} of shape {shape}")
        return self.of(value.tolist(), place, depth + 1)

    def _object(self, value: Any, place: str, depth: int) -> Any:
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
        if dataclasses.is_dataclass(value):
            fields = {each.name: getattr(value, each.name, None) for each in dataclasses.fields(value)}
            return self._mapping(fields, place, depth)
        for name in ("model_dump", "to_dict", "dict", "asdict"):
            method = getattr(type(value), name, None)
            if callable(method):
                found = method(value)
                if isinstance(found, Mapping):
                    return self._mapping(found, place, depth)
        module, name = type(value).__module__, type(value).__name__
        if module.partition(".")[0] in _NAMED_BY_TEXT or name in _BY_TEXT or module == "numpy.dtypes":
            return text(str(value))
        if _is_namespace(value) or (depth == 0 and hasattr(value, "__dict__")):  # a script's own class of settings
            public = {each: vars(value)[each] for each in list(vars(value)) if not each.startswith("_")}
            return self._mapping(public, place, depth)
        return self._without(place, f"{module}.{type(value).__qualname__}")

    def _is_full(self, place: str) -> bool:
        """Whether what follows is left out, whole: the service takes no more values than are kept here."""
        if self._budget > 0 or self._strict:
            return False
        self._without(f"the rest of {place or 'the whole'}", "")
        return True

    def _without(self, place: str, what: str) -> str:
        self.left_out.append(place or "the whole")
        return f"<{what}>"


# torch.dtype, torch.device, UUIDs, times: their text says it all.
_NAMED_BY_TEXT = frozenset({"torch", "uuid", "decimal", "fractions", "datetime", "ipaddress"})
_BY_TEXT = frozenset({"dtype", "device", "Version"})


def text(value: str) -> str:
    """Text that can be sent, not endless."""
    said = sendable(value)
    return said if len(said) <= MAX_TEXT else said[:MAX_TEXT]


def sendable(value: str) -> str:
    """Text without NUL or half a surrogate pair."""
    if "\0" in value:
        value = value.replace("\0", "\N{SYMBOL FOR NULL}")
    if not value.isascii():
        value = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def number(value: Any) -> float | int | None:
    """A number of Python, numpy or torch; None for what is none. `True` is no number. Never raises."""
    kind = type(value)
    if kind is float or kind is int:
        return _bounded(value)
    try:
        if isinstance(value, bool) or value is None or isinstance(value, str | bytes):
            return None
        if callable(getattr(value, "item", None)):
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = float(value)
        return _bounded(float(value) if isinstance(value, float) else int(value))
    except Exception:  # whatever a library's own number does
        return None


def whole(value: Any) -> int | None:
    """A whole number from 0 that the service can hold; None for what is none. Never raises."""
    found = number(value)
    if found is None or not math.isfinite(found) or found != int(found) or not 0 <= found < 2**63:
        return None
    return int(found)


def _bounded(value: float | int) -> float | int | None:
    return (
        None if isinstance(value, int) and value.bit_length() >= INT_BITS else value
    )  # of fewer bits a float holds it


def _is_mapping(value: Any) -> bool:
    """Configs that are mappings without saying so (ml_collections, OmegaConf)."""
    return callable(getattr(value, "keys", None)) and hasattr(value, "__getitem__") and not isinstance(value, type)


def _is_namespace(value: Any) -> bool:
    return type(value).__name__ in ("Namespace", "SimpleNamespace", "AttrDict", "EasyDict")
