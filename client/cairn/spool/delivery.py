"""Sends the records of one spool: in order within an attempt, in batches, each as often as it takes.

Every record has a natural key at the service (project and run by name, attempts by their key, checkpoints by attempt,
step and kind, curves by content), so sending one twice changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.errors import CairnError, Forbidden
from cairn.pace import is_gentle, rest
from cairn.spool.attempts import Attempts, StreamWaits
from cairn.spool.backlog import Backlog, Record
from cairn.spool.curves import stretches
from cairn.spool.frames import Framed
from cairn.spool.path import numbers_on_path
from cairn.spool.refused import passes, set_aside
from cairn.spool.saves import Preparer, Saves
from cairn.spool.unfinished import Save
from cairn.types import Checkpoint

BATCH = 100
GENTLE_BATCH = 25  # in a training process: as JSON a millisecond of work in one piece
COURSE = ("points", "saving", "saved")  # what a training does again and again, sent together
_ADVICE = "Set CAIRN_TOKEN or run `cairn login`; then `cairn spool flush`, or the next start, sends them."
Warn = Callable[[str], None]


class Delivery:
    """One spool on its way. `step` sends what is next; everything it raises passes with time."""

    def __init__(self, backlog: Backlog, client: Client, preparer: Preparer, *, warn: Warn, root: Path) -> None:
        self.backlog, self.client = backlog, client
        self._warn, self._root = warn, root
        self._attempts = Attempts(backlog, client, preparer, warn, self._refuse)
        self._saves = Saves(backlog, client, preparer, self._refuse, root)
        self.waiting: dict[str, str] = {}  # streams that cannot go on just now, and why
        self.refusals = 0

    def follow(self, before: "Delivery") -> None:
        """Goes on for the same writer in another folder."""
        self.backlog.follow(before.backlog)
        self.refusals = before.refusals

    def use(self, client: Client) -> None:
        """Goes on with another connection."""
        self.client = self._attempts.client = self._saves.client = client

    def step(self) -> bool:
        """Sends the next records; False where nothing can be sent just now.

        Raises `CairnError` where the service cannot be reached, is busy, or does not accept the token at all.
        """
        found = self.backlog.take(GENTLE_BATCH if is_gentle() else BATCH, self.waiting)
        if not found:
            return False
        self.send(found)
        return True

    def send(self, found: Sequence[Framed]) -> None:
        """Sends records of one stream. Raises as `step` does."""
        key = found[0].record["key"]
        try:
            self._send(key, found)
        except StreamWaits as wait:
            self.waiting[key] = str(wait)
            self.backlog.say_why(self.waiting)
        except Forbidden as fault:
            self.waiting[key] = fault.detail
            self.backlog.say_why(self.waiting)
            self._warn(f"the service does not let this token record: {fault.detail} The records are kept. {_ADVICE}")

    def retry_waiting(self) -> None:
        """Streams that had to wait are tried again."""
        if self.waiting:
            self.waiting.clear()
            self.backlog.say_why(self.waiting)
            self.backlog.rewind()

    def look_again(self, run: str | None = None, forget: Callable[[Save], bool] = lambda save: False) -> int:
        """Commits the saves (of one run, or of any) whose files are whole by now; how many. `forget`: which are not
        looked at any more. Raises `CairnError`."""
        return self._saves.look_again(run, forget)

    def _send(self, key: str, found: Sequence[Framed]) -> None:
        course = _leading(found, COURSE)
        if not course:
            self._single(key, found[0])
            return
        facts = self._attempts.opened(key)
        self._points(facts, [each for each in course if each.record["kind"] == "points"])
        self._saves.send([each for each in course if each.record["kind"] != "points"], facts)
        self.backlog.ack(key, course[-1].number)

    def _single(self, key: str, framed: Framed) -> None:
        record = framed.record
        handler = {
            "start": self._attempts.start,
            "attempt": self._attempts.follow,
            "trackers": self._trackers,
            "scores": self._scores,
            "receipt": self._receipt,
            "finish": self._finish,
        }.get(record.get("kind", ""))
        try:
            if handler is None:
                self._refuse(record, None, f"a record of kind {record.get('kind')!r} is not known; update cairn-client")
            else:
                handler(framed)
        except CairnError as fault:
            if passes(fault):
                raise
            self._refuse(record, None, fault)
        self.backlog.ack(key, framed.number)

    def _points(self, facts: dict[str, Any], found: Sequence[Framed]) -> None:
        body = [{**each, "attempt": facts["number"]} for each in stretches(_restfully(found))]
        try:
            rest()
            if body:
                self.client.record_series(facts["run_id"], body)
        except CairnError as fault:
            if passes(fault):
                raise
            if len(found) == 1:
                self._refuse(found[0].record, body, fault)
                return
            for each in found:
                self._points(facts, [each])

    def _trackers(self, framed: Framed) -> None:
        record = framed.record
        self.client.create_project(record["project"])
        self.client.create_run(record["project"], record["run"], trackers=record["trackers"])

    def _scores(self, framed: Framed) -> None:
        record = framed.record
        facts = self._attempts.opened(record["key"])
        if (found := self._saved(facts, record)) is not None:
            self.client.record_scores(found, record["scores"])
        else:
            self._refuse(
                record, None, f"no checkpoint of this attempt, or of its path, stands at step {record['step']}"
            )

    def _saved(self, facts: dict[str, Any], record: Record) -> Checkpoint | None:
        """The checkpoint of a step on the path of the attempt: of its own, or of those from which it went on."""
        which = f"run.id = '{facts['run_id']}' and step = {record['step']}"
        kind = f" and kind = '{record['checkpoint_kind']}'" if record.get("checkpoint_kind") else ""
        there = {each.attempt: each for each in self.client.iter_checkpoints(filter=which + kind)}
        if facts["number"] in there or not there:
            return there.get(facts["number"])
        attempts = self.client.list_attempts(facts["run_id"])
        path = numbers_on_path(attempts, facts["number"], record["step"], facts["run"])
        return next((there[number] for number in path if number in there), None)

    def _receipt(self, framed: Framed) -> None:
        record = framed.record
        facts = self._attempts.opened(record["key"])
        attempt = {"run_id": facts["run_id"], "number": facts["number"]}
        self.client._send("POST", "/resume-receipts", {**record["body"], "attempt": attempt}, idempotent=True)

    def _finish(self, framed: Framed) -> None:
        facts = self._attempts.opened(framed.record["key"])
        self.client.patch_attempt(facts["run_id"], facts["number"], **framed.record["changes"])

    def _refuse(self, record: Record, body: Any, fault: CairnError | str) -> None:
        self.refusals += 1
        facts = self.backlog.stream(record["key"]).facts
        names: Record = {name: facts[name] for name in ("project", "run") if name in facts}
        path = set_aside(self._root, {**names, **record}, body, fault)
        why = (fault if isinstance(fault, str) else str(fault).splitlines()[0]).rstrip(".")
        where = f"It lies in {path}" if path else "It could not be kept"
        self._warn(f"the service refused a record ({record.get('kind')}, step {record.get('step')}): {why}. {where}.")


def _restfully(found: Sequence[Framed]) -> Iterator[Record]:
    for each in found:
        rest()
        yield each.record


def _leading(found: Sequence[Framed], kinds: Sequence[str]) -> list[Framed]:
    """Those at the beginning that are of these kinds."""
    first_other = next((at for at, each in enumerate(found) if each.record.get("kind") not in kinds), len(found))
    return list(found[:first_other])
