"""Sends the records of one spool: in order within an attempt, in batches, each as often as it takes.

Every record has a natural key at the service (project and run by name, attempts by their key, checkpoints by attempt,
step and kind, curves by content), so sending one twice changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.errors import CairnError, Forbidden, Invalid
from cairn.pace import is_gentle, rest
from cairn.spool.attempts import Attempts, StreamWaits
from cairn.spool.backlog import Backlog, Record
from cairn.spool.curves import stretches
from cairn.spool.frames import Framed
from cairn.spool.partly import Curves, named_places, send_items, without
from cairn.spool.path import numbers_on_path
from cairn.spool.refused import passes, set_aside
from cairn.spool.saves import Preparer, Saves
from cairn.spool.unfinished import Save
from cairn.types import Checkpoint

BATCH = 100
GENTLE_BATCH = 25  # in a training process: as JSON a millisecond of work in one piece
COURSE = ("points", "saving", "saved")  # what a training does again and again, sent together
_ADVICE = "Set CAIRN_TOKEN or run `cairn login`; then `cairn spool flush`, or the next start, sends them."
# What the machine lacks just now says nothing of a record: it waits. Every other fault is the record's own.
LACKS = (OSError, MemoryError, ImportError)
PATIENCE = 3  # so often a service that fails is asked again before its answer counts as one to this record alone
Warn = Callable[[str], None]


class Delivery:
    """One spool on its way. `step` sends what is next; everything it raises passes with time. `is_own`: this process
    writes it."""

    def __init__(
        self, backlog: Backlog, client: Client, preparer: Preparer, *, warn: Warn, root: Path, is_own: bool = True
    ) -> None:
        self.backlog, self.client = backlog, client
        self._warn, self._root = warn, root
        self._attempts = Attempts(backlog, client, preparer, warn, self._refuse, is_own=is_own)
        self._saves = Saves(backlog, client, preparer, self._refuse, root)
        self.waiting: dict[str, str] = {}  # streams that cannot go on just now, and why
        self.refusals = 0
        self._curves = Curves()
        self._patience = PATIENCE if is_own else 0
        self._failed: dict[int, int] = {}  # how often the service has failed over a record, by its number

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
            self._wait(key, str(wait))
        except Forbidden as fault:
            self._wait(key, fault.detail)
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

    def _wait(self, key: str, why: str) -> None:
        self.waiting[key] = why
        self.backlog.say_why(self.waiting)

    def _send(self, key: str, found: Sequence[Framed]) -> None:
        """What belongs together in one go; where that fails over something in it, each by itself."""
        together = _leading(found, COURSE) or found[:1]
        try:
            self._hand_over(key, together)
        except StreamWaits:
            raise
        except Exception as fault:
            if isinstance(fault, CairnError) and passes(fault) and fault.status != 500:
                raise
            if len(together) == 1:
                self._stumbled(together[0], fault)
            else:
                for each in together:
                    self._send(key, [each])
        else:
            self.backlog.ack(key, together[-1].number)

    def _hand_over(self, key: str, found: Sequence[Framed]) -> None:
        if found[0].record.get("kind") not in COURSE:
            self._single(found[0])
            return
        facts = self._attempts.opened(key)
        self._points(facts, [each for each in found if each.record["kind"] == "points"])
        self._saves.send([each for each in found if each.record["kind"] != "points"], facts)

    def _stumbled(self, framed: Framed, fault: Exception) -> None:
        """Sets aside a record that cannot be sent, whatever the fault. Raises what passes, and `StreamWaits`."""
        why = f"{type(fault).__name__}: {fault}"
        if isinstance(fault, LACKS):
            raise StreamWaits(f"this host could not send it ({why})") from fault
        if isinstance(fault, CairnError) and passes(fault):
            self._failed[framed.number] = self._failed.get(framed.number, 0) + 1
            if self._failed[framed.number] <= self._patience:
                raise fault
            raise StreamWaits(f"the service fails over a record of it ({fault.detail})") from fault
        if framed.record.get("kind") == "start":  # without it nothing of the stream has a place: it stays, whole
            detail = fault.detail if isinstance(fault, CairnError) else why
            self._warn(f"the start of run {framed.record.get('run')!r} cannot be sent, and its records wait: {detail}")
            raise StreamWaits(f"its start cannot be sent ({detail})") from fault
        self._refuse(framed.record, None, fault if isinstance(fault, CairnError) else Invalid(why, code="not-sendable"))
        self.backlog.ack(framed.record["key"], framed.number)

    def _single(self, framed: Framed) -> None:
        kind = framed.record.get("kind", "")
        handler = {
            "start": self._attempts.start,
            "attempt": self._attempts.follow,
            "trackers": self._trackers,
            "scores": self._scores,
            "receipt": self._receipt,
            "finish": self._finish,
        }.get(kind if isinstance(kind, str) else "")
        if handler is None:
            raise Invalid(f"A record of kind {kind!r} is not known; update cairn-client.")
        handler(framed)

    def _points(self, facts: dict[str, Any], found: Sequence[Framed]) -> None:
        body = [{**each, "attempt": facts["number"]} for each in stretches(_restfully(found))]
        rest()
        if body:
            record = {**found[0].record, "curves": {}}  # what of them was refused stands in what was sent
            self._curves.send(
                body,
                lambda curves: self.client.record_series(facts["run_id"], curves),
                lambda curves, fault: self._refuse(record, curves, fault),
            )

    def _trackers(self, framed: Framed) -> None:
        record = framed.record
        self.client.create_project(record["project"])
        self.client.create_run(record["project"], record["run"], trackers=record["trackers"])

    def _scores(self, framed: Framed) -> None:
        record = framed.record
        facts = self._attempts.opened(record["key"])
        if (found := self._saved(facts, record)) is not None:
            send_items(
                record["scores"],
                lambda scores: self.client.record_scores(found, scores),
                lambda scores, fault: self._refuse({**record, "scores": scores}, scores, fault),
            )
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
        facts, changes = self._attempts.opened(framed.record["key"]), framed.record["changes"]
        try:
            self.client.patch_attempt(facts["run_id"], facts["number"], **changes)
        except Invalid as fault:
            kept, left_out = without(changes, named_places(fault))
            if not left_out or not kept:
                raise
            self._refuse(framed.record, changes, fault)  # a bad exit code does not keep the attempt running
            self.client.patch_attempt(facts["run_id"], facts["number"], **kept)

    def _refuse(self, record: Record, body: Any, fault: CairnError | str) -> None:
        self.refusals += 1
        facts = self.backlog.stream(record["key"]).facts
        names: Record = {name: facts[name] for name in ("project", "run") if name in facts}
        path = set_aside(self._root, {**names, **record}, body, fault)
        why = (fault if isinstance(fault, str) else str(fault).splitlines()[0]).rstrip(".")
        where = f"It lies in {path}" if path else "It could not be kept"
        who = "this client cannot send" if isinstance(fault, CairnError) and not fault.status else "the service refused"
        of = f" of run {names['run']!r}" if names.get("run") else ""
        what = f"part of a record ({', '.join(left_out)}; " if (left_out := record.get("left_out")) else "a record ("
        self._warn(f"{who} {what}{record.get('kind')}, step {record.get('step')}){of}: {why}. {where}.")


def _restfully(found: Sequence[Framed]) -> Iterator[Record]:
    for each in found:
        rest()
        yield each.record


def _leading(found: Sequence[Framed], kinds: Sequence[str]) -> list[Framed]:
    """Those at the beginning that are of these kinds."""
    first_other = next((at for at, each in enumerate(found) if each.record.get("kind") not in kinds), len(found))
    return list(found[:first_other])
