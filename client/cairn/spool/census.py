"""What a spool holds of which run, read beside its owner: how much waits, and which saves stand in it.

A record names its run itself or through the attempt to which it belongs: what was acknowledged of that attempt may
stand in no file any more, only in what the spool remembers of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairn.spool.backlog import Backlog
from cairn.spool.lease import is_alive, newest_lease, read_owner
from cairn.spool.places import roots, spool_folders

Record = dict[str, Any]


@dataclass
class Held:
    """One attempt in a spool. `run` is project/run, '' where nothing tells it; `number` None: the service has not
    opened it yet. `saves` are all that stand in the files, `unsent` how many of them the service does not have."""

    folder: Path
    key: str
    service: str = ""
    run: str = ""
    run_id: str = ""
    number: int | None = None
    started_at: str = ""
    waiting: int = 0
    unsent: int = 0
    oldest_at: str = ""
    saves: list[Record] = field(default_factory=list)

    def is_of(self, run: str) -> bool:
        """`run`: project/run, or an id."""
        return run in (self.run, self.run_id)


@dataclass(frozen=True)
class Holder:
    """Whose a spool is, and whether that process lives. `pid` 0: it is not known any more."""

    host: str
    pid: int
    is_alive: bool


def held_in(folder: Path) -> list[Held]:
    """The attempts of one spool, in the order in which they began."""
    backlog = Backlog(folder)
    service = Backlog.service_of(folder)
    found: dict[str, Held] = {}
    for framed in backlog.records():
        record, key = framed.record, framed.record["key"]
        one = found.setdefault(key, Held(folder, key, service))
        _read_names(one, record, found)
        is_waiting = framed.number > backlog.stream(key).done
        if record.get("kind") == "saved" and type(record.get("step")) is int:
            one.saves.append(record)
            one.unsent += is_waiting
        if is_waiting:
            one.waiting += 1
            one.oldest_at = one.oldest_at or _first_text(record, "saved_at", "started_at", "t")
    for key, stream in backlog.streams.items():
        one = found.setdefault(key, Held(folder, key, service))
        facts = stream.facts
        one.run = f"{facts['project']}/{facts['run']}" if "run" in facts else one.run
        one.run_id, one.number = facts.get("run_id", ""), facts.get("number")
    return list(found.values())


def held_here(run: str, places: Sequence[Path] | None = None) -> Iterator[Held]:
    """The attempts of one run in all spools of this host, the oldest spool first."""
    for root in roots() if places is None else places:
        for folder in spool_folders(root):
            yield from (each for each in held_in(folder) if each.is_of(run))


def holder_of(folder: Path) -> Holder | None:
    """None where the folder is gone. A lease that was given up names nobody: who had it before, the lease before it
    or the folder's own name tell."""
    try:
        number = newest_lease(folder)
    except OSError:
        return None
    owners = [read_owner(folder, each) for each in range(number, 0, -1)]
    owner = next((each for each in owners if each is not None), None)
    pid = next((each.pid for each in owners if each is not None and each.pid), 0) or _pid_in_name(folder)
    return Holder(owner.host if owner else "?", pid, number > 0 and is_alive(folder, number))


def _pid_in_name(folder: Path) -> int:
    told = folder.name.rsplit("-", 2)
    return int(told[1]) if len(told) == 3 and told[1].isdigit() else 0


def _read_names(one: Held, record: Record, found: dict[str, Held]) -> None:
    if "project" in record and "run" in record:
        one.run = f"{record['project']}/{record['run']}"
    elif not one.run and (before := found.get(str(record.get("after")))) is not None:
        one.run = before.run
    one.started_at = one.started_at or _first_text(record, "started_at", "at")


def _first_text(record: Record, *names: str) -> str:
    return next((each for name in names if isinstance(each := record.get(name), str) and each), "")
