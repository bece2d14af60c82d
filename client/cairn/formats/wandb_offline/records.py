"""The messages inside the frames: which field of W&B's records means what.

Numbers of fields are those of `wandb_internal.proto`, which have stayed the same from version 0.17 to 0.31.
"""

from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cairn.formats.wandb_offline import values
from cairn.formats.wandb_offline.items import read_item
from cairn.formats.wandb_offline.shapes import INDEX, KNOWN_AXES, Exit, Facts, Row
from cairn.formats.wandb_offline.wire import Value, fields, message, signed, text, whole

HISTORY, SUMMARY, CONFIG, ARTIFACT, METRIC, RUN, EXIT, HEADER, ENVIRONMENT = 2, 3, 5, 8, 12, 17, 18, 21, 26
MAX_NAMES = 10_000  # in one row, config or summary
_TIMESTAMP, _RUNTIME = "_timestamp", "_runtime"
_INTERNAL = "_wandb"
_ENVIRONMENT_TEXTS = {1: "os", 2: "python", 4: "docker", 6: "program", 12: "host", 14: "executable", 18: "gpu"} | {
    25: "cuda"
}
_ENVIRONMENT_NUMBERS = {16: "cpu_count", 17: "cpu_count_logical", 19: "gpu_count"}


def kind_of(record: bytes, kinds: Container[int] | None = None) -> tuple[int, bytes] | None:
    """The kind of a record and its message; None for a kind that is of no use here. Raises Malformed."""
    for number, found in fields(record):
        if number in (KINDS if kinds is None else kinds):
            return number, message(found)
    return None


def apply(facts: Facts, kind: int, body: bytes) -> None:
    """Adds what a record says to what is known. Raises ValueError for a record that cannot be read."""
    _READERS[kind](facts, body)


def read_row(body: bytes, index: int | None) -> Row | None:
    """A line of the history; `index` is that of the line before. None for a line without a number. Raises ValueError.

    What belongs to a medium, such as the bins of a histogram or the width of an image, is no number of the history.
    """
    found: dict[str, float] = {}
    media: list[str] = []
    counter = None
    for number, item in fields(body):
        if number == 2:
            counter = _step_number(message(item), counter)
        elif number == 1 and len(found) < MAX_NAMES:
            path, written = read_item(message(item))
            if path == [INDEX] and written.isdecimal():
                counter = int(written[:19])
            elif path[-1] == "_type":
                media.append(".".join(path[:-1]))
            else:
                _add_numbers(found, path, written)
    for name in media:
        found = {key: each for key, each in found.items() if key != name and not key.startswith(f"{name}.")}
    at = found.pop(_TIMESTAMP, None)
    found.pop(_RUNTIME, None)
    if counter is None:
        counter = 0 if index is None else index + 1
    return Row(counter, found, at) if found else None


def _add_numbers(found: dict[str, float], path: list[str], written: str) -> None:
    name = ".".join(path)
    if (known := values.number(written)) is not None:
        found[name] = known
    elif written.startswith("{"):
        with suppress(values.Unusable):
            found.update(values.numbers_within(values.value(written), name))


def _step_number(body: bytes, other: int | None) -> int | None:
    return next((signed(found) for number, found in fields(body) if number == 1), other)


def _read_header(facts: Facts, body: bytes) -> None:
    for _, info in fields(body):
        if isinstance(info, bytes):
            for number, found in fields(info):
                if number == 1:
                    facts.version = text(found).partition("+")[0]


def _read_run(facts: Facts, body: bytes) -> None:
    names = {1: "run_id", 2: "entity", 3: "project", 6: "group", 7: "job_type", 8: "name", 9: "notes", 13: "host"}
    tags: list[str] = []
    for number, found in fields(body):
        if number in names:
            setattr(facts, names[number], text(found))
        elif number == 4:
            _read_config(facts, message(found))
        elif number == 5:
            _read_summary(facts, message(found))
        elif number == 10:
            tags.append(text(found))
        elif number == 17:
            facts.started_at = _moment(message(found))
        elif number == 18:
            facts.resumed = bool(found)
        elif number == 19 and not facts.version:
            facts.version = next((text(each) for key, each in fields(message(found)) if key == 5), "")
        elif number == 21:
            _read_git(facts, message(found))
    facts.tags = tuple(dict.fromkeys(tags)) or facts.tags


