"""Reads the config of a training, whatever wrote it: YAML, JSON, TOML, a Megatron argument dump, a Namespace.

What a file is, its content says. Types are kept, numbers as they are written; keys that stand twice and values that
cannot be read are reported. Nothing that a file says is ever run. YAML needs PyYAML, TOML below Python 3.11 needs
tomli: both come with `cairn-client[cli]`.
"""

import json
import os
import sys
from collections.abc import Mapping
from datetime import date, time
from importlib import import_module
from typing import Any

from cairn.configs.megatron import is_dump, is_namespace, read_dump, read_namespace
from cairn.configs.shapes import MAX_BYTES, Config, Problem, Reading, check_bounds, flatten, joined, written
from cairn.formats import jsonfile
from cairn.formats.evals.content import open_for_reading
from cairn.formats.refusals import Refused

__all__ = ["Config", "Problem", "Refused", "flatten", "read_config", "read_config_path"]


def read_config_path(path: str | os.PathLike[str]) -> Config:
    """The config in a file. Raises `Refused`, `OSError`."""
    with open_for_reading(path) as file:
        return read_config(file.read(MAX_BYTES + 1))


def read_config(content: bytes) -> Config:
    """Raises `Refused` where the content is no config: too large, no text, a mistake in it, or no names with values."""
    if len(content) > MAX_BYTES:
        raise Refused(f"The config has more than {MAX_BYTES:,} bytes.")
    text = jsonfile.decode(content)
    if "\0" in text:
        raise Refused("The file is no text: it contains a NUL character.")
    reading = Reading()
    kind, values = _read(text, reading)
    if not isinstance(values, Mapping):
        raise Refused(f"The file holds {_what_it_is(values)}, no names with values.")
    check_bounds(values)
    return Config(_dialect(kind, values), values, tuple(reading.problems))


def _read(text: str, reading: Reading) -> tuple[str, Any]:
    if is_namespace(text):
        return "namespace", read_namespace(text, reading)
    if is_dump(text):
        return "megatron-arguments", read_dump(text, reading)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return "json", _read_json(text, reading)
        except json.JSONDecodeError:
            pass  # with comments or trailing commas it may be YAML, as GPT-NeoX writes its configs
    else:
        values = _read_toml(text)
        if values:
            return "toml", _toml_plain(values)
    try:
        from cairn.configs.yamlfile import read_yaml
    except ImportError:
        raise Refused("Reading YAML needs PyYAML: pip install 'cairn-client[cli]'.") from None
    return "yaml", read_yaml(text, reading)


def _read_json(text: str, reading: Reading) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(found)
        if len(values) == len(found):
            return values
        repeated = jsonfile.Repeated(values)
        repeated.clashes = frozenset(key for key, value in found if repr(value) != repr(values[key]))
        return repeated

    def number(digits: str) -> Any:
        try:
            return written(digits)
        except ValueError as fault:
            reading.note("", f"{fault}; it was read as text")
            return digits

    try:
        values = json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_int=_whole)
    except RecursionError:
        raise Refused("The config is nested too deep.") from None
    check_bounds(values)
    _note_repeated(values, "", reading)
    return values


def _note_repeated(value: Any, path: str, reading: Reading) -> None:
    if isinstance(value, jsonfile.Repeated):
        for key in sorted(value.clashes):
            reading.twice(joined(path, key), value[key])
    if isinstance(value, dict):
        for key, member in value.items():
            _note_repeated(member, joined(path, key), reading)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _note_repeated(member, joined(path, str(index)), reading)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= 300 else digits


def _read_toml(text: str) -> dict[str, Any] | None:
    """The values of a TOML document; None for what is none."""
    try:
        reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError:
        return None
    try:
        values: dict[str, Any] = reader.loads(text, parse_float=_toml_float)
    except (ValueError, RecursionError):
        return None
    return values


def _toml_float(digits: str) -> float:
    bare = digits.replace("_", "").removeprefix("+")
    return float(bare) if bare.lstrip("-") in ("inf", "nan") else written(bare)


def _toml_plain(value: Any, depth: int = 0) -> Any:
    """Times of TOML as text; all else is plain already."""
    if isinstance(value, dict):
        return {key: _toml_plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_toml_plain(each, depth + 1) for each in value]
    return value.isoformat() if isinstance(value, (date, time)) else value


def _dialect(kind: str, values: Mapping[str, Any]) -> str:
    """Whose config it is, where its keys tell."""
    keys = values.keys()
    if kind == "json" and ("architectures" in keys or ("model_type" in keys and "transformers_version" in keys)):
        return "hf-config"
    if kind in ("yaml", "json") and ("pipe-parallel-size" in keys or "pipe_parallel_size" in keys):
        return "gpt-neox"
    if kind == "yaml" and "base_model" in keys and keys & {"datasets", "adapter", "sequence_len", "micro_batch_size"}:
        return "axolotl"
    return kind


def _what_it_is(value: Any) -> str:
    names = {list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")
