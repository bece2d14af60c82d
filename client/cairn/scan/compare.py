"""The plan against what is recorded: run again, a scan adds only what is new.

A checkpoint is known by its identity (run, attempt, step, kind) and a copy below the scanned root; and by the address
of a copy, where somebody recorded it under another run or attempt.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from cairn.calls.base import literal
from cairn.client import Client
from cairn.scan.arrange import COPY, KNOWN, LEFT_OUT, NEW, PENDING
from cairn.scan.plan import FILE_TIME, Plan
from cairn.scan.spool import Row
from cairn.types import Checkpoint

PAGE = 1_000
# One question for many runs; a filter stands in a URL, which must not grow too long.
FILTER_RUNS, FILTER_CHARACTERS = 50, 2_000
# Times are recorded in whole seconds.
SAME_SECONDS = 2.0
_TABLES = """
CREATE TABLE recorded (
    id TEXT, run TEXT, attempt INTEGER, step INTEGER, kind TEXT, state TEXT, saved REAL, here INTEGER
);
CREATE UNIQUE INDEX recorded_key ON recorded (run, attempt, step, kind);
CREATE INDEX recorded_id ON recorded (id);
CREATE TABLE recorded_uri (uri TEXT, id TEXT);
CREATE INDEX recorded_uris ON recorded_uri (uri);
"""
_SAME_KEY = """
SELECT found.id, found.status, found.modified, recorded.id AS checkpoint, recorded.run AS run,
       recorded.attempt AS attempt, recorded.step AS step, recorded.state, recorded.here, recorded.saved
FROM found JOIN recorded USING (run, attempt, step, kind) WHERE found.status IN ('new', 'pending')
"""
_SAME_URI = """
SELECT found.id, found.status, found.modified, recorded.id AS checkpoint, recorded.run AS run,
       recorded.attempt AS attempt, recorded.step AS step, recorded.state, 1 AS here, recorded.saved
FROM found JOIN recorded_uri USING (uri) JOIN recorded ON recorded.id = recorded_uri.id
WHERE found.status IN ('new', 'pending') AND NOT found.again
"""
_AS_RECORDED = """
UPDATE found SET run = (SELECT run FROM recorded WHERE recorded.id = found.checkpoint),
                 attempt = (SELECT attempt FROM recorded WHERE recorded.id = found.checkpoint)
