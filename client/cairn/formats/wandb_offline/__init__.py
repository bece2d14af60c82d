"""Reads the folders that W&B writes while offline (`offline-run-*/run-*.wandb`), and those of runs that are online.

    run = read_folder("wandb/offline-run-20261129_182354-5owmgu6u")
    run.facts.config, run.rows[0].values["train/loss"], run.state
    later = read_folder(run.file, run.offset)  # what was written since

Nothing but the `.wandb` file is needed: newer versions leave no summary, config or metadata beside it. A file that
grows is read on from `offset`; a torn end or a damaged byte costs the records that it touches. The last seconds of a
run that was killed may never have been written.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from cairn.formats.refusals import Refused
from cairn.formats.wandb_offline.records import known_axis
from cairn.formats.wandb_offline.shapes import INDEX, Artifact, Entry, Exit, Facts, OfflineRun, Row
from cairn.formats.wandb_offline.steps import artifact_place, step_of
from cairn.formats.wandb_offline.stream import AXIS_ROWS, Stream, find_axis, read_head

__all__ = [
    "INDEX",
    "Artifact",
    "Entry",
    "Exit",
    "Facts",
    "OfflineRun",
    "Row",
    "Stream",
    "artifact_place",
    "find_axis",
    "find_file",
    "find_files",
    "read_folder",
    "read_head",
    "run_state",
    "step_of",
]

MAX_ROWS = 100_000
# A run writes at least every 15 seconds while it logs; evaluations and saves may keep it silent for longer.
SILENT_SECONDS = 900.0
_DEPTH = 8


def read_folder(path: str | os.PathLike[str], offset: int = 0, *, max_rows: int = MAX_ROWS) -> OfflineRun:
    """What a run's folder (or its `.wandb` file) holds from `offset` on: at most `max_rows` lines of its history.

    Give `offset` of the answer to read on, at once where `more` is true, later where it is false. Raises `Refused`
    for what is no file of W&B, OSError for what cannot be read.
    """
    file = find_file(path)
    rows: list[Row] = []
    artifacts: list[Artifact] = []
    more = False
    with Stream(file, offset) as stream:
        for item in stream:
            if isinstance(item, Artifact):
                artifacts.append(item)
                continue
            rows.append(item)
            if len(rows) >= max_rows:
                more = True
                break
        if stream.facts.axis == INDEX:
            stream.facts.axis = find_axis(file) if stream.start else known_axis(rows[:AXIS_ROWS])
        state, reason = run_state(file, stream.facts)
        return OfflineRun(
            file=file,
            facts=stream.facts,
            rows=tuple(rows),
            artifacts=tuple(artifacts),
            state=state,
            state_reason=reason,
            offset=stream.offset,
            more=more,
            problems=tuple(problems_of(stream)),
        )


def problems_of(stream: Stream) -> Iterator[str]:
    """What was damaged or could not be read, in words."""
    damage = stream._frames.damage
    if stream.restarted:
        yield "the file is shorter than what was read of it before, so it was read from its beginning"
    if not stream.headed:
        yield "the file does not begin with W&B's header"
    if damage.count:
        where = ", ".join(map(str, damage.places[:5]))
        yield f"{damage.count} damaged places, {damage.bytes:,} bytes left out (at {where})"
    if damage.too_long:
        yield f"{damage.too_long} records are too long to be read"
    if stream.unread:
        yield f"{stream.unread} records could not be understood"


def run_state(file: Path, facts: Facts, *, silent_seconds: float = SILENT_SECONDS) -> tuple[str, str]:
    """(state, what shows it). Without an exit record only the file's age tells a running from a crashed run."""
    if facts.exit is not None:
        code = facts.exit.code
        return ("finished" if code == 0 else "failed"), f"its exit record says code {code}"
    age = max(time.time() - file.stat().st_mtime, 0.0)
    said = f"no exit record; last written {_ago(age)} ago"
    if age < silent_seconds:
        return "running", said
    return "crashed", f"{said}, and a run is taken for crashed after {_ago(silent_seconds)} of silence"


def _ago(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def find_file(path: str | os.PathLike[str]) -> Path:
    """The `.wandb` file of a run's folder. Raises `Refused` where there is none, or more than one."""
    place = Path(path)
    if place.is_file():
        return place
    found = sorted(place.glob("*.wandb"))
    if not place.is_dir() or not found:
        raise Refused(f"{place} is no folder of one W&B run: it holds no .wandb file.")
    if len(found) > 1:
        raise Refused(f"{place} holds {len(found)} .wandb files; name the one that is meant.")
    return found[0]


def find_files(root: str | os.PathLike[str]) -> list[Path]:
    """Every `.wandb` file at or below a place, each once (`latest-run` links to one of them), by path."""
    place = Path(root)
    if place.is_file():
        return [place]
    found: list[Path] = []
    for folder, folders, files in os.walk(place):
        here = [Path(folder) / name for name in files if name.endswith(".wandb")]
        found += here
        if len(Path(folder).relative_to(place).parts) >= _DEPTH:
            folders.clear()
        elif here:  # what a run's own folder has beside the file
            folders[:] = [each for each in folders if each not in ("files", "logs", "tmp")]
    return sorted(found)
