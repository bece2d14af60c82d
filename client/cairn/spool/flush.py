"""What lies in spools on this host (and wherever the root is mounted), and sending it by hand."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairn.client import Client
from cairn.spool.adopted import Adopted, adopt
from cairn.spool.attempts import DECISION
from cairn.spool.backlog import Backlog
from cairn.spool.delivery import Delivery
from cairn.spool.lease import is_alive, newest_lease, read_owner
from cairn.spool.places import roots, spool_folders
from cairn.spool.refused import Refusal, refusals
from cairn.spool.unfinished import FOLDER as UNFINISHED
from cairn.spool.unfinished import Save, Unfinished
from cairn.supervise.kept import FOLDER as JOBS
from cairn.supervise.kept import Left, left_in
from cairn.supervise.sending import send_left


@dataclass(frozen=True)
class SpoolState:
    """One spool: whose it is, whether its owner lives, and how many records wait in it, of which runs."""

    folder: Path
    host: str
    pid: int
    is_alive: bool
    waiting: int
    runs: tuple[str, ...]
    oldest_at: str


@dataclass
class Flushed:
    """What a flush did. `kept` says per spool what waits for a decision or a permission; `said` what to know."""

    sent: int = 0
    spools: int = 0
    kept: list[tuple[Path, str]] = field(default_factory=list)
    refused: int = 0
    committed: int = 0  # saves whose files were not whole when they were recorded
    said: list[str] = field(default_factory=list)


def list_spools(places: Sequence[Path] | None = None) -> list[SpoolState]:
    """Every spool that holds records, the oldest first."""
    found = []
    for root in roots() if places is None else places:
        for folder in spool_folders(root):
            state = _state(folder)
            if state is not None:
                found.append(state)
    return found


def list_refused(places: Sequence[Path] | None = None) -> list[Refusal]:
    """What the service has refused, the oldest first."""
    return [each for root in (roots() if places is None else places) for each in refusals(root)]


def list_unfinished(places: Sequence[Path] | None = None) -> list[Save]:
    """Saves whose files were not whole when somebody last looked."""
    return [each for root in (roots() if places is None else places) for each in Unfinished(root).saves()]


def list_jobs(places: Sequence[Path] | None = None) -> list[Left]:
    """What jobs of `cairn exec` could not send."""
    return [each for root in (roots() if places is None else places) for each in left_in(root / JOBS)]


def decide(folder: Path, said: Mapping[str, Any]) -> None:
    """Says what an attempt loaded whose records wait for that: `{"restart": true}` or `{"resumed_from": {...}}`.

    The owner of the spool finds it, or whoever flushes. Raises OSError.
    """
    scratch = folder / f".{DECISION}"
    scratch.write_text(json.dumps(dict(said)), encoding="utf-8")
    os.replace(scratch, folder / DECISION)


def flush(
    client: Client,
    places: Sequence[Path] | None = None,
    *,
    only: Path | None = None,
    meant: Mapping[str, Any] | None = None,
) -> Flushed:
    """Sends what dead processes and earlier jobs of `cairn exec` have left, and looks again at saves whose files were
    not whole. `only`: nothing but this spool. `meant`: see `decide`; for jobs of `cairn exec`.

    Raises `CairnError` where the service cannot be reached or is too busy: then what was not sent stays, for the next
    flush or start.
    """
    from cairn.recorder.prepare import Prepared

    def preparer() -> Prepared:
        return Prepared(done.said.append, own=False)

    done = Flushed()
    where = list(roots() if places is None else places)
    found = adopt(where, None, client, preparer, done.said.append, only=only)
    try:
        for each in found:
            _flush_one(each, done)
    finally:
        for each in found:
            each.lease.release()
    for root in where if only is None else ():
        _look_again(Delivery(Backlog(root / UNFINISHED), client, preparer(), warn=done.said.append, root=root), done)
        _flush_jobs(root / JOBS, client, done, meant)
    return done


def _flush_one(each: Adopted, done: Flushed) -> None:
    before = each.delivery.backlog.count()
    while each.step():
        pass
    each.finish()
    left = each.delivery.backlog.count() if each.folder.exists() else 0
    done.sent += before - left - each.delivery.refusals
    done.refused += each.delivery.refusals
    done.spools += 1 if before else 0
    done.kept += [(each.folder, why) for why in dict.fromkeys(each.delivery.waiting.values())]


def _look_again(delivery: Delivery, done: Flushed) -> None:
    done.committed += delivery.look_again()
    done.refused += delivery.refusals


def _flush_jobs(folder: Path, client: Client, done: Flushed, meant: Mapping[str, Any] | None) -> None:
    for left in left_in(folder):
        if not left.is_for(client.url):
            continue
        sent, refused = send_left(left, client, done.said.append, meant)
        done.sent, done.refused, done.spools = done.sent + sent, done.refused + refused, done.spools + 1
        if left.requests:
            done.kept.append((left.path, f"nobody said what a job of run {left.run!r} loaded"))


def _state(folder: Path) -> SpoolState | None:
    backlog = Backlog(folder)
    waiting, runs, oldest = 0, {}, ""
    for each in backlog.records():
        record = each.record
        if "project" in record and "run" in record:
            runs[record["key"]] = f"{record['project']}/{record['run']}"
        if each.number > backlog.stream(record["key"]).done:
            waiting += 1
            oldest = oldest or record.get("saved_at") or record.get("started_at") or record.get("t") or ""
    try:
        number = newest_lease(folder)
    except OSError:
        return None
    owner = read_owner(folder, number)
    alive = number > 0 and is_alive(folder, number)
    if not waiting and not alive:
        return None
    names = tuple(dict.fromkeys([*runs.values(), *(_named(each.facts) for each in backlog.streams.values())]))
    host, pid = (owner.host, owner.pid) if owner else ("?", 0)
    return SpoolState(folder, host, pid, alive, waiting, tuple(name for name in names if name), oldest)


def _named(facts: Mapping[str, Any]) -> str:
    return f"{facts['project']}/{facts['run']}" if "run" in facts else ""
