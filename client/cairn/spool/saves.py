"""Sends what was saved, and looks again at saves whose files were not whole."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from cairn.client import Client
from cairn.errors import CairnError, Conflict, Invalid, TooLarge
from cairn.pace import rest
from cairn.spool.backlog import Backlog, Record
from cairn.spool.frames import Framed
from cairn.spool.partly import Place, named_places, without
from cairn.spool.refused import passes
from cairn.spool.unfinished import Save, Unfinished

_log = logging.getLogger("cairn")
Refuse = Callable[[Record, Any, CairnError | str], None]


class Preparer(Protocol):
    """Makes what is sent for a record that holds only what the call said. It may take its time, and never raises."""

    def start(self, record: Record) -> dict[str, Any]: ...

    def saved(self, record: Record, facts: dict[str, Any]) -> dict[str, Any]: ...

    def again(self, record: Record, item: dict[str, Any]) -> dict[str, Any] | None: ...

    def committed(self, item: dict[str, Any], checkpoint_id: str, facts: dict[str, Any]) -> None: ...


class Saves:
    """The checkpoints of one spool. Everything that it raises passes with time."""

    def __init__(self, backlog: Backlog, client: Client, preparer: Preparer, refuse: Refuse, root: Path) -> None:
        self.client = client
        self._backlog, self._preparer, self._refuse = backlog, preparer, refuse
        self._unfinished = Unfinished(root)

    def send(self, found: Sequence[Framed], facts: dict[str, Any]) -> None:
        """Registers the `saving` and `saved` records of one attempt. Raises `CairnError`."""
        items = [self._item(each, facts) for each in found]
        rest()
        for _, item, checkpoint_id in self._register(found, items):
            rest()
            if checkpoint_id and item.get("state") != "pending":
                self._preparer.committed(item, checkpoint_id, facts)

    def look_again(self, run: str | None = None, forget: Callable[[Save], bool] = lambda save: False) -> int:
        """Commits the saves (of one run, or of any) whose files are whole by now, whoever recorded them; how many.
        `forget`: which are not looked at any more. Raises `CairnError`."""
        committed = 0
        for save in self._unfinished.saves(self.client.url):
            if run is not None and run not in (save.run, save.facts.get("run_id")):
                continue
            if forget(save):
                self._unfinished.drop(save)
                continue
            try:
                committed += self._look_at(save)
            except CairnError:
                raise
            except Exception:  # what lies there is no save of ours, or is damaged: the next may be sound
                _log.debug("an unfinished save could not be looked at: %s", save.path, exc_info=True)
        return committed

    def _look_at(self, save: Save) -> bool:
        """Commits it if it is whole; whether it was. Raises `CairnError`."""
        whole = self._preparer.again(save.record, save.item)
        if whole is None:
            return False
        facts = save.facts
        names = {"project": facts["project"], "run": facts["run"], "attempt": facts["number"]}
        checkpoint_id = self._commit({**whole, **names}, save)
        if checkpoint_id:
            self._measure(checkpoint_id, whole)
            self._preparer.committed(whole, checkpoint_id, facts)
        self._unfinished.drop(save)
        return bool(checkpoint_id)

    def _item(self, framed: Framed, facts: dict[str, Any]) -> dict[str, Any]:
        """What is sent, the same whenever it is sent again."""
        rest()
        known = self._backlog.prepared.get(framed.number)
        if known is not None:
            body = known["body"]
        else:
            body = self._preparer.saved(framed.record, facts)
            self._backlog.prepare(framed.number, framed.record["key"], body)
        if framed.record["kind"] == "saved" and body.get("state") == "pending":
            self._unfinished.keep(self.client.url, Save(framed.record, body, facts))
        return {**body, "project": facts["project"], "run": facts["run"], "attempt": facts["number"]}

    def _register(
        self, found: Sequence[Framed], items: list[dict[str, Any]]
    ) -> Sequence[tuple[Framed, dict[str, Any], str]]:
        """Each with its checkpoint's id, '' where it was refused. A batch is all or none: the rest goes again."""
        done: dict[int, str] = {}
        left = list(range(len(items)))
        while left:
            try:
                report = self.client.register_batch([items[place] for place in left])
            except (Invalid, Conflict, TooLarge) as fault:
                if passes(fault):
                    raise
                refused = _places(fault, len(left))
                if not refused and len(left) > 1:  # it names no item: each by itself
                    for place in left:
                        ((_, items[place], done[place]),) = self._register([found[place]], [items[place]])
                    break
                for at, fields in (refused or {0: []}).items():
                    place = left[at]
                    items[place], is_left = self._mended(found[place].record, items[place], fields, fault)
                    if not is_left:
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

    def _mended(
        self, record: Record, item: dict[str, Any], fields: Sequence[Place], fault: CairnError
    ) -> tuple[dict[str, Any], bool]:
        """The item without the fields that were refused, and whether something is left to be sent. What is refused is
        set aside."""
        if isinstance(fault, Conflict) and _is_not_whole(record, item):
            return (
                item,
                False,
            )  # what `saving` made pending cannot be made pending with more: committed once it is whole
        kept, left_out = without(item, fields) if isinstance(fault, Invalid) else (item, [])
        self._refuse({**record, "left_out": left_out} if left_out else record, item, fault)
        return kept, bool(left_out)

    def _commit(self, item: dict[str, Any], save: Save) -> str:
        """The checkpoint's id, or '' where the service refuses."""
        while True:
            try:
                return self.client.register_batch([item]).results[0].id
            except CairnError as fault:
                if passes(fault):
                    raise
                item, is_left = self._mended(save.record, item, _places(fault, 1).get(0, []), fault)
                if not is_left:
                    return ""

    def _measure(self, checkpoint_id: str, whole: dict[str, Any]) -> None:
        """Of a copy that was recorded while it was not whole, only its place is known until now."""
        try:
            self.client.add_replicas(checkpoint_id, whole.get("replicas", ()))
        except CairnError as fault:
            if passes(fault):
                raise


def _is_not_whole(record: Record, item: Mapping[str, Any]) -> bool:
    return record["kind"] == "saved" and item.get("state") == "pending"


def _places(fault: CairnError, count: int) -> dict[int, list[Place]]:
    """The items of a batch that a refusal names, and which of their fields."""
    found: dict[int, list[Place]] = {}
    for place in named_places(fault):
        if place[0].isdigit() and int(place[0]) < count:
            found.setdefault(int(place[0]), []).append(place[1:])
    return found
