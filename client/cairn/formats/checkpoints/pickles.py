"""Pickles inside checkpoints, read without executing them: which globals are plain, and what the rest means.

    load(data)                          tensors, containers and numbers as plain values, other classes as `Record`s
    load(data, only=("torch.", ...))    the same, and every global that does not begin so is refused

Loading such a file with `pickle` or `torch.load(weights_only=False)` calls whatever it names. A file that names
something that runs code is refused whole, with that name; so is one that names a module which only ever runs code.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cairn.formats.checkpoints.pickle_machine import (
    BUDGET,
    Global,
    Machine,
    Persistent,
    PickleFault,
    Record,
    UnsafePickle,
    hashable,
)

__all__ = ["Global", "Persistent", "PickleFault", "Record", "UnsafePickle", "load", "load_first", "walk"]

# 32 MiB describe some 100,000 tensors; more would not fit the memory that reading may take.
MAX_BYTES = 32 * 1024 * 1024

# Modules of which no checkpoint names anything, but every attack does.
_RUNS_CODE = frozenset(
    {
        *(
            "os",
            "posix",
            "nt",
            "ntpath",
            "posixpath",
            "sys",
            "subprocess",
            "_posixsubprocess",
            "pty",
            "socket",
            "_socket",
        ),
        *(
            "shutil",
            "runpy",
            "importlib",
            "imp",
            "pkgutil",
            "zipimport",
            "code",
            "codeop",
            "ctypes",
            "_ctypes",
            "pickle",
        ),
        *("_pickle", "marshal", "inspect", "webbrowser", "multiprocessing", "threading", "_thread"),
        *("asyncio", "pdb", "bdb", "timeit", "trace", "profile", "cProfile", "http", "urllib", "requests", "smtplib"),
        *("ftplib", "tempfile", "site", "sysconfig", "platform", "gc", "atexit", "concurrent", "cloudpickle", "dill"),
        *("joblib", "pip", "setuptools", "ensurepip", "venv", "idlelib", "doctest", "logging", "_pyrepl"),
        *("xmlrpc", "tarfile", "zipfile", "commands", "__main__.os", "torch.hub", "torch.utils.cpp_extension"),
        *("numpy.testing", "numpy.distutils", "numpy.f2py", "torch.jit", "torch.utils.collect_env", "test", "unittest"),
    }
)
# Of modules that hold both: what is plain. Everything else of them is refused.
_PLAIN_OF = {
    "builtins": {
        *("set", "frozenset", "dict", "list", "tuple", "int", "float", "complex", "bool", "str", "bytes"),
        *("bytearray", "slice", "range", "object", "Ellipsis", "NotImplemented", "type", "NoneType"),
    },
    "functools": {"partial"},
    "io": {"BytesIO", "StringIO"},
    "_io": {"BytesIO", "StringIO"},
    "types": {"SimpleNamespace", "NoneType"},
    "signal": {"Signals"},  # Megatron keeps the signal that it stops at among its arguments
    "operator": set[str](),
    "_operator": set[str](),
    "copyreg": {"_reconstructor"},
    "copy_reg": {"_reconstructor"},
    "codecs": {"encode"},
    "_codecs": {"encode"},
    "collections": {"OrderedDict", "defaultdict", "Counter", "deque"},
    "torch._dynamo": set[str](),
}
_PLAIN_OF["__builtin__"] = _PLAIN_OF["builtins"] | {"unicode", "long"}
_DICTS = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter", "builtins.dict"})
_SETS = frozenset({"builtins.set", "builtins.frozenset", "__builtin__.set", "__builtin__.frozenset"})


@dataclass(frozen=True)
class Loaded:
    """`value` as plain values, the globals that the pickle names and what it keeps outside, in order of appearance."""

    value: Any
    globals: tuple[str, ...]
    length: int
    persistent: tuple[Persistent, ...] = ()


def load(data: bytes, *, only: Iterable[str] | None = None, max_bytes: int = MAX_BYTES, budget: int = BUDGET) -> Loaded:
    """What a pickle says. Raises `UnsafePickle` for one that names what runs code (or anything but `only`),
    `PickleFault` for one that is too large, cut short or none."""
    if len(data) > max_bytes:
        raise PickleFault(f"the pickle has {len(data):,} bytes; at most {max_bytes:,} are followed")
    return load_first(data, only=only, budget=budget)


def load_first(data: bytes | memoryview, *, only: Iterable[str] | None = None, budget: int = BUDGET) -> Loaded:
    """The first of pickles that stand one behind the other; `length` says where the next begins."""
    named: dict[str, None] = {}
    allowed = None if only is None else tuple(only)

    def allow(found: Global) -> None:
        text = str(found)
        if runs_code(found):
            raise UnsafePickle(f"it would call {text[:80]} when loaded: refused, nothing of it was run")
        if allowed is not None and not text.startswith(allowed):
            raise UnsafePickle(f"it names {text[:80]}, which such a file has no use for: refused, nothing was run")
        named[text] = None

    machine = Machine(data, allow, _plain, budget)
    value = machine.run()
    return Loaded(value, tuple(named), machine.at, tuple(machine.persistent))


def runs_code(found: Global) -> bool:
    """Whether naming this in a pickle has no other use than to run something."""
    module, name = found.module, found.name
    plain = _PLAIN_OF.get(module)
    if plain is not None:
        return name not in plain
    # `STACK_GLOBAL` walks dots: `torch` with `serialization.os.system` is os.system.
    if "." in name and not name.replace(".", "").isidentifier():
        return True
    parts = f"{module}.{name}".split(".")
    heads = {".".join(parts[: end + 1]) for end in range(len(parts) - 1)}
    return bool(heads & _RUNS_CODE) or any(part in _RUNS_CODE for part in name.split(".")[:-1])


def _plain(of: Global, args: tuple[Any, ...]) -> Any:
    """The plain value that a well-known call stands for; None for all others."""
    text = str(of)
    if text in _DICTS:
        return {}
    if text in _SETS and len(args) == 1 and isinstance(args[0], (list, tuple)):
        return set(map(hashable, args[0]))
    if text == "torch.Size" and len(args) == 1 and isinstance(args[0], (list, tuple)):
        return tuple(args[0])
    if text == "_codecs.encode" and len(args) == 2 and isinstance(args[0], str):
        return args[0].encode("latin-1", "replace")
    if text in ("builtins.bytes", "__builtin__.bytes") and args == ():
        return b""
    return None


def walk(value: Any, *, into: Callable[[Any], bool] = lambda each: True, limit: int = 2_000_000) -> Iterator[Any]:
    """Every value inside, each object once, without recursion; `into` says which to enter."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and limit:
        limit -= 1
        each = waiting.pop()
        yield each
        if isinstance(each, (dict, list, tuple, set, Record)) and id(each) not in seen and into(each):
            seen.add(id(each))
            waiting.extend(_inside(each))


def _inside(each: Any) -> Iterable[Any]:
    if isinstance(each, dict):
        return each.values()
    if isinstance(each, Record):
        return (*each.args, each.state, *each.entries, *each.pairs.values())
    return each  # type: ignore[no-any-return]