WHERE status = 'known' AND checkpoint IN (SELECT id FROM recorded)
"""
_WITHOUT_MATCH = """
SELECT recorded.id FROM recorded LEFT JOIN found USING (run, attempt, step, kind)
WHERE recorded.here AND found.id IS NULL
"""


def compare(plan: Plan, client: Client) -> None:
    """Marks what is recorded already. Raises `CairnError` where the service cannot be asked."""
    project = f"project = {literal(plan.project)}"
    plan.spool.script(_TABLES)
    if not list(client.iter_checkpoints(filter=project, limit=1)):
        return
    base = _common_base(plan)
    below = f"replicas.uri = {literal(base)} or replicas.uri like {literal(_escaped(base) + '/%')}"
    _read(plan, client, f"{project} and ({below})", here=True)
    runs = [row["run"] for row in plan.spool.rows("SELECT DISTINCT run FROM found WHERE run IS NOT NULL")]
    for some in _handfuls(runs):
        names = ", ".join(literal(run) for run in some)
        _read(plan, client, f"{project} and run.name in ({names})", here=False)
    _settle(plan, _SAME_KEY)
    _refuse_other_sizes(plan, client)
    _read_addresses(plan, client)
    _settle(plan, _SAME_URI)


def name_as_recorded(plan: Plan) -> None:
    """Gives what is known the run and attempt of its record, which may be others than its place says."""
    plan.spool.change(_AS_RECORDED)


def _handfuls(runs: list[str]) -> Iterator[list[str]]:
    """Names that one filter may hold together."""
    some: list[str] = []
    for run in runs:
        if some and (len(some) >= FILTER_RUNS or sum(map(len, some)) + len(run) > FILTER_CHARACTERS):
            yield some
            some = []
        some.append(run)
    if some:
        yield some


def _common_base(plan: Plan) -> str:
    """The folder or prefix that every address of the plan lies below."""
    least, most = (plan.spool.one(f"SELECT {each}(uri) FROM found") or "" for each in ("min", "max"))  # noqa: S608
    if least == most:
        return str(least)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(least, most, strict=False))
    return "".join(letter for letter, _ in same).rpartition("/")[0]


def _escaped(text: str) -> str:
    """Text for the beginning of a `like` pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _read(plan: Plan, client: Client, filter: str, *, here: bool) -> None:
    found = client.iter_checkpoints(filter=filter, fields="tags.saved_at_from", page_size=PAGE)
    rows = (_recorded(each, here) for each in found)
    plan.spool.change_many("INSERT OR IGNORE INTO recorded VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _recorded(found: Checkpoint, here: bool) -> tuple[Any, ...]:
    by_file = found.values.get("tags.saved_at_from") == FILE_TIME
    saved = found.saved_at.timestamp() if found.saved_at is not None and by_file else None
    run = found.run.name if found.run else None
    return found.id, run, found.attempt, found.step, found.kind, found.state, saved, here


def _read_addresses(plan: Plan, client: Client) -> None:
    """The addresses of copies below the root whose checkpoints nothing of the plan is the same as."""
    for row in list(plan.spool.rows(_WITHOUT_MATCH)):
        replicas = client.get_checkpoint(row["id"]).replicas
        plan.spool.change_many(
            "INSERT INTO recorded_uri VALUES (?, ?)", [(each.get("uri"), row["id"]) for each in replicas]
        )


def _refuse_other_sizes(plan: Plan, client: Client) -> None:
    """What has other sizes than the copies that are recorded is no copy of them."""
    changes = []
    for row in list(plan.spool.rows("SELECT id, checkpoint, bytes, uri FROM found WHERE status = ?", (COPY,))):
        recorded = client.get_checkpoint(row["checkpoint"]).replicas
        if any(each.get("uri") == row["uri"] for each in recorded):
            changes.append((KNOWN, "this copy is recorded", row["id"]))
            continue
        sizes = {each["bytes"]: each.get("uri") for each in recorded if each.get("bytes") is not None}
        if sizes and row["bytes"] not in sizes:
            (size, uri), *_ = sizes.items()
            note = f"{row['bytes']:,} bytes, where the recorded copy {uri} has {size:,}: no copy of it"
            changes.append((LEFT_OUT, note, row["id"]))
    plan.spool.change_many("UPDATE found SET status = ?, note = ? WHERE id = ?", changes)


def _settle(plan: Plan, question: str) -> None:
    changes = [change for row in plan.spool.rows(question) for change in _settled(row)]
    plan.spool.change_many("UPDATE found SET status = ?, note = ?, checkpoint = ? WHERE id = ?", changes)


def _settled(row: Row) -> Iterator[tuple[str, str, str, int]]:
    """What becomes of a checkpoint that is recorded. One whose record is pending is committed once it is whole."""
    identity = f"{row['run']} · {row['attempt']} · {row['step']}"
    if row["state"] == PENDING and row["status"] == NEW:
        return
    if not row["here"] and row["state"] != PENDING:
        whole = row["status"] == NEW
        note = f"a further copy of {identity}" if whole else f"{identity} is recorded; this copy of it is not whole"
        yield COPY if whole else LEFT_OUT, note, row["checkpoint"], row["id"]
    elif _changed(row):
        note = f"its files have changed since it was recorded as {identity}; a new save belongs to a new attempt"
        yield LEFT_OUT, note, row["checkpoint"], row["id"]
    else:
        yield KNOWN, f"recorded as {identity}", row["checkpoint"], row["id"]


def _changed(row: Row) -> bool:
    known = row["saved"] is not None and row["modified"] is not None and row["state"] != PENDING
    return known and abs(row["saved"] - row["modified"]) > SAME_SECONDS