def _read_git(facts: Facts, body: bytes) -> None:
    for number, found in fields(body):
        if number == 1:
            facts.remote = without_password(text(found))
        elif number == 2:
            facts.commit = text(found)


def without_password(remote: str) -> str:
    """A remote's address without user and password; `git@host:path` stays, since its user is no secret."""
    try:
        parts = urlsplit(remote)
    except ValueError:
        return ""
    if "://" not in remote or "@" not in parts.netloc:
        return remote
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _read_environment(facts: Facts, body: bytes) -> None:
    """The record may come in parts, which add to each other."""
    for number, found in fields(body):
        if number in _ENVIRONMENT_TEXTS:
            if said := text(found):
                facts.environment[_ENVIRONMENT_TEXTS[number]] = said
        elif number in _ENVIRONMENT_NUMBERS:
            facts.environment[_ENVIRONMENT_NUMBERS[number]] = whole(found)
        elif number == 9:
            _read_git(facts, message(found))
        elif number == 13:
            facts.user = text(found)
    facts.host = facts.host or facts.environment.get("host", "")


def _read_config(facts: Facts, body: bytes) -> None:
    _change(facts.config, body)
    facts.config.pop(_INTERNAL, None)


def _read_summary(facts: Facts, body: bytes) -> None:
    _change(facts.summary, body)
    facts.summary.pop(_INTERNAL, None)


def _change(tree: dict[str, Any], body: bytes) -> None:
    """Updates and removals, in the order of the record."""
    for number, found in fields(body):
        if number not in (1, 2):
            continue
        path, written = read_item(message(found))
        if path[0] == _INTERNAL:
            continue
        if number == 2:
            values.take(tree, path)
        elif path[0] in tree or len(tree) < MAX_NAMES:
            with suppress(values.Unusable):
                values.put(tree, path, values.value(written))


def _read_metric(facts: Facts, body: bytes) -> None:
    """Definitions of metrics name the axis that others are drawn over: the training's step, under one name or other."""
    axis = next((text(found) for number, found in fields(body) if number == 4), "")
    if axis and (facts.axis == INDEX or axis in KNOWN_AXES) and names_a_step(axis):
        facts.axis = axis


def names_a_step(axis: str) -> bool:
    """Whether a metric that others are drawn over counts steps (and not epochs, samples or seconds)."""
    last = axis.rpartition("/")[2].lower()
    return last in ("step", "global_step", "iteration", "iter", "train_step", "training_step")


def _read_exit(facts: Facts, body: bytes) -> None:
    """A run that ended well has an empty message: code 0."""
    said = {number: signed(found) for number, found in fields(body) if isinstance(found, int)}
    code = said.get(1, 0)
    facts.exit = Exit(code if code < 2**31 else code - 2**32, said.get(2))


def _moment(body: bytes) -> float | None:
    said: Mapping[int, Value] = dict(fields(body))
    seconds = signed(said.get(1, 0))
    return seconds + signed(said.get(2, 0)) / 1e9 if 0 < seconds < 2**35 else None


def known_axis(rows: Iterable[Row]) -> str:
    """The name under which rows give the training's step: a known one where they have it, else W&B's own counter."""
    for row in rows:
        for name in KNOWN_AXES:
            if name in row.values:
                return name
    return INDEX


_READERS = {
    SUMMARY: _read_summary,
    CONFIG: _read_config,
    METRIC: _read_metric,
    RUN: _read_run,
    EXIT: _read_exit,
    HEADER: _read_header,
    ENVIRONMENT: _read_environment,
}
KINDS = frozenset({HISTORY, ARTIFACT, *_READERS})
