"""Lists of checkpoints: a CSV with a column of steps and a column of addresses, as OLMo publishes them.

Nothing at the addresses is read. Folders whose steps go on from each other are attempts of one run, whatever they are
called: a job that is resumed often gets a new folder each time. Folders that start over are runs of their own, and so
are folders that another column tells apart.
"""

import csv
import io
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cairn.formats import Refused
from cairn.formats.checkpoints.steps import step_from_name
from cairn.scan.arrange import LEFT_OUT, NEW
from cairn.scan.look import Look
from cairn.scan.spool import Spool
from cairn.stores import refuse_secrets

MAX_BYTES = 512 * 1024 * 1024
MAX_STEP = 2**63 - 1
STEP_NAMES = frozenset({"step", "steps", "global_step", "iteration", "iter", "checkpoint_step"})


@dataclass(frozen=True)
class Entry:
    """A line: its number, step and address, and what its other columns say."""

    line: int
    step: int
    uri: str
    others: Mapping[str, str]

    @property
    def folder(self) -> str:
        return self.uri.rstrip("/").rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.uri.rstrip("/").rpartition("/")[2]


@dataclass
class _Group:
    """The lines of one folder."""

    folder: str
    others: tuple[tuple[str, str], ...]
    entries: list[Entry] = field(default_factory=list)

    @property
    def first(self) -> int:
        return min(each.step for each in self.entries)

    @property
    def last(self) -> int:
        return max(each.step for each in self.entries)

    @property
    def name(self) -> str:
        return self.folder.rpartition("/")[2]


def is_list(root: str) -> bool:
    return root.lower().endswith((".csv", ".tsv")) and os.path.isfile(root)


def read_list(path: str, spool: Spool, run: str | None) -> None:
    """Puts every line of the list into the spool, placed. Raises `Refused` for a file that is no such list."""
    content = Path(path)
    if content.stat().st_size > MAX_BYTES:
        raise Refused(f"{path} is larger than {MAX_BYTES:,} bytes, so it is no list of checkpoints.")
    entries = list(_without_repeats(_entries(content.read_bytes(), spool), spool))
    name = run or content.stem
    runs = _runs(_groups(entries))
    for groups in runs:
        _place(groups, name if len(runs) == 1 else f"{name}/{groups[0].name}", spool)


def _entries(content: bytes, spool: Spool) -> Iterator[Entry]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise Refused(f"The list is no UTF-8 text (byte {fault.start:,}).") from None
    head = text[:4096]
    dialect: type[csv.Dialect] = csv.excel_tab if "\t" in head.partition("\n")[0] else csv.excel
    lines = csv.DictReader(io.StringIO(text), dialect=dialect)
    try:
        rows = [(lines.line_num, row) for row in lines]
    except csv.Error as fault:
        raise Refused(f"The list cannot be read as CSV at line {lines.line_num}: {fault}.") from None
    step_column, uri_column = _columns([row for _, row in rows[:50]])
    for number, row in rows:
        yield from _entry(number, row, step_column, uri_column, spool)


def _columns(rows: Sequence[Mapping[str | None, str | None]]) -> tuple[str, str]:
    """The names of the columns of steps and of addresses. Raises `Refused`."""
    names = [name for name in (rows[0] if rows else {}) if name is not None]
    steps = [name for name in names if name.strip().lower().replace(" ", "_") in STEP_NAMES]
    uris = [name for name in names if all(_is_address(row.get(name) or "") for row in rows)]
    if len(steps) != 1 or len(uris) != 1:
        shown = ", ".join(names[:10]) or "none"
        raise Refused(f"No list of checkpoints: expected one column 'step' and one of paths or URLs; found {shown}.")
    return steps[0], uris[0]


def _is_address(text: str) -> bool:
    return "://" in text or text.startswith("/")


