"""What can be resumed from without the registry: a scan of the folders where the run's checkpoints are, and what the
spools of this host name that the registry has not heard of.

The files tell steps, pieces and whether a checkpoint is whole. What only the registry knows (what is superseded or
suspect, what another layout can load) is unknown here, and the choice says so.
"""

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cairn.errors import CairnError
from cairn.formats.checkpoints import Unreadable
from cairn.resume.shapes import SCAN, Choice, NothingToResume, PassedOver
from cairn.resume.told import Told, told_saves
from cairn.scan import scan

# What is all there is taken however new it is: whoever asks is about to start, so nobody writes to it.
_WHOLE = """
SELECT run, said_run, attempt, step, kind, uri, complete, fields, note,
       CASE WHEN status = 'pending' AND complete AND NOT temporary THEN 'new' ELSE status END AS status FROM found
WHERE status IN ('new', 'pending', 'begun') ORDER BY attempt DESC, step DESC, kind
"""
UNKNOWN_HERE = "what is superseded or suspect is not known without the registry"
DEGREES = ("world_size", "tp", "pp", "dp", "cp", "ep")


@dataclass(frozen=True)
class Wanted:
    """What the launch needs: pieces that must be there, and the degrees of today's layout."""

    pieces: Sequence[str]
    layout: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One checkpoint of the scan, or of a spool; `complete` None: its files cannot tell."""

    run: str
    is_named: bool
    attempt: int
    step: int
    uri: str
    status: str
    complete: bool | None
    note: str
    fields: Mapping[str, Any]
    source: str


def choose_offline(run: str, roots: Sequence[str], wanted: Wanted, why: str) -> Choice:
    """The newest whole checkpoint below the roots, in their order. `run` is project/run or an id; `why`: no registry.

    Raises `NothingToResume` with what was seen.
    """
    passed: list[PassedOver] = []
    for row in _newest_first(run, roots, passed):
        if wrong := unfit(row, wanted):
            passed.append(PassedOver(row.uri, wrong))
            continue
        return Choice(row.uri, row.step, SCAN, reasons=_reasons(row, why, wanted), fallbacks=tuple(passed))
    seen = f" Passed over: {'; '.join(map(str, passed[:5]))}." if passed else ""
    where = (
        f"below {', '.join(roots)}" if roots else "since no folder of this run is known here; name one: --local-root"
    )
    raise NothingToResume(f"{why}. Without it, nothing to resume was found {where}.{seen}", passed_over=tuple(passed))


def _newest_first(run: str, roots: Sequence[str], passed: list[PassedOver]) -> Iterator[Row]:
    """What the roots hold, in their order, and between it what the spools name: each where it belongs."""
    project, _, name = run.partition("/")
    told = deque(told_saves(run))
    seen: set[str] = set()
    for root in roots:
        try:
            rows = _of_run(list(_rows(root, project)), name, root, passed)
        except (Unreadable, CairnError, OSError) as fault:
            passed.append(PassedOver(root, f"it cannot be scanned: {fault}"))
            continue
        for row in rows:
            while told and told[0].is_newer_than(row.attempt, row.step, str(row.fields.get("saved_at") or "")):
                yield _seen(row_of(told.popleft(), name), seen)
            if os.path.realpath(row.uri) not in seen:
                yield row
    while told:
        yield _seen(row_of(told.popleft(), name), seen)


def row_of(told: Told, name: str) -> Row:
    """A save that a spool names, as a scan would have found it."""
    path, fault = told.whereabouts()
    uri = path or next(iter(told.paths), "?")
    item = told.item if path else {}
    status = "new" if item.get("state") == "committed" else "begun"
    note = fault or "its files are not whole"
    source = "Found in the spool of this host, which the registry has not heard of yet"
    return Row(name, True, told.attempt or 0, told.step, uri, status, True, note, item, source)


def _seen(row: Row, seen: set[str]) -> Row:
    seen.add(os.path.realpath(row.uri))
    return row


def _rows(root: str, project: str) -> Iterator[Row]:
    with scan(os.path.abspath(root) if "://" not in root else root, project=project) as plan:
        for row in plan.spool.rows(_WHOLE):
            yield Row(
                run=row["run"],
                is_named=row["said_run"] is not None,
                attempt=row["attempt"] or 1,
                step=row["step"],
                uri=row["uri"],
                status=row["status"],
                complete=None if row["complete"] is None else bool(row["complete"]),
                note=row["note"] or "",
                fields=json.loads(row["fields"]),
                source=f"Found by a scan of {root}",
            )


def _of_run(rows: Sequence[Row], name: str, root: str, passed: list[PassedOver]) -> list[Row]:
    """Those of the run by their `cairn.json` or path; where nothing names a run, the only one that is there."""
    own = [row for row in rows if row.run == name]
    if own:
        return own
    unnamed = [row for row in rows if not row.is_named]
    runs = sorted({row.run for row in rows})
    if len({row.run for row in unnamed}) == 1 and len(runs) == 1:
        return unnamed
    if runs:
        passed.append(PassedOver(root, f"it holds other runs ({', '.join(runs[:5])}), none called {name}"))
    return []


def unfit(row: Row, wanted: Wanted) -> str:
    """Why it cannot be resumed from; '' where nothing that its files say is against it."""
    if row.status != "new":
        return row.note or "it is still being written, or broken off"
    loss = row.fields.get("loss")
    if isinstance(loss, (int, float)) and loss - loss != 0:
        return f"its loss is {loss}"
    pieces = _part(row, "pieces")
    states = {name: _state_of(pieces.get(name)) or "unknown" for name in ("weights", *wanted.pieces)}
    missing = [name for name, state in states.items() if state != "present"]
    if missing:
        return f"needed and not there: {', '.join(f'{name} {states[name]}' for name in missing)}"
    layout = _part(row, "layout")
    other = [
        f"{degree} {layout[degree]} to {wanted.layout[degree]}"
        for degree in DEGREES
        if wanted.layout.get(degree) is not None and layout.get(degree) not in (None, wanted.layout[degree])
    ]
    if other:
        return f"the layout changes ({', '.join(other)}), which only the registry can judge"
    return ""


def _state_of(piece: Any) -> str:
    """A piece is a word, or an object that holds it; '' where it is neither."""
    state = piece.get("state") if isinstance(piece, Mapping) else piece
    return state if isinstance(state, str) else ""


def _part(row: Row, name: str) -> Mapping[str, Any]:
    """An object among the fields; empty where a file says something else there."""
    found = row.fields.get(name)
    return found if isinstance(found, Mapping) else {}


def _reasons(row: Row, why: str, wanted: Wanted) -> tuple[str, ...]:
    told = [why, f"{row.source}: {UNKNOWN_HERE}"]
    if row.complete is None:
        told.append("Its files cannot tell whether it is whole; nothing has changed in it for a while")
    unknown = [degree for degree in DEGREES if degree in wanted.layout and degree not in _part(row, "layout")]
    if unknown:
        told.append(f"With which {', '.join(unknown)} it was saved, its files do not tell")
    position = _part(row, "pieces").get("data_position")
    if isinstance(position, Mapping) and position.get("position_evidence") == "counter":
        told.append(
            "Its data position is a counter of samples: it counts only while data set, blend, seed and global batch "
            "size are equal, which was not compared"
        )
    return tuple(told)
