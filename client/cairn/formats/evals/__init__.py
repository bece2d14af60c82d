"""Readers of evaluation result files. The format is found by content, never by a file's name.

One module a format, each with a `FORMAT` (see `shapes.Format`). A HELM run is a folder of files that say something
only together: `together` finds those among the names of a folder, and `read_eval_folder` reads them.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from cairn.formats import jsonfile
from cairn.formats.evals import (
    dclm,
    every_eval_ever,
    helm,
    inspect_ai,
    lighteval,
    lm_eval_markdown,
    lm_eval_samples,
    lm_eval_v03,
    lm_eval_v04,
    opencompass,
    plain,
    trainer_state,
)
from cairn.formats.evals.content import Content, Lines, open_content, open_file, open_for_reading
from cairn.formats.evals.shapes import EvalFile, EvalScore, Format, Place, Skipped, listing
from cairn.formats.evals.tables import header_of
from cairn.formats.refusals import Refused

__all__ = [
    "FORMATS",
    "NAMES",
    "EvalFile",
    "EvalScore",
    "Format",
    "Place",
    "Refused",
    "Skipped",
    "find_format",
    "read_eval_folder",
    "read_eval_path",
    "read_evals",
    "together",
]

# The most telling shapes first; plain tables, which ask for least, last.
FORMATS: tuple[Format, ...] = (
    lighteval.FORMAT,
    lm_eval_v04.FORMAT,
    lm_eval_v03.FORMAT,
    inspect_ai.FORMAT,
    inspect_ai.ARCHIVE,
    trainer_state.FORMAT,
    every_eval_ever.FORMAT,
    dclm.FORMAT,
    lm_eval_samples.FORMAT,
    lm_eval_markdown.FORMAT,
    opencompass.FORMAT,
    plain.CSV,
    plain.LINES,
    plain.ARRAY,
)
NAMES: tuple[str, ...] = tuple(dict.fromkeys([*(each.name for each in FORMATS), helm.NAME]))


def find_format(content: bytes) -> str | None:
    """The name of the format that `content` has, or None. Raises `Refused` where it cannot be read at all."""
    found, _ = _match(open_content(content))
    return found.name if found else None


def read_evals(content: bytes, *, format: str = "auto", name: str = "") -> EvalFile:
    """All that a result file says. Raises `Refused` with the reason.

    `name` is the file's name: it never decides what the file is. Where the file names no step, or a list of samples
    not its task, the name is asked, and that is noted in `problems`.
    """
    _check_name(format)
    return _read(open_content(content), format, name)


def read_eval_path(path: str | os.PathLike[str], *, format: str = "auto") -> EvalFile:
    """As `read_evals`, of a file on disk: lines of JSON and archives of any size. Raises `Refused`, `OSError`."""
    _check_name(format)
    with open_for_reading(path) as file:
        return _read(open_file(file), format, os.fsdecode(path))


def _read(opened: Content, format: str, name: str) -> EvalFile:
    found, value = _match(opened)
    if found is None:
        raise Refused(f"Not a result file of a known format ({', '.join(NAMES)}): {_what_it_is(opened)}.")
    if format not in ("auto", found.name):
        raise Refused(f"The file is {found.name}, not {format}.")
    return found.read(value, name)


def read_eval_folder(files: Mapping[str, bytes], *, format: str = "auto", folder: str = "") -> EvalFile:
    """The scores of a folder whose files say something only together: name to content. Raises `Refused`.

    Today that is a run of HELM. Its files are known by their content; `folder` is the folder's own name.
    """
    _check_name(format)
    documents = [jsonfile.load(content) for content in files.values()]
    run_spec = next((each for each in documents if helm.is_run_spec(each)), None)
    stats = next((each for each in documents if helm.is_stats(each)), None)
    if run_spec is None or stats is None:
        raise Refused("The folder is no run of HELM: that needs a run_spec.json and a stats.json.")
    if format not in ("auto", helm.NAME):
        raise Refused(f"The folder is a run of {helm.NAME}, not {format}.")
    return helm.read_run(run_spec, stats, folder)


def together(names: Sequence[str]) -> list[tuple[int, ...]]:
    """Which of these files belong together, by their place in `names`; each of the others stands alone.

    The names only say what to try: whether such a group is what it looks like, its content decides.
    """
    folders: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        folder, _, last = name.replace("\\", "/").rpartition("/")
        if last in helm.FILES:
            folders.setdefault(folder, []).append(index)
    groups = [
        group for group in folders.values() if {"run_spec.json", "stats.json"} <= {_last(names[at]) for at in group}
    ]
    grouped = {at for group in groups for at in group}
    alone = [[at] for at in range(len(names)) if at not in grouped]
    return [tuple(group) for group in sorted([*groups, *alone])]


def _last(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]


def _check_name(format: str) -> None:
    if format != "auto" and format not in NAMES:
        raise Refused(f"Unknown format {format[:40]!r}. Known: auto, {', '.join(NAMES)}.")


def _match(content: Content) -> tuple[Format | None, Any]:
    """The format, and the value to read: a single line of JSON lines looks like one document."""
    views = [(content.kind, content.value)]
    if content.kind == "json" and isinstance(content.value, dict):
        views.append(("jsonl", Lines(lambda: [content.text.replace("\n", " ")])))
    for kind, value in views:
        for each in FORMATS:
            if each.kind == kind and each.matches(value):
                return each, value
    return None, None


def _what_it_is(content: Content) -> str:
    """What a person needs to see at once why their file was not taken."""
    value = content.value
    if content.kind == "text":
        header = header_of(value)
        if header:
            return f"it is a table with the columns {listing(header, 8)}, none of which names a benchmark and a value"
        return f"it is text that starts with {value.lstrip()[:40]!r}"
    if content.kind == "zip":
        return "it is a zip archive"
    if content.kind == "jsonl":
        return f"its lines are JSON objects with the keys {_keys(value.first)}"
    if helm.is_stats(value) or helm.is_run_spec(value):
        return "it is one file of a HELM run, whose run_spec.json and stats.json are read together: give the folder"
    if not isinstance(value, dict):
        return f"it holds a JSON {_JSON_NAMES.get(type(value), 'number')}, not an object"
    return f"its keys are {_keys(value)}" if value else "it is an empty object"


def _keys(value: Mapping[str, Any]) -> str:
    return ", ".join(repr(key[:40]) for key in list(value)[:6])


_JSON_NAMES: dict[type, str] = {list: "array", str: "string", bool: "boolean", type(None): "null"}