def _entry(
    number: int, row: Mapping[str | None, str | None], step_column: str, uri_column: str, spool: Spool
) -> Iterator[Entry]:
    text, uri = (row.get(step_column) or "").strip(), (row.get(uri_column) or "").strip().rstrip("/")
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= MAX_STEP):
        spool.problem(f"line {number}", f"{text[:80]!r} is no step")
        return
    if not _is_address(uri) or not uri.isprintable():
        spool.problem(f"line {number}", f"{uri[:200]!r} is no path or URL")
        return
    try:
        refuse_secrets(uri)
    except ValueError as fault:
        spool.problem(f"line {number}", str(fault))
        return
    known = (step_column, uri_column)
    others = {name: value for name, value in row.items() if name is not None and name not in known and value}
    yield Entry(number, int(text), uri, others)


def _without_repeats(entries: Iterator[Entry], spool: Spool) -> Iterator[Entry]:
    """An address counts once; a second line of it is reported."""
    seen: dict[str, Entry] = {}
    for each in entries:
        first = seen.setdefault(each.uri, each)
        if first is each:
            yield each
        elif first.step == each.step:
            spool.problem(f"line {each.line}", f"repeats line {first.line}")
        else:
            spool.problem(f"line {each.line}", f"says step {each.step} of what line {first.line} says {first.step}")


def _groups(entries: Sequence[Entry]) -> list[_Group]:
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], _Group] = {}
    telling = _telling(entries)
    for each in entries:
        others = tuple((name, each.others.get(name, "")) for name in telling)
        groups.setdefault((each.folder, others), _Group(each.folder, others)).entries.append(each)
    return list(groups.values())


def _telling(entries: Sequence[Entry]) -> list[str]:
    """Columns that tell runs apart: with few values, each of them on several lines."""
    found = []
    for name in {name for each in entries for name in each.others}:
        counts = Counter(each.others.get(name, "") for each in entries)
        if 1 < len(counts) <= len(entries) // 2 and min(counts.values()) > 1:
            found.append(name)
    return sorted(found)


def _runs(groups: Sequence[_Group]) -> list[list[_Group]]:
    """Groups that go on from each other, in the order of their attempts; see the module.

    The path that goes furthest is the last attempt, so a folder that ends within another's steps comes before it.
    """
    runs: list[list[_Group]] = []
    for group in sorted(groups, key=lambda each: (each.first, -each.last)):
        home = next((run for run in runs if _goes_on(run, group)), None)
        if home is None:
            runs.append([group])
        else:
            home.append(group)
    for run in runs:
        run.sort(key=lambda each: (each.last, each.first))
    return runs


def _goes_on(run: Sequence[_Group], group: _Group) -> bool:
    """Whether the group begins after the run did, and is not another pass over the same steps."""
    if group.others != run[0].others or group.first <= min(each.first for each in run):
        return False
    own = {each.step for each in group.entries}
    shared = len(own & {each.step for other in run for each in other.entries})
    return shared <= max(1, len(own) // 2)


def _place(groups: Sequence[_Group], run: str, spool: Spool) -> None:
    where: dict[int, list[str]] = defaultdict(list)
    if len(groups) > 1:
        spool.remark(run, f"{len(groups)} folders whose steps go on from each other are its attempts")
    for attempt, group in enumerate(groups, 1):
        taken: dict[int, Entry] = {}
        for entry in group.entries:
            where[entry.step].append(group.name)
            first = taken.setdefault(entry.step, entry)
            if first is entry:
                spool.add(_look(entry), run=run, attempt=attempt, kind="archive", status=NEW)
            else:
                note = f"line {first.line} has the same step in the same folder"
                spool.add(_look(entry), run=run, attempt=attempt, kind="archive", status=LEFT_OUT, note=note)
    for step, folders in sorted(where.items()):
        if len(folders) > 1:
            spool.problem(f"step {step}", f"stands in {len(folders)} folders: {', '.join(folders[:5])}")


def _look(entry: Entry) -> Look:
    named = step_from_name(entry.name)
    differs = (f"its address says step {named}, the list {entry.step}",) if named not in (None, entry.step) else ()
    tags = {name.strip().lower().replace(" ", "_"): value for name, value in entry.others.items()}
    return Look(
        path=entry.uri,
        folder=entry.folder,
        name=entry.name,
        uri=entry.uri,
        step=entry.step,
        complete=None,
        temporary=False,
        modified_at=None,
        bytes=0,
        files=0,
        format="",
        resumability="unknown",
        parameter_count=None,
        fields={"tags": tags} if tags else {},
        notes=differs,
    )
