"""W&B's words in ours. Pure: nothing is called."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cairn.formats.wandb_offline import step_of
from cairn.formats.wandb_offline.shapes import INDEX, Artifact, Row
from cairn.formats.wandb_offline.values import as_float, numbers_within

from registry.errors import Invalid
from registry.integrations.shapes import Skipped, TrackerCheckpoint
from registry.strict_json import canonical

OURS: Final = "cairn/"
# W&B sends numbers that are not finite as words.
NON_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
STATES: Final[Mapping[str, str | None]] = {
    "running": "running",
    "preempting": "running",
    "finished": "finished",
    "failed": "failed",
    "crashed": "failed",
    "killed": "stopped",
    "preempted": "stopped",
    "pending": None,
}
_INNER: Final = ("_wandb", "_runtime", "_timestamp", "_step")


class BadName(Invalid):
    code = "bad-wandb-name"
    title = "W&B has no such names"


def check_names(*names: str) -> None:
    """Raises BadName for what would lead elsewhere in a path: the library makes a folder of these names."""
    for name in names:
        if (
            not name
            or name in (".", "..")
            or any(letter in "/\\" or letter < " " for letter in name)
            or len(name) > 200
        ):
            raise BadName(f"{name[:80]!r} is no name of W&B. Link the run by its address.")


def moment(text: Any) -> datetime | None:
    """A time as W&B writes it, in UTC, which it leaves out in places."""
    if not isinstance(text, str) or not text:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def number(value: Any) -> float | None:
    """A number, also one that is written as a word; None for anything else."""
    if isinstance(value, str):
        return NON_FINITE.get(value)
    return as_float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def flat(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row or summary, those of nested values as `a.b`; media and our own entries have none."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if name.startswith(OURS):
            continue
        if (known := number(value)) is not None:
            found[name] = known
        elif isinstance(value, Mapping):
            found.update(numbers_within(_words_read(value), name))
    return found


def _words_read(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _words_read(each) for key, each in value.items()}
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


def metrics_of(summary: Any) -> dict[str, float]:
    return {name: value for name, value in flat(_mapping(summary)).items() if name not in _INNER}


def row_of(values: Mapping[str, Any]) -> Row | None:
    """A line of the history; None for one without a number or without W&B's own step."""
    found = flat(values)
    index, at = found.pop(INDEX, None), found.pop("_timestamp", None)
    found = {name: value for name, value in found.items() if name not in _INNER}
    if index is None or not found or not math.isfinite(index) or index < 0:
        return None
    return Row(int(index), found, at)


def config_of(config: Any) -> tuple[dict[str, Any], list[Skipped]]:
    """The configuration without what W&B keeps there for itself; what cannot be kept is said."""
    kept, skipped = {}, []
    for name, value in _mapping(config).items():
        if name in _INNER:
            continue
        read = _words_read(value)
        try:
            canonical({str(name): read})
        except (Invalid, TypeError, ValueError, RecursionError):
            skipped.append(Skipped(f"config {str(name)[:80]}", "its value cannot be kept as JSON"))
        else:
            kept[str(name)] = read
    return kept, skipped


def checkpoint_of(artifact: Any) -> TrackerCheckpoint:
    """An artifact of a run as a checkpoint. Its place is said by Cairn's own metadata, else by its name in W&B.

    W&B's own step of an artifact is near the training's at best (`history_step` is one less than what the server
    keeps, and counts log calls), so it is only told where nothing else says the step.
    """
    metadata = _mapping(artifact.metadata)
    aliases = tuple(str(each) for each in artifact.aliases or ())
    collection, _, version = str(artifact.name).partition(":")
    known = Artifact(collection, str(artifact.type), str(artifact.digest or ""), aliases, metadata)
    step, skipped = step_of(known), []
    if step.disagreements:
        skipped.append(Skipped(collection, f"its step is unclear: {'; '.join(step.disagreements)}"))
    elif step.step is None:
        near = getattr(artifact, "history_step", None)
        where = "" if near is None else f"; it was logged near W&B's step {near + 1}"
        skipped.append(Skipped(collection, f"nobody says its step: no alias, metadata or name does{where}"))
    place = metadata.get("cairn.path")
    named = f"wandb-artifact://{artifact.entity}/{artifact.project}/{artifact.name}"
    return TrackerCheckpoint(
        external_id=str(artifact.id),
        name=collection,
        step=None if step.disagreements else step.step,
        uri=place if isinstance(place, str) and place else named,
        aliases=tuple(sorted({*aliases, version} - {""})),
        metadata=metadata,
        digest=str(artifact.digest) if artifact.digest else None,
        saved_at=moment(getattr(artifact, "created_at", None)),
        bytes=artifact.size if isinstance(artifact.size, int) and artifact.size > 0 else None,
        skipped=skipped,
    )


def mark_of(following: int, axis: str) -> str:
    """Where the next scan of a history begins, and which numbers are the training's step."""
    return f"{following:015d} {axis}"


def read_mark(mark: str) -> tuple[int, str]:
    begins, _, axis = mark.partition(" ")
    return (int(begins), axis) if begins.isdecimal() else (0, "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
