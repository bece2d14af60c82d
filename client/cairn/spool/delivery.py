"""Sends the records of one spool: in order within an attempt, in batches, each as often as it takes.

Every record has a natural key at the service (project and run by name, attempts by their key, checkpoints by attempt,
step and kind, curves by content), so sending one twice changes nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from cairn.client import Client
from cairn.errors import CairnError, Conflict, ConnectionFailed, Forbidden, Invalid, TooLarge, Unauthenticated
from cairn.spool.attempts import Attempts, StreamWaits
from cairn.spool.backlog import Backlog, Record
from cairn.spool.curves import stretches
from cairn.spool.frames import Framed
from cairn.spool.refused import set_aside
from cairn.spool.unfinished import Save, Unfinished

BATCH = 100
PASSING = frozenset({0, 401, 403, 408, 425, 429, 500, 502, 503, 504})
_PLACE = re.compile(r"/(?P<index>\d+)(/.*)?")
Warn = Callable[[str], None]


class Preparer(Protocol):
    """Makes what is sent for a record that holds only what the call said. It may take its time, and never raises."""

    def start(self, record: Record) -> dict[str, Any]: ...

    def saved(self, record: Record, facts: dict[str, Any]) -> dict[str, Any]: ...

    def again(self, record: Record, item: dict[str, Any]) -> dict[str, Any] | None: ...

    def committed(self, item: dict[str, Any], checkpoint_id: str, facts: dict[str, Any]) -> None: ...


class Delivery:
    """One spool on its way. `step` sends what is next; everything it raises passes with time."""

    def __init__(self, backlog: Backlog, client: Client, preparer: Preparer, *, warn: Warn, root: Path) -> None:
        self.backlog, self.client = backlog, client
        self._preparer, self._warn, self._root = preparer, warn, root
        self._attempts = Attempts(backlog, client, preparer, warn, self._refuse)
        self.waiting: dict[str, str] = {}  # streams that cannot go on just now, and why
        self.refusals = 0
        self._unfinished = Unfinished(root)

    def follow(self, before: "Delivery") -> None:
        """Goes on for the same writer in another folder."""
        self.backlog.follow(before.backlog)
        self.refusals = before.refusals

    def use(self, client: Client) -> None:
        """Goes on with another connection."""
        self.client = self._attempts.client = client

    def step(self) -> bool:
        """Sends the next records; False where nothing can be sent just now.

        Raises `CairnError` where the service cannot be reached, is busy, or does not accept the token at all.
        """
        found = self.backlog.take(BATCH, self.waiting)
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
        except Forbidden as fault:
            self.waiting[key] = fault.detail
            self._warn(f"the service does not let this token record: {fault.detail} The records are kept. {_ADVICE}")

    def retry_waiting(self) -> None:
        """Streams that had to wait are tried again."""
        if self.waiting:
            self.waiting.clear()
            self.backlog.rewind()

    def _send(self, key: str, found: Sequence[Framed]) -> None:
        kind = found[0].record.get("kind", "")
        same = [each for each in found if each.record.get("kind") == kind]
        if kind in ("saving", "saved"):
            self._checkpoints(key, _leading(found, ("saving", "saved")))
        elif kind == "points":
            self._points(key, _leading(found, ("points",)))
        else:
            self._single(key, same[0])

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

    # Checkpoints

    def _checkpoints(self, key: str, found: Sequence[Framed]) -> None:
        facts = self._attempts.opened(key)
        items = [self._item(each, facts) for each in found]
        for _, item, checkpoint_id in self._register(found, items):
            if checkpoint_id and item.get("state") != "pending":
                self._preparer.committed(item, checkpoint_id, facts)
        self.backlog.ack(key, found[-1].number)

    def _item(self, framed: Framed, facts: dict[str, Any]) -> dict[str, Any]:
        """What is sent, the same whenever it is sent again."""
        known = self.backlog.prepared.get(framed.number)
        if known is not None:
            body = known["body"]
        else:
            body = self._preparer.saved(framed.record, facts)
            self.backlog.prepare(framed.number, framed.record["key"], body)
        if framed.record["kind"] == "saved" and body.get("state") == "pending":
            self._unfinished.keep(self.client.url, Save(framed.record, body, facts))
        return {**body, "project": facts["project"], "run": facts["run"], "attempt": facts["number"]}

    def _register(
        self, found: Sequence[Framed], items: Sequence[dict[str, Any]]
    ) -> Sequence[tuple[Framed, dict[str, Any], str]]:
        """Each with its checkpoint's id, '' where it was refused. A batch is all or none: the rest goes again."""
        done: dict[int, str] = {}
        left = list(range(len(items)))
        while left:
            try:
                report = self.client.register_batch([items[place] for place in left])
            except (Invalid, Conflict, TooLarge) as fault:
                refused = _places(fault, len(left))
                if not refused and len(left) > 1:  # it names no item: each by itself
                    for place in left:
                        ((_, _, one),) = self._register([found[place]], [items[place]])
                        done[place] = one
                    break
                for at in refused or {0}:
                    place = left[at]
                    # What `saving` made pending cannot be made pending with more: it is committed once it is whole.
                    if not (isinstance(fault, Conflict) and _is_not_whole(found[place], items[place])):
                        self._refuse(found[place].record, items[place], fault)
                    done[place] = ""
                left = [place for place in left if place not in done]
            except CairnError as fault:
                if passes(fault):
                    raise
                for place in left:
                    self._refuse(found[place].record, items[place], fault)
                    done[place] = ""
                left = []
            else:
                done |= {left[each.index]: each.id for each in report.results}
                left = []
        return [(each, items[at], done.get(at, "")) for at, each in enumerate(found)]

    def look_again(self) -> int:
        """Commits the saves whose files are whole by now, whoever recorded them; how many. Raises `CairnError`."""
        committed = 0
        for save in self._unfinished.saves(self.client.url):
            whole = self._preparer.again(save.record, save.item)
            if whole is None:
                continue
            facts = save.facts
            names = {"project": facts["project"], "run": facts["run"], "attempt": facts["number"]}
            if checkpoint_id := self._commit({**whole, **names}, save):
                self._preparer.committed(whole, checkpoint_id, facts)
                committed += 1
            self._unfinished.drop(save)
        return committed

    def _commit(self, item: dict[str, Any], save: Save) -> str:
        """The checkpoint's id, or '' where the service refuses."""
        try:
            return self.client.register_batch([item]).results[0].id
        except CairnError as fault:
            if passes(fault):
                raise
            self._refuse(save.record, item, fault)
            return ""

    # The rest

    def _points(self, key: str, found: Sequence[Framed]) -> None:
        facts = self._attempts.opened(key)
        body = [{**each, "attempt": facts["number"]} for each in stretches(framed.record for framed in found)]
        try:
            if body:
                self.client.record_series(facts["run_id"], body)
        except CairnError as fault:
            if passes(fault):
                raise
            if len(found) > 1:
                for each in found:
                    self._points(key, [each])
                return
            self._refuse(found[0].record, body, fault)
        self.backlog.ack(key, found[-1].number)

    def _trackers(self, framed: Framed) -> None:
        record = framed.record
        self.client.create_project(record["project"])
        self.client.create_run(record["project"], record["run"], trackers=record["trackers"])

    def _scores(self, framed: Framed) -> None:
        record = framed.record
        facts = self._attempts.opened(record["key"])
        which = f"run.id = '{facts['run_id']}' and attempt = {facts['number']} and step = {record['step']}"
        kind = f" and kind = '{record['checkpoint_kind']}'" if record.get("checkpoint_kind") else ""
        found = self.client.list_checkpoints(filter=which + kind, limit=1).items
        if found:
            self.client.record_scores(found[0], record["scores"])
        else:
            self._refuse(record, None, f"no checkpoint of this attempt stands at step {record['step']}")

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
        path = set_aside(self._root, record, body, fault)
        why = (fault if isinstance(fault, str) else str(fault).splitlines()[0]).rstrip(".")
        where = f"It lies in {path}" if path else "It could not be kept"
        self._warn(f"the service refused a record ({record.get('kind')}, step {record.get('step')}): {why}. {where}.")


_ADVICE = "Set CAIRN_TOKEN or run `cairn login`; then `cairn spool flush`, or the next start, sends them."


def _is_not_whole(framed: Framed, item: Mapping[str, Any]) -> bool:
    return framed.record["kind"] == "saved" and item.get("state") == "pending"


def passes(fault: CairnError) -> bool:
    """Whether the same may be accepted later."""
    return (
        isinstance(fault, (ConnectionFailed, Unauthenticated, Forbidden))
        or fault.status in PASSING
        or fault.status >= 500
    )


def _leading(found: Sequence[Framed], kinds: Sequence[str]) -> list[Framed]:
    """Those at the beginning that are of these kinds."""
    first_other = next((at for at, each in enumerate(found) if each.record.get("kind") not in kinds), len(found))
    return list(found[:first_other])


def _places(fault: CairnError, count: int) -> set[int]:
    """The places of a batch that a refusal names."""
    matches = (_PLACE.fullmatch(each.pointer) for each in fault.errors)
    return {int(found["index"]) for found in matches if found and int(found["index"]) < count}
