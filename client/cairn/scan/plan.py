"""The plan of a scan: what would be recorded, as what, and what would not."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cairn.scan.arrange import COPY, NEW, PENDING
from cairn.scan.opening import Began
from cairn.scan.spool import Row, Spool
from cairn.stores import is_url

_SUMMARY = """
SELECT run, attempt, status, count(*) AS count, min(step) AS first, max(step) AS last, sum(bytes) AS bytes,
       group_concat(DISTINCT nullif(format, '')) AS formats, group_concat(DISTINCT resumability) AS resumability
FROM found GROUP BY run, attempt, status ORDER BY run, attempt, status
"""
_ITEMS = "SELECT * FROM found ORDER BY run, attempt, step, kind, id"
# What may be sent now: all of whose parents that are of the plan have been.
_QUEUE = """
CREATE TABLE IF NOT EXISTS queue (place INTEGER PRIMARY KEY, id INTEGER);
DELETE FROM queue;
INSERT INTO queue (id) SELECT id FROM found
WHERE status IN ('new', 'pending') AND NOT EXISTS (
    SELECT 1 FROM parent JOIN found AS other USING (run, attempt, step, kind)
    WHERE parent.child = found.id AND other.status IN ('new', 'pending') AND other.id != found.id
)
ORDER BY run, attempt, step, kind, id;
"""
_PARENTS = """
SELECT parent.relation, parent.run, parent.attempt, parent.step, parent.kind, other.checkpoint
FROM parent LEFT JOIN found AS other USING (run, attempt, step, kind) WHERE parent.child = ?
"""
_QUEUED = "SELECT found.* FROM queue JOIN found USING (id) WHERE place > ? ORDER BY place LIMIT ?"
_GAPS = """
SELECT found.run AS run, newest.attempt AS attempt, min(found.step) AS first
FROM found JOIN (
    SELECT run, max(attempt) AS attempt FROM found WHERE status IN ('new', 'pending')
    GROUP BY run HAVING max(attempt) > count(DISTINCT attempt)
) AS newest ON newest.run = found.run AND newest.attempt = found.attempt
GROUP BY found.run, newest.attempt
"""
# Of runs of which something is new, and somebody said what an attempt loaded.
_BEGAN = """
SELECT run, attempt, min(step) AS first, max(began) AS began FROM found
WHERE status IN ('new', 'pending', 'copy', 'known') AND run IN (
    SELECT run FROM found GROUP BY run
    HAVING count(began) AND sum(status IN ('new', 'pending'))
)
GROUP BY run, attempt ORDER BY run, attempt
"""
_MISSING_PARENTS = """
SELECT DISTINCT parent.run, parent.attempt, parent.step, parent.kind
FROM parent LEFT JOIN found USING (run, attempt, step, kind) WHERE found.id IS NULL
"""
Item = tuple[int, dict[str, Any]]
FILE_TIME = "file time"
SENT, REFUSED = "recorded", "refused"


@dataclass(frozen=True)
class PlannedRun:
    """The checkpoints of one attempt that fare alike. Bytes are of all their files."""

    run: str
    attempt: int | None
    status: str
    count: int
    first_step: int
    last_step: int
    bytes: int
    formats: tuple[str, ...]
    resumability: tuple[str, ...]


class Plan:
    """What a scan found, arranged. It lives as long as the scan's `with` block."""

    def __init__(self, spool: Spool, root: str, project: str, tier: str | None, host: str | None) -> None:
        self.spool, self.root, self.project = spool, root, project
        self.tier, self.host = tier, host
        self._known_parents: dict[tuple[str, int, int, str], str] = {}

    def runs(self) -> Iterator[PlannedRun]:
        for row in self.spool.rows(_SUMMARY):
            yield PlannedRun(
                run=row["run"],
                attempt=row["attempt"],
                status=row["status"],
                count=row["count"],
                first_step=row["first"],
                last_step=row["last"],
                bytes=row["bytes"],
                formats=tuple(sorted((row["formats"] or "").split(","))),
                resumability=tuple(sorted((row["resumability"] or "").split(","))),
            )

    def count(self, status: str | None = None) -> int:
        """How many checkpoints were found, or fare so."""
        if status is None:
            return int(self.spool.one("SELECT count(*) FROM found"))
        return int(self.spool.one("SELECT count(*) FROM found WHERE status = ?", (status,)))

    def counts(self) -> Iterator[tuple[str, int]]:
        """(status, number of checkpoints)."""
        question = "SELECT status, count(*) AS count FROM found GROUP BY status ORDER BY count DESC, status"
        return ((row["status"], row["count"]) for row in self.spool.rows(question))

    def pending_changes(self) -> int:
        """How many checkpoints recording would send."""
        return self.count(NEW) + self.count(PENDING) + self.count(COPY)

    def needs_tier(self) -> bool:
        """Whether copies are on this machine's file systems, whose tier only a person can say."""
        return bool(
            self.spool.one("SELECT 1 FROM found WHERE status IN ('new', 'copy') AND uri NOT LIKE '%://%' LIMIT 1")
        )

    def line_count(self) -> int:
        """How many lines `runs` has."""
        return int(self.spool.one("SELECT count(*) FROM (SELECT 1 FROM found GROUP BY run, attempt, status)"))

    def remark_count(self) -> int:
        return int(self.spool.one("SELECT count(*) FROM remark"))

    def problems(self) -> Iterator[tuple[str, str]]:
        """(place, reason) of what could not be looked at, understood or recorded."""
        return ((row["path"], row["reason"]) for row in self.spool.rows("SELECT path, reason FROM problem"))

    def problem_count(self) -> int:
        return int(self.spool.one("SELECT count(*) FROM problem"))

    def remarks(self) -> Iterator[tuple[str, str]]:
        """(run, remark): on what the grouping rests."""
        return ((row["run"], row["text"]) for row in self.spool.rows("SELECT run, text FROM remark ORDER BY run"))

    def items(self) -> Iterator[dict[str, Any]]:
        """Every checkpoint with its identity, place and status."""
        for row in self.spool.rows(_ITEMS):
            item = {name: row[name] for name in ("run", "attempt", "step", "kind", "status", "uri", "format", "bytes")}
            yield {**item, "note": row["note"], "notes": json.loads(row["notes"])}

    def noted(self) -> Iterator[tuple[str, str]]:
        """(place, remark) of single checkpoints: why it is pending or left out, and what contradicts itself in it."""
        question = "SELECT path, note, notes FROM found WHERE note != '' OR notes != '[]' ORDER BY run, attempt, step"
        for row in self.spool.rows(question):
            for text in (row["note"], *json.loads(row["notes"])):
                if text:
                    yield row["path"], text

    def copies(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Further copies of what is recorded: a number for `sent`, the checkpoint's id, the copy."""
        rows = self.spool.rows("SELECT * FROM found WHERE status = ? ORDER BY id", (COPY,))
        return [(row["id"], row["checkpoint"], self._replica(row)) for row in rows]

    def batches(self, size: int) -> Iterator[list[Item]]:
        """What is to be recorded now, as pairs of a number for `sent` and `refused` and a registration.

        Call it until it gives nothing: what came from another checkpoint of the plan is given after that one.
        """
        self.spool.script(_QUEUE)
        last = 0
        while rows := list(self.spool.rows(_QUEUED, (last, size))):
            last += len(rows)
            yield [(row["id"], self._registration(row)) for row in rows]

    def sent(self, number: int, checkpoint: str) -> None:
        self.spool.change("UPDATE found SET status = ?, checkpoint = ? WHERE id = ?", (SENT, checkpoint, number))

    def refused(self, number: int, item: Mapping[str, Any], reason: str) -> None:
        identity = f"{item['run']} · {item['attempt']} · {item['step']}"
        path = self.spool.one("SELECT path FROM found WHERE id = ?", (number,))
        self.spool.problem(path, f"the service refuses it as {identity}: {reason}")
        self.spool.change("UPDATE found SET status = ?, note = ? WHERE id = ?", (REFUSED, reason, number))

    def refused_copy(self, number: int, reason: str) -> None:
        path = self.spool.one("SELECT path FROM found WHERE id = ?", (number,))
        self.spool.problem(path, f"the service refuses it as a further copy: {reason}")
        self.spool.change("UPDATE found SET status = ?, note = ? WHERE id = ?", (REFUSED, reason, number))

    def gaps(self) -> list[tuple[str, int, int]]:
        """(run, attempt, first step) of newest attempts before which some are missing from the plan."""
        return [(row["run"], row["attempt"], row["first"]) for row in self.spool.rows(_GAPS)]

    def began(self) -> dict[str, dict[int, Began]]:
        """By run and attempt what is known of its beginning, for runs where a `cairn.json` says it."""
        found: dict[str, dict[int, Began]] = {}
        for row in self.spool.rows(_BEGAN):
            said = json.loads(row["began"]) if row["began"] else {}
            found.setdefault(row["run"], {})[row["attempt"]] = Began(row["first"], said)
        return found

    def cut_circles(self) -> int:
        """Checkpoints that claim to have come from each other are recorded without that; answers how many wait so."""
        waiting = "status IN ('new', 'pending')"
        reason = "recorded without its parents, which claim to have come from it"
        self.spool.change(f"INSERT INTO problem SELECT path, ? FROM found WHERE {waiting}", (reason,))  # noqa: S608
        self.spool.change(f"DELETE FROM parent WHERE child IN (SELECT id FROM found WHERE {waiting})")  # noqa: S608
        return self.pending_changes()

    def missing_parents(self) -> list[tuple[str, int, int, str]]:
        """(run, attempt, step, kind) of parents that the plan does not hold."""
        rows = self.spool.rows(_MISSING_PARENTS)
        return [(row["run"], row["attempt"], row["step"], row["kind"]) for row in rows]

    def know_parent(self, identity: tuple[str, int, int, str], checkpoint: str) -> None:
        """The id of a parent that is recorded, though the plan does not hold it."""
        self._known_parents[identity] = checkpoint

    def _parents(self, row: Row) -> list[dict[str, str]]:
        found = []
        for each in list(self.spool.rows(_PARENTS, (row["id"],))):
            identity = (each["run"], each["attempt"], each["step"], each["kind"])
            checkpoint = each["checkpoint"] or self._known_parents.get(identity)
            if checkpoint is not None:
                found.append({"checkpoint_id": checkpoint, "relation": each["relation"]})
            else:
                name = " · ".join(map(str, identity[:3]))
                self.spool.problem(row["path"], f"recorded without its parent {name}, which is recorded nowhere")
        return found

    def _registration(self, row: Row) -> dict[str, Any]:
        fields: Mapping[str, Any] = json.loads(row["fields"])
        identity = {name: row[name] for name in ("run", "attempt", "step", "kind")}
        body: dict[str, Any] = {"project": self.project, **identity, **fields}
        if parents := self._parents(row):
            body["parents"] = parents
        tags = dict(fields.get("tags", {}))
        if "saved_at" not in fields and row["modified"] is not None:
            body["saved_at"] = _moment(row["modified"])
            tags["saved_at_from"] = FILE_TIME
        if tags:
            body["tags"] = tags
        if row["status"] == PENDING:  # no copy yet: it is given when the save has been found whole
            return {**body, "state": "pending", "notes": row["note"][:4000]}
        return {**body, "replicas": [self._replica(row)]}

    def _replica(self, row: Row) -> dict[str, Any]:
        tier = "object" if is_url(row["uri"]) else self.tier
        replica: dict[str, Any] = {"uri": row["uri"], "tier": tier}
        if tier == "local" and self.host:
            replica["host"] = self.host
        if row["files"]:
            replica |= {"bytes": row["bytes"], "file_count": row["files"]}
        return replica


def _moment(seconds: float) -> str:
    """Seconds since the epoch as the API writes a time, whole seconds: some file systems keep no more."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(int(seconds), timezone.utc).isoformat().replace("+00:00", "Z")
